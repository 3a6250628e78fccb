"""``fivm_expose: table`` under ``dbt run``: a table for tools that read no views, with what dbt does for tables."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dbt_project import Project

pytestmark = pytest.mark.spark

BY_DAY = """
{{ config(materialized='fivm'%s) }}
select ordered_on, count(*) as orders, sum(amount) as revenue from {{ source('raw', 'orders') }} group by ordered_on
"""
BEST = "{{ config(materialized='fivm') }} select max(revenue) as best from {{ ref('by_day') }}"
RECOMPUTE = (
    "select ordered_on, count(*) as orders, sum(amount) as revenue from raw.orders group by ordered_on"
)
DOCS = """
models:
  - name: by_day
    description: revenue by day
    config: {persist_docs: {relation: true, columns: true}}
    columns: [{name: revenue, description: "what was paid"}]
"""


def _is_exact(shop: Project) -> bool:
    best = shop.rows(f"select max(revenue) as best from ({RECOMPUTE}) as d")
    return shop.rows("by_day") == shop.rows(RECOMPUTE) and shop.rows("best") == best


def _kind(shop: Project) -> str:
    return shop.facts(f"{shop.schema}.by_day")["Type"]


def _writes(shop: Project) -> list[str]:
    """What has been done to the table, newest first, but for its descriptions."""
    history = shop.sql("DESCRIBE HISTORY shop.by_day")
    operations = [row[4] for row in history]
    return [o for o in operations if o not in ("CHANGE COLUMN", "SET TBLPROPERTIES")]


def test_a_model_that_is_a_table(spark: SparkSession, tmp_path: Path) -> None:
    shop = Project.create(spark, tmp_path / "shop", "exposed", "big_orders")
    (shop.root / "models" / "big_orders.sql").unlink()
    shop.write("models/by_day.sql", BY_DAY % ", meta={'fivm_expose': 'table'}")
    shop.write("models/best.sql", BEST)
    shop.write("models/docs.yml", DOCS)
    assert shop.dbt("run").actions() == {"by_day": "built", "best": "built"}
    assert _is_exact(shop) and _kind(shop) == "MANAGED"

    shop.insert("orders", (7, 2, "2024-05-02", "1.00"), (8, 2, "2024-05-04", "2.00"))
    shop.sql("DELETE FROM raw.orders WHERE order_id = 1")
    assert shop.dbt("run").actions() == {"by_day": "refreshed", "best": "refreshed"}
    assert _is_exact(shop)
    assert _writes(shop)[0] == "MERGE", "descriptions are no reason to copy it anew"
    assert shop.facts(f"{shop.schema}.by_day")["Comment"] == "revenue by day"
    before = len(_writes(shop))
    assert shop.dbt("run").actions() == {"by_day": "no change", "best": "no change"}
    assert len(_writes(shop)) == before
    # A part of the inputs is not for what is maintained.
    shop.dbt("run", "--empty")
    assert _is_exact(shop) and _kind(shop) == "MANAGED"

    # It becomes a view, and a table again, without a build.
    for meta, kind in (("", "VIEW"), (", meta={'fivm_expose': 'table'}", "MANAGED")):
        shop.write("models/by_day.sql", BY_DAY % meta)
        assert shop.dbt("run", "--select", "by_day").actions() == {"by_day": "no change"}
        assert _kind(shop) == kind and shop.rows("by_day") == shop.rows(RECOMPUTE)
