"""Reads that are bounded by the times of the changes: exact for every kind of join, and no longer than they need be."""

from __future__ import annotations

import random
from contextlib import closing
from datetime import date, datetime, timedelta

import pytest

from fivm_dbt.catalog import Catalog, SparkType
from fivm_dbt.config import load_config
from fivm_dbt.engines.duckdb.engine import DuckDbEngine
from fivm_dbt.ir.moments import moment
from fivm_dbt.ir.reads import Within
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.plan.planner import plan_model
from fivm_dbt.plan.request import ModelRequest
from fivm_dbt.refresh.engine import Row
from fixtures.models import Bench, Interrupted, Interrupting, relation
from fixtures.runs import by_run, fast_only

UTC = (("timezone", "UTC"),)
VIENNA = (("timezone", "Europe/Vienna"),)

A = {"a": "k int, ts timestamp, d date, v int"}
AB = {**A, "b": "k int, ts timestamp, d date, w int"}
C = {"c": "k int, ts timestamp_ntz, d date, x int"}
AC, ABC = {**A, **C}, {**AB, **C}

QUERIES: dict[str, tuple[dict[str, str], str]] = {
    "equal times": (AB, "select a.k, b.w, a.ts from a join b on a.ts = b.ts"),
    "equal times, also NULL": (AB, "select a.k, b.w from a join b on a.ts <=> b.ts and a.k = b.k"),
    "band": (
        AB,
        "select a.k, a.ts, b.w from a join b on b.ts between a.ts - interval '5' minutes and a.ts and a.k = b.k",
    ),
    "band by day": (
        AB,
        "select a.d, count(*) as n, sum(b.w) as w from a join b on b.d between a.d - 1 and a.d group by a.d",
    ),
    "days of times": (
        AB,
        "select date_trunc('day', a.ts) as day, sum(a.v * b.w) as s from a join b on cast(a.ts as date) = b.d "
        "group by date_trunc('day', a.ts)",
    ),
    "months": (AB, "select a.k, b.w from a join b on trunc(a.d, 'MM') = trunc(b.d, 'MM') and a.k = b.k"),
    "the month after": (AB, "select a.k, b.w from a join b on a.d = add_months(b.d, 1)"),
    "windows": (
        AB,
        "select w.s, b.w from (select window.start as s, count(*) as n from a group by window(ts, '10 minutes')) as w "
        "join b on b.ts between w.s - interval '5' minutes and w.s",
    ),
    "sliding windows": (
        AB,
        "select w.e, w.m, count(*) as n from (select window.end as e, max(v) as m from a "
        "group by window(ts, '20 minutes', '5 minutes', '2 minutes')) as w "
        "left join b on b.ts >= w.e and b.ts < w.e + interval '1' hour group by w.e, w.m",
    ),
    "shifted": (AB, "select a.k, b.w from a join b on a.ts = b.ts + interval '1' hour"),
    "differences": (
        AB,
        "select a.k, b.w from a join b on a.ts - b.ts between interval '0' minutes and interval '10' minutes",
    ),
    "days between": (AB, "select a.k, b.w, a.d from a join b on datediff(a.d, b.d) between 0 and 1"),
    "all earlier": (AB, "select a.k, sum(b.w) as w from a join b on b.ts <= a.ts group by a.k"),
    "over a third": (
        ABC,
        "select a.k, b.w, c.x from a join b on b.ts > a.ts - interval '5' minutes and b.ts <= a.ts "
        "join c on c.d = b.d and c.k = a.k",
    ),
    "local times": (AC, "select a.k, c.x from a join c on c.ts between a.ts - interval '1' hour and a.ts"),
    "left": (
        AB,
        "select a.k, a.ts, b.w from a left join b on b.ts between a.ts - interval '5' minutes and a.ts and a.k = b.k",
    ),
    "left by time alone": (AB, "select a.k, b.w from a left join b on b.ts between a.ts - interval '1' hour and a.ts"),
    "full": (AB, "select a.k, b.w, a.d from a full join b on b.d = a.d and a.k = b.k"),
    "two left joins": (
        ABC,
        "select a.k, b.w, c.x from a left join b on b.ts = a.ts left join c on c.d between a.d - 1 and a.d",
    ),
    "left, then a condition on the right": (
        AB,
        "select a.k, b.w, a.ts from a left join b on b.k = a.k where b.ts > a.ts or b.ts is null",
    ),
    "exists": (
        AB,
        "select a.k, a.ts from a where exists "
        "(select 1 from b where b.ts between a.ts - interval '5' minutes and a.ts)",
    ),
    "not exists": (
        AB,
        "select a.k, a.ts from a where not exists "
        "(select 1 from b where b.ts between a.ts - interval '5' minutes and a.ts)",
    ),
    "not in": (AB, "select a.k, a.d from a where a.d not in (select b.d from b where b.w > 0)"),
    "maximum per day": (A, "select d, max(v) as m from a group by d"),
    "maximum of a band": (
        AB,
        "select a.d, max(b.w) as m from a join b on b.d between a.d - 1 and a.d group by a.d",
    ),
    "joined with a daily sum": (
        AB,
        "select a.k, s.n from a join (select d, sum(w) as n from b group by d) s on s.d = a.d - 1",
    ),
    "joined with a daily maximum": (
        AB,
        "select a.k, s.m from a join (select d, max(w) as m from b group by d) s on s.d between a.d - 1 and a.d",
    ),
    "ranked by day": (
        AB,
        "select b.k, r.n from b join "
        "(select d, rank() over (partition by d order by v) as n from a) r on r.d = b.d",
    ),
    "in a union": (
        ABC,
        "select a.k, u.w from a "
        "join (select d, w from b union all select d, x from c) u on u.d between a.d - 1 and a.d",
    ),
    "a scalar subquery over a band": (
        AB,
        "select a.k, (select sum(b.w) from b where b.ts between a.ts - interval '5' minutes and a.ts) as s from a",
    ),
    "itself": (A, "select x.k, y.v from a x join a y on y.ts between x.ts - interval '5' minutes and x.ts"),
    "a subquery of shifted days": (
        AB,
        "select s.day, sum(b.w) as w from (select date_add(d, 1) as day from a where v > 0) s join b on b.d = s.day "
        "group by s.day",
    ),
    "recent": (
        AB,
        "select a.k, b.w from a join b on a.d = b.d where a.ts >= timestamp '2024-03-30 00:00:00' and b.ts >= a.ts",
    ),
    "counted distinct": (AB, "select a.d, count(distinct b.k) as n from a join b on a.d = b.d group by a.d"),
}  # fmt: skip

_START = datetime(2024, 3, 29, 23, 50)


def plan_of(
    sql: str, tables: dict[str, str], session: tuple[tuple[str, str], ...] = UTC, **meta: object
) -> Plan:
    catalog = Catalog.of([relation(name, columns) for name, columns in tables.items()])
    config = load_config({f"fivm_{key}": value for key, value in meta.items()})
    return plan_model(ModelRequest("analytics.m", sql, catalog, config, session))


def random_row(rng: random.Random) -> Row:
    minutes = rng.choice([0, 5, 10, 60, 1440, 1445, 2900, 45_000]) + rng.choice([0, 0, 1, 5])
    time = None if rng.random() < 0.15 else _START + timedelta(minutes=minutes)
    day = rng.choice(
        [None, date(2024, 2, 29), date(2024, 3, 30), date(2024, 3, 31), date(2024, 4, 1), date(2024, 4, 30)]
    )
    return (rng.choice([None, 1, 2]), time, day, rng.randint(-2, 3))


FAST = list(QUERIES)[::3]
"""Of the others half are recomputed by parts in the fast run of ``test_recomputed_parts.py``."""


@pytest.mark.parametrize("strategy", by_run(["auto"], more=["first_order"], long=["factorized", "recursive"]))
@pytest.mark.parametrize("name", fast_only(FAST, QUERIES.keys()))
def test_is_exact(name: str, strategy: str) -> None:
    """Rows come and go, late ones too, in one table or in several at once; NULL and equal rows among them."""
    tables, sql = QUERIES[name]
    rng = random.Random(f"{name} {strategy}")
    for session in (UTC, VIENNA):
        bench = Bench(plan_of(sql, tables, session, strategy=strategy))
        with closing(bench.engine):
            rows: dict[str, list[Row]] = {
                t: [random_row(rng) for _ in range(rng.choice([0, 8]))] for t in tables
            }
            for item in bench.plan.inputs:
                bench.engine.create_table(item.name, item.relation.columns, rows[item.name], change_feed=True)
            bench.refresh()
            bench.check()
            for _ in range(6):
                for table in rng.sample(sorted(tables), rng.randint(1, len(tables))):
                    gone = rng.sample(rows[table], min(len(rows[table]), rng.choice([0, 0, 1, 3])))
                    came = [random_row(rng) for _ in range(rng.choice([0, 1, 4]))]
                    if rows[table] and rng.random() < 0.3:
                        came.append(rows[table][0])
                    for row in gone:
                        rows[table].remove(row)
                    rows[table] += came
                    if gone or came:
                        bench.engine.change(table, insert=came, delete=gone)
                report = bench.refresh()
                assert report.action in ("refreshed", "no change"), report.reason
                bench.check()


def bounds_of(plan: Plan) -> set[str]:
    nodes = [t.node for v in plan.views for t in v.terms] + [k.node for v in plan.views for k in v.key_sets]
    return {
        f"{n.source.relation}.{b}"
        for node in nodes
        for n in node.walk()
        if isinstance(n, Within)
        for b in n.bounds
    }


def test_what_is_known_of_times() -> None:
    """A few of the bounds in words; all others are judged by the rows that they read, and by exactness."""
    band = plan_of(QUERIES["band"][1], AB)
    assert bounds_of(band) == {"a.ts in Δb.ts .. Δb.ts + 5 minutes", "b.ts in Δa.ts - 5 minutes .. Δa.ts"}
    assert bounds_of(plan_of(QUERIES["band"][1], AB, without=["time_ranges"])) == set()
    assert bounds_of(plan_of(QUERIES["band"][1], AB, static=["b"])) == {"b.ts in Δa.ts - 5 minutes .. Δa.ts"}
    assert "b.ts in Δa.ts or NULL" in bounds_of(plan_of(QUERIES["equal times, also NULL"][1], AB))
    assert bounds_of(plan_of(QUERIES["all earlier"][1], AB)) == {"a.ts in Δb.ts ..", "b.ts in .. Δa.ts"}
    over_two = bounds_of(plan_of(QUERIES["maximum of a band"][1], AB, strategy="first_order"))
    assert "a.d in Δa.d or Δb.d .. Δb.d + 1 day or NULL" in over_two
    # An instant and a local day are up to 18 hours apart, and the day may be longer than others.
    days = bounds_of(plan_of(QUERIES["days of times"][1], AB, VIENNA))
    assert days == {
        "a.ts in Δb.d - 18 hours .. before Δb.d + 42 hours",
        "b.d in after Δa.ts - 42 hours .. Δa.ts + 18 hours",
    }


@pytest.mark.parametrize(
    "sql",
    [
        "select a.k, b.w from a join b on a.k = b.k and (a.ts = b.ts or a.v > 0)",
        "select a.k, b.w from a join b on a.k = b.k and not (a.ts = b.ts)",
        "select a.k, b.w from a left join b on a.k = b.k where coalesce(b.ts, a.ts) = a.ts",
        "select a.k, b.w from a join b on a.k = b.k and a.ts <> b.ts",
        "select a.k, b.w from a join b on a.k = b.k and datediff(month, a.ts, b.ts) between 0 and 1",
        "select a.k, b.w from a join b on a.k = b.k and datediff(day, a.ts, b.ts) between 0 and 1",
        "select a.k, b.w from a join b on a.k = b.k and trunc(a.d, 'HOUR') <=> trunc(b.d, 'HOUR')",
        "select a.k, b.w from a join b on a.k = b.k and a.d + a.k = b.d",
        "select a.k, b.w from a join b on a.k = b.k and cast(a.v as timestamp) = b.ts",
        "select a.k, s.t from a join (select k, max(ts) as t from b group by k) s on s.t = a.ts",
        "select a.k, s.n from a join (select k, ts, count(*) over (partition by k) as n from b) s on s.ts = a.ts",
        "select a.k, s.n from a join (select count(*) as n, max(ts) as t from b) s on s.t = a.ts",
    ],
)
def test_what_only_looks_like_a_bound(sql: str) -> None:
    """What follows from such a condition for a row of a group or a frame does not for the others."""
    of_b = [b for b in bounds_of(plan_of(sql, AB, strategy="first_order")) if b.startswith("b.")]
    assert of_b == []


@pytest.mark.parametrize(
    "sql", ["trunc(r.ts, r.month)", "r.ts + r.day", "timestampadd(day, r.n, r.ts)", "dateadd(r.day, 1, r.ts)"]
)
def test_units_and_distances_that_are_columns_are_not_known(sql: str) -> None:
    types = {"ts": "timestamp", "month": "string", "day": "string", "n": "int"}
    assert moment(Scalar.parse(sql), lambda c: SparkType(types[c[1]]), is_utc=True) is None


HOURS = 24 * 200


def _history(sql: str, tables: dict[str, str], **meta: object) -> Bench:
    """A row of each table per hour, of 200 days."""
    rng = random.Random(3)
    plan = plan_of(sql, tables, **meta)
    bench = Bench(plan, DuckDbEngine())
    for item in plan.inputs:
        rows = [at_hour(hour, rng.randint(0, 9)) for hour in range(HOURS)]
        bench.engine.create_table(item.name, item.relation.columns, rows, change_feed=True)
    bench.refresh()
    return bench


def at_hour(hour: int, value: int) -> Row:
    time = datetime(2024, 1, 1) + timedelta(hours=hour)
    return (value % 2, time, time.date(), value)


@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("band", 4), ("days of times", 60), ("left", 9), ("not exists", 9), ("band by day", 110),
        *(pytest.param(*each, marks=pytest.mark.more) for each in (
            ("exists", 9), ("shifted", 6), ("differences", 6), ("left by time alone", 16)
        )),
    ],
)  # fmt: skip
def test_reads_do_not_grow_with_the_history(name: str, most: int) -> None:
    """Inputs are read around the change: a few hours or days of 200, wherever these are.

    Old rows of what is linear are new ones less the change: what has come is read too, by each of two terms.
    """
    tables, sql = QUERIES[name]
    bench = _history(sql, tables)
    with closing(bench.engine):
        read = {}
        for hour in (HOURS, HOURS // 2, 100):
            for table in tables:
                bench.engine.change(table, insert=[at_hour(hour, 3)])
            scans = dict(bench.refresh().scans)
            read[hour] = sum(n for t, n in scans.items() if t in tables)
            bench.check()
        changes = len(tables)
        assert all(n - changes <= most for n in read.values()), read


def test_changes_far_apart_are_met_in_several_ranges() -> None:
    """An hour of today and one of half a year ago: what lies between them is not read."""
    tables, sql = QUERIES["band"]
    bench = _history(sql, tables)
    with closing(bench.engine):
        bench.engine.change("a", insert=[at_hour(HOURS - 1, 3), at_hour(300, 3), at_hour(HOURS // 2, 4)])
        assert dict(bench.refresh().scans)["b"] == 3
        bench.check()
        bench.engine.change("a", insert=[at_hour(day * 24, 3) for day in range(100)])
        assert dict(bench.refresh().scans)["b"] <= 24 * 100, "a hundred days are sixteen ranges"
        bench.check()
        bench.engine.change("a", insert=[(1, None, None, 1)])
        assert dict(bench.refresh().scans).get("b", 0) == 0, "a row without a time meets nothing"
        bench.check()


def test_without_it_the_history_is_read() -> None:
    tables, sql = QUERIES["band"]
    bench = _history(sql, tables, without=["time_ranges"])
    with closing(bench.engine):
        bench.engine.change("a", insert=[at_hour(HOURS - 1, 3)])
        assert dict(bench.refresh().scans)["b"] == HOURS


def test_a_refresh_that_was_interrupted_is_bounded_too() -> None:
    tables, sql = QUERIES["band"]
    bench = _history(sql, tables)
    with closing(bench.engine):
        bench.engine.change("a", insert=[at_hour(HOURS - 1, 2), at_hour(HOURS - 1, 3)])
        statements = bench.refresh().statements
        number = next(n for n, s in enumerate(statements, start=1) if s.startswith(("MERGE", "INSERT")))
        bench.engine.change("a", insert=[at_hour(HOURS - 2, 2), at_hour(HOURS - 2, 3)])
        with pytest.raises(Interrupted):
            bench.refresh(Interrupting(bench.engine, number, after=False))
        report = bench.refresh()
        assert dict(report.scans)["b"] == 1
        bench.check()


def test_times_beyond_the_calendar_of_literals() -> None:
    """Where a bound cannot be written, that end is open."""
    tables, sql = QUERIES["band"]
    first, last = datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59)
    bench = Bench.built(plan_of(sql, tables), {t: [(1, first, None, 1), (1, last, None, 2)] for t in tables})
    with closing(bench.engine):
        bench.engine.change("a", insert=[(1, last, None, 5)])
        bench.engine.change("b", insert=[(1, first, None, 5)])
        bench.refresh()
        bench.check()


def test_snapshots_and_differences_of_versions() -> None:
    """The change of a table without a feed tells its times too."""
    tables, sql = QUERIES["band"]
    relations = [relation("a", tables["a"], is_recreated=True), relation("b", tables["b"])]
    config = load_config({})
    plan = plan_model(ModelRequest("analytics.m", sql, Catalog.of(relations), config, UTC))
    bench = Bench(plan, DuckDbEngine())
    with closing(bench.engine):
        rows = [at_hour(hour, 1) for hour in range(100)]
        for item in plan.inputs:
            bench.engine.create_table(item.name, item.relation.columns, rows, change_feed=False)
        bench.refresh()
        bench.engine.change("a", insert=[at_hour(99, 3)])
        report = bench.refresh()
        assert [c.capture for c in report.inputs] == ["snapshot"]
        assert dict(report.scans)["b"] == 1
        bench.check()
        bench.engine.change("b", delete=[at_hour(50, 1)])
        report = bench.refresh()
        assert [c.capture for c in report.inputs] == ["version difference"]
        bench.check()
