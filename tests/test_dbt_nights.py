"""What happens between two runs that nobody has told fivm of: each line of the table in docs/dbt.md."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dbt_project import Project

pytestmark = [pytest.mark.spark, pytest.mark.long]


def _is_exact(shop: Project, model: str) -> bool:
    wanted = shop.rows("SELECT order_id, customer_id, amount FROM raw.orders WHERE amount >= 50")
    return shop.rows(f"SELECT order_id, customer_id, amount FROM shop.{model}") == wanted


def test_between_two_runs(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shop = Project.create(spark, tmp_path / "shop", "nights", "big_orders")
    assert shop.dbt("run").actions() == {"big_orders": "built"}

    # A column that the model does not read comes, and rows with it.
    shop.sql("ALTER TABLE raw.orders ADD COLUMN note STRING")
    shop.insert("orders", (10, 1, "2024-05-03", "80.00", "new"))
    assert shop.dbt("run").actions() == {"big_orders": "refreshed"} and _is_exact(shop, "big_orders")

    # The model gets another name.
    old = shop.root / "models" / "big_orders.sql"
    old.rename(old.with_name("large_orders.sql"))
    assert shop.dbt("run").actions() == {"large_orders": "built"} and _is_exact(shop, "large_orders")
    shop.dbt("run-operation", "fivm_clean", "--args", "{dry_run: false}")
    assert f"dropped table {shop.schema}.big_orders__fivm_state" in capsys.readouterr().out

    # The schema with the model and its state goes.
    shop.sql(f"DROP SCHEMA {shop.schema} CASCADE")
    assert shop.dbt("run").actions() == {"large_orders": "built"} and _is_exact(shop, "large_orders")

    # Nothing runs for a month, and the versions of the input since then are cleaned up.
    shop.insert("orders", (11, 2, "2024-06-01", "90.00", None))
    shop.sql("DELETE FROM raw.orders WHERE order_id = 2")
    shop.sql("OPTIMIZE raw.orders")
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    try:
        shop.sql("VACUUM raw.orders RETAIN 0 HOURS")
    finally:
        spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")
    again = shop.dbt("run")
    assert again.actions() == {"large_orders": "rebuilt"} and _is_exact(shop, "large_orders")
    assert "the recorded version can no longer be read" in again.figures("large_orders")["reason"]

    # A column that the model reads goes: the run stops, and readers keep the rows.
    before = shop.rows("large_orders")
    shop.sql("ALTER TABLE raw.orders SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    shop.sql("ALTER TABLE raw.orders DROP COLUMN amount")
    failed = shop.dbt("run", expect=False)
    assert "FIVM102" in str(failed.results["large_orders"].message)
    assert shop.rows("large_orders") == before
