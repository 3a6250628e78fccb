"""A lazy model whose result is kept as factors, under dbt: run, test, nodes, docs, models over it, clean-up."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dbt_project import Project

pytestmark = pytest.mark.spark

MODEL = """
{{ config(
    materialized='fivm',
    persist_docs={'columns': true},
    meta={'fivm_result': 'factorized', 'fivm_refresh': 'lazy', 'fivm_buckets': 1},
) }}
select a.customer_id, a.ordered_on, b.segment, count(*) as n, sum(a.amount) as amount
from {{ source('raw', 'orders') }} a join {{ source('raw', 'customers') }} b on a.customer_id = b.customer_id
group by a.customer_id, a.ordered_on, b.segment
"""
TEXT = MODEL[MODEL.index("select") :]
RECOMPUTE = re.sub(r"\{\{ source\('raw', '(\w+)'\) \}\}", r"raw.\1", TEXT)
PROPERTIES = """
models:
  - name: pairs
    description: orders beside their customers
    columns: [{name: segment, description: of the customer}]
    data_tests: [fivm.fivm_exact]
"""
OVER_IT = """
{{ config(materialized='%s') }}
select segment, sum(amount) as amount from {{ ref('pairs') }} group by segment
"""


def test_factors_under_dbt(spark: SparkSession, tmp_path: Path) -> None:
    shop = Project.create(spark, tmp_path / "shop", "factors", "big_orders")
    (shop.root / "models" / "big_orders.sql").unlink()
    shop.write("models/pairs.sql", MODEL)
    shop.write("models/pairs.yml", PROPERTIES)
    assert shop.dbt("build", "--exclude", "resource_type:seed").actions() == {"pairs": "built"}
    built = shop.rows("pairs")
    assert built == shop.rows(RECOMPUTE) and built
    assert shop.facts("factors.pairs")["comment of segment"] == "of the customer"
    assert "pairs__fivm_root" not in {row[1] for row in shop.sql("SHOW TABLES IN factors")}

    shop.insert("orders", (5, 1, "2024-05-03", "2.00"), (6, 2, None, None))
    shop.sql("DELETE FROM raw.customers WHERE customer_id = 3")
    versions = shop.versions()
    run = shop.dbt("run")
    assert run.actions() == {"pairs": "waiting"}
    assert "pairs: waiting: " in run.text and "_raw.orders" in run.text
    assert shop.rows("pairs") == built and shop.versions() == versions
    shop.dbt("test")

    run = shop.dbt("run", "--vars", "{fivm_propagate: true}")
    assert run.actions() == {"pairs": "refreshed"}
    assert shop.rows("pairs") == shop.rows(RECOMPUTE) != built
    shop.dbt("test")
    shop.dbt("run-operation", "fivm_explain", "--args", "{model: pairs, format: html}")
    page = (shop.root / "target" / "pairs.html").read_text(encoding="utf-8")
    assert "Last refresh: number " in page and " rows when built" in page
    listed = shop.dbt("ls", "--resource-type", "model")
    assert listed.success and any("pairs__fivm_view" in line for line in listed.lines)

    # A table over it is a table; a fivm model is refused, with the reason.
    shop.write("models/over_it.sql", OVER_IT % "table")
    assert shop.dbt("run", "--select", "over_it").success
    shop.write("models/over_it.sql", OVER_IT % "fivm")
    refused = shop.dbt("run", "--select", "over_it", expect=False).text
    assert "FIVM303" in refused and "records no changes of its result" in refused

    # What is left of a model that is gone is found by the view, and all that it joins.
    for name in ("pairs.sql", "pairs.yml", "over_it.sql"):
        (shop.root / "models" / name).unlink()
    shop.write("models/other.sql", "{{ config(materialized='view') }} select 1 as one")
    left = shop.dbt("run-operation", "fivm_clean").text
    assert "factors.pairs" in left and "factors.pairs__fivm_view_1" in left
    shop.dbt("run-operation", "fivm_clean", "--args", "{dry_run: false}")
    assert not [row for row in shop.sql("SHOW TABLES IN factors") if str(row[1]).startswith("pairs")]
