"""Where a refresh would cost more, the parts of a model that changes reach are built: exact, and no more than they."""

from __future__ import annotations

import random
from collections.abc import Mapping
from contextlib import closing
from datetime import date, datetime, timedelta

import pytest

from fivm_dbt.engines.duckdb.engine import DuckDbEngine
from fivm_dbt.naming import state_of
from fivm_dbt.plan.model.plan import MaintainedPlan
from fivm_dbt.plan.recomputed_parts import parts_of_views
from fivm_dbt.refresh import guard
from fivm_dbt.refresh.costs import Costs, Expected
from fivm_dbt.refresh.engine import Row
from fivm_dbt.refresh.history import history
from fivm_dbt.refresh.partial_build import PartialBuild
from fivm_dbt.refresh.reach import Reached, in_whole_partitions, share_of
from fivm_dbt.refresh.report import Report
from fivm_dbt.spark.built_in_part import Part
from fixtures.models import Bench, Interrupted, Interrupting, relation
from fixtures.models import plan_of as plan_over
from fixtures.runs import by_run, fast_only
from test_near_changes import AB, UTC, VIENNA, A, plan_of, random_row

MODELS: dict[str, tuple[dict[str, str], str]] = {
    "months": (A, "select trunc(d, 'MM') as m, k, sum(v) as s from a group by trunc(d, 'MM'), k"),
    "hours": (A, "select date_trunc('hour', ts) as h, count(*) as n from a group by date_trunc('hour', ts)"),
    "days of times": (
        A,
        "select cast(ts as date) as d, max(v) as n, count(distinct k) as c from a group by cast(ts as date)",
    ),
    "months of days": (
        A,
        "select m, count(*) as n, max(s) as x from "
        "(select trunc(d, 'MM') as m, d, sum(v) as s from a group by d) group by m",
    ),
    "days that are joined": (
        AB,
        "select s.d, s.n, t.m from (select d, max(v) as n from a group by d) s "
        "left join (select d, min(w) as m from b group by d) t on s.d = t.d",
    ),
    "a band": (
        AB,
        "select a.d, sum(b.w) as s, count(*) as n from a "
        "join b on b.d between a.d - 2 and a.d + 1 and a.k = b.k group by a.d",
    ),
    "none of the day": (
        AB,
        "select d, k, v from a where not exists (select 1 from b where b.d = a.d and b.w > a.v)",
    ),
    "except": (AB, "select d, k from a except all select d, k from b"),
    "a frame": (
        A,
        "select d, k, sum(v) over (partition by k order by d range between 2 preceding and 1 following) as s from a",
    ),
    "the best": (
        A,
        "select d, k, v from (select *, row_number() over (partition by d, k order by v desc, ts) as r from a) "
        "where r = 1",
    ),
    "two running counts": (
        A,
        "select v, ts, sum(v) over (partition by c order by ts) as s, "
        "count(*) over (partition by 'x' order by ts) as n from (select *, 5 as c from a) q",
    ),
    "another day": (A, "select date_add(d, 3) as e, sum(v) as s from a group by date_add(d, 3)"),
    "no time": (AB, "select a.k, sum(b.w) as w from a join b on a.d = b.d group by a.k"),
}

NOT_IN_PART = frozenset(("no time", "two running counts"))
"""Of the second a row without a time that changes reaches all others, and views do not tell whether one has."""


def build_in_part(monkeypatch: pytest.MonkeyPatch) -> list[Reached]:
    """Whatever is expected of costs, a part is built where it is known; these have been."""
    found: list[Reached] = []

    def judged(
        reached: Reached, partitions: Mapping[str, int], costs: Costs, expected: Expected, *, is_read: bool
    ) -> PartialBuild:
        found.append(reached)
        return PartialBuild(reached, 0.5, Expected(2.0, 1.0))

    monkeypatch.setattr(guard, "may_pay", lambda expected, is_read: True)
    monkeypatch.setattr(guard, "judged", judged)
    return found


def refresh_instead(monkeypatch: pytest.MonkeyPatch) -> None:
    """No part is built."""
    monkeypatch.setattr(guard, "may_pay", lambda expected, is_read: False)


@pytest.fixture
def in_part(monkeypatch: pytest.MonkeyPatch) -> list[Reached]:
    """The parts that are built, wherever one is known."""
    return build_in_part(monkeypatch)


def _row(rng: random.Random) -> Row:
    """A row of one of several months."""
    k, ts, d, v = random_row(rng)
    later = timedelta(days=rng.choice([0, 0, 31, 62, 365]))
    assert ts is None or isinstance(ts, datetime)
    assert d is None or isinstance(d, date)
    return (k, ts and ts + later, d and d + later, v)


@pytest.mark.parametrize(
    "strategy", by_run(["auto"], more=["first_order", "factorized"], long=["recursive", "reevaluate"])
)
@pytest.mark.parametrize("name", fast_only(list(MODELS)[::2], MODELS.keys()))
def test_is_exact(name: str, strategy: str, in_part: list[Reached]) -> None:
    tables, sql = MODELS[name]
    rng = random.Random(f"{name} {strategy}")
    bench = Bench(plan_of(sql, tables, rng.choice([UTC, VIENNA]), strategy=strategy))
    with closing(bench.engine):
        rows = {table: [_row(rng) for _ in range(8)] for table in tables}
        for item in bench.plan.inputs:
            bench.engine.create_table(item.name, item.relation.columns, rows[item.name], change_feed=True)
        bench.refresh()
        bench.check()
        for _ in range(10):
            for table in rng.sample(sorted(tables), rng.randint(1, len(tables))):
                gone = rng.sample(rows[table], min(len(rows[table]), rng.choice([0, 1, 3])))
                bench.exchange(table, rows[table], [_row(rng) for _ in range(rng.choice([1, 4]))], gone)
            report = bench.refresh()
            assert (report.action == "rebuilt") <= bool(in_part)
            bench.check()
    if strategy not in ("recursive", "reevaluate"):
        assert bool(in_part) is (name not in NOT_IN_PART)


FACTS = "day date, shop int, amount int"
SHOPS = "shop int, region string"
SUMS = (
    "select f.day, s.region, sum(f.amount) as amount, count(*) as n "
    "from f join s on f.shop = s.shop group by f.day, s.region"
)
MONTHS, A_DAY = 24, 5


def _day(number: int) -> date:
    return date(2022, 1, 1) + timedelta(days=number)


def _facts() -> list[Row]:
    return [(_day(n // A_DAY), n % 7, n) for n in range(MONTHS * 30 * A_DAY)]


def _bench(engine: DuckDbEngine | None = None, **meta: object) -> Bench:
    plan = plan_over(SUMS, [relation("f", FACTS), relation("s", SHOPS)], dict(meta))
    bench = Bench(plan) if engine is None else Bench(plan, engine)
    shops: list[Row] = [(n, "ab"[n % 2]) for n in range(7)]
    for name, columns, rows in (("f", FACTS, _facts()), ("s", SHOPS, shops)):
        bench.engine.create_table(name, relation(name, columns).columns, rows, change_feed=True)
    return bench


def _after(bench: Bench, seconds: float) -> Report:
    """A refresh, exact, that took so long."""
    report = bench.refresh()
    bench.check()
    bench.took(seconds)
    return report


def _rewritten(bench: Bench, month: int, by: int) -> None:
    """All facts of a month are others, as INSERT OVERWRITE writes them."""
    days = {_day(month * 30 + n) for n in range(30)}
    gone = [row for row in bench.engine.query("select day, shop, amount from f") if row[0] in days]
    bench.engine.change("f", insert=[(d, s, int(str(x)) + by) for d, s, x in gone], delete=gone)


def test_a_month_that_is_written_anew_is_built_anew() -> None:
    """Where that is expected to take less than its delta; a small change is refreshed, and all of it is built whole."""
    bench = _bench()
    _after(bench, 100.0)
    _rewritten(bench, 3, by=1)
    assert _after(bench, 60.0).action == "refreshed"
    _rewritten(bench, 4, by=1)
    report = _after(bench, 9.0)
    assert report.action == "rebuilt"
    assert report.reason == (
        "a refresh is expected to take 60.0 s, a build of 4.2 % of it, which the changes reach, 5.2 s"
    )
    bench.engine.change("f", insert=[(_day(50), 1, 5)])
    small = _after(bench, 1.0)
    assert small.action == "refreshed"
    assert small.expected is not None and small.expected[1] == 100.0, (
        "of what a part took nothing is known here"
    )
    _rewritten(bench, 5, by=1)
    assert _after(bench, 9.0).action == "rebuilt"
    told = history(bench.engine, "analytics.m", state_of("analytics.m"), 5)
    assert [r.action for r in told] == ["rebuilt", "refreshed", "rebuilt", "refreshed", "built"]


def test_what_parts_have_taken_is_believed() -> None:
    """It was expected to take a twelfth of a build, and took most of one."""
    bench = _bench()
    _after(bench, 100.0)
    _rewritten(bench, 3, by=1)
    _after(bench, 60.0)
    actions = []
    for month in range(4, 8):
        _rewritten(bench, month, by=1)
        actions.append(_after(bench, 58.0 if month == 4 else 60.0).action)
    assert actions == ["rebuilt", "refreshed", "refreshed", "refreshed"]


def test_reads_what_the_changes_reach() -> None:
    bench = _bench(DuckDbEngine())
    with closing(bench.engine):
        _after(bench, 100.0)
        _rewritten(bench, 3, by=1)
        _after(bench, 60.0)
        _rewritten(bench, 7, by=1)
        report = _after(bench, 9.0)
        assert report.action == "rebuilt"
        read, changed, months = dict(report.scans), 2 * 30 * A_DAY, 2 * 31 * A_DAY
        assert read["f"] <= 2 * changed + 2 * months, "DuckDB fills a table by reading twice"
        assert read["s"] <= 2 * 7


@pytest.mark.parametrize("shape", by_run(["appended"], more=["merge", "replace"]))
def test_what_was_appended_goes(shape: str, in_part: list[Reached], monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows of the tail that are in the part, and only these; folds come after it as before."""
    meta = {} if shape == "appended" else {"fivm_apply": shape}
    bench = _bench(None, **meta)
    bench.refresh()
    for month in range(6):
        with monkeypatch.context() as patched:
            refresh_instead(patched)
            bench.engine.change(
                "f", insert=[(_day(30 * month + 1), 3, 1), (_day(30 * month + 2), 4, 2), (None, 1, 9)]
            )
            assert bench.refresh().action == "refreshed"
            bench.check()
        bench.engine.change("f", insert=[(_day(30 * month + 1), 3, 1)], delete=[(None, 1, 9)])
        assert bench.refresh().action == "rebuilt"
        bench.check()
    assert len(in_part) == 6


def test_is_cut_off_before_or_after_each_statement(in_part: list[Reached]) -> None:
    for after in (False, True):
        bench = _bench()
        bench.refresh()
        number, is_done = 1, False
        while not is_done:
            _rewritten(bench, 2, by=3)
            try:
                bench.refresh(Interrupting(bench.engine, number, after=after))
                is_done = True
            except Interrupted:
                assert bench.refresh().action in ("rebuilt", "no change")
            bench.check()
            number += 1
        assert number > 3
    assert in_part


def test_a_dimension_without_a_time_reaches_everything(in_part: list[Reached]) -> None:
    bench = _bench()
    bench.refresh()
    bench.engine.change("s", insert=[(1, "c")], delete=[(1, "b")])
    assert bench.refresh().action == "refreshed"
    bench.check()
    assert not in_part


def _part(unit: str, *ranges: tuple[int | None, int | None]) -> Part:
    sql = "select day, count(*) as n from f group by day"
    plan = plan_over(sql, [relation("f", FACTS)], {"batch_size": unit, "event_time": "day"})
    assert isinstance(plan, MaintainedPlan)
    parts = parts_of_views(plan)[plan.top.name]
    return Part(plan.top, parts.column, parts.type, ranges)


_DAY = 86_400_000_000


def test_whole_periods() -> None:
    last_of_february, in_1969 = 31 + 27, -200
    found = in_whole_partitions(_part("month", (last_of_february * _DAY, (last_of_february + 1) * _DAY)))
    assert found.partitions == ("n", "v1970-02-01", "v1970-03-01")
    assert found.ranges == ((31 * _DAY, 90 * _DAY - 1),)
    assert share_of(found, 20) == pytest.approx(59 / (20 * 30.4))
    years = in_whole_partitions(_part("year", (in_1969 * _DAY, in_1969 * _DAY), (0, 0)))
    assert years.partitions == ("n", "v1969-01-01", "v1970-01-01")
    assert in_whole_partitions(_part("day", (5 * _DAY, 6 * _DAY))).partitions == (
        "n",
        "v1970-01-06",
        "v1970-01-07",
    )
    for ranges in (((0, None),), ((-900_000 * _DAY, 0),), ((0, 3_000_000 * _DAY),), ((0, 2000 * _DAY),)):
        assert in_whole_partitions(_part("day", *ranges)).partitions is None
    assert share_of(_part("month", (0, None)), 20) is None
    assert share_of(_part("month", (0, 900 * _DAY)), 20) == 1.0
