"""Rows of closed periods: a pattern keeps of its input what may still be read, and stays what its text gives."""

from __future__ import annotations

import random
from datetime import datetime, timedelta

import pytest

from fivm_dbt.catalog import EventTime, Retention
from fivm_dbt.errors import FivmError
from fivm_dbt.explain.text import explain
from fivm_dbt.parts.length import Length
from fivm_dbt.plan.model.plan import MaintainedPlan
from fivm_dbt.plan.model.view import View
from fivm_dbt.plan.recomputed_parts import inputs_in_part, parts_of_views
from fivm_dbt.refresh.engine import Row
from fixtures.models import Bench, plan_of, relation
from fixtures.runs import by_run
from random_matches import random_clause

COLUMNS = "k int, t timestamp, x int, y int"
FIRST = datetime(2024, 3, 1)
RISES = (
    "select * from p match_recognize (partition by k order by t measures count(*) as n, max(t) as at "
    "pattern (a b+) define b as x > prev(x)) as m"
)


def _bench(
    sql: str = RISES,
    lateness: str | None = "2 days",
    meta: dict[str, object] | None = None,
    **options: object,
) -> Bench:
    table = relation("p", COLUMNS, event_time=EventTime("t", None, lateness), **options)
    bench = Bench(plan_of(sql, [table], meta))
    bench.engine.create_table("p", table.columns, [], change_feed=True)
    return bench


def _at(day: float) -> datetime:
    return FIRST + timedelta(days=day)


def _copy(bench: Bench) -> View:
    """The rows of the input that are kept."""
    (view,) = (v for v in bench.plan.stored if v.reason == "the rows of a pattern, by period")
    return view


def _kept(bench: Bench) -> int:
    ((many,),) = bench.engine.query(f"select count(*) from {_copy(bench).name}")
    return int(str(many))


def _days(bench: Bench, days: range) -> None:
    """A row of each key a day, with a refresh after each."""
    for day in days:
        report = bench.changed("p", [(k, _at(day + k / 10), day % 3, k) for k in (1, 2)])
        assert report.action in ("built", "refreshed")


def test_only_what_may_change_is_kept() -> None:
    bench, for_ever = _bench(), _bench(lateness=None)
    for one in (bench, for_ever):
        one.refresh()
        _days(one, range(9))
    assert _kept(for_ever) == 18
    # The day of the newest row, and two before it.
    assert _kept(bench) == 6
    assert bench.finished.detail["first_open"] == {_copy(bench).name: (FIRST - datetime(1970, 1, 1)).days + 6}
    assert "first_open" not in for_ever.finished.detail
    said = "rows are kept as long as others may come before them: t of p comes at most 2 days late"
    assert said in explain(bench.plan) and said not in explain(for_ever.plan)
    assert isinstance(bench.plan, MaintainedPlan)
    assert not inputs_in_part(bench.plan, parts_of_views(bench.plan)), (
        "no part may be built from what is there"
    )


def _known_periods(bench: Bench) -> int:
    """Of how many periods the last marks of keys know that there are rows in them, at the most."""
    (marks,) = (v for v in bench.plan.stored if v.reason.startswith("the state of a pattern"))
    ((many,),) = bench.engine.query(f"select max(cardinality(heads)) from {marks.name}")
    return int(str(many))


@pytest.mark.parametrize(
    "apply", ["replace", *(pytest.param(way, marks=pytest.mark.more) for way in ("merge", "append"))]
)
def test_what_a_key_knows_does_not_grow_with_its_history(apply: str) -> None:
    bench = _bench(meta={"fivm_apply": apply})
    bench.refresh()
    _days(bench, range(7))
    # Those that are open, and the last one before them, from which a row that comes is run.
    assert _known_periods(bench) == 4
    assert bench.changed("p", [(1, _at(4.01), 7, 0)]).action == "refreshed"
    assert bench.changed("p", [(1, _at(3.9), 7, 0)]).action == "rebuilt"
    assert _known_periods(bench) == 7
    assert bench.changed("p", [(1, _at(1.5), 7, 0)]).action == "refreshed", "a build knows all of them again"


def test_rows_that_come_in_time_are_before_others() -> None:
    bench = _bench()
    bench.refresh()
    _days(bench, range(7))
    report = bench.changed("p", [(1, _at(4.5), 7, 0)], [(1, _at(5.1), 2, 1)])
    assert (report.action, report.reason) == ("refreshed", None)


@pytest.mark.parametrize("is_deleted", [False, True])
def test_what_comes_too_late_is_built_anew(is_deleted: bool) -> None:
    bench = _bench()
    bench.refresh()
    _days(bench, range(7))
    gone: list[Row] = [(1, _at(3.1), 0, 1)]
    report = bench.changed("p", *(([], gone) if is_deleted else ([(1, _at(3.5), 7, 0)], [])))
    assert (report.action, report.reason) == (
        "rebuilt",
        "rows of p came or went later than its fivm_lateness, 2 days",
    )
    assert "first_open" not in bench.finished.detail
    _days(bench, range(7, 10))
    assert _kept(bench) == 6


def test_a_row_without_a_time_is_before_all_others() -> None:
    bench = _bench()
    bench.refresh()
    _days(bench, range(7))
    assert bench.changed("p", [(1, None, 7, 0)]).action == "rebuilt"


def test_a_promise_that_is_taken_back_holds_for_what_has_gone() -> None:
    bench = _bench()
    bench.refresh()
    _days(bench, range(7))
    bench.plan = _bench(lateness=None).plan
    _days(bench, range(7, 9))
    assert _kept(bench) == 10
    report = bench.changed("p", [(1, _at(3.5), 7, 0)])
    assert (report.action, report.reason) == (
        "rebuilt",
        "rows came or went later than fivm_lateness promised",
    )


def test_who_wants_no_rebuild_is_told() -> None:
    bench = _bench(meta={"fivm_on_change": "fail"})
    bench.refresh()
    _days(bench, range(7))
    bench.engine.change("p", insert=[(1, _at(3.5), 7, 0)])
    with pytest.raises(FivmError, match=r"FIVM307 .* later than its fivm_lateness, 2 days"):
        bench.refresh()
    bench.refresh(full_refresh=True)
    bench.check()


def test_results_of_dropped_parts_are_not_lost() -> None:
    """The source drops what is old, and the pattern lets go of its copy: what was found in it stays."""
    bench = _bench(retention=Retention("t", Length.of("day"), timedelta(days=4)))
    bench.refresh()
    _days(bench, range(10))
    found = bench.shown()
    bench.engine.run(f"delete from p where t < timestamp '{_at(5)}'")
    assert bench.refresh().action == "no change"
    assert bench.shown() == found and _kept(bench) == 6
    bench.engine.change("p", insert=[(1, _at(3.5), 7, 0)])
    with pytest.raises(FivmError, match=r"FIVM206 .* later than its fivm_lateness, 2 days"):
        bench.refresh()
    assert bench.shown() == found


def test_a_time_that_is_computed_is_not_promised() -> None:
    sql = RISES.replace("from p", "from (select k, t + interval 1 day as t, x, y from p) as q")
    assert all(view.closing is None for view in _bench(sql).plan.stored)
    joined = RISES.replace("from p", "from (select p.k, p.t, q.x from p join p as q on p.k = q.k) as q")
    assert all(view.closing is None for view in _bench(joined).plan.stored)


LENGTHS = (None, "hour", "4 hours", "3 days", "week", "month")


@pytest.mark.parametrize("seed", by_run(range(2), more=range(2, 12), long=range(12, 80)))
def test_random_patterns(seed: int) -> None:
    """Rows come up to three days late, and others go, of any pattern; nothing is ever built anew."""
    rng = random.Random(seed)
    clause = random_clause(rng)
    shown = ", ".join(["k", *(["t"] if clause.all_rows else []), *(m.name for m in clause.measures)])
    ways = {
        "fivm_part_length": rng.choice(LENGTHS),
        "fivm_buckets": rng.choice((None, 2)),
        "fivm_apply": rng.choice((None, None, "merge", "replace")),
        "fivm_merge": rng.choice((None, None, "per_partition")),
    }
    meta: dict[str, object] = {k: v for k, v in ways.items() if v is not None}
    bench = _bench(f"select {shown} from p {clause.sql()} as m", "3 days", meta)
    bench.refresh()
    rows: list[Row] = []
    taken: set[tuple[object, object]] = set()
    days = rng.choice((1, 2, 7))
    for day in range(1, 8 * days, days):
        come: list[Row] = []
        for _ in range(rng.choice((0, 1, 3, 6))):
            place = (rng.choice((1, 2, None)), _at(day - 3 * rng.random()).replace(microsecond=0))
            if place not in taken:
                taken.add(place)
                come.append((*place, rng.choice((None, 0, 1, 2, 3)), rng.randint(0, 3)))
        young = [r for r in rows if isinstance(r[1], datetime) and r[1] >= _at(day - 3)]
        gone = rng.sample(young, min(len(young), rng.choice((0, 0, 1, 2))))
        taken -= {(r[0], r[1]) for r in gone}
        bench.exchange("p", rows, come, gone)
        report = bench.refresh()
        assert report.action != "rebuilt", report.reason
        bench.check()
