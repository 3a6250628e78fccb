"""``fivm_apply: replace``: touched partitions are written anew, with the same rows and the same alarms as by MERGE."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from sqlglot import exp

from fivm_dbt.engines.duckdb.engine import DuckDbEngine
from fivm_dbt.engines.duckdb.writes import Writes
from fivm_dbt.errors import FivmError
from fivm_dbt.naming import COUNT, PARTITION
from fivm_dbt.plan.model.head import NextHead, Written
from fivm_dbt.spark.alarms import NEGATIVE
from fivm_dbt.spark.places import Place
from fivm_dbt.spark.replace import new_rows
from fivm_dbt.steps import applying
from fivm_dbt.steps.binding import staged_state
from fivm_dbt.testing.load import load_scenarios
from fivm_dbt.testing.replay import replay_scenario
from fivm_dbt.testing.scenario import Scenario
from fivm_dbt.testing.workbench import DuckDbWorkbench
from fixtures.models import Bench, Interrupted, Interrupting

SCENARIOS = Path(__file__).parent / "scenarios"
SUMS = "select k, sum(x) as s, count(*) as n from r group by k"
ROWS = [(1, "1.00"), (1, "2.00"), (2, None), (None, "4.00"), (5, "1.00")]


def _bench(sql: str = SUMS, **meta: object) -> Bench:
    tables = {"r": ("k int, x decimal(10,2)", ROWS)}
    bench = Bench.of(sql, tables, {"fivm_apply": "replace", "fivm_buckets": 4, **meta})
    bench.refresh()
    return bench


def _change(bench: Bench) -> None:
    bench.engine.change("r", insert=[(3, "5.00"), (1, "7.00")], delete=[(2, None), (None, "4.00")])


def _replacing(scenario: Scenario, **meta: object) -> Scenario:
    models = [
        m.model_copy(update={"config": {**m.config, "fivm_apply": "replace", **meta}})
        for m in scenario.models
    ]
    return scenario.model_copy(update={"models": tuple(models)})


@pytest.mark.parametrize("merge", ["grouped", "per_partition"])
@pytest.mark.parametrize(
    "sql", [SUMS, "select count(*) as n, sum(x) as s from r", "select k, x + 1 as y from r"]
)
def test_rows_and_statements(sql: str, merge: str) -> None:
    bench = _bench(sql, fivm_merge=merge)
    _change(bench)
    report = bench.refresh()
    bench.check()
    written = [s for s in report.statements if s.startswith("INSERT INTO")]
    assert not any(s.startswith("MERGE") for s in report.statements)
    assert len(written) == (report.partitions if merge == "per_partition" else 1)
    where = "REPLACE WHERE __fivm_view = 'tail' OR (__fivm_view = 'root' AND __fivm_partition IN"
    assert all(where in s and "VERSION AS OF" in s for s in written)


def test_everything_goes() -> None:
    bench = _bench()
    bench.engine.change("r", delete=ROWS)
    bench.refresh()
    bench.check()
    assert not bench.shown()
    assert bench.engine.query(
        f"select count(*) from {bench.plan.state_relation} where __fivm_view <> 'tail'"
    ) == [(0,)]


def test_partitions_of_null(tmp_path: Path) -> None:
    tables = {"e": ("day date, x int", [("2024-01-05", 1), (None, 2), ("2024-02-05", 3)])}
    bench = Bench.of("select day, sum(x) as s from e group by day", tables, {"fivm_apply": "replace"})
    bench.refresh()
    bench.engine.change("e", insert=[(None, 5)], delete=[("2024-01-05", 1)])
    report = bench.refresh()
    bench.check()
    assert any("IN ('n', 'v2024-01-01')" in s for s in report.statements if s.startswith("INSERT INTO"))


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param("delete from {} where k = 1", id="a key to be removed is not there"),
        pytest.param("update {} set __fivm_count = 1 where k = 1", id="a multiplicity below zero"),
        pytest.param("update {} set __fivm_sum_x = 9 where k = 1", id="a key has gone and a sum is left"),
    ],
)
def test_alarms(damage: str) -> None:
    bench = _bench()
    bench.engine.change("r", delete=[(1, "1.00"), (1, "2.00")])
    bench.tamper(damage.format(bench.plan.state_relation))
    with pytest.raises(FivmError) as caught:
        bench.refresh()
    assert caught.value.code.number == "FIVM401"


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_cut_off_at_every_statement(after: bool) -> None:
    bench = _bench()
    _change(bench)
    whole = Interrupting(bench.engine, 0, after=after)
    bench.refresh(whole)
    for number in range(1, len(whole.statements) + 1):
        bench = _bench()
        _change(bench)
        with pytest.raises(Interrupted):
            bench.refresh(Interrupting(bench.engine, number, after=after))
        bench.refresh()
        bench.check()


@pytest.mark.more
@pytest.mark.parametrize("name", ["aggregates", "bags", "windows", "approximate"])
def test_scenarios(name: str) -> None:
    for located in load_scenarios([SCENARIOS / f"{name}.jsonl"]):
        result = replay_scenario(_replacing(located.scenario), DuckDbWorkbench)
        assert result.outcome in ("passed", "skipped"), [result.line(), *result.details()]


@pytest.mark.more
@pytest.mark.parametrize("strategy", ["factorized", "recursive"])
def test_with_helper_views(strategy: str) -> None:
    for located in load_scenarios([SCENARIOS / "joins.jsonl"]):
        scenario = _replacing(located.scenario, fivm_strategy=strategy, fivm_merge="per_partition")
        result = replay_scenario(scenario, DuckDbWorkbench)
        assert result.outcome == "passed", [result.line(), *result.details()]


def _verbs(bench: Bench) -> list[str]:
    """How the next change reaches each state."""
    bench.engine.change("r", insert=[(3, "5.00"), (1, "7.00")])
    statements = bench.refresh().statements
    bench.check()
    return [s.split()[0] for s in statements if s.startswith(("MERGE", "INSERT INTO"))]


def test_auto_writes_small_partitions_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the states are too many rows to be added up with what is appended."""
    monkeypatch.setattr("fivm_dbt.steps.applying.APPENDED_ROWS", 0)
    monkeypatch.setattr(DuckDbEngine, "deletes_rows", False)
    bench = _bench(fivm_apply="auto")
    assert bench.finished.detail["sizes"] == {bench.plan.root.relation: [4, 2]}
    assert _verbs(bench) == ["INSERT"]
    assert bench.finished.detail["sizes"] == {bench.plan.root.relation: [4, 2]}, "those of the build"
    for key in range(10, 14):
        bench.engine.change("r", insert=[(key, "1.00")])
        bench.refresh()
    ((_, (rows, partitions)),) = bench.finished.detail["sizes"].items()
    assert rows / partitions > 2, "as large as those that were written"
    monkeypatch.setattr("fivm_dbt.steps.applying.REPLACED_ROWS", 1)
    assert _verbs(bench) == ["MERGE"]


@pytest.mark.parametrize(("rows", "verb"), [(1, "MERGE"), (2, "INSERT")])
def test_auto_writes_larger_partitions_anew_where_more_rows_change(
    rows: int, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two of a partition's four keys change: it may have twice the rows, or as many files as rows change."""
    monkeypatch.setattr("fivm_dbt.steps.applying.APPENDED_ROWS", 0)
    monkeypatch.setattr("fivm_dbt.steps.applying.REPLACED_ROWS", rows)
    monkeypatch.setattr(DuckDbEngine, "deletes_rows", False)
    bench = _bench(fivm_apply="auto", fivm_buckets=1)
    assert bench.finished.detail["sizes"] == {bench.plan.root.relation: [4, 1]}
    assert _verbs(bench) == [verb]
    monkeypatch.setattr("fivm_dbt.steps.applying.REPLACED_FILES", 1)
    again = _bench(fivm_apply="auto", fivm_buckets=1)
    assert _verbs(again) == ["MERGE"]


def test_auto_merges_earlier_where_the_change_feed_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where every row of a partition that is written anew is in it, and not only what has changed."""
    bench = _bench(fivm_apply="auto")
    bench.plan = replace(bench.plan, is_read=True)
    assert _verbs(bench) == ["INSERT"]
    monkeypatch.setattr("fivm_dbt.steps.applying.READ_ROWS", 1)
    assert _verbs(bench) == ["INSERT"]
    doubles = _bench(
        "select k, sum(cast(x as double)) as s from r group by k", fivm_apply="auto", fivm_float="approximate"
    )
    doubles.plan = replace(doubles.plan, is_read=True)
    assert _verbs(doubles) == ["MERGE"], "two sums of the same doubles may differ"
    monkeypatch.setattr(DuckDbEngine, "writes_changes", False)
    assert _verbs(bench) == ["MERGE"]
    monkeypatch.undo()
    # Of inner views nobody reads it: their change is known before they are written.
    counts = "select k, count(*) as n from r group by k"
    nested = _bench(f"select n, count(*) as c from ({counts}) group by n", fivm_apply="auto")
    assert [v.rows is None for v in nested.plan.helpers] == [True]
    assert _verbs(nested) == ["INSERT"]


def test_states_of_unknown_size_are_counted() -> None:
    bench = _bench()
    bench.with_plan(meta={"fivm_apply": "auto", "fivm_buckets": 4})
    assert bench.finished.detail["sizes"] == {}
    assert _verbs(bench) == ["INSERT"]
    assert bench.finished.detail["sizes"]


def test_an_interrupted_refresh_goes_on_as_it_began(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = _bench("select k, count(distinct x) as n from r group by k", fivm_apply="auto")
    _change(bench)
    number, written = 0, ""
    while "INSERT INTO" not in written:
        number += 1
        engine = Interrupting(bench.engine, number, after=True)
        with pytest.raises(Interrupted):
            bench.refresh(engine)
        written = engine.statements[-1]
    monkeypatch.setattr("fivm_dbt.steps.applying.REPLACED_ROWS", 0)
    report = bench.refresh()
    bench.check()
    assert report.action == "no change", "what was cut off had been written"
    assert not any(s.startswith("MERGE INTO") for s in report.statements)


READ = {
    "groups": SUMS,
    "no keys": "select count(*) as n, sum(x) as s from r",
    "a bag": "select k, x from r",
    "a join": "select r.k, sum(r.x) as s, count(*) as n from r join r as o on r.k <=> o.k group by r.k",
    "groups of groups": "select n, count(*) as many from (select k, count(*) as n from r group by k) group by n",
    "distinct": "select distinct k from r",
}
EVERY = [
    {"insert": [(3, "5.00"), (1, "7.00")], "delete": [(2, None), (None, "4.00")]},
    {"insert": [(9, "0.00")], "delete": [(1, "1.00")]},
    {"insert": [(3, "-5.00")], "delete": [(9, "0.00")]},
    {"delete": [(1, "2.00"), (5, "1.00"), (3, "5.00"), (1, "7.00"), (3, "-5.00")]},
    {"insert": [(None, None), (None, None)]},
    {"insert": [(None, "1.00")], "delete": [(None, None)]},
]


@pytest.mark.parametrize("rows", [0, 200_000], ids=["by several tasks", "by one task"])
@pytest.mark.parametrize("sql", READ.values(), ids=READ)
def test_what_a_commit_tells_its_readers(sql: str, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine compares what is told with the versions, and the rows beside it with those of the statement."""
    monkeypatch.setattr(applying, "ONE_TASK_ROWS", rows)
    told: list[Written] = []
    check = Writes.check_written

    def counted(writes: Writes, target: str, written: Written) -> None:
        told.append(written)
        check(writes, target, written)

    monkeypatch.setattr(Writes, "check_written", counted)
    bench = Bench.of(sql, {"r": ("k int, x decimal(10,2)", ROWS)}, {"fivm_apply": "auto"})
    bench.plan = replace(bench.plan, is_read=True)
    bench.refresh()
    for step in EVERY:
        bench.engine.change("r", **step)
        bench.refresh()
        bench.check()
    assert len(told) >= len(EVERY) - 1, "what is the same afterwards is no change"
    assert all(written.query.count("COALESCE(1)") >= (2 if rows else 0) for written in told)
    assert any("REBALANCE" in written.query for written in told) is (rows == 0)


def test_an_alarm_is_raised_for_readers_too() -> None:
    """A row is removed that was never there: nothing is written."""
    bench = _bench()
    bench.plan = replace(bench.plan, is_read=True)
    head = NextHead(None, 1, "x", "{}")
    view = bench.plan.top
    sums = ", ".join(f"0 AS {p.name}" for p in view.state.payload)
    staged = f"SELECT 77 AS k, -1 AS {COUNT}, {sums}, '0' AS {PARTITION}"
    bench.engine.stage(staged_state(bench.plan, view), staged)
    place = Place(view, (exp.Literal.string("0"),))
    query = new_rows(bench.plan, [place], 0, head)
    with pytest.raises(Exception, match=NEGATIVE):
        bench.engine.query(query.sql(dialect="spark"))
