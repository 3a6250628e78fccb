"""The journal's protocol, and what a refresh records."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from datetime import datetime
from typing import Any, Literal

import pytest

from fivm_dbt.engines.duckdb import DuckDbEngine
from fivm_dbt.refresh.engine import Commit
from fivm_dbt.refresh.invocation import Invocation
from fivm_dbt.refresh.journal import Entry, Journal, MemoryJournal, SqlJournal
from fivm_dbt.refresh.observe import RecordedInput, State, read_state
from fivm_dbt.refresh.recorder import Recorder
from fixtures.models import plan_of, relation

MODEL = "analytics.m"


def _entry(
    refresh: int, event: Literal["started", "finished"], attempt: int = 0, model: str = MODEL, **detail: Any
) -> Entry:
    return Entry(model, refresh, attempt, event, "hash", detail)


@pytest.fixture(params=["memory", "table"])
def journal(request: pytest.FixtureRequest) -> Iterator[Journal]:
    if request.param == "memory":
        yield MemoryJournal()
        return
    engine = DuckDbEngine(tiny=True)
    journal = SqlJournal(engine, "analytics.fivm_journal")
    assert list(journal.entries(MODEL)) == [], "there is no table before the first entry"
    journal.append(_entry(1, "started", model="analytics.first"))
    yield journal
    engine.close()


def _state(journal: Journal) -> State:
    return read_state(journal.entries(MODEL))


def test_nothing_yet(journal: Journal) -> None:
    assert list(journal.entries(MODEL)) == []
    assert journal.last_build(MODEL) is None
    assert _state(journal) == State(None, None, 1)


def test_a_refresh_is_started_and_finished(journal: Journal) -> None:
    journal.append(_entry(1, "started"))
    state = _state(journal)
    assert state.finished is None
    assert state.unfinished is not None and state.unfinished.refresh == 1
    assert state.next_refresh == 1
    journal.append(_entry(1, "finished", kind="build"))
    state = _state(journal)
    assert state.finished is not None and state.finished.detail["kind"] == "build"
    assert (state.unfinished, state.next_refresh) == (None, 2)


def test_an_interrupted_refresh_is_attempted_again(journal: Journal) -> None:
    journal.append(_entry(1, "started"))
    journal.append(_entry(1, "finished"))
    journal.append(_entry(2, "started", binding="first"))
    journal.append(_entry(2, "started", attempt=1, binding="second"))
    state = _state(journal)
    assert state.finished is not None and state.finished.refresh == 1
    assert state.unfinished is not None
    assert (state.unfinished.refresh, state.unfinished.attempt) == (2, 1)
    assert state.unfinished.detail["binding"] == "second"
    assert state.next_refresh == 2
    journal.append(_entry(2, "finished", attempt=1))
    state = _state(journal)
    assert (state.unfinished, state.next_refresh) == (None, 3)


def test_models_do_not_see_each_other(journal: Journal) -> None:
    journal.append(_entry(1, "started"))
    journal.append(_entry(7, "started", model="analytics.other"))
    assert [e.refresh for e in journal.entries(MODEL)] == [1]
    assert [e.refresh for e in journal.entries("analytics.other")] == [7]


def test_the_last_two_refreshes_are_there_among_many(journal: Journal) -> None:
    for number in range(1, 31):
        journal.append(_entry(number, "started"))
        journal.append(_entry(number, "finished"))
    journal.append(_entry(31, "started"))
    state = _state(journal)
    assert state.finished is not None and state.finished.refresh == 30
    assert state.unfinished is not None and state.next_refresh == 31


def test_a_refresh_that_failed_many_times_does_not_hide_the_finished_one(journal: Journal) -> None:
    journal.append(_entry(1, "started"))
    journal.append(_entry(1, "finished"))
    for attempt in range(40):
        journal.append(_entry(2, "started", attempt=attempt))
    state = _state(journal)
    assert state.finished is not None and state.finished.refresh == 1
    assert state.unfinished is not None and state.unfinished.attempt == 39


def test_the_signature_stands_in_the_last_build(journal: Journal) -> None:
    journal.append(_entry(1, "finished", signature={"SQL": "select 1"}))
    journal.append(_entry(2, "finished", kind="refresh"))
    journal.append(_entry(3, "finished", signature={"SQL": "select 2"}))
    journal.append(_entry(4, "finished", kind="advance"))
    build = journal.last_build(MODEL)
    assert build is not None and build.detail["signature"] == {"SQL": "select 2"}


def test_details_come_back_as_they_were(journal: Journal) -> None:
    detail = {"text": "it's a \\ and a \" and a\nline – ü", "numbers": [1, 2.5, None], "nested": {"k": True}}
    journal.append(_entry(1, "finished", **detail))
    (entry,) = journal.entries(MODEL)
    assert entry.detail == detail
    assert datetime.fromisoformat(entry.recorded_at).tzinfo is not None


def _in_threads(work: Callable[[], None], number: int) -> None:
    threads = [threading.Thread(target=work) for _ in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_recorded_inputs_come_back_as_they_were() -> None:
    record = RecordedInput("raw.a", Commit(3, "2024-01-01T00:00:00", "WRITE"), 2)
    assert RecordedInput.of(record.as_dict()) == record


# What a refresh records


class _Staging(DuckDbEngine):
    def __init__(self) -> None:
        super().__init__(tiny=True)
        self.unstaged: list[str] = []

    def unstage(self, name: str) -> None:
        self.unstaged.append(name)
        super().unstage(name)


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


def test_what_could_not_be_staged_is_cleaned_up_too() -> None:
    engine = _Staging()
    plan = plan_of("select k from raw.a", [relation("raw.a", "k int")])
    recorder = Recorder(engine, plan, lambda _: None)
    with pytest.raises(Exception, match="nothing"):
        recorder.stage("one", "SELECT k FROM nothing VERSION AS OF 0")
    recorder.unstage_all()
    assert engine.unstaged == ["one"]


class _Creating(DuckDbEngine):
    """Answers CREATE TABLE with an error; after ``looks`` looks the table is there, made by another process."""

    def __init__(self, error: str, looks: int) -> None:
        super().__init__(tiny=True)
        self.error = error
        self.looks = looks

    def run(self, sql: str) -> None:
        if sql.startswith("CREATE TABLE") and self.looks > 0:
            raise RuntimeError(self.error)
        super().run(sql)

    def exists(self, relation: str) -> bool:
        self.looks -= 1
        if self.looks == 0:
            SqlJournal(self, relation).append(_entry(1, "started", model="analytics.first"))
        return super().exists(relation)


def test_a_journal_that_another_process_is_creating_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fivm_dbt.refresh.journal._CREATING", nullcontext())
    waited: list[float] = []
    monkeypatch.setattr("fivm_dbt.refresh.journal.time.sleep", waited.append)
    busy = "[DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION] Cannot create table"
    journal = SqlJournal(_Creating(busy, looks=3), "analytics.fivm_journal")
    journal.append(_entry(1, "started"))
    assert len(waited) == 2
    with pytest.raises(RuntimeError, match="NON_EMPTY_LOCATION"):
        SqlJournal(_Creating(busy, looks=99), "analytics.fivm_journal").append(_entry(1, "started"))
    waited.clear()
    with pytest.raises(RuntimeError, match="denied"):
        SqlJournal(_Creating("permission denied", looks=99), "analytics.fivm_journal").append(
            _entry(1, "started")
        )
    assert waited == []


class _Counting:
    """An engine that counts what the journal asks, and lists what it runs."""

    def __init__(self, engine: DuckDbEngine) -> None:
        self._engine = engine
        self.reads = 0
        self.ran: list[str] = []

    def run(self, sql: str) -> None:
        self.ran.append(sql)
        if not sql.startswith("OPTIMIZE"):  # DuckDB has none
            self._engine.run(sql)

    def query(self, sql: str) -> object:
        self.reads += sql.startswith("SELECT")
        return self._engine.query(sql)

    def __getattr__(self, name: str) -> object:
        return getattr(self._engine, name)


@pytest.fixture
def counting() -> Iterator[_Counting]:
    engine = DuckDbEngine(tiny=True)
    journal = SqlJournal(engine, "analytics.fivm_journal")
    for model in ("analytics.a", "analytics.b", "analytics.other"):
        for refresh in (1, 2):
            journal.append(_entry(refresh, "started", model=model))
            journal.append(_entry(refresh, "finished", model=model))
    yield _Counting(engine)
    engine.close()


def test_models_of_an_invocation_share_one_read(counting: Any) -> None:
    ahead = Invocation(["analytics.a", "analytics.b", "analytics.new"])
    alone = SqlJournal(counting, "analytics.fivm_journal")
    for model in ("analytics.b", "analytics.a", "analytics.new"):
        journal = SqlJournal(counting, "analytics.fivm_journal", ahead)
        before = counting.reads
        found = list(journal.entries(model))
        assert counting.reads - before == (1 if model == "analytics.b" else 0)
        assert found == list(alone.entries(model))
        assert [e.refresh for e in found] == ([] if model == "analytics.new" else [2, 2, 1, 1])


def test_what_was_read_ahead_is_given_once(counting: Any) -> None:
    journal = SqlJournal(counting, "analytics.fivm_journal", Invocation(["analytics.a"]))
    journal.entries("analytics.a")
    journal.append(_entry(3, "started", model="analytics.a"))
    assert journal.entries("analytics.a")[0].refresh == 3


def test_a_model_that_was_not_announced_is_read_for_itself(counting: Any) -> None:
    journal = SqlJournal(counting, "analytics.fivm_journal", Invocation(["analytics.a"]))
    assert journal.entries("analytics.other")[0].refresh == 2


def test_a_refresh_that_was_open_when_it_was_read_ahead_is_looked_at_again(counting: Any) -> None:
    """By the time its turn comes the other process may have finished."""
    direct = SqlJournal(counting, "analytics.fivm_journal")
    direct.append(_entry(3, "started", model="analytics.b"))
    ahead = SqlJournal(counting, "analytics.fivm_journal", Invocation(["analytics.a", "analytics.b"]))
    ahead.entries("analytics.a")
    direct.append(_entry(3, "finished", model="analytics.b"))
    assert ahead.entries("analytics.b")[0].event == "finished"


def test_what_an_invocation_has_finished_is_known_without_asking(counting: Any) -> None:
    """To its journals, and those beside them; what others have finished since is not."""
    ahead = Invocation(["analytics.a", "analytics.b"])
    first = SqlJournal(counting, "analytics.fivm_journal", ahead)
    assert first.last_known("analytics.a") is None
    taken = list(first.entries("analytics.a"))
    second = SqlJournal(counting, "analytics.fivm_journal", ahead).beside("analytics.a")
    before = counting.reads
    assert second.last_known("analytics.a") == taken[0]
    assert second.last_known("analytics.b") is None, "its entries have not been taken"
    first.append(_entry(3, "finished", model="analytics.a"))
    SqlJournal(counting, "analytics.fivm_journal").append(_entry(4, "finished", model="analytics.a"))
    known = second.last_known("analytics.a")
    assert known is not None and known.refresh == 3
    assert counting.reads == before
    assert second.entries("analytics.a")[0].refresh == 4, "asked, it reads the table"
    assert second.beside("elsewhere.a").last_known("analytics.a") is None


def test_the_journal_gives_a_bounded_number_of_entries(counting: Any) -> None:
    direct = SqlJournal(counting, "analytics.fivm_journal")
    for refresh in range(3, 60):
        direct.append(_entry(refresh, "finished", model="analytics.a"))
    found = direct.entries("analytics.a")
    assert [e.refresh for e in found] == list(range(59, 9, -1))


# What is noted


def _finished(model: str, refresh: int) -> Entry:
    return _entry(refresh, "finished", model=f"analytics.{model}")


def test_a_journal_that_shares_nothing_writes_a_note_at_once(journal: Journal) -> None:
    entry = _entry(1, "finished", kind="build")
    journal.note(entry)
    assert list(journal.entries(MODEL)) == [entry]


def test_what_is_noted_is_known_at_once_and_written_with_the_rest(counting: Any) -> None:
    """In one statement, in the order of the notes, by whichever of the journals that share it."""
    shared = Invocation(["analytics.a", "analytics.b"])
    journals = [SqlJournal(counting, "analytics.fivm_journal", shared) for _ in range(2)]
    journals[0].note(_finished("b", 3))
    journals[1].note(_finished("a", 3))
    journals[0].beside("analytics.a").note(_finished("a", 4))
    assert counting.ran == []
    known = journals[1].last_known("analytics.a")
    assert known is not None and known.refresh == 4
    assert journals[1].entries("analytics.other")[0].refresh == 2, "nobody else is concerned"
    noted = shared.take_noted()
    assert [(e.model, e.refresh) for e in noted] == [
        ("analytics.b", 3),
        ("analytics.a", 3),
        ("analytics.a", 4),
    ]
    journals[0].write(noted)
    assert len(counting.ran) == 1 and counting.ran[0].startswith("INSERT INTO analytics.fivm_journal")
    direct = SqlJournal(counting, "analytics.fivm_journal")
    assert list(direct.entries("analytics.a"))[:2] == [noted[2], noted[1]]
    assert direct.entries("analytics.b")[0] == noted[0]
    assert shared.take_noted() == []


def test_what_is_written_creates_the_table() -> None:
    engine = DuckDbEngine(tiny=True)
    shared = Invocation([MODEL])
    SqlJournal(engine, "analytics.fivm_journal", shared).note(_entry(1, "finished"))
    assert not engine.exists("analytics.fivm_journal")
    SqlJournal(engine, "analytics.fivm_journal").write(shared.take_noted())
    assert SqlJournal(engine, "analytics.fivm_journal").entries(MODEL)[0].refresh == 1
    engine.close()


def test_what_threads_note_is_taken_once_each() -> None:
    """Also while others take."""
    shared, taken = Invocation([]), list[Entry]()
    barrier = threading.Barrier(8)

    def note() -> None:
        model = f"m{threading.get_ident()}"
        barrier.wait()
        for refresh in range(1, 201):
            shared.note(_finished(model, refresh))
            if refresh % 20 == 0:
                taken.extend(shared.take_noted())

    _in_threads(note, 8)
    taken.extend(shared.take_noted())
    assert len(taken) == 8 * 200
    assert len({(e.model, e.refresh) for e in taken}) == 8 * 200


def test_every_hundredth_entry_of_a_model_has_its_files_put_together(counting: Any) -> None:
    journal = SqlJournal(counting, "analytics.fivm_journal")
    journal.write([_finished("a", 99), _finished("b", 101)])
    assert [sql.split()[0] for sql in counting.ran] == ["INSERT"]
    journal.write([_finished("a", 100), _finished("b", 102), _finished("other", 300)])
    assert [sql.split()[0] for sql in counting.ran] == ["INSERT", "INSERT", "OPTIMIZE"]
    assert counting.ran[-1].endswith("WHERE model IN ('analytics.a', 'analytics.other')")
    journal.append(_finished("b", 200))
    assert counting.ran[-1].endswith("WHERE model IN ('analytics.b')")
