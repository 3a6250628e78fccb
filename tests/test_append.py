"""``fivm_apply: append``: deltas go into the tail of the table of states, and now and then into their partitions."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from cached_statements import cache_statements
from fivm_dbt.catalog import Catalog, Presentation, Relation
from fivm_dbt.config import Config
from fivm_dbt.errors import FivmError
from fivm_dbt.plan.planner import plan_model
from fivm_dbt.plan.request import ModelRequest
from fivm_dbt.spark.reads import shown_summed
from fivm_dbt.steps.applying import FOLDED_ROWS, StateSize, Tail, not_appended_to
from fivm_dbt.testing.load import Located, load_scenarios
from fivm_dbt.testing.replay import replay_scenario
from fivm_dbt.testing.scenario import Scenario
from fixtures.models import Bench, Interrupted, Interrupting
from fixtures.runs import fast_only
from generator.differential import tiny_workbench

SCENARIOS = Path(__file__).parent / "scenarios"
SUMS = "select k, sum(x) as s, count(*) as n from r group by k"
COUNTED = "select k, count(*) as n, sum(x) as s from r group by k"
NESTED = f"select n, count(*) as keys, sum(s) as s from ({COUNTED}) group by n"
OUTER = "select r.k, r.x, t.y from r left join (select k, sum(y) as y from s group by k) t on r.k = t.k"
LARGEST = "select k, max(x) as m, count(distinct x) as d from r group by k"
ONE_ROW = "select count(*) as n, sum(x) as s from r"
FILES = sorted(SCENARIOS.glob("*.jsonl"))
QUERIES = [SUMS, NESTED, LARGEST, ONE_ROW, "select k, x from r where x > 1 or k is null"]
ROWS = [(1, "1.00"), (1, "2.00"), (2, None), (None, "4.00"), (5, "1.00")]


def _bench(sql: str = SUMS, **meta: object) -> Bench:
    tables = {"r": ("k int, x decimal(10,2)", ROWS)}
    bench = Bench.of(sql, tables, {"fivm_apply": "append", "fivm_buckets": 4, **meta})
    assert bench.refresh().action == "built"
    return bench


def _change(bench: Bench) -> None:
    bench.engine.change("r", insert=[(3, "5.00"), (1, "7.00")], delete=[(2, None), (None, "4.00")])


def _change_back(bench: Bench) -> None:
    bench.engine.change("r", insert=[(2, None), (None, "4.00")], delete=[(3, "5.00"), (1, "7.00")])


def _appends(statements: tuple[str, ...]) -> list[bool]:
    """Of each write of states, whether it appends."""
    writes = [
        s for s in statements if s.startswith(("INSERT INTO analytics.m__", "MERGE INTO analytics.m__"))
    ]
    return [s.startswith("INSERT") and "REPLACE WHERE" not in s for s in writes]


@pytest.mark.parametrize("sql", QUERIES)
def test_it_is_appended_then_folded(sql: str) -> None:
    bench = _bench(sql, fivm_fold_after=2)
    for number in range(1, 9):
        (_change if number % 2 else _change_back)(bench)
        report = bench.refresh()
        assert report.action == "refreshed"
        assert _appends(report.statements) == [number % 3 != 0], "the third one folds"
        bench.check()
        assert (_in_tail(bench) == 0) is (number % 3 == 0)


def test_one_commit_whatever_the_views() -> None:
    bench = _bench(NESTED)
    assert bench.plan.helpers
    before = bench.engine.commits(bench.plan.state_relation, None)[0].version
    _change(bench)
    report = bench.refresh()
    assert bench.engine.commits(bench.plan.state_relation, None)[0].version == before + 1
    assert _appends(report.statements) == [True]
    bench.check()


@pytest.mark.parametrize("other", ["merge", "replace", "auto"])
def test_the_way_changes_over_a_tail(other: str) -> None:
    """A MERGE over rows that are not folded in would count them twice."""
    bench = _bench(NESTED)
    for meta in (
        {"fivm_apply": other},
        {"fivm_apply": "append"},
        {"fivm_apply": other, "fivm_merge": "per_partition"},
    ):
        _change(bench)
        bench.refresh()
        bench.check()
        bench.with_plan(meta={"fivm_buckets": 4, **meta})
        _change_back(bench)
        assert bench.refresh().action == "refreshed"
        bench.check()
        bench.with_plan(meta={"fivm_buckets": 4, "fivm_apply": "append"})


def test_the_tail_stays_where_only_versions_move() -> None:
    bench = _bench()
    _change(bench)
    bench.refresh()
    bench.engine.change("r", insert=[(9, "1.00")])
    bench.engine.change("r", delete=[(9, "1.00")])
    assert bench.refresh().action == "no change"
    bench.check()
    _change_back(bench)
    bench.refresh()
    bench.check()
    bench.with_plan(meta={"fivm_apply": "merge", "fivm_buckets": 4})
    _change(bench)
    bench.refresh()
    bench.check()


def test_a_rebuild_leaves_no_tail() -> None:
    bench = _bench()
    _change(bench)
    bench.refresh()
    assert bench.refresh(full_refresh=True).action == "rebuilt"
    bench.check()
    _change_back(bench)
    bench.refresh()
    bench.check()


def test_rows_that_are_not_there_are_an_alarm_when_they_are_folded_in() -> None:
    bench = _bench(fivm_fold_after=1)
    bench.tamper(f"DELETE FROM {bench.plan.state_relation} WHERE k = 5")
    bench.engine.change("r", delete=[(5, "1.00")])
    bench.refresh()
    bench.engine.change("r", insert=[(6, "1.00")])
    with pytest.raises(FivmError, match="FIVM401"):
        bench.refresh()
    bench.refresh(full_refresh=True)
    bench.check()


@pytest.mark.parametrize("after", fast_only([True], [False, True]))
def test_interrupted_at_every_statement(after: bool) -> None:
    for statement in range(1, 40):
        bench = _bench(NESTED, fivm_fold_after=1)
        _change(bench)
        bench.refresh()
        _change_back(bench)  # this one folds
        engine = Interrupting(bench.engine, statement, after=after)
        try:
            bench.refresh(engine)  # type: ignore[arg-type]
        except Interrupted:
            bench.refresh()
            bench.check()
            _change(bench)
            bench.refresh()
            bench.check()
            continue
        assert statement > 4
        return
    raise AssertionError("it never came to its end")


@pytest.mark.parametrize("part", fast_only([2, 1000], [0.25]))
def test_random_changes(part: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Folds of all partitions, of those with two rows or more in the tail, and of none."""
    monkeypatch.setattr("fivm_dbt.steps.applying.FOLDED_PART", part)
    rng = random.Random(7)
    for sql in (*QUERIES, OUTER):
        rows: list[tuple[object, ...]] = [(rng.choice((1, 2, None)), str(rng.randrange(4))) for _ in range(8)]
        tables = {"r": ("k int, x decimal(10,2)", list(rows)), "s": ("k int, y int", [(1, 1), (2, None)])}
        used = {n: t for n, t in tables.items() if f" {n} " in f"{sql} "}
        bench = Bench.of(sql, used, {"fivm_apply": "append", "fivm_fold_after": 3, "fivm_buckets": 2})
        bench.refresh()
        for _ in range(12):
            gone = rng.sample(rows, min(len(rows), rng.randrange(3)))
            come = [
                (rng.choice((1, 2, 3, None)), rng.choice(("1.5", "2", None))) for _ in range(rng.randrange(3))
            ]
            for row in gone:
                rows.remove(row)
            rows += come
            bench.engine.change("r", insert=come, delete=gone)
            if "s" in used:
                bench.engine.change("s", insert=[(rng.choice((1, 2, 3)), rng.randrange(3))])
            bench.refresh()
            bench.check()


def _in_tail(bench: Bench) -> int:
    condition = "__fivm_view = 'tail' AND __fivm_of <> 'coverage'"
    ((rows,),) = bench.engine.query(f"SELECT COUNT(*) FROM {bench.plan.state_relation} WHERE {condition}")
    return int(str(rows))


def test_partitions_that_get_few_rows_stay_in_the_tail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fivm_dbt.steps.applying.FOLDED_PART", 3)
    days = [(day, 1) for day in (1, 2)]
    bench = Bench.of(
        "select d, sum(x) as s, count(*) as n from r group by d",
        {"r": ("d int, x int", days)},
        {"fivm_apply": "append", "fivm_fold_after": 3, "fivm_buckets": 4},
    )
    bench.refresh()
    for x in range(2, 5):
        bench.engine.change("r", insert=[(1, x), (2, 10 * x)], delete=[(2, 10 * x - 10)] if x > 2 else [])
        bench.refresh()
        bench.check()
    assert _in_tail(bench) == 6
    bench.engine.change("r", insert=[(1, 9), (3, 1)], delete=[(2, 40)])
    report = bench.refresh()
    bench.check()
    assert _appends(report.statements) == [False]
    fold = next(s for s in report.statements if "REPLACE WHERE" in s)
    assert _in_tail(bench) == 1, f"the new day waits, and what was of day 2 cancels: {fold}"
    bench.engine.change("r", insert=[(3, 2)])
    assert _appends(bench.refresh().statements) == [True]
    bench.check()
    assert _in_tail(bench) == 2
    bench.with_plan(meta={"fivm_apply": "merge", "fivm_buckets": 4})
    bench.engine.change("r", insert=[(1, 9)])
    bench.refresh()
    bench.check()
    assert _in_tail(bench) == 0, "a MERGE over a tail would count it twice"


def test_which_partitions_pay() -> None:
    sizes = {"v": StateSize(1000, 10), "w": StateSize(40, 10)}
    tail = Tail().longer({"v": {"old": 24, "new": 25}, "w": {"1": 1}})
    goes, stays = tail.folded(sizes)
    assert goes.partitions == (("v", (("new", 25),)), ("w", (("1", 1),)))
    assert stays == Tail(1, (("v", (("old", 24),)),))
    assert Tail().longer({"v": {"new": 25}}).folded(sizes)[1] == Tail()


def test_not_too_much_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {"v": StateSize(1_000_000, 10)}
    monkeypatch.setattr("fivm_dbt.steps.applying.FOLDED_ROWS", 10)
    monkeypatch.setattr("fivm_dbt.steps.applying.FOLDED_SHARE", 0)
    goes, stays = Tail().longer({"v": {"a": 1, "b": 5, "c": 3}}).folded(sizes)
    assert (goes.partitions_of("v"), stays.partitions_of("v")) == (("b",), ("a", "c"))
    monkeypatch.setattr("fivm_dbt.steps.applying.FOLDED_ROWS", 10_000)
    wide = Tail().longer({"v": {str(n): 1 for n in range(400)}})
    assert len(wide.folded(sizes)[1].partitions_of("v")) == 250
    wider = wide.longer({"v": {str(n): 1 for n in range(400, 600)}})
    assert wider.folded(sizes)[1] == Tail()


def test_auto_appends_while_states_are_small(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = _bench(fivm_apply="auto")
    _change(bench)
    assert _appends(bench.refresh().statements) == [True]
    bench.check()
    monkeypatch.setattr("fivm_dbt.steps.applying.APPENDED_ROWS", 3)
    _change_back(bench)
    assert _appends(bench.refresh().statements) == [False], "what is in the tail is folded in"
    bench.check()
    _change(bench)
    report = bench.refresh()
    bench.check()
    assert not any("__fivm_of, '" in s for s in report.statements), "no tail is read any more"
    monkeypatch.setattr("fivm_dbt.steps.applying.APPENDED_ROWS", 100)
    monkeypatch.setattr("fivm_dbt.steps.applying.FOLDED_ROWS", 1)
    _change_back(bench)
    assert _appends(bench.refresh().statements) == [False], "a large delta"
    _change(bench)
    bench.refresh()
    bench.check()


TREE = "select d.t, sum(r.x) as s, count(*) as n from r join d on r.k = d.k group by d.t"


def test_views_with_payload_are_appended_to_whatever_their_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who reads them does not add them up first: parts of a payload are multiplied as all of it would be."""
    monkeypatch.setattr("fivm_dbt.steps.applying.APPENDED_ROWS", 2)
    tables = {
        "r": ("k int, x decimal(10,2)", ROWS),
        "d": ("k int, t string", [(k, "ab"[k % 2]) for k in (1, 2, 5)]),
    }
    bench = Bench.of(TREE, tables, {"fivm_strategy": "factorized", "fivm_buckets": 4, "fivm_fold_after": 3})
    bench.refresh()
    assert all(v.is_payload for v in bench.plan.helpers)
    for number in range(1, 9):
        (_change if number % 2 else _change_back)(bench)
        bench.engine.change(
            "d", insert=[(1, "b")] if number % 2 else [], delete=[] if number % 2 else [(1, "b")]
        )
        report = bench.refresh()
        bench.check()
        assert _appends(report.statements) == [number % 4 != 0], "every fourth one folds"
        reads = [s for s in report.statements if "'tail'" in s and "delta_m__fivm_root" in s[:60]]
        assert all("HAVING SUM(__fivm_count) <> 0" not in s for s in reads)
        if number % 4 != 1:
            assert reads, "the tail is read"


COMPARED = "select count(*) + 5 as a from s where s.k <= r.k"


def test_views_that_are_looked_at_as_a_whole_are_added_up_first() -> None:
    """Whether a group is there is not the sum of what its parts say."""
    sql = f"select w.e, count(*) as n from (select ({COMPARED}) as e from r) w group by w.e"
    tables = {"r": ("k int, x int", [(1, 1), (2, 1), (2, 2)]), "s": ("k int", [(1,), (2,)])}
    rng = random.Random(5)
    bench = Bench.of(sql, tables, {"fivm_apply": "append", "fivm_fold_after": 9})
    bench.refresh()
    by_parts = frozenset[str]().union(*(v.by_parts for v in bench.plan.views))
    assert any(v.is_payload and v.name not in by_parts for v in bench.plan.helpers)
    rows = {"r": list(tables["r"][1]), "s": list(tables["s"][1])}
    for _ in range(12):
        for name, width in (("r", 2), ("s", 1)):
            gone = rng.sample(rows[name], min(len(rows[name]), rng.randrange(3)))
            come = [tuple(rng.randrange(4) for _ in range(width)) for _ in range(rng.randrange(3))]
            bench.exchange(name, rows[name], come, gone)
        bench.refresh()
        bench.check()


def test_a_tail_may_be_a_share_of_the_states() -> None:
    plan, tail = _bench().plan, Tail().longer({"v": {"1": FOLDED_ROWS + 1}})
    assert tail.is_full(plan, {"v": StateSize(4 * FOLDED_ROWS, 1)})
    assert not tail.is_full(plan, {"v": StateSize(6 * FOLDED_ROWS, 1)})


def test_a_model_over_one_with_a_tail() -> None:
    """Its change feed does not add up: two versions are compared."""
    bench = _bench()
    _change(bench)
    bench.refresh()
    shown = Presentation(
        bench.plan.state_relation, shown_summed(bench.plan).sql(dialect="spark"), is_summed=True
    )
    below = Relation(bench.plan.relation, bench.plan.shown, kind="fivm", presentation=shown)
    sql = f"select n, sum(s) as s, count(*) as k from {below.name} group by n"
    request = ModelRequest("analytics.above", sql, Catalog.of([below]), Config())
    above = Bench(plan_model(request, columns_of=bench.engine.describe), bench.engine)
    assert above.refresh().action == "built"
    for change in (_change_back, _change, _change_back):
        change(bench)
        bench.refresh()
        report = above.refresh()
        assert report.action == "refreshed"
        assert [i.capture for i in report.inputs] == ["version difference"]
        assert above.shown() == Counter(bench.engine.query(sql))


def test_what_is_never_appended_to() -> None:
    assert not_appended_to(_bench().plan) is None
    assert "per_partition" in str(not_appended_to(_bench(fivm_merge="per_partition").plan))


def test_a_tail_is_recorded() -> None:
    tail = (
        Tail().longer({"a.v": {"2": 2, "1": 1}}).longer({"a.v": {"3": 1, "2": 1}, "a.w": {"0": 1}, "a.x": {}})
    )
    assert (tail.commits, tail.rows, tail.views) == (2, 6, {"a.v", "a.w"})
    assert dict(tail.partitions)["a.v"] == (("1", 1), ("2", 3), ("3", 1))
    assert (tail.partitions_of("a.v"), tail.partitions_of("a.x")) == (("1", "2", "3"), ())
    assert Tail.of(tail.as_dict()) == tail
    assert Tail.of(None) == Tail.of({}) == Tail()


def _appending(scenario: Scenario, **meta: object) -> Scenario:
    models = [
        m.model_copy(update={"config": {**m.config, "fivm_apply": "append", "fivm_fold_after": 2, **meta}})
        for m in scenario.models
    ]
    return scenario.model_copy(update={"models": tuple(models)})


@pytest.mark.parametrize(
    "name",
    [
        f.stem if f.stem in ("joins", "corner_cases") else pytest.param(f.stem, marks=pytest.mark.more)
        for f in FILES
    ],
)
def test_scenarios(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One scenario of 25; one of three at length."""
    _appends_all(load_scenarios([SCENARIOS / f"{name}.jsonl"])[::25], monkeypatch)


@pytest.mark.long
@pytest.mark.parametrize("name", [f.stem for f in FILES])
def test_more_scenarios(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _appends_all(load_scenarios([SCENARIOS / f"{name}.jsonl"])[1::3], monkeypatch)


def _appends_all(scenarios: Sequence[Located], monkeypatch: pytest.MonkeyPatch) -> None:
    cache_statements(monkeypatch)
    for located in scenarios:
        if located.scenario.only_on not in (None, "duckdb"):
            continue
        result = replay_scenario(_appending(located.scenario), tiny_workbench)
        expected = "refused" if located.scenario.expected_error is not None else "passed"
        assert result.outcome in (expected, "passed", "skipped"), [result.line(), *result.details()]
