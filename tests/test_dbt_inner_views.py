"""A model over an outer join, a window and COUNT(DISTINCT) under ``dbt run``: only the affected keys are read."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

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
    assert re.search(
        r"the last build took \d+\.\d s and read 1,00\d rows of \S+customers, 20,0\d\d rows", explained
    )

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


BY_NAME = """
select o.ordered_on, n.country_name, count(*) as orders, sum(o.amount) as revenue
from {{ source('raw', 'orders') }} o
join {{ source('raw', 'customers') }} c on o.customer_id = c.customer_id
join {{ ref('countries') }} n on c.country = n.country
group by o.ordered_on, n.country_name
"""


@pytest.mark.long
def test_auto_keeps_what_pays_until_a_rebuild(spark: SparkSession, tmp_path: Path) -> None:
    """Views over inputs that do not change cost nothing, so that they pay however small these are."""
    shop = Project.create(spark, tmp_path / "shop", "auto_views", "big_orders")
    (shop.root / "models" / "big_orders.sql").unlink()
    static = "{{ config(materialized='fivm', meta={'fivm_static': ['raw.customers', 'countries']}) }}"
    shop.write("models/by_name.sql", static + BY_NAME)
    shop.sql("INSERT INTO raw.customers SELECT 10 + id, 's', 'FR' FROM range(20)")
    shop.dbt("seed")
    recompute = re.sub(
        r"\{\{ \w+\(('raw', )?'(\w+)'\) \}\}", lambda m: ("raw." if m[1] else "shop.") + m[2], BY_NAME
    )
    assert shop.dbt("run").actions() == {"by_name": "built"}
    explained = shop.dbt("run-operation", "fivm_explain", "--args", "{model: by_name}").text
    assert re.search(
        r"of c, n → rows: kept as by_name__fivm_view_1\w+, \d+ rows for 25 that deltas of o would", explained
    )
    details = shop.sql(
        "SELECT get_json_object(__fivm_coverage, '$.detail.measured') FROM shop.by_name__fivm_state "
        "WHERE __fivm_of = 'coverage' ORDER BY __fivm_number DESC"
    )
    sizes = json.loads(details[0][0])["relations"]["auto_views_raw.customers"]
    # Distinct values are counted approximately.
    assert (sizes["rows"], sizes["distinct"]["country"]) == (23, 2) and 20 <= sizes["distinct"][
        "customer_id"
    ] <= 26

    for order in ((5, 12, "2024-05-02", "1.00"), (6, 2, "2024-05-04", "2.00")):
        shop.insert("orders", order)
        run = shop.dbt("run")
        assert run.actions() == {"by_name": "refreshed"}
        read = {s["relation"].split(".")[-1] for s in run.figures("by_name")["scans"]}
        assert "customers" not in read and "countries" not in read
        assert shop.rows("by_name") == shop.rows(recompute)
    assert shop.dbt("run").actions() == {"by_name": "no change"}
    assert shop.dbt("run", "--full-refresh").actions() == {"by_name": "rebuilt"}
    assert shop.rows("by_name") == shop.rows(recompute)

    helper = next(n["unique_id"] for n in _nodes(shop) if n["name"].startswith("by_name__fivm_view_1"))
    assert not shop.dbt("run", "--select", helper.split(".")[-1]).results
    shop.dbt("docs", "generate")
    documented = json.loads((shop.root / "target/catalog.json").read_text())["nodes"][helper]
    assert {"country_name", "customer_id", "__fivm_count"} <= set(documented["columns"])
    (node,) = (n for n in _nodes(shop) if n["unique_id"] == helper)
    assert (
        set(node["columns"]) == set(documented["columns"]) and "sizes may choose" not in node["description"]
    )
    (shop.root / "target").rename(tmp_path / "state")
    cloned = Project(spark, shop.root, "auto_views_cloned")
    sources = (shop.root / "models/sources.yml").read_text()
    cloned.write("models/sources.yml", sources.replace("{{ env_var('SHOP_SCHEMA') }}", shop.schema))
    cloned.write("models/by_name.sql", static.replace("fivm'", "fivm', file_format='delta'", 1) + BY_NAME)
    state = ("--state", str(tmp_path / "state"), "--select", "by_name")
    assert set(cloned.dbt("clone", *state).results) == {"by_name"}
    assert cloned.rows("by_name") == shop.rows("by_name")
    assert cloned.dbt("run", "--defer", *state).actions() == {"by_name": "built"}
    assert cloned.rows("by_name") == shop.rows("by_name")


def _nodes(shop: Project) -> list[dict[str, Any]]:
    return list(json.loads((shop.root / "target/manifest.json").read_text())["nodes"].values())
