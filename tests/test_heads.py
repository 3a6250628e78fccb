"""The head of a table of states: what is done where it is lost, late, or another table stands in its place."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext

import pytest
import sqlglot

from fivm_dbt.errors import FivmError
from fivm_dbt.naming import parts_of
from fivm_dbt.plan.model.head import Note
from fivm_dbt.refresh.executor import refresh
from fivm_dbt.refresh.heads import read_state
from fivm_dbt.spark.formats import FORMAT, Commit
from fixtures.models import Bench, HoldingBack, Interrupted, Interrupting

SUMS = "select k, sum(x) as s, count(*) as n from r group by k"
NESTED = "select n, count(*) as c from (select k, count(*) as n from r group by k) group by n"
ROWS: list[tuple[object, ...]] = [(1, 1), (1, 2), (2, 3), (None, 4)]


def _bench(sql: str = SUMS, **meta: object) -> Bench:
    bench = Bench.of(sql, {"r": ("k int, x int", ROWS)}, meta)
    bench.refresh()
    bench.check()
    return bench


def _insert(bench: Bench, *rows: tuple[object, ...]) -> None:
    bench.engine.change("r", insert=rows or [(1, 5), (3, 5)])


@pytest.mark.parametrize("later", [1, 3])
@pytest.mark.parametrize("kind", ["merge", "replace", "advance", "rebuild"])
def test_a_statement_that_comes_late_changes_nothing(kind: str, later: int) -> None:
    apply = kind if kind in ("merge", "replace") else "auto"
    bench = _bench(fivm_apply=apply)
    if kind == "advance":
        _insert(bench, (7, 7))
        bench.engine.change("r", delete=[(7, 7)])
    else:
        _insert(bench)
    slow = HoldingBack(bench)
    with pytest.raises(Interrupted):
        bench.refresh(slow, full_refresh=kind == "rebuild")  # type: ignore[arg-type]
    for number in range(later):
        bench.refresh()
        _insert(bench, (number, number))
    bench.refresh()
    before = bench.engine.commits(bench.plan.state_relation, None)
    slow.late()
    assert bench.engine.commits(bench.plan.state_relation, None) == before
    bench.check()
    assert bench.refresh().action == "no change"


def test_a_merge_compares_the_head_itself() -> None:
    """Where nothing passes over a commit by its number, it stops at the head of another refresh."""
    bench = _bench(fivm_apply="merge")
    _insert(bench)
    slow = HoldingBack(bench)
    with pytest.raises(Interrupted):
        bench.refresh(slow)  # type: ignore[arg-type]
    bench.refresh()
    with pytest.raises(Exception, match="FIVM403"):
        slow.late(has_number=False)
    bench.check()


def test_of_two_first_builds_one_commits() -> None:
    bench = Bench.of(SUMS, {"r": ("k int, x int", ROWS)})
    slow = HoldingBack(bench)

    def commit(sql: str, note: Note) -> None:
        if sql.startswith(f"CREATE TABLE {bench.plan.state_relation}"):
            bench.refresh()
        bench.engine.commit(sql, note)

    slow.commit = commit  # type: ignore[method-assign]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fivm_dbt.refresh.executor.only_refresh_here", lambda *_: nullcontext(True))
        patch.setattr(type(FORMAT), "is_conflict", lambda _, error: "exists already" in str(error))
        assert bench.refresh(slow).action == "no change"  # type: ignore[arg-type]
    bench.check()


@pytest.mark.parametrize("on_change", ["rebuild", "fail"])
def test_a_head_that_was_deleted(on_change: str) -> None:
    bench = _bench(fivm_on_change=on_change)
    bench.engine.run(f"DELETE FROM {bench.plan.state_relation} WHERE __fivm_view = 'tail'")
    _insert(bench)
    if on_change == "fail":
        with pytest.raises(FivmError, match="its head is gone") as caught:
            bench.refresh()
        assert caught.value.code.number == "FIVM404"
        assert bench.refresh(full_refresh=True).action == "rebuilt"
    else:
        report = bench.refresh()
        assert report.action == "rebuilt" and "its head is gone" in (report.reason or "")
    bench.check()
    assert bench.refresh().action == "no change"
    _insert(bench, (9, 9))
    assert bench.refresh().action == "refreshed"
    bench.check()


@pytest.mark.parametrize("full_refresh", [False, True])
def test_another_table_under_the_name_of_the_state_is_left_alone(*, full_refresh: bool) -> None:
    bench = Bench.of(SUMS, {"r": ("k int, x int", ROWS)})
    bench.engine.run(f"CREATE TABLE {bench.plan.state_relation} USING DELTA AS SELECT 1 AS precious")
    with pytest.raises(FivmError, match="it is not fivm's") as caught:
        bench.refresh(full_refresh=full_refresh)
    assert caught.value.code.number == "FIVM404"
    assert bench.engine.query(f"SELECT * FROM {bench.plan.state_relation}") == [(1,)]


def test_a_commit_after_the_head_was_read_is_not_taken_for_somebody_elses() -> None:
    bench = _bench(fivm_on_change="fail")
    _insert(bench)
    table, state = bench.plan.state_relation, read_state(bench.engine, bench.plan.state_relation)
    bench.refresh()
    assert len([c for c in bench.engine.commits(table, 0) if c.operation != "OPTIMIZE"]) > 2
    report = refresh(bench.plan, bench.engine, state=state)
    assert report.action == "no change", "overtaken, and begun again"
    bench.check()


def test_others_may_lay_files_out_anew_before_and_after() -> None:
    bench = _bench()
    table = bench.engine.tables.table(bench.plan.state_relation)

    def optimized() -> None:
        bench.engine.run(f"INSERT INTO {table.name} SELECT * FROM {table.name} VERSION AS OF 0 WHERE false")
        table.commits.append(Commit(table.version + 1, "later", "OPTIMIZE"))
        table.copies[table.version] = table.copies[table.version - 1]

    optimized()
    _insert(bench)
    assert bench.refresh().action == "refreshed"
    optimized()
    assert bench.refresh().action == "no change"
    _insert(bench, (4, 4))
    assert bench.refresh().action == "refreshed"
    bench.check()


@pytest.mark.parametrize("fivm_apply", ["merge", "replace", "append"])
def test_a_note_beside_another_commit_is_not_believed(fivm_apply: str) -> None:
    """Somebody lays files out anew in a session that has the settings of an older refresh still."""
    bench = _bench(fivm_apply=fivm_apply)
    table = bench.engine.tables.table(bench.plan.state_relation)
    older = table.commits[-1].note
    _insert(bench)
    bench.refresh()
    assert older is not None and older != table.commits[-1].note
    table.commits.append(Commit(table.version + 1, "later", "OPTIMIZE", note=older))
    table.copies[table.version] = table.copies[table.version - 1]
    assert bench.refresh().action == "no change"
    _insert(bench, (4, 4))
    assert bench.refresh().action == "refreshed"
    bench.check()


@pytest.mark.parametrize("fivm_apply", ["auto", "merge"])
def test_a_build_that_was_cut_off_after_its_commit_is_completed(fivm_apply: str) -> None:
    whole = Bench.of(NESTED, {"r": ("k int, x int", ROWS)}, {"fivm_apply": fivm_apply})
    seen = Interrupting(whole.engine, 0, after=False)
    whole.refresh(seen)
    (built,) = (n for n, s in enumerate(seen.statements, start=1) if s.startswith("CREATE TABLE"))
    for number in range(built, len(seen.statements) + 1):
        bench = Bench.of(NESTED, {"r": ("k int, x int", ROWS)}, {"fivm_apply": fivm_apply})
        with pytest.raises(Interrupted):
            bench.refresh(Interrupting(bench.engine, number, after=True))
        assert bench.refresh().action == "no change"
        bench.check()
        assert all(bench.engine.exists(view.name) for view in bench.plan.helpers)
        _insert(bench)
        assert bench.refresh().action == "refreshed"
        bench.check()


@pytest.mark.parametrize("after", range(1, 30))
def test_partitions_are_recorded_though_a_refresh_was_cut_off(after: int) -> None:
    sql = "select d, count(*) as n from e group by d"
    tables: dict[str, tuple[str, Sequence[tuple[object, ...]]]] = {"e": ("d date", [("2024-01-05",)])}
    bench = Bench.of(sql, tables, {"fivm_part_timestamp": True})
    bench.refresh()
    bench.engine.change("e", insert=[("2024-02-01",), ("2024-02-02",)])
    try:
        bench.refresh(Interrupting(bench.engine, after, after=True))
    except Interrupted:
        bench.refresh()
    catalog = parts_of(bench.plan.relation)
    counted = bench.engine.query(f"SELECT part_timestamp, row_count FROM {catalog} ORDER BY 1")
    assert [rows for _, rows in counted] == [1, 2]
    bench.check()


def _of_the_first_protocol(bench: Bench) -> list[str]:
    """Leave what an older version has left: a table for each view, and no head."""
    helper, root = bench.plan.helpers[0].name, bench.plan.root.relation
    bench.engine.drop(bench.plan.state_relation)
    bench.engine.run(f"DROP VIEW {helper}")
    for name in (helper, root):
        bench.engine.run(f"CREATE TABLE {name} USING DELTA AS SELECT 1 AS k, 'p' AS __fivm_partition")
    bench.engine.run(f"CREATE OR REPLACE VIEW {bench.plan.relation} AS SELECT k FROM {root}")
    return [helper, root]


def _is_as_built(bench: Bench) -> bool:
    bench.check()
    (helper,) = bench.plan.helpers
    is_view = bench.engine.is_view_of(
        helper.name, bench.engine._reads.views[helper.name].sql(dialect="spark")
    )
    return is_view and not bench.engine.exists(bench.plan.root.relation)


def test_states_of_the_first_protocol_are_built_anew_and_dropped() -> None:
    """Under ``fivm_on_change: fail`` too: nobody has changed anything."""
    bench = _bench(NESTED)
    _of_the_first_protocol(bench)
    bench.with_plan(meta={"fivm_on_change": "fail"})
    report = bench.refresh()
    assert (report.action, report.refresh) == ("rebuilt", 1)
    assert report.reason == f"state table {bench.plan.state_relation} is missing"
    assert _is_as_built(bench)
    assert bench.refresh().action == "no change"


def test_a_rebuild_of_the_first_protocol_that_was_cut_off_is_completed() -> None:
    number = 0
    while True:
        number += 1
        bench = _bench(NESTED)
        _of_the_first_protocol(bench)
        try:
            bench.refresh(Interrupting(bench.engine, number, after=True))
        except Interrupted:
            bench.refresh()
            assert _is_as_built(bench)
            assert bench.refresh().action == "no change"
        else:
            break
    assert number > 5


def test_a_table_of_somebody_else_beside_the_state_is_left_alone() -> None:
    """Its name is that of a state of an older layout, and it has not its columns."""
    bench = Bench.of(SUMS, {"r": ("k int, x int", ROWS)})
    bench.engine.run(f"CREATE TABLE {bench.plan.root.relation} USING DELTA AS SELECT 1 AS precious")
    assert bench.refresh().action == "built"
    bench.check()
    assert bench.engine.query(f"SELECT * FROM {bench.plan.root.relation}") == [(1,)]


def test_what_was_covered_is_known_where_the_head_was_taken() -> None:
    """The history tells it: a rebuild has the next number, and the results of dropped parts stay protected."""
    bench = _bench()
    _insert(bench)
    bench.refresh()
    before = bench.finished
    bench.engine.run(f"DELETE FROM {bench.plan.state_relation} WHERE __fivm_view = 'tail'")
    state = read_state(bench.engine, bench.plan.state_relation)
    assert state.head is None and state.finished == before
    assert bench.refresh().refresh == 3


def test_what_is_covered_survives_spark_and_is_short() -> None:
    """Spark puts values in the place of ``${...}``, and a statement quotes the head."""
    bench = _bench(NESTED)
    bench.with_plan(sql=f"{NESTED} having '${{hiveconf:x}}' <> ''")
    report = bench.refresh()
    assert (report.action, report.reason) == ("rebuilt", "the model's SQL changed; presentation changed")
    assert "${" not in next(s for s in report.statements if s.startswith("CREATE OR REPLACE TABLE"))
    signature = bench.finished.detail["signature"]
    assert "${hiveconf:x}" in signature["SQL"] and max(map(len, signature.values())) <= 200
    assert bench.refresh().action == "no change"


def test_branches_of_a_merge_are_in_the_order_of_sparks_grammar() -> None:
    """Those of rows that are there, then those of new ones; the last of each may be without a condition, no other."""
    for sql in (SUMS, NESTED, "select k, x from r"):
        bench = _bench(sql, fivm_apply="merge")
        _insert(bench)
        (text,) = (s for s in bench.refresh().statements if s.startswith("MERGE INTO"))
        whens = sqlglot.parse_one(text, dialect="spark").args["whens"].expressions
        kinds = [bool(when.args["matched"]) for when in whens]
        assert kinds == sorted(kinds, reverse=True)
        for kind in (True, False):
            own = [when for when, k in zip(whens, kinds, strict=True) if k is kind]
            assert all(when.args.get("condition") is not None for when in own[:-1])


def test_a_build_that_is_overtaken_before_it_is_counted_begins_again(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench.of(SUMS, {"r": ("k int, x int", ROWS)})
    slow, left = HoldingBack(bench), [1]

    def commit(sql: str, note: Note) -> None:
        if left and sql.startswith(f"INSERT INTO {bench.plan.state_relation}"):
            left.pop()
            _insert(bench)
            assert bench.refresh().action == "refreshed"
        bench.engine.commit(sql, note)

    monkeypatch.setattr(slow, "commit", commit)
    monkeypatch.setattr("fivm_dbt.refresh.executor.only_refresh_here", lambda *_: nullcontext(True))
    assert bench.refresh(slow).action == "no change"  # type: ignore[arg-type]
    bench.check()
