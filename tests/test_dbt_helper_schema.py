"""``fivm_helper_schema`` under ``dbt run``: one schema has the models, and another one what is kept of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dbt_project import Project

pytestmark = pytest.mark.spark

BY_SEGMENT = """
{{ config(materialized='fivm') }}
select c.segment, count(distinct o.amount) as amounts
from {{ source('raw', 'orders') }} o join {{ source('raw', 'customers') }} c on o.customer_id = c.customer_id
group by c.segment
"""
LARGEST = "{{ config(materialized='fivm') }} select max(amounts) as most from {{ ref('by_segment') }}"
MODELS = {"by_segment": BY_SEGMENT, "largest": LARGEST}


def _tables(shop: Project, schema: str) -> set[str]:
    return {name for _, name, is_temporary in shop.sql(f"SHOW TABLES IN {schema}") if not is_temporary}


def _is_exact(shop: Project) -> bool:
    counted = (
        "select c.segment, count(distinct o.amount) as amounts from raw.orders o "
        "join raw.customers c on o.customer_id = c.customer_id group by c.segment"
    )
    most = shop.rows(f"select max(amounts) as most from ({counted}) as g")
    return shop.rows("by_segment") == shop.rows(counted) and shop.rows("largest") == most


def test_states_are_in_another_schema(spark: SparkSession, tmp_path: Path) -> None:
    shop = Project.create(spark, tmp_path / "shop", "helper_schema", "big_orders")
    (shop.root / "models" / "big_orders.sql").unlink()
    for name, text in MODELS.items():
        shop.write(f"models/{name}.sql", text)
    file, kept = shop.root / "dbt_project.yml", f"{shop.schema}_kept"
    project = file.read_text()
    meta = "    +meta: {fivm_helper_schema: '{{ target.schema }}_kept'}\n"
    shop.write(file.name, project + meta)
    assert shop.dbt("run").actions() == {"by_segment": "built", "largest": "built"}
    assert _is_exact(shop)
    assert _tables(shop, shop.schema) == {"by_segment", "largest"}
    there = _tables(shop, kept)
    assert {f"{shop.schema}__{name}__fivm_state" for name in MODELS} < there

    shop.insert("orders", (7, 2, "2024-05-02", "1.00"), (8, 2, "2024-05-04", "2.00"))
    shop.sql("DELETE FROM raw.orders WHERE order_id = 1")
    assert shop.dbt("run").actions() == {"by_segment": "refreshed", "largest": "refreshed"}
    assert _is_exact(shop)
    planned = shop.dbt("run-operation", "fivm_plan").text
    assert "by_segment" in planned and "build" not in planned, planned
    told = shop.dbt("run-operation", "fivm_history", "--args", "{model: by_segment}").text
    assert "refreshed" in told and "built" in told, told
    shop.dbt("parse")
    nodes = json.loads((shop.root / "target/manifest.json").read_text())["nodes"].values()
    shown = {node["relation_name"] for node in nodes if "__fivm_view_" in node["name"]}
    assert shown and all(name.startswith(f"{kept}.") for name in shown)
    assert "nothing is left" in shop.dbt("run-operation", "fivm_clean").text

    # Without it states are made beside the models, and what is left is found where one says to look.
    shop.write(file.name, project)
    look = ("run-operation", "fivm_clean", "--args")
    assert "nothing is left" in shop.dbt(*look, f"{{schemas: [{kept}]}}").text
    assert set(shop.dbt("run").actions().values()) == {"rebuilt"}
    assert _is_exact(shop)
    assert shop.dbt("run").actions() == {"by_segment": "no change", "largest": "no change"}
    shop.dbt(*look, f"{{schemas: [{kept}], dry_run: false}}")
    assert _tables(shop, kept) == set()
    assert _is_exact(shop)
