"""The head of a viewdf model's state: statements that come late, and processes that refresh it at the same time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from typing import Any

import pytest

from fivm_dbt.errors import FivmError
from fivm_dbt.naming import state_of
from fivm_dbt.parts.length import Length
from fivm_dbt.parts.parted import TimeParts
from fivm_dbt.plan.model.head import Note
from fivm_dbt.refresh.heads import read_state
from fivm_dbt.spark.formats import FORMAT, Commit
from fixtures.runs import by_run
from viewdf_bench import Bench, Interrupted, Model, Row, Table, at, minutes, stopping

OLDEST = {"fivm_start": "oldest"}
KEPT = {**OLDEST, "fivm_retention": "3 minutes"}
COUNTS = Model("counts", "select src, count(*) as n from {m:j} group by src", None, OLDEST)
SHORT = Model("counts", COUNTS.update, None, KEPT)
CSUM = Model(
    "csum",
    """select src, sum(lost) as lost, sum(n) as n from (
        select src, sum(loss) as lost, count(*) as n from {m:j} group by src
        union all select src, lost, n from {csum:j-1}) as both group by src""",
    "select src, sum(loss) as lost, count(*) as n from {m:i} group by src",
    OLDEST,
)
LONGEST = Model(
    "longest",
    """select new.src, greatest(new.loss, coalesce(prev.loss, 0)) as loss from {m:j} as new
    left join {longest:j-1} as prev on new.src = prev.src""",
    "select src, loss from {m:i}",
    OLDEST,
)
ROWS: list[Row] = [("s", "d", minutes("10:00", i), 20) for i in range(9)]


@contextmanager
def bench(model: Model, rows: list[Row] | None = None) -> Iterator[Bench]:
    columns = [("src", "string"), ("dest", "string"), ("ts", "timestamp"), ("loss", "int")]
    parts = TimeParts("ts", Length.of("minute"), lateness=timedelta())
    made = Bench([Table("m", columns, list(ROWS if rows is None else rows), parts)], [model])
    try:
        yield made
    finally:
        made.close()


@contextmanager
def committing(b: Bench, commit: Callable[[str, Note], None]) -> Iterator[None]:
    """Commits go this way while it lasts."""
    engine: Any = b.bench.engine
    engine.commit = commit
    try:
        yield
    finally:
        del engine.commit


def _commit(b: Bench) -> Callable[[str, Note], None]:
    engine: Any = b.bench.engine
    found: Callable[[str, Note], None] = type(engine).commit.__get__(engine)
    return found


class _HeldBack:
    """Keeps one statement back, as if its client was killed and the server was slow."""

    def __init__(self, b: Bench, is_meant: Callable[[str], bool]) -> None:
        self._b = b
        self._is_meant = is_meant
        self._left: tuple[str, Note] | None = None
        self._staged: dict[str, str] = {}

    def __call__(self, sql: str, note: Note) -> None:
        if self._left is None and self._is_meant(sql):
            engine: Any = self._b.bench.engine
            self._left, self._staged = (sql, note), dict(engine._reads.staged)
            raise Interrupted
        _commit(self._b)(sql, note)

    def late(self) -> None:
        """The statement arrives, with what its session had staged."""
        assert self._left is not None
        engine: Any = self._b.bench.engine
        engine._reads.staged.update(self._staged)
        _commit(self._b)(*self._left)


def _is_append(sql: str) -> bool:
    return (
        sql.startswith("INSERT INTO counts__fivm_state") and "REPLACE WHERE" not in sql and "UNION ALL" in sql
    )


LATE: list[tuple[str, Model, Callable[[str], bool], list[Row]]] = [
    ("append", COUNTS, _is_append, [("s", "d", at("10:09"), 1)]),
    ("replace", COUNTS, lambda sql: "REPLACE WHERE" in sql, [("t", "d", at("10:02"), 1)]),
    ("drop", SHORT, lambda sql: "REPLACE WHERE" in sql, [("s", "d", at("10:12"), 1)]),
    ("shift", CSUM, lambda sql: sql.startswith("MERGE INTO"), [("s", "d", at("10:02"), 1)]),
    ("head", COUNTS, lambda sql: "UNION ALL" not in sql, [("s", "d", at("10:02"), 21)]),
    ("swap", COUNTS, lambda sql: sql.startswith("CREATE OR REPLACE TABLE counts__fivm_state"), []),
    ("beside", COUNTS, lambda sql: sql.startswith("INSERT INTO counts__fivm_next"), []),
]


@pytest.mark.parametrize("later", by_run([1], more=[3]))
@pytest.mark.parametrize(("kind", "model", "is_meant", "rows"), LATE, ids=[case[0] for case in LATE])
def test_a_statement_that_comes_late_changes_nothing(
    kind: str, model: Model, is_meant: Callable[[str], bool], rows: list[Row], later: int
) -> None:
    is_again = kind in ("swap", "beside")
    with bench(model) as b:
        b.run()
        if rows:
            b.change("m", rows, ROWS[2:3] if kind == "head" else [])
        slow = _HeldBack(b, is_meant)
        with committing(b, slow), pytest.raises(Interrupted):
            b.run(full_refresh=is_again)
        for number in range(later):
            b.run(full_refresh=is_again and number == 1)
            b.change("m", [("s", "d", minutes("10:14", number), 30), ("u", "d", at("10:12"), number)])
        b.run()
        state = f"{model.name}__fivm_state"
        before = b.bench.engine.commits(state, 0), b.rows(model.name)
        if kind == "beside":
            with pytest.raises(Exception, match="counts__fivm_next"):
                slow.late()
        else:
            slow.late()
        assert (b.bench.engine.commits(state, 0), b.rows(model.name)) == before
        assert b.run()[model.name].action == "no change"
        if model is not SHORT:
            b.check()
            b.check_catalog()


def test_a_late_statement_of_a_build_finds_another_one_being_built() -> None:
    with bench(COUNTS) as b:
        b.run()
        slow = _HeldBack(b, lambda sql: sql.startswith("INSERT INTO counts__fivm_next"))
        with committing(b, slow), pytest.raises(Interrupted):
            b.run(full_refresh=True)

        def commit(sql: str, note: Note) -> None:
            _commit(b)(sql, note)
            if sql.startswith("CREATE OR REPLACE TABLE counts__fivm_next"):
                before = b.bench.engine.commits("counts__fivm_next", 0)
                slow.late()
                assert b.bench.engine.commits("counts__fivm_next", 0) == before

        with committing(b, commit):
            b.run()
        b.check()
        b.check_catalog()


class _Meanwhile:
    """Before a commit of this number another process refreshes the model, from beginning to end."""

    def __init__(self, b: Bench, number: int, *, full_refresh: bool = False) -> None:
        self._b = b
        self._left = number
        self._full_refresh = full_refresh

    def __call__(self, sql: str, note: Note) -> None:
        self._left -= 1
        if self._left == 0:
            engine: Any = self._b.bench.engine
            staged = dict(engine._reads.staged)
            self._b.run(full_refresh=self._full_refresh)
            engine._reads.staged.update(staged)
        _commit(self._b)(sql, note)

    @property
    def is_over(self) -> bool:
        return self._left > 0


@pytest.mark.parametrize(
    "step", by_run(["first build", "new", "late", "rebuild"], more=["old", "two rebuilds"])
)
@pytest.mark.parametrize("model", by_run([COUNTS], more=[CSUM], long=[LONGEST]), ids=lambda m: m.name)
def test_two_processes_refresh_a_model(model: Model, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever comes later looks again, and nothing is there twice."""
    monkeypatch.setattr("fivm_dbt.refresh.executor.only_refresh_here", lambda *_: nullcontext(True))
    monkeypatch.setattr(type(FORMAT), "is_conflict", lambda _, error: "exists already" in str(error))
    number, is_over = 0, False
    while not is_over:
        number += 1
        if step == "old":
            model = Model(model.name, model.update, model.initialize, KEPT)
        with bench(model) as b:
            if step != "first build":
                b.run()
            if step in ("new", "old", "rebuild", "two rebuilds"):
                b.change("m", [("s", "d", at("10:09"), 3), ("s", "d", at("10:10"), 3)])
            if step == "late":
                b.change(
                    "m", [("s", "d", at("10:02"), 30), ("t", "d", at("10:05"), 3), ("t", "d", at("10:09"), 3)]
                )
            meanwhile = _Meanwhile(b, number, full_refresh=step == "two rebuilds")
            with committing(b, meanwhile):
                b.run(full_refresh="rebuild" in step)
            is_over = meanwhile.is_over
            if step != "old":
                b.check()
            assert b.run()[model.name].action == "no change"
            if step != "old":
                b.check_catalog()
                b.check_computed()
            assert not b.bench.engine.exists(f"{model.name}__fivm_next")
    assert number > 1


def test_readers_see_nothing_of_a_first_build_that_is_open() -> None:
    """The state is there, its head says that nothing is finished, and the view comes last."""
    stopped = 0
    while True:
        with bench(LONGEST) as b:
            try:
                with stopping(b, stopped + 1):
                    b.run()
                break
            except Interrupted:
                stopped += 1
            if b.bench.engine.exists("longest"):
                b.check()
            else:
                finished = read_state(b.bench.engine, state_of("longest")).finished
                assert finished is None or len(b.known("longest")["computed"])
            assert b.run()["longest"].action in ("built", "no change")
            b.check()
            b.check_catalog()
    assert stopped > len(ROWS)


def test_an_appended_part_is_one_commit() -> None:
    with bench(COUNTS) as b:
        b.run()
        b.change("m", [("s", "d", at("10:09"), 3)])
        before = len(b.bench.engine.commits("counts__fivm_state", 0))
        b.run()
        assert len(b.bench.engine.commits("counts__fivm_state", 0)) == before + 1
        b.check()


def test_the_catalog_is_whole_after_a_refresh_that_was_cut_off() -> None:
    """Also of what came to the parts of inputs."""
    cut = 0
    while True:
        with bench(COUNTS) as b:
            b.run()
            b.change(
                "m", [("s", "d", at("10:09"), 3), ("t", "d", at("10:02"), 3), ("t", "d", at("10:02"), 4)]
            )
            try:
                with stopping(b, cut + 1):
                    b.run()
                break
            except Interrupted:
                cut += 1
            b.run()
            b.check_catalog()
            there = {part for name, part, *_ in b.catalog("counts") if name == "m"}
            assert there == set(range(min(there), min(there) + 10))
    assert cut == 1, "there is one commit"


@pytest.mark.parametrize("stopped", [1, 2, 3])
def test_parts_of_the_first_protocol_are_built_anew(stopped: int) -> None:
    """Beside the old table, which is shown until they are, and goes with the next run."""
    with bench(COUNTS) as b:
        b.run()
        engine, plan = b.bench.engine, b.plans["counts"]
        engine.run(
            f"CREATE TABLE {plan.root.relation} USING DELTA AS SELECT *, DATE'2024-05-01' AS __fivm_partition "
            "FROM counts"
        )
        engine.run(f"CREATE OR REPLACE VIEW counts AS SELECT * FROM {plan.root.relation}")
        engine.run(f"DROP TABLE {plan.state_relation}")
        before = b.rows("counts")
        b.change("m", [("s", "d", at("10:09"), 3)])
        with stopping(b, stopped), pytest.raises(Interrupted):
            b.run()
        assert b.rows("counts") == before
        report = b.run()["counts"]
        assert report.refresh == 1
        b.check()
        b.check_catalog()
        assert b.run()["counts"].action == "no change"
        assert not engine.exists(plan.root.relation)


@pytest.mark.parametrize("on_change", ["rebuild", "fail"])
def test_rows_of_somebody_else(on_change: str) -> None:
    model = Model("counts", COUNTS.update, None, {**OLDEST, "fivm_on_change": on_change})
    with bench(model) as b:
        b.run()
        b.bench.engine.run(
            "INSERT INTO counts__fivm_state SELECT * FROM counts__fivm_state WHERE __fivm_view = 'root'"
        )
        if on_change == "fail":
            with pytest.raises(FivmError, match="changed by somebody else") as raised:
                b.run()
            assert raised.value.code.number == "FIVM404"
        else:
            assert "changed by somebody else" in (b.run()["counts"].reason or "")
            b.check()


def test_a_state_that_was_restored_is_built_anew() -> None:
    """Its head has a number that is taken: Delta keeps the numbers of transactions."""
    with bench(COUNTS) as b:
        b.run()
        table = b.bench.engine.tables.table("counts__fivm_state")
        old = table.copies[table.version]
        for minute in (9, 10):
            b.change("m", [("s", "d", minutes("10:00", minute), 3)])
            b.run()
        b.bench.engine.run("INSERT INTO counts__fivm_state SELECT * FROM counts__fivm_state WHERE false")
        table.commits.append(Commit(table.version + 1, "later", "RESTORE"))
        table.copies[table.version] = old
        b.bench.engine._reads._results.clear()
        assert "changed by somebody else" in (b.run()["counts"].reason or "")
        b.check()
        b.check_catalog()
