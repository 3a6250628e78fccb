"""What dbt offers for any materialization: hooks, documentation, contracts, partial runs, change of materialization."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dbt_project import Project

pytestmark = pytest.mark.spark

BIG_ORDERS = "select order_id, amount from {{ source('raw', 'orders') }} where amount >= 50"


@pytest.fixture
def shop(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> Project:
    """One model, ``big_orders``."""
    return Project.create(spark, tmp_path / "shop", request.node.name.removeprefix("test_"), "big_orders")


def test_hooks_run_around_the_refresh(shop: Project) -> None:
    shop.sql("CREATE TABLE raw.events (what STRING) USING DELTA")
    note = f"insert into {shop.schema}_raw.events values ('%s')"
    count = f"insert into {shop.schema}_raw.events select concat('rows ', count(*)) from {{{{ this }}}}"
    config = f'{{{{ config(pre_hook="{note % "before"}", post_hook=["{count}"]) }}}}\n'
    shop.write("models/big_orders.sql", config + BIG_ORDERS)
    shop.dbt("run")
    assert shop.rows("SELECT * FROM raw.events") == [("before",), ("rows 3",)]


def test_descriptions_are_kept_with_the_view(shop: Project) -> None:
    shop.write("models/big_orders.sql", BIG_ORDERS)
    shop.write(
        "models/docs.yml", _described("Orders of 50 and more, it's those that count", "The order's number")
    )
    shop.dbt("run")
    facts = shop.facts("shop.big_orders")
    assert facts["Comment"] == "Orders of 50 and more, it's those that count"
    assert facts["comment of order_id"] == "The order's number"
    shop.insert("orders", (9, 1, "2024-05-05", "90.00"))
    shop.dbt("run")
    assert len(shop.rows("big_orders")) == 4
    shop.write("models/docs.yml", _described("Large orders", "Number"))
    shop.dbt("run")
    facts = shop.facts("shop.big_orders")
    assert (facts["Comment"], facts["comment of order_id"]) == ("Large orders", "Number")
    shop.insert("orders", (10, 1, "2024-05-05", "91.00"))
    assert shop.dbt("run").actions() == {"big_orders": "refreshed"}


def _described(model: str, column: str) -> str:
    return f"""
models:
  - name: big_orders
    description: "{model}"
    config: {{persist_docs: {{relation: true, columns: true}}}}
    columns: [{{name: order_id, description: "{column}"}}]
"""


def test_contract(shop: Project) -> None:
    contract = """
models:
  - name: big_orders
    config: {{contract: {{enforced: true}}}}
    columns: [{{name: order_id, data_type: int}}, {{name: amount, data_type: "{}"}}]
"""
    shop.write("models/big_orders.sql", BIG_ORDERS)
    shop.write("models/contract.yml", contract.format("decimal(10,2)"))
    shop.dbt("run")
    shop.write("models/contract.yml", contract.format("string"))
    broken = shop.dbt("run", expect=False)
    assert "This model has an enforced contract that failed" in str(broken.results["big_orders"].message)
    assert len(shop.rows("big_orders")) == 3


@pytest.mark.long
def test_a_pattern_that_spark_does_not_know(shop: Project) -> None:
    """Contract, refresh and fivm_exact run it written out."""
    pattern = """
        select customer_id, n, total from {{ source('raw', 'orders') }} match_recognize (
            partition by customer_id order by ordered_on, order_id
            measures count(*) as n, sum(amount) as total
            pattern (low up+) define up as up.amount > prev(up.amount)) as m
    """
    contract = """
models:
  - name: big_orders
    config: {{contract: {{enforced: true}}}}
    data_tests: [fivm.fivm_exact]
    columns:
      - {{name: customer_id, data_type: int}}
      - {{name: n, data_type: bigint}}
      - {{name: total, data_type: "{}"}}
"""
    shop.write("models/big_orders.sql", pattern)
    shop.write("models/contract.yml", contract.format("decimal(20,2)"))
    assert shop.dbt("run").actions() == {"big_orders": "built"}
    shop.insert("orders", (9, 77, "2024-05-05", "1.00"), (10, 77, "2024-05-06", "2.50"))
    assert shop.dbt("run").actions() == {"big_orders": "refreshed"}
    assert (77, 2, Decimal("3.50")) in shop.rows("big_orders")
    shop.dbt("test")
    assert "PARSE_SYNTAX_ERROR" in shop.dbt("show", "--select", "big_orders", expect=False).text
    shown = shop.dbt("show", "--inline", "select total from {{ ref('big_orders') }} where customer_id = 77")
    assert "3.5" in shown.text
    shop.write("models/contract.yml", contract.format("string"))
    broken = shop.dbt("run", expect=False)
    assert "This model has an enforced contract that failed" in str(broken.results["big_orders"].message)


def test_empty_and_sample_never_touch_a_state(shop: Project) -> None:
    """On a new model they make a plain view, which the next ordinary run replaces."""
    shop.dbt("run", "--empty")
    assert shop.rows("big_orders") == []
    assert [name for name in shop.versions() if "_raw." not in name] == []
    assert shop.dbt("run").actions() == {"big_orders": "built"}
    assert len(shop.rows("big_orders")) == 3

    shop.insert("orders", (9, 1, "2024-05-05", "90.00"))
    before = shop.versions()
    for partial in (["--empty"], ["--sample", "1 day"]):
        shop.dbt("run", *partial)
        assert len(shop.rows("big_orders")) == 3
    assert shop.versions() == before
    assert shop.dbt("run").actions() == {"big_orders": "refreshed"}
    assert len(shop.rows("big_orders")) == 4


@pytest.mark.parametrize("other", ["table", "view"])
def test_change_of_materialization(shop: Project, other: str) -> None:
    """What dbt left under the model's name gives way, and the state is gone on with when the model comes back."""
    config = f"{{{{ config(materialized='{other}', file_format='delta') }}}}\n"
    shop.write("models/big_orders.sql", config + BIG_ORDERS)
    shop.dbt("run")
    shop.write("models/big_orders.sql", BIG_ORDERS)
    assert shop.dbt("run").actions() == {"big_orders": "built"}
    shop.write("models/big_orders.sql", config + BIG_ORDERS)
    shop.dbt("run")
    shop.write("models/big_orders.sql", BIG_ORDERS)
    shop.insert("orders", (9, 1, "2024-05-05", "90.00"))
    assert shop.dbt("run").actions() == {"big_orders": "refreshed"}
    assert shop.facts("shop.big_orders")["Type"] == "VIEW"
    assert len(shop.rows("big_orders")) == 4


def test_a_dropped_view_is_put_back(shop: Project) -> None:
    shop.dbt("run")
    shop.sql("DROP VIEW shop.big_orders")
    assert shop.dbt("run").actions() == {"big_orders": "no change"}
    assert len(shop.rows("big_orders")) == 3


def test_operations(shop: Project, capsys: pytest.CaptureFixture[str]) -> None:
    """Users call explain and doctor without the package's name."""
    shop.dbt("run-operation", "fivm_explain", "--args", "{model: big_orders}")
    assert f"== model {shop.schema}.big_orders" in capsys.readouterr().out
    shop.dbt("run-operation", "fivm_explain", "--args", "{model: big_orders, format: html}")
    written = Path(capsys.readouterr().out.strip().splitlines()[-1])
    assert written == shop.root / "target" / "big_orders.html"
    assert "Last refresh" not in written.read_text(encoding="utf-8"), "it was never built"
    shop.dbt("run-operation", "fivm_doctor")
    said = capsys.readouterr().out
    assert f"{shop.schema}_raw.orders (read by big_orders): change feed on" in said
    unknown = shop.dbt("run-operation", "fivm_explain", "--args", "{model: nothing}", expect=False)
    assert "nothing is not a model with materialized='fivm' (there are: big_orders)" in unknown.text


def test_what_a_deleted_model_has_left_is_found_and_dropped(
    shop: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    shop.write("models/gone.sql", BIG_ORDERS)
    shop.dbt("run")
    (shop.root / "models" / "gone.sql").unlink()
    shop.dbt("run-operation", "fivm_clean")
    listed = capsys.readouterr().out
    assert f"view  {shop.schema}.gone, of {shop.schema}.gone" in listed and "big_orders" not in listed
    assert "nothing was dropped" in listed and len(shop.rows("gone")) == 3
    shop.dbt("run-operation", "fivm_clean", "--args", "{dry_run: false}")
    assert f"dropped table {shop.schema}.gone__fivm_state" in capsys.readouterr().out
    left = {name for _, name, is_temporary in shop.sql(f"SHOW TABLES IN {shop.schema}") if not is_temporary}
    assert left == {"big_orders", "big_orders__fivm_state"}
    assert shop.dbt("run").actions() == {"big_orders": "no change"}


def test_without_the_wheel_dbt_says_what_to_install(shop: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    from dbt.adapters.factory import FACTORY

    import dbt_fivm

    shop.dbt("run")
    plugin = FACTORY.plugins["spark"]
    monkeypatch.setattr(plugin, "adapter", plugin.adapter.__mro__[1])
    monkeypatch.setattr(dbt_fivm, "plugins", [])
    run = shop.dbt("run", expect=False)
    assert "FIVM504" in str(run.results["big_orders"].message)
    assert "wheel and pip install it" in str(run.results["big_orders"].message)


def test_the_package_can_be_installed_by_dbt(shop: Project) -> None:
    (shop.root / "dbt_packages" / "fivm").unlink()
    (shop.root / "dbt_packages").rmdir()
    shop.dbt("deps")
    shop.dbt("run")
    listed = shop.dbt("ls", "--select", "package:fivm")
    assert listed.results == {}
