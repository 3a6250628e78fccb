"""What one more part of a viewdf model reads of Delta tables, whose files are skipped by what is written of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from benchmarks.part_models import PartModels, initialize, part

from fivm_dbt.catalog import Column
from fivm_dbt.testing.spark_workbench import TINY, SparkWorkbench
from fivm_dbt.testing.workbench import TableSpec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

START = datetime(2024, 1, 1)
STREAM = TableSpec("m", (Column.of("src", "int"), Column.of("ts", "timestamp"), Column.of("loss", "int")))
_TEN = "'j-9', 'j'"
_FIRST, _BEFORE = part("m", "'i'"), part("sums", "'j-1'")
MODELS = {
    "tops": f"select src, max(loss) as top from {part('m')} group by src",
    "sliding": f"select src, max(top) as top from {part('tops', _TEN)} group by src",
    "sums": initialize(f"select src, sum(loss) as lost from {_FIRST} group by src")
    + f"select src, sum(lost) as lost from (select src, sum(loss) as lost from {part('m')} group by src "
    + f"union all select src, lost from {_BEFORE}) as both group by src",
}
SOURCES = 4


@pytest.fixture
def workbench(spark: SparkSession) -> Iterator[SparkWorkbench]:
    skipping = {f"spark.databricks.delta.stats.{key}": "true" for key in ("collect", "skipping")}
    with closing(SparkWorkbench(spark, "fivm_parts_read", settings={**TINY, **skipping})) as found:
        yield found


@pytest.mark.long
def test_one_more_part_reads_the_same_after_any_history(workbench: SparkWorkbench) -> None:
    models = PartModels(workbench, STREAM, "ts")
    workbench.create(STREAM, [])
    for name, sql in MODELS.items():
        models.add(name, sql)
    minutes = 0

    def arrive(many: int) -> dict[str, tuple[int, int | None]]:
        """So many minutes come; by model the statements of its refresh, and the rows that it reads."""
        nonlocal minutes
        times = [START + timedelta(minutes=minutes + n) for n in range(many)]
        workbench.change(STREAM, [(s, t, s + t.minute % 3) for t in times for s in range(SOURCES)], ())
        minutes += many
        reports = {name: models.refresh(name) for name in MODELS}
        return {name: (len(r.statements), r.rows_read) for name, r in reports.items()}

    for many in (20, 10):
        arrive(many)
    early = arrive(1)
    for many in (400, 10):
        arrive(many)
    assert arrive(1) == early
    # The feed is counted and read; of the model below heads tell, and ten parts are read, which lie in two files.
    assert early["tops"] == (2, 2 * SOURCES)
    statements, rows = early["sliding"]
    assert statements == 1
    assert rows is not None and 10 * SOURCES <= rows <= 12 * SOURCES
    assert [list(r) for r in workbench.engine.query("select count(*) from tops")] == [[minutes * SOURCES]]
    expected = (
        "select src, ts, max(loss) over (partition by src order by ts rows between 9 preceding and current row) "
        "as top, row_number() over (partition by src order by ts) as n from m"
    )
    differing = workbench.engine.query(
        f"select count(*) from (select src, top, ts from ({expected}) as e where n >= 10 "
        "except all select src, top, part_timestamp from sliding)"
    )
    assert [list(r) for r in differing] == [[0]]


def test_how_many_rows_new_parts_have(workbench: SparkWorkbench) -> None:
    """Also one without rows, which makes no commit whose rows could be counted."""
    models = PartModels(workbench, STREAM, "ts")
    workbench.create(STREAM, [(s, START, 1) for s in range(SOURCES)])
    models.add("high", f"select src, loss from {part('m')} where loss > 9")
    models.refresh("high")
    for minute, high in enumerate((3, 0, 2, 0, 0), 1):
        time = START + timedelta(minutes=minute)
        workbench.change(STREAM, [(s, time, 10 if s < high else 1) for s in range(SOURCES)], ())
        report = models.refresh("high")
        assert report.parts is not None and (report.parts.rows, report.rows_merged) == (high, high)
    rows = workbench.engine.query(
        "select row_count from high__fivm_parts where relation = 'high' order by part"
    )
    assert [count for (count,) in rows] == [0, 3, 0, 2, 0, 0]
    found = workbench.engine.query(
        "select count(*) from (select src, loss, ts from m where loss > 9 "
        "except all select src, loss, part_timestamp from high)"
    )
    assert [list(r) for r in found] == [[0]]


@pytest.mark.parametrize("length", ["month", pytest.param("week", marks=pytest.mark.long)])
def test_parts_of_a_calendar(workbench: SparkWorkbench, length: str) -> None:
    """Which have no fixed length: a month is complete when rows of the next one come."""
    models = PartModels(workbench, STREAM, "ts", length=length)
    days = [START + timedelta(days=day) for day in range(0, 70, 5)]
    workbench.create(STREAM, [(s, day, 1) for day in days for s in range(2)])
    models.add("totals", f"select src, sum(loss) as lost from {part('m')} group by src", length=length)
    for change in ([], [(0, days[1], 5)], [(1, days[-1] + timedelta(days=60), 7)]):
        workbench.change(STREAM, change, ())
        models.refresh("totals")
        wanted = f"select src, sum(loss), date_trunc('{length}', ts) from m group by src, date_trunc('{length}', ts)"
        stored = "select src, lost, part_timestamp from totals"
        for one, other in ((wanted, stored), (stored, wanted)):
            found = workbench.engine.query(f"select count(*) from ({one} except all {other})")
            assert [list(r) for r in found] == [[0]]
        catalog = "select part_timestamp, row_count from totals__fivm_parts where relation = model and row_count > 0"
        counted = f"select part_timestamp, count(*) from totals group by part_timestamp except {catalog}"
        assert list(workbench.engine.query(counted)) == []


def test_a_late_row_writes_and_tells_what_it_changes(workbench: SparkWorkbench) -> None:
    """What is stored of its period is written anew by one transaction, whose feed has three rows of it."""
    models = PartModels(workbench, STREAM, "ts")
    minutes = [START + timedelta(minutes=minute) for minute in range(30)]
    workbench.create(STREAM, [(s, time, s) for time in minutes for s in range(SOURCES)])
    models.add("tops", MODELS["tops"])
    models.refresh("tops")
    for late in (3, 17):
        time = START + timedelta(minutes=30 + late)
        workbench.change(STREAM, [(1, minutes[late], 50), (2, minutes[late], 0), (3, time, 9)], ())
        report = models.refresh("tops")
        # In which parts rows have come, these parts beside what is stored, and what is written.
        assert len(report.statements) == 3
        assert report.parts is not None and report.parts.rows == SOURCES + 1
        newest = workbench.engine.commits("tops__fivm_state", None)[0].version
        told = workbench.engine.query(
            f"select _change_type, src, top from table_changes('tops__fivm_state', {newest}, {newest}) "
            "where __fivm_view = 'root' order by 1, 2"
        )
        assert [tuple(row) for row in told] == [("delete", 1, 1), ("insert", 1, 50), ("insert", 3, 9)]
        wanted = "select src, max(loss), ts from m group by src, ts"
        stored = "select src, top, part_timestamp from tops"
        for one, other in ((wanted, stored), (stored, wanted)):
            found = workbench.engine.query(f"select count(*) from ({one} except all {other})")
            assert [list(r) for r in found] == [[0]]
