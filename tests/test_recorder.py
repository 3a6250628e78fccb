"""What a refresh records of its statements and inputs."""

from __future__ import annotations

import pytest
import sqlglot
from sqlglot import exp

from fivm_dbt.engines.duckdb.engine import DuckDbEngine
from fivm_dbt.plan.model.head import Note
from fivm_dbt.refresh.observe import RecordedInput
from fivm_dbt.refresh.recorder import Recorder
from fivm_dbt.spark.formats import Commit
from fixtures.models import plan_of, relation


def test_recorded_inputs_come_back_as_they_were() -> None:
    record = RecordedInput("raw.a", Commit(3, "2024-01-01T00:00:00", "WRITE"), 2)
    assert RecordedInput.of(record.as_dict()) == record


class _Staging(DuckDbEngine):
    def __init__(self) -> None:
        super().__init__(tiny=True)
        self.unstaged: list[str] = []

    def unstage(self, name: str) -> None:
        self.unstaged.append(name)
        super().unstage(name)


class _Committing(DuckDbEngine):
    def __init__(self) -> None:
        super().__init__(tiny=True)
        self.committed: list[tuple[str, Note]] = []

    def commit(self, sql: str, note: Note) -> None:
        self.committed.append((sql, note))


def test_recorder() -> None:
    engine, lines = _Staging(), list[str]()
    plan = plan_of("select k from raw.a", [relation("raw.a", "k int")])
    recorder = Recorder(engine, plan, lines.append)
    recorder.run("CREATE OR REPLACE TABLE raw.t USING DELTA AS SELECT 1 AS k")
    recorder.stage("one", "SELECT k FROM raw.t VERSION AS OF 0")
    recorder.stage("two", "SELECT k + 1 AS k FROM one")
    assert list(recorder.query("SELECT k FROM two")) == [(2,)]
    recorder.progress("half way")
    assert lines == ["half way"]
    assert recorder.statements == [
        "CREATE OR REPLACE TABLE raw.t USING DELTA AS SELECT 1 AS k",
        "CACHE TABLE one AS SELECT k FROM raw.t VERSION AS OF 0",
        "CACHE TABLE two AS SELECT k + 1 AS k FROM one",
        "SELECT k FROM two",
    ]
    recorder.unstage_all()
    assert engine.unstaged == ["two", "one"], "a staged result may read an earlier one"
    recorder.unstage_all()
    assert engine.unstaged == ["two", "one"]


@pytest.mark.parametrize(
    ("where", "reads_replaced", "is_written"),
    [
        (None, False, True),
        ("__fivm_view = 'tail' OR (__fivm_view = 'root' AND __fivm_partition IN ('1'))", True, True),
        ("__fivm_view = 'tail'", False, False),
    ],
)
def test_what_is_written_by_files(where: str | None, reads_replaced: bool, is_written: bool) -> None:
    """A query that reads other rows than those that are replaced would not find them."""
    plan = plan_of("select k from raw.a", [relation("raw.a", "k int")])
    engine = _Committing()
    condition = None if where is None else sqlglot.condition(where, dialect="spark")
    insert = exp.Insert(this=exp.to_table("a.t"), expression=exp.select("1"), where=condition)
    recorder = Recorder(engine, plan, lambda _: None)
    recorder.commit(insert, Note("a.t", 5, "x"), 3, reads_replaced=reads_replaced)
    [(text, note)] = engine.committed
    assert (note.written is not None) is is_written
    assert ("REPLACE WHERE" in text) is (where is not None)


def test_what_could_not_be_staged_is_cleaned_up_too() -> None:
    engine = _Staging()
    plan = plan_of("select k from raw.a", [relation("raw.a", "k int")])
    recorder = Recorder(engine, plan, lambda _: None)
    with pytest.raises(Exception, match="nothing"):
        recorder.stage("one", "SELECT k FROM nothing VERSION AS OF 0")
    recorder.unstage_all()
    assert engine.unstaged == ["one"]
