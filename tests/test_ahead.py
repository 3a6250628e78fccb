"""What the next run would do, as the run itself decides it: nothing is written, and the run then does that."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fivm_dbt.errors import FivmError
from fivm_dbt.parts.length import Length
from fivm_dbt.parts.parted import TimeParts
from fivm_dbt.refresh.ahead import Ahead, look_ahead
from fixtures.models import Bench, plan_of, relation
from viewdf_bench import Bench as PartBench
from viewdf_bench import Model, Table, at

SQL = "select g, sum(v) as s from raw.f join raw.d on f.k = d.k group by g"
F, D = "k int, v decimal(10,2)", "k int, g string"
TABLES = {"raw.f": (F, [(1, "1.00"), (2, "2.50"), (1, None)]), "raw.d": (D, [(1, "p"), (2, None)])}


def _bench(sql: str = SQL, **meta: object) -> Bench:
    return Bench.of(sql, TABLES, meta)


def _versions(bench: Bench) -> dict[str, int]:
    tables = bench.engine.tables
    return {n: t.commits[-1].version for n, t in tables._tables.items()}


def _ahead(bench: Bench, **options: bool) -> Ahead:
    """What is ahead; looking leaves every table as it is, and the model too."""
    before = _versions(bench)
    ahead = look_ahead(bench.plan, bench.engine, **options)
    assert _versions(bench) == before
    return ahead


def _and_done(bench: Bench, **options: bool) -> Ahead:
    """What is ahead is done then, for the same reason."""
    ahead = _ahead(bench, **options)
    report = bench.refresh(**options)
    assert (ahead.action, ahead.reason) == (report.action, report.reason)
    return ahead


def test_a_first_build_then_nothing() -> None:
    bench = _bench()
    assert _and_done(bench) == Ahead("built")
    assert _and_done(bench).action == "no change"


def test_a_refresh_names_what_has_moved() -> None:
    bench = _bench()
    bench.refresh()
    bench.took(8.0)
    bench.engine.change("raw.f", insert=[(2, "9.00")], delete=[(1, None)])
    ahead = _and_done(bench)
    assert ahead.action == "refreshed"
    (moved,) = ahead.moved
    assert (moved.relation, moved.to_version) == ("raw.f", moved.from_version + 1)
    assert ahead.expected.build == pytest.approx(8.0)
    bench.took(1.5)
    bench.engine.change("raw.f", insert=[(2, "7.00")], delete=[(2, "9.00")])
    ahead = _and_done(bench)
    assert ahead.expected.refresh == pytest.approx(1.5), "as long as the one before, which was like it"
    assert not ahead.may_build
    bench.check()


def test_of_a_seed_that_was_created_anew_nobody_knows_how_much_has_changed() -> None:
    bench = Bench.of(SQL, TABLES, recreated=["raw.d"])
    bench.refresh()
    bench.took(6.0)
    bench.engine.recreate("raw.d", [(1, "q")])
    ahead = _and_done(bench)
    (moved,) = ahead.moved
    assert ahead.action == "refreshed"
    assert (moved.relation, moved.recreated, moved.rows) == ("raw.d", True, None)
    bench.check()


def test_a_refresh_that_would_take_longer_may_become_a_build() -> None:
    bench = _bench()
    bench.refresh()
    bench.took(6.0)
    bench.engine.change("raw.f", insert=[(2, "1.00")])
    assert bench.refresh().action == "refreshed"
    bench.took(30.0)
    bench.engine.change("raw.f", insert=[(2, "3.00")])
    ahead = _ahead(bench)
    assert (ahead.action, ahead.may_build) == ("refreshed", True)
    assert bench.refresh().action == "rebuilt"


def test_rebuilds_have_their_reason() -> None:
    bench = _bench()
    bench.refresh()
    bench.with_plan(sql=SQL + " having count(*) > 1")
    assert _and_done(bench).reason == "the model's SQL changed; presentation changed"
    bench.check()
    assert _and_done(bench, full_refresh=True).reason == "full refresh"
    bench.engine.run(f"delete from {bench.plan.state_relation} where __fivm_view = 'tail'")
    ahead = _and_done(bench)
    assert ahead.action == "rebuilt" and "its head is gone" in str(ahead.reason)
    bench.check()


def test_what_the_run_refuses_is_refused() -> None:
    bench = _bench()
    bench.refresh()
    bench.with_plan(sql=SQL + " having count(*) > 1", meta={"fivm_on_change": "fail"})
    with pytest.raises(FivmError, match="FIVM304"):
        _ahead(bench)
    gone = _bench()
    gone.engine.tables.drop("raw.d")
    with pytest.raises(FivmError, match="FIVM302"):
        gone.refresh()


def test_a_view_that_is_gone_is_not_put_back_by_a_look() -> None:
    bench = _bench()
    bench.refresh()
    bench.engine.run(f"drop view {bench.plan.relation}")
    assert _ahead(bench).action == "no change"
    assert not bench.engine.exists(bench.plan.relation)
    assert "put back" in str(bench.refresh().reason)


def test_lazy_models_wait() -> None:
    bench = _bench(fivm_refresh="lazy")
    bench.refresh()
    bench.engine.change("raw.f", insert=[(2, "9.00")])
    assert _and_done(bench) == Ahead("waiting", "raw.f changed", expected=_ahead(bench).expected)
    assert _and_done(bench, propagate=True).action == "refreshed"


def test_recomputed_models() -> None:
    bench = _bench(fivm_policy="full")
    assert _and_done(bench).action == "built"
    assert _and_done(bench).action == "no change"
    bench.engine.change("raw.d", insert=[(3, "q")])
    ahead = _and_done(bench)
    assert (ahead.action, [m.relation for m in ahead.moved]) == ("recomputed", ["raw.d"])


def test_an_input_that_was_created_anew() -> None:
    bench = _bench()
    bench.refresh()
    bench.engine.tables.drop("raw.d")
    bench.engine.create_table("raw.d", relation("raw.d", D).columns, [(1, "p")], change_feed=True)
    ahead = _and_done(bench)
    assert ahead.action == "rebuilt" and "created anew" in str(ahead.reason)


def test_an_input_of_another_type() -> None:
    bench = _bench()
    bench.refresh()
    wider = [relation("raw.f", F.replace("10,2", "12,2")), relation("raw.d", D)]
    bench.plan = replace(plan_of(SQL, wider))
    assert "v decimal(10,2) is now v decimal(12,2)" in str(_ahead(bench).reason)


def test_models_of_time_parts() -> None:
    hours = Model("hours", "select ts, sum(x) as x from {e:j} group by ts", meta={"fivm_start": "oldest"})
    events = Table("e", [("ts", "timestamp"), ("x", "int")], [(at("10:00"), 1), (at("11:00"), 2)])
    events.parts = TimeParts("ts", Length.of("hour"))
    bench = PartBench([events], [hours])
    plan, engine = bench.plans["hours"], bench.bench.engine
    for action in ("built", "no change"):
        assert look_ahead(plan, engine).action == action
        assert engine.exists(plan.relation) is (action == "no change")
        assert bench.run()["hours"].action == action
    bench.change("e", [(at("11:30"), 5)])
    ahead = look_ahead(plan, engine)
    assert (ahead.action, [m.relation for m in ahead.moved]) == ("refreshed", ["e"])
    assert bench.run()["hours"].action == "refreshed"
    bench.check()
    bench.close()
