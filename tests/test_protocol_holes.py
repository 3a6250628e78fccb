"""Holes that the first protocol of a refresh had, a journal beside the states, and heads have not."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import pytest

from fivm_dbt.errors import FivmError
from fivm_dbt.plan.model.head import Note
from fivm_dbt.refresh.engine import Engine, Row
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


def test_many_failed_attempts() -> None:
    """A journal was read as far back as some: the model was "built", although nobody may rebuild it."""
    bench = _bench(fivm_on_change="fail")
    bench.engine.change("raw.r", insert=[(1, 1)])
    actions = []
    for _ in range(52):
        with suppress(Interrupted):
            actions.append(bench.refresh(Zombie(bench.engine)).action)
    assert actions == [], "none of them gets as far as to write"
    assert bench.refresh().action == "refreshed"
    bench.check()
