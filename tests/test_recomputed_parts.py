"""Models that are recomputed by choice: the rows that a change can reach are computed again, from what they need."""

from __future__ import annotations

import random
from contextlib import closing
from datetime import datetime, timedelta

import pytest

from fivm_dbt.engines.duckdb.engine import DuckDbEngine
from fivm_dbt.explain.text import explain
from fivm_dbt.plan.model.plan import Plan, RecomputedPlan
from fivm_dbt.refresh.engine import Row
from fivm_dbt.refresh.report import Report
from fixtures.models import Bench
from fixtures.runs import fast_only
from test_near_changes import AB, FAST, HOURS, QUERIES, UTC, VIENNA, A, at_hour, plan_of, random_row

OTHERS: dict[str, tuple[dict[str, str], str]] = {
    "running total": (A, "select k, ts, sum(v) over (partition by k order by ts) as s from a"),
    "frame": (
        A,
        "select k, d, sum(v) over (partition by k order by d range between 1 preceding and current row) as s from a",
    ),
    "distinct days": (AB, "select distinct a.d from a union select b.d from b"),
    "except": (AB, "select d, k from a except all select d, k from b"),
    "median": (A, "select d, percentile(v, 0.5) as m, count(distinct k) as n from a group by d"),
    "share of all": (AB, "select a.ts, a.v from a where a.v > (select avg(w) from b)"),
    "looks ahead": (
        A,
        "select d, n, lead(n) over (order by d) as l from (select d, count(*) as n from a group by d)",
    ),
    "newest": (A, "select ts, k, v from a where ts is not null order by ts desc, k, v limit 3"),
}
MODELS = {**{n: q for n, q in QUERIES.items() if n not in ("recent", "not in")}, **OTHERS}


def _is_by_parts(report: Report) -> bool:
    return any("REPLACE WHERE" in s for s in report.statements)


@pytest.mark.parametrize(
    "name", fast_only([*[n for n in QUERIES if n not in FAST][::2], *OTHERS], MODELS.keys())
)
def test_is_exact(name: str) -> None:
    tables, sql = MODELS[name]
    rng = random.Random(name)
    by_parts = 0
    plan = plan_of(sql, tables, rng.choice([UTC, VIENNA]), strategy="reevaluate")
    bench = Bench(plan)
    with closing(bench.engine):
        rows: dict[str, list[Row]] = {t: [random_row(rng) for _ in range(8)] for t in tables}
        for item in bench.plan.inputs:
            bench.engine.create_table(item.name, item.relation.columns, rows[item.name], change_feed=True)
        bench.refresh()
        bench.check()
        for _ in range(8):
            for table in rng.sample(sorted(tables), rng.randint(1, len(tables))):
                gone = rng.sample(rows[table], min(len(rows[table]), rng.choice([0, 1, 3])))
                came = [random_row(rng) for _ in range(rng.choice([1, 4]))]
                for row in gone:
                    rows[table].remove(row)
                rows[table] += came
                bench.engine.change(table, insert=came, delete=gone)
            report = bench.refresh()
            assert report.action == "recomputed"
            by_parts += _is_by_parts(report)
            bench.check()
    assert isinstance(plan, RecomputedPlan)
    parts = plan.recompute.parts
    assert by_parts == 0 or parts is not None
    if parts is not None and len(parts.inputs) == len(tables):
        assert by_parts == 8 or any(None in (i.low, i.high) for i in parts.inputs)


@pytest.mark.parametrize(
    ("name", "reaches"),
    [
        ("band", {"a": (0, 0), "b": (-300, 0)}),
        ("running total", {"a": (None, 0)}),
        ("frame", {"a": (-86_400, 0)}),
        ("looks ahead", {"a": (0, None)}),
        ("newest", {"a": (0, None)}),
        ("share of all", {"a": (0, 0)}),
        ("distinct days", {"a": (0, 0), "b": (0, 0)}),
        ("except", {"a": (0, 0), "b": (0, 0)}),
        ("itself", None),
    ],
)
def test_reach(name: str, reaches: dict[str, tuple[int | None, int | None]] | None) -> None:
    """In seconds from the result's own time."""
    tables, sql = MODELS[name]
    plan = plan_of(sql, tables, strategy="reevaluate")
    assert isinstance(plan, RecomputedPlan)
    recompute = plan.recompute
    if reaches is None:
        assert recompute.parts is None
        return
    assert recompute.parts is not None

    def seconds(micros: int | None) -> int | None:
        return None if micros is None else micros // 1_000_000

    assert {i.relation: (seconds(i.low), seconds(i.high)) for i in recompute.parts.inputs} == reaches


def _plan(name: str) -> Plan:
    tables, sql = MODELS[name]
    return plan_of(sql, tables, strategy="reevaluate")


@pytest.mark.parametrize(
    "name",
    fast_only(
        ["band", "frame"], ["band", "band by day", "days of times", "median", "frame", "maximum of a band"]
    ),
)
def test_reads_and_writes_do_not_grow_with_the_history(name: str) -> None:
    bench = Bench(_plan(name), DuckDbEngine())
    rng = random.Random(1)
    with closing(bench.engine):
        for item in bench.plan.inputs:
            rows = [at_hour(hour, rng.randint(0, 9)) for hour in range(HOURS)]
            bench.engine.create_table(item.name, item.relation.columns, rows, change_feed=True)
        bench.refresh()
        for hour in (HOURS, HOURS // 2, 100):
            before = bench.shown()
            bench.engine.change("a", insert=[at_hour(hour, 3)])
            report = bench.refresh()
            assert _is_by_parts(report)
            read = dict(report.scans)
            assert sum(n for t, n in read.items() if t in AB) <= 130, read
            bench.check()
            assert sum((before - bench.shown()).values()) <= 60


def test_running_totals_are_recomputed_from_the_change_on() -> None:
    bench = Bench(_plan("running total"), DuckDbEngine())
    with closing(bench.engine):
        rows = [at_hour(hour, hour) for hour in range(HOURS)]
        bench.engine.create_table("a", bench.plan.inputs[0].relation.columns, rows, change_feed=True)
        bench.refresh()
        for hour, most in ((HOURS, 1), (HOURS - 100, 101)):
            before = bench.shown()
            bench.engine.change("a", insert=[at_hour(hour, 3)])
            assert _is_by_parts(bench.refresh())
            bench.check()
            assert sum((bench.shown() - before).values()) <= most + 1


@pytest.mark.parametrize(
    "what", ["another input", "no feed", "others wrote", "a row without a time", "the clock"]
)
def test_all_is_recomputed(what: str) -> None:
    """Where a change may be anywhere, or the state is not what was left."""
    name = "running total" if what == "a row without a time" else "over a third"
    tables, sql = MODELS[name]
    if what == "the clock":
        sql = "select ts, v from a where ts > now() - interval '3650' days"
        tables = A
    bench = Bench(plan_of(sql, tables, strategy="reevaluate"))
    with closing(bench.engine):
        for item in bench.plan.inputs:
            rows = [(1, datetime(2024, 1, 1) + timedelta(hours=h), None, h) for h in range(5)]
            bench.engine.create_table(item.name, item.relation.columns, rows, change_feed=what != "no feed")
        bench.refresh()
        table = "c" if what == "another input" else "a"
        if what == "others wrote":
            bench.engine.run(f"DELETE FROM {bench.plan.state_relation} WHERE k = 1")
        time = None if what == "a row without a time" else datetime(2024, 1, 1, 3)
        bench.engine.change(table, insert=[(1, time, None, 7)])
        report = bench.refresh()
        assert report.action == "recomputed" and not _is_by_parts(report)
        bench.check()


@pytest.mark.parametrize(
    ("sql", "config"),
    [
        (QUERIES["band"][1], {"fivm_policy": "full"}),
        (QUERIES["band"][1], {"fivm_without": ["time_ranges"], "fivm_strategy": "reevaluate"}),
        ("select a.ts, a.v, row_number() over (order by a.ts) as n from a", {"fivm_strategy": "reevaluate"}),
        ("select a.k, count(*) as n from a group by a.k", {"fivm_strategy": "reevaluate"}),
    ],
)
def test_what_is_always_recomputed_as_a_whole(sql: str, config: dict[str, object]) -> None:
    """What is asked for so, what has no time, and what has several right answers, of which parts are not mixed."""
    plan = plan_of(sql, AB, **{key.removeprefix("fivm_"): value for key, value in config.items()})
    assert isinstance(plan, RecomputedPlan) and plan.recompute.parts is None
    assert "for the rows that these reach" not in explain(plan)


def test_explain_says_how_far_changes_reach() -> None:
    assert "  ts in Δb.ts .. Δb.ts + 5 minutes\n" in explain(_plan("band"))


def test_an_interrupted_recompute_is_done_as_a_whole() -> None:
    from fixtures.models import Interrupted, Interrupting

    tables, sql = MODELS["band"]
    bench = Bench(plan_of(sql, tables, strategy="reevaluate"))
    with closing(bench.engine):
        for item in bench.plan.inputs:
            rows = [at_hour(h, h) for h in range(50)]
            bench.engine.create_table(item.name, item.relation.columns, rows, change_feed=True)
        bench.refresh()
        bench.engine.change("a", insert=[at_hour(40, 2)])
        statements = bench.refresh().statements
        number = next(n for n, s in enumerate(statements, start=1) if s.startswith("INSERT"))
        bench.engine.change("a", insert=[at_hour(41, 2)])
        with pytest.raises(Interrupted):
            bench.refresh(Interrupting(bench.engine, number, after=True))
        bench.refresh()
        bench.check()
