"""Bounds by the times of changes on Spark: days of a zone in which clocks change, and the files that are skipped."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING

import pytest

from fivm_dbt.catalog import Catalog, Column, KeyRange, Relation, TableStatistics
from fivm_dbt.config import load_config
from fivm_dbt.plan.model.plan import MaintainedPlan, Plan
from fivm_dbt.plan.planner import plan_model
from fivm_dbt.plan.request import ModelRequest
from fivm_dbt.refresh import measure
from fivm_dbt.refresh.compare import difference_sql
from fivm_dbt.refresh.executor import refresh
from fivm_dbt.refresh.report import Report
from fivm_dbt.testing.spark_workbench import SparkWorkbench

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

A = (Column.of("k", "int"), Column.of("ts", "timestamp"))
B = (Column.of("day", "date"), Column.of("ts", "timestamp"), Column.of("w", "int"))


@pytest.fixture
def workbench(spark: SparkSession) -> Iterator[SparkWorkbench]:
    with closing(SparkWorkbench(spark, "fivm_near_changes")) as found:
        yield found


def _seconds(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=timezone.utc).timestamp())


def _plan(workbench: SparkWorkbench, sql: str, zone: str) -> Plan:
    return _planned(workbench, sql, Catalog.of([Relation("a", A), Relation("b", B)]), zone=zone)


def _planned(
    workbench: SparkWorkbench,
    sql: str,
    catalog: Catalog,
    measured: TableStatistics | None = None,
    *,
    zone: str = "UTC",
) -> MaintainedPlan:
    request = ModelRequest("m", sql, catalog, load_config({}), (("timezone", zone),), measured=measured)
    plan = plan_model(request, workbench.describe)
    assert isinstance(plan, MaintainedPlan)
    return plan


def _with_statistics(workbench: SparkWorkbench) -> None:
    for what in ("collect", "skipping"):
        _run(workbench, f"SET spark.databricks.delta.stats.{what} = true")


def _run(workbench: SparkWorkbench, sql: str) -> None:
    workbench.engine.run(sql)


def _refreshed(workbench: SparkWorkbench, plan: Plan) -> Report:
    report = refresh(plan, workbench.engine)
    assert list(workbench.engine.query(difference_sql(plan, workbench.engine))) == []
    return report


def _tables(workbench: SparkWorkbench) -> None:
    for name, columns in (("a", "k int, ts timestamp"), ("b", "day date, ts timestamp, w int")):
        _run(
            workbench,
            f"create table {name} ({columns}) using delta tblproperties ('delta.enableChangeDataFeed' = 'true')",
        )


def _insert(workbench: SparkWorkbench, name: str, *rows: str) -> None:
    _run(workbench, f"insert into {name} values {', '.join(rows)}")


def _shown(workbench: SparkWorkbench, columns: str) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in workbench.engine.query(f"select {columns} from m"))


@pytest.mark.long
def test_days_on_which_clocks_change(workbench: SparkWorkbench) -> None:
    """In Vienna the 31st of March 2024 has 23 hours and the 27th of October 25."""
    _run(workbench, "SET spark.sql.session.timeZone = Europe/Vienna")
    _tables(workbench)
    _insert(workbench, "b", "(date '2024-03-31', null, 1)", "(date '2024-10-27', null, 2)")
    _insert(workbench, "a", f"(1, timestamp_seconds({_seconds('2024-03-30T22:59:59')}))")
    plan = _plan(
        workbench,
        "select b.day, count(*) as n, sum(b.w) as w from a join b on cast(a.ts as date) = b.day group by b.day",
        "Europe/Vienna",
    )
    _refreshed(workbench, plan)
    assert _shown(workbench, "cast(day as string), n, w") == []
    inside = ["2024-03-30T23:00:00", "2024-03-31T21:59:59", "2024-10-26T22:00:00", "2024-10-27T22:59:59"]
    outside = ["2024-03-31T22:00:00", "2024-10-26T21:59:59", "2024-10-27T23:00:00"]
    _insert(workbench, "a", *(f"(2, timestamp_seconds({_seconds(t)}))" for t in (*inside, *outside)))
    _refreshed(workbench, plan)
    assert _shown(workbench, "cast(day as string), n, w") == [("2024-03-31", 2, 2), ("2024-10-27", 2, 4)]
    _insert(
        workbench, "b", "(date '2024-03-30', null, 4)", "(date '2024-10-28', null, 8)", "(null, null, 16)"
    )
    _refreshed(workbench, plan)
    assert _shown(workbench, "cast(day as string), n, w") == [
        ("2024-03-30", 1, 4), ("2024-03-31", 2, 2), ("2024-10-27", 2, 4), ("2024-10-28", 1, 8),
    ]  # fmt: skip
    _run(workbench, f"delete from a where ts = timestamp_seconds({_seconds('2024-10-27T22:59:59')})")
    _refreshed(workbench, plan)
    assert _shown(workbench, "cast(day as string), n, w")[2] == ("2024-10-27", 1, 2)


@pytest.mark.long
def test_a_day_later_in_local_time(workbench: SparkWorkbench) -> None:
    """A day after noon on the 30th of March is noon on the 31st, 23 hours later; minutes are minutes."""
    _run(workbench, "SET spark.sql.session.timeZone = Europe/Vienna")
    _tables(workbench)
    _insert(workbench, "a", f"(1, timestamp_seconds({_seconds('2024-03-30T11:00:00')}))")
    plan = _plan(
        workbench,
        "select a.k, b.w from a left join b on b.ts = a.ts + interval '1' day "
        "or b.ts between a.ts + interval '2' day and a.ts + interval '2' day",
        "Europe/Vienna",
    )
    _refreshed(workbench, plan)
    shifted = _plan(
        workbench, "select a.k, b.w from a join b on b.ts = a.ts + interval '1' day", "Europe/Vienna"
    )
    _insert(workbench, "b", f"(null, timestamp_seconds({_seconds('2024-03-31T10:00:00')}), 7)")
    _refreshed(workbench, plan)
    assert _shown(workbench, "k, w") == [(1, 7)]
    workbench.engine.run("drop view m")
    refresh(shifted, workbench.engine)
    _insert(workbench, "a", f"(2, timestamp_seconds({_seconds('2024-10-26T10:00:00')}))")
    _insert(workbench, "b", f"(null, timestamp_seconds({_seconds('2024-10-27T11:00:00')}), 9)")
    _refreshed(workbench, shifted)
    assert _shown(workbench, "k, w") == [(1, 7), (2, 9)]


@pytest.mark.long
def test_files_of_other_days_are_skipped(workbench: SparkWorkbench) -> None:
    """Of thirty files, one per day, a late minute reads the one that it lies in, or the two that it lies between."""
    _with_statistics(workbench)
    _tables(workbench)
    for day in range(30):
        begin = _seconds("2024-03-01T00:00:00") + 86_400 * day
        _run(
            workbench,
            "insert into b select /*+ COALESCE(1) */ cast(null as date), timestamp_seconds("
            f"{begin} + 864 * id), 1 from range(100)",
        )
    _insert(workbench, "a", f"(1, timestamp_seconds({_seconds('2024-02-01T00:00:00')}))")
    plan = _plan(
        workbench,
        "select a.k, count(*) as n from a join b on b.ts between a.ts - interval '1' hour and a.ts group by a.k",
        "UTC",
    )
    _refreshed(workbench, plan)
    read = {}
    for time in ("2024-03-30T23:00:00", "2024-03-05T12:00:00", "2024-03-05T00:30:00"):
        _insert(workbench, "a", f"(2, timestamp_seconds({_seconds(time)}))")
        scans = _refreshed(workbench, plan).scans
        read[time] = next(rows for name, rows in scans if name.endswith("b"))
    assert read == {"2024-03-30T23:00:00": 100, "2024-03-05T12:00:00": 100, "2024-03-05T00:30:00": 200}


KEYED = {
    "a": (Column.of("id", "bigint"), Column.of("who", "int")),
    "b": (Column.of("of", "int"), Column.of("w", "decimal(10,2)"), Column.of("x", "int")),
}


def test_keys_that_are_counted_up(workbench: SparkWorkbench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files of the log tell in whose order rows lie; new rows read the last files, and write the last range."""
    monkeypatch.setattr(measure, "ORDERED_FROM", 100)
    monkeypatch.setattr(measure, "ORDERED_BYTES", 100)
    _with_statistics(workbench)
    for name, columns in KEYED.items():
        listed = ", ".join(f"{c.name} {c.type}" for c in columns)
        _run(
            workbench,
            f"create table {name} ({listed}) using delta tblproperties ('delta.enableChangeDataFeed' = 'true')",
        )
    ten_files = "/*+ repartition_by_range(10, id) */"
    _run(workbench, f"insert into a select {ten_files} id, int(id % 7) from range(1000)")
    _run(workbench, f"insert into b select {ten_files} int(id div 2), id, int(hash(id)) from range(2000)")
    sql = "select a.id, count(*) as n, sum(b.w) as w from a join b on a.id = b.of group by a.id"
    catalog = Catalog.of([Relation(name, columns) for name, columns in KEYED.items()])

    found = measure.measure(_planned(workbench, sql, catalog), workbench.engine)
    assert dict(found.ranges) == {("a", "id"): KeyRange(0, 999, 1000), ("b", "of"): KeyRange(0, 999, 2000)}
    plan = _planned(workbench, sql, catalog, found)
    assert plan.root.partitioning.ranges_of is not None
    _refreshed(workbench, plan)
    _run(workbench, "insert into a select id, 3 from range(1000, 1004)")
    _run(workbench, "insert into b values (1000, 1, 1), (998, 2, 2), (null, 4, 4), (1003, 8, 8)")
    scans = _refreshed(workbench, plan).scans
    read = {name: sum(rows for n, rows in scans if n.endswith(name)) for name in KEYED}
    assert read["a"] <= 110 and read["b"] <= 220, "a tenth of the files, and what has come"
    _run(workbench, "delete from b where of in (5, 998)")
    _run(workbench, "update a set id = null where id = 17")
    _refreshed(workbench, plan)


A_DAY = 2 * 5 * 30
"""The rows of a few files around each of two changes."""

IN_ORDER = {
    "the row before": ("select k, ts, v, lag(v) over (partition by k order by ts) as before from e", A_DAY),
    "an hour": (
        """
        select k, ts, sum(v) over (partition by k order by ts range between interval '1' hour preceding and current row)
          as s from e
        """,
        A_DAY,
    ),
    "a month": (
        """
        select k, ts, lag(v) over (partition by k order by ts) as before,
          max(v) over (partition by k order by ts range between interval '30' day preceding and current row) as m from e
        """,
        2 * 600,
    ),
    "the day so far": (
        "select k, ts, sum(v) over (partition by k order by ts, v) as s from e",
        600 - 290,
    ),
    "a pattern": (
        """
        select k, n, since from e match_recognize (
          partition by k order by ts measures count(*) as n, first(high.ts) as since
          pattern (high{2,}) define high as high.v > 3) as found
        """,
        A_DAY,
    ),
}
"""Each with how many rows are read at most."""


@pytest.mark.parametrize(("sql", "most"), IN_ORDER.values(), ids=IN_ORDER)
def test_rows_in_the_order_of_time(
    workbench: SparkWorkbench, sql: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A build finds in whose files times lie in order; no copy is kept then, and the days near a change are read."""
    monkeypatch.setattr(measure, "ORDERED_FROM", 100)
    monkeypatch.setattr(measure, "ORDERED_BYTES", 100)
    _with_statistics(workbench)
    columns = (Column.of("k", "int"), Column.of("ts", "timestamp"), Column.of("v", "int"))
    _run(
        workbench,
        "create table e (k int, ts timestamp, v int) using delta "
        "tblproperties ('delta.enableChangeDataFeed' = 'true')",
    )
    start = _seconds("2024-03-01T00:00:00")
    rows = f"int(id % 5), timestamp_seconds({start} + 8640 * id), int(id * 7 % 11)"
    _run(workbench, f"insert into e select /*+ repartition_by_range(20, id) */ {rows} from range(600)")
    catalog = Catalog.of([Relation("e", columns)])

    found = measure.measure(_planned(workbench, sql, catalog), workbench.engine)
    first, last = (1_000_000 * (start + 8640 * n) for n in (0, 599))
    assert dict(found.ranges) == {("e", "ts"): KeyRange(first, last, 600)}
    plan = _planned(workbench, sql, catalog, replace(found, rows=(("e", 30_000_000),)))
    assert not any(view.reason.startswith("the rows") for view in plan.helpers)
    _refreshed(workbench, plan)
    _run(workbench, f"insert into e select {rows} from range(600, 604)")
    _run(workbench, f"delete from e where ts = timestamp_seconds({start} + 8640 * 300)")
    scans = _refreshed(workbench, plan).scans
    assert sum(n for name, n in scans if name == "e" or name.endswith(".e")) <= most, scans
    _run(
        workbench,
        f"update e set v = 9 where ts between timestamp_seconds({start + 86400 * 20}) and "
        f"timestamp_seconds({start + 86400 * 22})",
    )
    _run(workbench, "insert into e values (1, null, 5), (2, null, 5), (null, null, 1)")
    _refreshed(workbench, plan)
