"""A model over an outer join, a window and COUNT(DISTINCT) under ``dbt run``: only the affected keys are read."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dbt_project import Project

pytestmark = pytest.mark.spark

ROWS, CUSTOMERS, BUCKETS = 20_000, 1_000, 32

MODEL = """
{{ config(materialized='fivm', meta={'fivm_buckets': %d}) }}
select segment, count(distinct amount) as amounts, max(amount) as largest
from (
    select c.segment, o.amount, row_number() over (partition by o.customer_id order by o.order_id) as n
    from {{ source('raw', 'orders') }} o left join {{ source('raw', 'customers') }} c on o.customer_id = c.customer_id
) latest
where n <= 5
group by segment
"""

RECOMPUTE = """
select segment, count(distinct amount) as amounts, max(amount) as largest
from (
    select c.segment, o.amount, row_number() over (partition by o.customer_id order by o.order_id) as n
    from raw.orders o left join raw.customers c on o.customer_id = c.customer_id
) latest
where n <= 5
group by segment
"""


def _is_exact(shop: Project) -> bool:
    return shop.rows("by_segment") == shop.rows(RECOMPUTE)


def test_a_dimension_that_changes_is_looked_up(spark: SparkSession, tmp_path: Path) -> None:
    shop = Project.create(spark, tmp_path / "shop", "inner_views", "big_orders")
    (shop.root / "models" / "big_orders.sql").unlink()
    shop.write("models/by_segment.sql", MODEL % BUCKETS)
    shop.sql(
        f"INSERT INTO raw.orders SELECT 10 + id, 10 + pmod(id * 7919, {CUSTOMERS}), date'2024-05-03', "
        f"CAST(id % 997 AS DECIMAL(10,2)) FROM range({ROWS})"
    )
    shop.sql(f"INSERT INTO raw.customers SELECT 10 + id, concat('s', id % 200), 'DE' FROM range({CUSTOMERS})")
    assert shop.dbt("run").actions() == {"by_segment": "built"}
    assert _is_exact(shop)
    explained = shop.dbt("run-operation", "fivm_explain", "--args", "{model: by_segment}").text
    assert "affected keys" in explained and "reads nothing in full" in explained

    shop.sql("DELETE FROM raw.customers WHERE customer_id = 17")
    run = shop.dbt("run")
    assert run.actions() == {"by_segment": "refreshed"}
    assert _is_exact(shop)
    figures = run.figures("by_segment")
    views = {v["relation"].split("__fivm_")[-1]: v for v in figures["inner_views"]}
    assert views["view_2_customers_by_customer_id"]["rows_merged"] == 1
    # The customer's twenty orders, of which five are the first ones.
    assert views["view_3_orders_by_customer_id"]["rows_merged"] == 40
    assert all(v["partitions"] <= 3 for v in views.values())
    assert "of shop" in run.text or "partitions of" in run.text
    # A MERGE reads a touched partition twice, for the files and for the rows; a look-up once.
    share = {s["relation"].split("__fivm_")[-1]: s["rows"] for s in figures["scans"]}
    for relation in ("view_1_orders_by_customer_id", "view_3_orders_by_customer_id"):
        assert share.get(relation, 0) <= 6 * ROWS / BUCKETS, share
    assert not [s for s in figures["scans"] if s["relation"].endswith("_raw.orders")], "orders did not change"
