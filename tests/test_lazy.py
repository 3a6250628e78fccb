"""``fivm_refresh: lazy``: a model that is brought up to date only where somebody asks for it."""

from __future__ import annotations

import pytest

from fivm_dbt.errors import FivmError
from fivm_dbt.testing.scenario_plans import Forced
from fixtures.models import Bench, Interrupted, Interrupting
from generator.differential import run_random

LAZY = {"fivm_refresh": "lazy"}
TABLES = {"raw.r": ("k int, x int", [(1, 1), (2, 5)]), "raw.d": ("k int, name string", [(1, "a"), (2, "b")])}
SQL = "select d.name, sum(r.x) as s, count(*) as n from raw.r r join raw.d d on r.k = d.k group by d.name"


def _bench(sql: str = SQL, **meta: object) -> Bench:
    bench = Bench.of(sql, TABLES, LAZY | meta)
    assert bench.refresh().action == "built"
    return bench


@pytest.mark.parametrize(
    "meta", [{}, {"fivm_result": "factorized"}, {"fivm_strategy": "reevaluate"}], ids=str
)
def test_nothing_is_written_until_it_is_asked_for(meta: dict[str, object]) -> None:
    bench = _bench(**meta)
    before = bench.shown()
    version = bench.engine.commits(bench.plan.state_relation, None)[0].version
    for number in range(3):
        bench.engine.change("raw.r", insert=[(1, number)])
        report = bench.refresh()
        assert (report.action, report.reason, report.statements) == ("waiting", "raw.r changed", ())
        assert bench.shown() == before
    assert bench.engine.commits(bench.plan.state_relation, None)[0].version == version
    report = bench.refresh(propagate=True)
    assert report.action == ("recomputed" if "fivm_strategy" in meta else "refreshed")
    bench.check()
    assert bench.refresh().action == "no change"


def test_only_the_net_change_is_applied() -> None:
    bench = _bench()
    bench.engine.change("raw.r", insert=[(1, 7), (2, 9)])
    bench.engine.change("raw.r", delete=[(1, 7)])
    bench.engine.change("raw.d", delete=[(2, "b")])
    bench.engine.change("raw.d", insert=[(2, "b")])
    report = bench.refresh(propagate=True)
    assert [(c.relation, c.inserted, c.deleted) for c in report.inputs] == [
        ("raw.d", 0, 0),
        ("raw.r", 1, 0),
    ]
    bench.check()


def test_a_full_refresh_asks_for_it_too() -> None:
    bench = _bench()
    bench.engine.change("raw.r", insert=[(1, 7)])
    assert bench.refresh(full_refresh=True).action == "rebuilt"
    bench.check()


def test_another_plan_is_built_at_once() -> None:
    bench = _bench()
    bench.engine.change("raw.r", insert=[(1, 7)])
    bench.with_plan(SQL.replace("sum(r.x)", "sum(r.x + 1)"), LAZY)
    assert bench.refresh().action == "rebuilt"
    bench.check()


def test_what_was_interrupted_is_there_or_waits() -> None:
    bench = _bench()
    bench.engine.change("raw.r", insert=[(1, 7)])
    whole = Interrupting(bench.engine, 0, after=False)
    bench.refresh(whole, propagate=True)
    for number in range(1, len(whole.statements) + 1):
        bench = _bench()
        before = bench.newest()
        bench.engine.change("raw.r", insert=[(1, 7)])
        with pytest.raises(Interrupted):
            bench.refresh(Interrupting(bench.engine, number, after=True), propagate=True)
        asked_for = bench.newest()
        bench.engine.change("raw.r", insert=[(2, 8)])
        assert bench.refresh().action == "waiting"
        assert bench.shown() in (before, asked_for)
        bench.refresh(propagate=True)
        bench.check()


def test_a_view_that_was_dropped_is_put_back() -> None:
    bench = _bench()
    before = bench.shown()
    bench.engine.run("DROP VIEW analytics.m")
    bench.engine.change("raw.r", insert=[(1, 7)])
    assert bench.refresh().action == "waiting"
    assert bench.shown() == before


def test_a_broken_promise_is_told_when_it_matters() -> None:
    bench = Bench.of(SQL, TABLES, LAZY, static=("raw.d",))
    bench.refresh()
    bench.engine.change("raw.d", insert=[(3, "c")])
    assert bench.refresh().action == "waiting"
    with pytest.raises(FivmError, match="FIVM305"):
        bench.refresh(propagate=True)


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(300, marks=pytest.mark.more),
        *(pytest.param(seed, marks=pytest.mark.long) for seed in range(301, 330)),
    ],
)
def test_random_models_that_wait(seed: int) -> None:
    """Changes of two steps at once give what they give one after the other."""
    verdict = run_random(seed, models=6, steps=4, forced=Forced(is_lazy=True))
    assert verdict.failure is None, verdict.failure
