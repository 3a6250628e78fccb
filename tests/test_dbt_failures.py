"""A refresh that is cut off after any of its statements: the next run finishes it, exactly once."""

from __future__ import annotations

import _thread
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from dbt_project import Project
from fivm_dbt.engines.spark.engine import SparkEngine

pytestmark = pytest.mark.spark

EXPECTED = """
    SELECT o.ordered_on, upper(c.segment), count(*), sum(o.amount), avg(o.amount)
    FROM raw.orders o JOIN raw.customers c ON o.customer_id = c.customer_id
    WHERE o.amount > 0 GROUP BY ALL"""


class Interrupted(Exception):
    """Thrown in place of a lost connection or a killed process."""


class Interruption:
    """Lets a number of the engine's calls pass, and throws when the last of them has been done."""

    def __init__(self, after: int | None) -> None:
        self.calls: list[str] = []
        self.after = after

    def wrapped(self, call: Any) -> Any:
        def interrupted(engine: SparkEngine, *arguments: Any) -> Any:
            answer = call(engine, *arguments)
            self.calls.append(call.__name__)
            if len(self.calls) == self.after:
                raise Interrupted(f"after {str(arguments[0])[:80]}")
            return answer

        return interrupted


def _run(shop: Project, monkeypatch: pytest.MonkeyPatch, after: int | None) -> Interruption:
    """Run the model, cut off after that many of the calls that send statements."""
    interruption = Interruption(after)
    with monkeypatch.context() as patched:
        for name in ("run", "query", "stage", "stage_all", "defer", "commit"):
            patched.setattr(SparkEngine, name, interruption.wrapped(getattr(SparkEngine, name)))
        shop.dbt("run", "--select", "revenue_by_day", expect=after is None)
    return interruption


@pytest.mark.long
def test_interrupted_after_each_statement(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = Project.create(spark, tmp_path / "shop", "interrupted", "customers", "revenue_by_day")
    model = (shop.root / "models/revenue_by_day.sql").read_text()
    shop.write("models/revenue_by_day.sql", model.replace("ref('customers')", "source('raw', 'customers')"))
    shop.write("models/customers.sql", "{{ config(enabled=false) }} select 1 as x")
    shop.sql("UPDATE raw.customers SET segment = 'A' WHERE customer_id = 1")
    shop.dbt("run")
    _change(shop, 0)
    calls = _run(shop, monkeypatch, None).calls
    assert {"stage_all", "stage", "commit"} <= set(calls), "both changes, the delta, the write"

    for number in range(1, len(calls) + 1):
        _change(shop, number)
        _run(shop, monkeypatch, number)
        # What arrives after the interruption is not mixed up with what was being applied.
        shop.insert("orders", (1000 + number, 2, "2024-06-01", "1.00"))
        run = shop.dbt("run", "--select", "revenue_by_day")
        assert not run.figures("revenue_by_day")["rolled_forward"], "all or nothing has been done"
        assert shop.rows("revenue_by_day") == shop.rows(EXPECTED.replace("upper(c.segment)", "c.segment")), (
            number
        )


def _change(shop: Project, number: int) -> None:
    """Both inputs change: rows come, go and move between groups."""
    shop.insert("orders", (100 + number, 1 + number % 3, f"2024-05-{1 + number % 5:02}", f"{10 + number}.25"))
    shop.sql(f"DELETE FROM raw.orders WHERE order_id = {98 + number}")
    shop.sql(f"UPDATE raw.customers SET segment = 's{number % 4}' WHERE customer_id = {1 + number % 3}")


def test_interrupted_build(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A first build that was cut off is done again, or has been done."""
    shop = Project.create(spark, tmp_path / "shop", "interrupted_build", "customers", "revenue_by_day")
    shop.dbt("run", "--select", "customers")
    _run(shop, monkeypatch, 1)
    shop.insert("orders", (5, 2, "2024-05-02", "99.00"))
    run = shop.dbt("run", "--select", "revenue_by_day")
    assert run.figures("revenue_by_day")["action"] in ("built", "refreshed")
    assert shop.rows("revenue_by_day") == shop.rows(EXPECTED)


def test_an_interrupted_command_is_gone_on_with(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C while the second model is built: dbt waits for its threads, and ends."""
    shop = Project.create(spark, tmp_path / "shop", "interrupted_command", "big_orders")
    shop.write("models/later.sql", "select customer_id from {{ ref('big_orders') }}")
    run, left = SparkEngine.run, [1]

    def impatient(engine: SparkEngine, sql: str) -> None:
        if left and f"{shop.schema}.later__fivm_state" in sql:
            left.pop()
            _thread.interrupt_main()
            time.sleep(1)
        run(engine, sql)

    with monkeypatch.context() as patched:
        patched.setattr(SparkEngine, "run", impatient)
        shop.dbt("run", expect=False)
    assert not left
    done = shop.dbt("run").actions()
    assert done["big_orders"] == "no change" and done["later"] in ("built", "no change")
