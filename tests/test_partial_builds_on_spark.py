"""Builds of the parts that changes reach, on Spark: whole files go, or the rows of a part beside what was appended."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from fivm_dbt.catalog import Catalog, Column, Relation
from fivm_dbt.refresh.report import Report
from fivm_dbt.testing.spark_workbench import SparkWorkbench
from fixtures.runs import by_run
from test_near_changes_on_spark import _planned, _refreshed, _run, _with_statistics
from test_partial_builds import build_in_part, refresh_instead

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from fivm_dbt.plan.model.plan import MaintainedPlan

pytestmark = pytest.mark.spark

F = (Column.of("day", "date"), Column.of("shop", "int"), Column.of("amount", "int"))
ROWS_A_DAY, DAYS = 10, 360
SUMS = "select day, shop, sum(amount) as amount, count(*) as n from f group by day, shop"
BEST = (
    "select day, shop, amount from (select *, row_number() over (partition by day order by amount desc, shop) as r "
    "from f) where r <= 3"
)


@pytest.fixture
def workbench(spark: SparkSession) -> Iterator[SparkWorkbench]:
    with closing(SparkWorkbench(spark, "fivm_partial_builds")) as found:
        yield found


def _facts(workbench: SparkWorkbench) -> None:
    _with_statistics(workbench)
    _run(
        workbench,
        "create table f (day date, shop int, amount int) using delta "
        "tblproperties ('delta.enableChangeDataFeed' = 'true')",
    )
    _run(
        workbench,
        "insert into f select /*+ repartition_by_range(12, id) */ "
        f"date_add(date '2023-01-01', int(id div {ROWS_A_DAY})), int(id % 3), int(hash(id) % 100) "
        f"from range({ROWS_A_DAY * DAYS})",
    )


def _rewritten(workbench: SparkWorkbench, month: str) -> None:
    _run(workbench, f"update f set amount = amount + 1 where trunc(day, 'MM') = date '{month}'")


def _read(report: Report) -> int:
    return sum(rows for name, rows in report.scans if name.endswith("f"))


def _in_part(workbench: SparkWorkbench, plan: MaintainedPlan, month: str) -> Report:
    _rewritten(workbench, month)
    report = _refreshed(workbench, plan)
    assert report.action == "rebuilt"
    return report


@pytest.mark.parametrize("sql", by_run([SUMS], long=[BEST]), ids=["sums", "rows of a day"])
def test_a_month(workbench: SparkWorkbench, sql: str, monkeypatch: pytest.MonkeyPatch) -> None:
    in_part = build_in_part(monkeypatch)
    _facts(workbench)
    plan = _planned(workbench, sql, Catalog.of([Relation("f", F)]))
    _refreshed(workbench, plan)
    report = _in_part(workbench, plan, "2023-03-01")
    assert _read(report) < ROWS_A_DAY * (3 * 31 + 3 * DAYS // 12), "the change, and the files of a month"
    replaced = next(text for text in report.statements if "REPLACE WHERE" in text)
    assert "'v2023-03-01'" in replaced and "'v2023-04-01'" not in replaced
    _run(workbench, "insert into f values (date '2023-05-05', 1, 7), (null, 2, 8)")
    _refreshed(workbench, plan)
    _in_part(workbench, plan, "2023-05-01")
    _run(workbench, "delete from f where day between date '2023-04-20' and date '2023-06-10' or day is null")
    _refreshed(workbench, plan)
    assert len(in_part) == 4


def test_beside_what_was_appended(workbench: SparkWorkbench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the tail the rows of the part go, and those of other months stay."""
    in_part = build_in_part(monkeypatch)
    _facts(workbench)
    plan = _planned(workbench, SUMS, Catalog.of([Relation("f", F)]))
    _refreshed(workbench, plan)
    with monkeypatch.context() as patched:
        refresh_instead(patched)
        _run(
            workbench,
            "insert into f values (date '2023-05-05', 1, 7), (date '2023-06-05', 1, 7), (null, 2, 8)",
        )
        assert _refreshed(workbench, plan).action == "refreshed"
    report = _in_part(workbench, plan, "2023-05-01")
    replaced = next(text for text in report.statements if "REPLACE WHERE" in text)
    assert "__fivm_to IN" in replaced, replaced
    _in_part(workbench, plan, "2023-06-01")
    with monkeypatch.context() as patched:
        refresh_instead(patched)
        _run(workbench, "delete from f where day is null or day = date '2023-06-05'")
        assert _refreshed(workbench, plan).action == "refreshed"
    assert len(in_part) == 2
