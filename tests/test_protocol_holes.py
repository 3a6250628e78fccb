"""Holes that the first protocol of a refresh had, a journal beside the states, and heads have not."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import pytest

from fivm_dbt.engines.duckdb import DuckDbEngine
from fivm_dbt.errors import FivmError
from fivm_dbt.naming import journal_table
from fivm_dbt.plan.head import Note
from fivm_dbt.refresh.engine import Engine, Row
from fivm_dbt.refresh.executor import refresh
from fivm_dbt.refresh.journal import SqlJournal
from fivm_dbt.refresh.report import Report
from fixtures.models import Bench, Interrupted

SUMS = "select g, count(*) as n, sum(x) as x from raw.r group by g"


class Zombie:
    """A client is killed while its write runs on in the server, and commits after that of the next run."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.left: tuple[str, Note] | None = None

    def commit(self, sql: str, note: Note) -> None:
        if self.left is None:
            self.left = (sql, note)
            raise Interrupted("killed")
        self._engine.commit(sql, note)
        # The same delta, staged under the same name: the statement that was left behind commits now.
        self._engine.commit(*self.left)

    def __getattr__(self, name: str) -> object:
        return getattr(self._engine, name)


def _bench(**meta: object) -> Bench:
    rows: Sequence[Row] = [(1, 10), (1, 20), (2, 5)]
    bench = Bench.of(SUMS, {"raw.r": ("g int, x int", rows)}, meta)
    bench.refresh()
    return bench


@pytest.mark.parametrize(
    "apply",
    ["merge", "replace"],
)
@pytest.mark.parametrize("on_change", ["rebuild", "fail"])
def test_a_killed_client_whose_write_runs_on(apply: str, on_change: str) -> None:
    bench = _bench(fivm_apply=apply, fivm_on_change=on_change)
    bench.engine.change("raw.r", insert=[(1, 1), (3, 3)])
    zombie = Zombie(bench.engine)
    with pytest.raises(Interrupted):
        bench.refresh(zombie)
    try:
        bench.refresh(zombie)
    except FivmError:
        return
    bench.check()
    bench.refresh()
    bench.check()


def _with_journal(bench: Bench) -> SqlJournal:
    """The journal as a table, with the model built anew."""
    journal = SqlJournal(bench.engine, journal_table(bench.plan.relation))
    bench.engine.change("raw.r", insert=[(9, 9)])
    refresh(bench.plan, bench.engine, journal)
    return journal


def _refresh(
    bench: Bench, journal: SqlJournal, engine: object = None, *, full_refresh: bool = False
) -> Report:
    used: Engine = engine or bench.engine  # type: ignore[assignment]
    return refresh(bench.plan, used, journal, full_refresh=full_refresh)


def test_more_failed_attempts_than_are_read() -> None:
    """They push the last finished entry out of what is read: the model is "built", although nobody may rebuild it."""
    bench = _bench(fivm_on_change="fail")
    journal = _with_journal(bench)
    bench.engine.change("raw.r", insert=[(1, 1)])
    actions = []
    for _ in range(52):
        with suppress(Interrupted):
            actions.append(_refresh(bench, journal, Zombie(bench.engine)).action)
    assert actions == [], "none of them gets as far as to write"
    assert _refresh(bench, journal).action == "refreshed"
    bench.check()


@pytest.mark.parametrize("full_refresh", [False, True], ids=["run", "full refresh"])
def test_an_entry_of_the_journal_is_damaged(*, full_refresh: bool) -> None:
    """The journal tells people what was done; no refresh of a maintained model depends on it."""
    bench = _bench()
    journal = _with_journal(bench)
    bench.engine.run(
        f"INSERT INTO {journal.name} SELECT model, refresh + 1, 0, 'started', plan_hash, '{{', recorded_at "
        f"FROM {journal.name} WHERE event = 'finished'"
    )
    assert isinstance(bench.engine, DuckDbEngine)
    report = _refresh(bench, journal, full_refresh=full_refresh)
    assert report.action == ("rebuilt" if full_refresh else "no change")
    bench.check()
