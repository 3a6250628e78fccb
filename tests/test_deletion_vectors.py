"""Rows that change are deleted in their files, where few of a partition's rows change (ADR 0070)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from fivm_dbt.engines.duckdb.engine import DuckDbEngine
from fivm_dbt.engines.duckdb.writes import Writes
from fivm_dbt.engines.spark.delta_lake.names import VECTORS
from fivm_dbt.engines.spark.delta_lake.vectors import allows_vectors
from fivm_dbt.engines.spark.engine import SparkEngine
from fivm_dbt.plan.model.head import Note, Written
from fivm_dbt.steps import applying, deletion_vectors
from fivm_dbt.testing.load import load_scenarios
from fivm_dbt.testing.replay import replay_scenario
from fivm_dbt.testing.spark_workbench import TINY, SparkWorkbench
from fivm_dbt.testing.workbench import DuckDbWorkbench
from fixtures.models import Bench, Interrupted, Interrupting

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCENARIOS = Path(__file__).parent / "scenarios"
MANY = [(n % 100, f"{n}.00") for n in range(400)]
SUMS = "select k, sum(x) as s, count(*) as n from r group by k"
MODELS = {
    "groups": SUMS,
    "a bag": "select k, x from r",
    "doubles": "select k, sum(cast(x as double)) as s from r group by k",
    "distinct": "select distinct k, x from r",
    "a join": "select r.k, sum(o.x) as s, count(*) as n from r join r as o on r.k <=> o.k group by r.k",
    "groups of groups": f"select n, count(*) as many from ({SUMS}) group by n",
}
STEPS = [
    {"insert": [(3, "5.00"), (1, "7.00"), (None, "1.00")], "delete": [(2, "2.00"), (4, "104.00")]},
    {"insert": [(3, "5.00"), (999, "0.00")], "delete": [(None, "1.00")]},
    {"delete": [(5, "5.00"), (5, "105.00"), (5, "205.00"), (5, "305.00")]},
    {"insert": [(5, "1.00"), (None, None), (None, None)], "delete": [(999, "0.00")]},
    {"insert": [(6, "6.00")], "delete": [(None, None), (6, "6.00")]},
    {"insert": [(None, "2.00")], "delete": [(None, None)]},
]


_ALWAYS = (
    (applying, "APPENDED_ROWS", 0),
    (applying, "ONE_TASK_ROWS", 0),
    (deletion_vectors, "DELETED_SHARE", 1e9),
    (deletion_vectors, "CHANGED_SHARE", 1e9),
)
"""What has rows deleted in their files wherever some change, whatever it costs."""


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[Written]:
    """What commits write themselves: rows are deleted wherever some change, whatever it costs.

    The engine compares it with what the statement has written.
    """
    for constants, key, value in _ALWAYS:
        monkeypatch.setattr(constants, key, value)
    found: list[Written] = []
    check = Writes.check_written

    def noted(writes: Writes, target: str, commit: Written) -> None:
        if not commit.allows_vectors:
            found.append(commit)
        check(writes, target, commit)

    monkeypatch.setattr(Writes, "check_written", noted)
    return found


def _bench(sql: str = SUMS, *, is_read: bool = False, **meta: object) -> Bench:
    settings = {"fivm_buckets": 4, "fivm_float": "approximate", **meta}
    bench = Bench.of(sql, {"r": ("k int, x decimal(10,2)", MANY)}, settings)
    bench.plan = replace(bench.plan, is_read=is_read)
    bench.refresh()
    return bench


@pytest.mark.parametrize("is_read", [False, True], ids=["unread", "read"])
@pytest.mark.parametrize("sql", MODELS.values(), ids=MODELS)
def test_every_change_is_exact(sql: str, is_read: bool, written: list[Written]) -> None:
    bench = _bench(sql, is_read=is_read)
    for step in STEPS:
        bench.engine.change("r", **step)
        bench.refresh()
        bench.check()
    assert len([w for w in written if w.deleted]) >= len(STEPS) - 1
    is_told = is_read and "double" not in sql
    assert all(w.tells_changes is is_told for w in written)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_cut_off_at_every_statement(after: bool, written: list[Written]) -> None:
    def changed() -> Bench:
        bench = _bench(is_read=True)
        bench.engine.change("r", **STEPS[0])
        return bench

    bench = changed()
    whole = Interrupting(bench.engine, 0, after=after)
    bench.refresh(whole)
    assert any(w.deleted for w in written)
    for number in range(1, len(whole.statements) + 1):
        bench = changed()
        with pytest.raises(Interrupted):
            bench.refresh(Interrupting(bench.engine, number, after=after))
        bench.refresh()
        bench.check()
        bench.engine.change("r", **STEPS[1])
        bench.refresh()
        bench.check()


def test_few_rows_are_read_and_written(written: list[Written]) -> None:
    bench = _bench()
    bench.engine.change("r", insert=[(1, "1.00")])
    report = bench.refresh()
    staged = next(s for s in report.statements if "_metadata.row_index" in s)
    assert "LEFT SEMI JOIN" in staged and "BROADCAST(delta)" in staged
    (commit,) = written
    assert "VERSION AS OF" not in commit.query, "nothing of the table but what is staged"
    assert commit.instead == "__fivm_view = 'tail'"


def test_a_partition_is_written_anew_after_some_time(
    written: list[Written], monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = _bench(fivm_buckets=1, fivm_fold_after=2)
    vectors = []
    for _ in range(5):
        bench.engine.change("r", insert=[(1, "1.00")])
        bench.refresh()
        bench.check()
        vectors.append(bench.finished.detail["vectors"])
    place = {bench.plan.root.relation: {"0": [1, 1]}}
    twice = {bench.plan.root.relation: {"0": [2, 2]}}
    assert vectors == [place, twice, {}, place, twice]
    monkeypatch.setattr(deletion_vectors, "DELETED_SHARE", 0.02)
    bench.engine.change("r", insert=[(1, "1.00")])
    bench.refresh()
    assert bench.finished.detail["vectors"] == {}


def test_partitions_are_written_anew_once_more_where_no_commit_has_allowed_vectors(
    written: list[Written], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As those of a state that was built by an engine that cannot delete rows."""
    with monkeypatch.context() as patch:
        patch.setattr(DuckDbEngine, "deletes_rows", False)
        bench = _bench()
    for vectors in (False, True):
        bench.engine.change("r", insert=[(1, "1.00")])
        bench.refresh()
        bench.check()
        assert bool(written) is vectors


def test_a_build_forgets(written: list[Written]) -> None:
    bench = _bench()
    bench.engine.change("r", insert=[(1, "1.00")])
    bench.refresh()
    assert bench.finished.detail["vectors"]
    bench.refresh(full_refresh=True)
    assert bench.finished.detail["vectors"] == {}


def test_some_partitions_are_deleted_and_others_written_anew(
    written: list[Written], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deletion_vectors, "DELETED_SHARE", 0.1)
    bench = _bench(is_read=True)
    ((partition,),) = bench.engine.query("select pmod(xxhash64(1), 4)")
    keys = [k for (k,) in bench.engine.query(f"select k from r where pmod(xxhash64(k), 4) <> {partition}")]
    bench.engine.change("r", insert=[(1, "1.00"), *((k, "1.00") for k in {*keys})])
    bench.refresh()
    bench.check()
    (commit,) = written
    assert commit.deleted and f"'{partition}'" not in str(commit.instead)
    assert "__fivm_partition IN" in str(commit.instead)
    ((_, deleted),) = bench.finished.detail["vectors"].items()
    assert deleted == {str(partition): [1, 1]}


def test_what_deletes_no_rows(written: list[Written], monkeypatch: pytest.MonkeyPatch) -> None:
    """Partitions that one task writes, too many of them, statements of their own, and an engine that cannot do it."""

    def is_deleted(**meta: object) -> bool:
        written.clear()
        bench = _bench(SUMS, is_read=False, **meta)
        bench.engine.change("r", insert=[(k, "1.00") for k in range(9)])
        bench.refresh()
        bench.check()
        return any(w.deleted for w in written)

    assert is_deleted()
    assert not is_deleted(fivm_apply="replace")
    assert not is_deleted(fivm_apply="merge")
    assert not is_deleted(fivm_merge="per_partition")
    without: list[Callable[[pytest.MonkeyPatch], None]] = [
        lambda patch: patch.setattr(applying, "ONE_TASK_ROWS", 200_000),
        lambda patch: patch.setattr("fivm_dbt.refresh.writes.VECTOR_PARTITIONS", 1),
        lambda patch: patch.setattr(DuckDbEngine, "deletes_rows", False),
    ]
    for change in without:
        with monkeypatch.context() as patch:
            change(patch)
            assert not is_deleted()


@pytest.mark.parametrize(
    ("property_", "setting", "allowed"),
    [(True, None, True), (True, "true", True), (True, "false", False), (False, None, False)],
)
def test_rows_have_numbers_where_spark_shows_them(
    property_: bool, setting: str | None, allowed: bool
) -> None:
    session = SimpleNamespace(conf=SimpleNamespace(get=lambda _, default: setting or default))
    opened: Any = SimpleNamespace(session=session, has=lambda key: property_ and key == VECTORS)
    assert allows_vectors(opened) is allowed


@pytest.mark.more
@pytest.mark.parametrize("name", ["aggregates", "bags", "joins", "windows", "subqueries", "approximate"])
def test_scenarios(name: str, written: list[Written]) -> None:
    for located in load_scenarios([SCENARIOS / f"{name}.jsonl"]):
        result = replay_scenario(located.scenario, DuckDbWorkbench)
        assert result.outcome in ("passed", "skipped"), [result.line(), *result.details()]
    assert any(w.deleted for w in written)


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize("name", ["aggregates", "bags", "joins", "outer_joins", "chains", "types", "nulls"])
def test_scenarios_on_spark(name: str, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some scenarios of each topic. Files have statistics, without which they have no deletion vectors, and Delta
    skips files by them: else it reads no file that has one."""
    for constants, key, value in _ALWAYS:
        monkeypatch.setattr(constants, key, value)
    settings = {k: v for k, v in TINY.items() if "delta.stats" not in k}
    deleted: list[bool] = []
    commit = SparkEngine.commit

    def noted(engine: SparkEngine, sql: str, note: Note) -> None:
        commit(engine, sql, note)
        if note.written is not None and note.written.deleted:
            deleted.append(engine.deletes_rows)

    monkeypatch.setattr(SparkEngine, "commit", noted)
    scenarios = load_scenarios([SCENARIOS / f"{name}.jsonl"])
    for located in scenarios[:: max(1, len(scenarios) // 6)]:
        result = replay_scenario(
            located.scenario, lambda: SparkWorkbench(spark, "fivm_vectors", settings=settings)
        )
        assert result.outcome in ("passed", "skipped"), [result.line(), *result.details()]
    assert deleted and all(deleted), "by transactions, and not by statements"
