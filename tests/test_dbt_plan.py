"""``fivm plan`` over a project with a connection: it tells what the run does then, and changes nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from dbt_project import Project
from fivm_dbt.cli import main

pytestmark = pytest.mark.spark

BUILT = {"build": "built", "refresh": "refreshed", "rebuild": "rebuilt", "no change": "no change"}


@pytest.fixture(scope="module")
def shop(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Project:
    models = ("big_orders", "customers", "revenue_by_day", "revenue_by_segment")
    shop = Project.create(spark, tmp_path_factory.mktemp("plan") / "shop", "next_run", *models)
    shop.sql("CREATE SCHEMA next_run")
    return shop


def _plan(shop: Project, *arguments: str, expect: int = 0) -> dict[str, Any]:
    """By model what the next run does; every table is as it was."""
    before = shop.versions()
    options = ["--project-dir", str(shop.root), "--profiles-dir", str(shop.root), "--format", "json"]
    told = CliRunner(env={"SHOP_SCHEMA": shop.schema}).invoke(main, ["plan", *options, *arguments])
    assert told.exit_code == expect, told.output
    assert shop.versions() == before
    return {run["model"]: run for run in json.loads(told.stdout)}


def test_a_plan_is_what_the_run_does(shop: Project) -> None:
    first = _plan(shop)
    assert {run["does"] for run in first.values()} == {"build"}
    assert first["revenue_by_segment"]["reason"] == "its first build, after that of next_run.revenue_by_day"
    shop.dbt("run")
    # The table model upstream is written by every run.
    again = _plan(shop)
    assert again["big_orders"]["does"] == "no change"
    assert again["revenue_by_day"]["changes"] == [
        {
            "relation": "next_run.customers",
            "from_version": None,
            "to_version": None,
            "rows": None,
            "recreated": False,
        }
    ]
    alone = _plan(shop, "--exclude", "customers")
    assert {run["does"] for run in alone.values()} == {"no change"}
    shop.insert("orders", (7, 1, "2024-05-03", "99.00"))
    moved = _plan(shop, "--exclude", "customers")
    done = shop.dbt("run", "--exclude", "customers").actions()
    assert {name: BUILT[run["does"]] for name, run in moved.items()} == done
    (change,) = moved["big_orders"]["changes"]
    assert change["relation"] == "next_run_raw.orders" and change["rows"] == 1
    assert moved["big_orders"]["build_seconds"] > 0
    (below,) = moved["revenue_by_segment"]["changes"]
    assert below["to_version"] is None, "what it reads has yet to be refreshed"


@pytest.mark.long
def test_rebuilds_and_refusals(shop: Project) -> None:
    shop.dbt("run", "-s", "big_orders")
    shop.write(
        "models/big_orders.sql", "select order_id from {{ source('raw', 'orders') }} where amount >= 60"
    )
    shop.write("models/odd.sql", "select rand() as r from {{ source('raw', 'orders') }}")
    plan = _plan(shop, "-s", "big_orders odd", expect=1)
    assert plan["big_orders"]["does"] == "rebuild"
    assert "the model's SQL changed" in plan["big_orders"]["reason"]
    assert (plan["odd"]["does"], plan["odd"]["code"]) == ("refused", "FIVM106")
    assert _plan(shop, "-s", "big_orders")["big_orders"]["does"] == "rebuild"
    _plan(shop, "-s", "big_orders", "--strict", expect=1)
    done = shop.dbt("run", "-s", "big_orders").figures("big_orders")
    assert (done["action"], done["reason"]) == ("rebuilt", plan["big_orders"]["reason"])


def test_as_an_operation_of_dbt(shop: Project, capsys: pytest.CaptureFixture[str]) -> None:
    shop.dbt("run-operation", "fivm_plan", "--args", "{models: [big_orders]}")
    assert "big_orders  no change" in capsys.readouterr().out
