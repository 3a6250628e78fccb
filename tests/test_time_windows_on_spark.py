"""Windows of time on Spark in a zone whose clocks change: refreshes equal recomputes, and windows count days in UTC."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from fivm_dbt.catalog import Catalog, Column, Relation
from fivm_dbt.config import load_config
from fivm_dbt.naming import parts_of
from fivm_dbt.plan.planner import plan_model
from fivm_dbt.plan.request import ModelRequest
from fivm_dbt.refresh.compare import difference_sql
from fivm_dbt.refresh.executor import refresh
from fivm_dbt.testing.load import load_scenarios
from fivm_dbt.testing.replay import replay_scenario
from fivm_dbt.testing.spark_workbench import SparkWorkbench
from fixtures.runs import by_run
from random_windows import random_scenario, random_sessions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

COLUMNS = (Column.of("k", "string"), Column.of("ts", "timestamp"), Column.of("v", "int"))
BY_TIME = "over (partition by k order by ts, v)"
MODELS = {
    "day": (
        "select k, window.start as b, window.end as e, sum(v) as s from r group by k, window(ts, '1 day')",
        "k, unix_seconds(b), unix_seconds(e), s",
    ),
    "sliding": (
        "select window.start as b, max(v) as m from r group by window(ts, '1 day', '12 hours', '1 hour')",
        "unix_seconds(b), m",
    ),
    "session": (
        "select k, session_window.start as b, session_window.end as e, sum(v) as s, max(v) as m from r "
        "group by k, session_window(ts, '1 hour')",
        "k, unix_seconds(b), unix_seconds(e), s, m",
    ),
    "session in aggregates": (
        "select k, session_window.end as e, max(session_window.end) as m, "
        "unix_seconds(min(session_window.start)) as s, count(distinct v) as d, "
        "session_window.end > max(ts) as is_after, count(*) as n "
        "from r group by k, session_window(ts, '1 hour') "
        "having max(session_window.end) > timestamp '2024-03-31 01:00:00'",
        "k, unix_seconds(e), unix_seconds(m), s, d, is_after, n",
    ),
    "rows by themselves": (
        "select k, max(session_window(ts, '1 hour').end) as m, count(*) as n from r group by k",
        "k, unix_seconds(m), n",
    ),
    "sequence": (f"select k, ts, v, lag(v, 2) {BY_TIME} as l from r", "k, unix_seconds(ts), v, l"),
    "running": (
        f"select k, ts, v, sum(v) {BY_TIME} as s, min(v) {BY_TIME} as m, row_number() {BY_TIME} as n, "
        f"first_value(v) {BY_TIME} as f, last(v, true) {BY_TIME} as l from r",
        "k, unix_seconds(ts), v, s, m, n, f, l",
    ),
}
IN_EVERY_RUN = ("sliding", "session", "session in aggregates")


@pytest.fixture
def workbench(spark: SparkSession) -> Iterator[SparkWorkbench]:
    with closing(SparkWorkbench(spark, "fivm_time_windows")) as found:
        yield found


def _seconds(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=timezone.utc).timestamp())


def _row(key: str | None, at: str | None, value: int | None) -> str:
    time = f"timestamp_seconds({_seconds(at)})" if at is not None else "cast(null as timestamp)"
    return f"({'null' if key is None else repr(key)}, {time}, {'null' if value is None else value})"


FIRST = (
    ("a", "2024-03-30T21:30:00", 1), ("a", "2024-03-30T22:30:00", 2), ("a", "2024-03-31T00:30:00", 4),
    ("a", "2024-03-31T01:30:00", 8), ("b", "2024-10-26T23:30:00", 1), ("b", "2024-10-27T00:30:00", 2),
    ("b", "2024-10-27T02:00:00", None), (None, "2024-10-27T22:59:59", 4), ("a", None, 16),
)  # fmt: skip
LATER = (("a", "2024-03-30T23:30:00", 32), ("b", "2024-10-27T01:15:00", 64), ("a", "2024-10-27T23:00:00", 5))


@pytest.mark.parametrize(
    "name", by_run(IN_EVERY_RUN, long=[name for name in MODELS if name not in IN_EVERY_RUN])
)
def test_days_on_which_clocks_change(workbench: SparkWorkbench, name: str) -> None:
    """In Vienna the 31st of March 2024 has 23 hours and the 27th of October 25; late rows join sessions, one splits."""
    run = workbench.engine.run
    run("SET spark.sql.session.timeZone = Europe/Vienna")
    feed = "tblproperties ('delta.enableChangeDataFeed' = 'true')"
    run(f"create table r (k string, ts timestamp, v int) using delta {feed}")
    run(f"insert into r values {', '.join(_row(*row) for row in FIRST)}")
    sql, columns = MODELS[name]
    request = ModelRequest(
        "m",
        sql,
        Catalog.of([Relation("r", COLUMNS)]),
        load_config({"batch_size": "day"}),
        (("timezone", "Europe/Vienna"),),
    )
    plan = plan_model(request, workbench.describe)

    def refreshed() -> set[tuple[object, ...]]:
        refresh(plan, workbench.engine)
        assert list(workbench.engine.query(difference_sql(plan, workbench.engine))) == []
        return {tuple(row) for row in workbench.engine.query(f"select {columns} from m")}

    first = refreshed()
    run(f"insert into r values {', '.join(_row(*row) for row in LATER)}")
    later = refreshed()
    run(f"delete from r where ts = timestamp_seconds({_seconds('2024-03-31T00:30:00')})")
    run(f"update r set v = -1 where ts = timestamp_seconds({_seconds('2024-03-31T01:30:00')})")
    last = refreshed()
    assert len({frozenset(rows) for rows in (first, later, last)}) == 3
    at = _seconds
    if name == "day":
        of_march = {(at("2024-03-30"), at("2024-03-31"), 35), (at("2024-03-31"), at("2024-04-01"), 12)}
        assert {
            row[1:] for row in later if row[0] == "a" and row[1] in (at("2024-03-30"), at("2024-03-31"))
        } == of_march
    if name == "session":
        assert ("a", at("2024-03-30T21:30:00"), at("2024-03-31T02:30:00"), 47, 32) in later
        assert ("a", at("2024-03-30T21:30:00"), at("2024-03-31T00:30:00"), 35, 32) in last


LOCAL = {
    "day": "select k, w.start as b, window_time(w) as e, s "
    "from (select k, window as w, sum(v) as s from r group by k, window(ts, '1 day')) as q",
    "sliding": "select window as w, max(v) as m from r group by window(ts, '1 day', '12 hours', '1 hour')",
    "session": "select session_window.end as e, count(*) as n from r group by session_window(ts, '1 hour')",
}


def test_windows_of_times_without_a_zone(workbench: SparkWorkbench) -> None:
    run = workbench.engine.run
    run("SET spark.sql.session.timeZone = UTC")
    feed = "tblproperties ('delta.enableChangeDataFeed' = 'true')"
    run(f"create table r (k string, ts timestamp_ntz, v int) using delta {feed}")
    run(f"insert into r values {', '.join(_row(*row) for row in FIRST)}")
    catalog = Catalog.of([Relation("r", (COLUMNS[0], Column.of("ts", "timestamp_ntz"), COLUMNS[2]))])
    plans = [
        plan_model(
            ModelRequest(name, sql, catalog, load_config({}), (("timezone", "UTC"),)), workbench.describe
        )
        for name, sql in LOCAL.items()
    ]
    for change in (
        f"insert into r values {', '.join(_row(*row) for row in LATER)}",
        "delete from r where ts = timestamp_ntz'2024-03-31 00:30:00'",
    ):
        for plan in plans:
            refresh(plan, workbench.engine)
            assert list(workbench.engine.query(difference_sql(plan, workbench.engine))) == []
        run(change)
    types = {c.name: c.type.text for c in workbench.engine.describe("select * from day")}
    assert (types["b"], types["e"]) == ("timestamp_ntz", "timestamp_ntz")


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1000, 1008))
@pytest.mark.parametrize("made", [random_scenario, random_sessions])
def test_random_windows_on_spark(
    spark: SparkSession, made: Callable[[int], dict[str, Any]], seed: int, tmp_path: Path
) -> None:
    path = tmp_path / "windows.jsonl"
    path.write_text(json.dumps(made(seed)), encoding="utf-8")
    (located,) = load_scenarios([path])
    result = replay_scenario(located.scenario, lambda: SparkWorkbench(spark, "fivm_random_windows"))
    assert result.outcome == "passed", "\n".join([result.line(), result.message or "", *result.details()])


@pytest.mark.parametrize("type_", by_run(["timestamp"], long=["timestamp_ntz"]))
def test_hours_of_a_zone_are_parts_of_a_model(workbench: SparkWorkbench, type_: str) -> None:
    """On the 27th of October 2024 clocks in Vienna show two o'clock twice: as instants these are two hours."""
    run, zone = workbench.engine.run, "Europe/Vienna"
    run(f"SET spark.sql.session.timeZone = {zone}")
    feed = "tblproperties ('delta.enableChangeDataFeed' = 'true')"
    run(f"create table r (k string, ts {type_}, v int) using delta {feed}")
    run(f"insert into r values {', '.join(_row(*row) for row in FIRST)}")
    sql = "select date_trunc('hour', ts) as h, sum(v) as s from r group by date_trunc('hour', ts)"
    catalog = Catalog.of([Relation("r", (COLUMNS[0], Column.of("ts", type_), COLUMNS[2]))])
    meta = load_config({"batch_size": "hour", "fivm_part_timestamp": True})
    plan = plan_model(ModelRequest("m", sql, catalog, meta, (("timezone", zone),)), workbench.describe)
    for later in LATER:
        refresh(plan, workbench.engine)
        assert list(workbench.engine.query(difference_sql(plan, workbench.engine))) == []
        shown = workbench.engine.query(
            "select unix_seconds(part_timestamp), unix_seconds(h) from m where h is not null"
        )
        assert shown and all(part == hour for part, hour in shown)
        known = workbench.engine.query(f"select unix_seconds(part_timestamp) from {parts_of('m')}")
        assert {part for (part,) in known} >= {part for part, _ in shown}
        run(f"insert into r values {_row(*later)}")
