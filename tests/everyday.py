"""What a project goes through in a day, whatever its connection: changes of both inputs, and what has to hold then."""

from __future__ import annotations

import json

from dbt_project import Project

REVENUE_BY_DAY = """
    SELECT o.ordered_on, c.segment, count(*), sum(o.amount), avg(o.amount)
    FROM raw.orders o JOIN shop.customers c ON o.customer_id = c.customer_id
    WHERE o.amount > 0 GROUP BY ALL"""
AMOUNTS = """
    SELECT c.segment, count(distinct o.amount) AS amounts
    FROM {orders} o JOIN {customers} c ON o.customer_id = c.customer_id GROUP BY c.segment"""


def with_inner_view(shop: Project) -> None:
    """Add a model that keeps an inner view."""
    text = AMOUNTS.format(
        orders="{{ source('raw', 'orders') }}", customers="{{ source('raw', 'customers') }}"
    )
    shop.write("models/amounts_by_segment.sql", "{{ config(materialized='fivm') }}" + text)


def change(shop: Project) -> None:
    """Rows of both inputs come, change and go."""
    shop.insert("orders", (5, 2, "2024-05-02", "99.00"), (6, 9, "2024-05-02", "1.00"))
    shop.sql("UPDATE raw.orders SET amount = 11 WHERE order_id = 1")
    shop.sql("DELETE FROM raw.orders WHERE order_id = 4")
    shop.sql("UPDATE raw.customers SET segment = 'c' WHERE customer_id = 2")


def is_exact(shop: Project) -> bool:
    """Whether two models are as their recomputes; the project's own tests say so of others."""
    amounts = shop.rows(AMOUNTS.format(orders="raw.orders", customers="raw.customers"))
    return (
        shop.rows("revenue_by_day") == shop.rows(REVENUE_BY_DAY)
        and shop.rows("amounts_by_segment") == amounts
    )


def inner_views(shop: Project) -> list[str]:
    """The inner views that dbt knows as nodes, and that can be read."""
    nodes = json.loads((shop.root / "target/manifest.json").read_text())["nodes"].values()
    found = [node["relation_name"] for node in nodes if "__fivm_view_" in node["name"]]
    return [name for name in found if shop.sql(f"SELECT count(*) FROM {name}")[0][0] >= 0]
