"""Writing the root of a viewdf model, and noticing when somebody else has."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from fivm_dbt.refresh.decide import KEEPS_ROWS
from fivm_dbt.refresh.engine import Commit
from fivm_dbt.refresh.recorder import Recorder
from fivm_dbt.refresh.run import Overtaken


class RootWrites:
    """The statements by which one refresh writes a root, whose version was ``since`` when it began.

    A part that was not there is appended, which Delta lets others do at the same time. A process that seemed dead and
    whose claim another one has taken over may do so, and the rows would be there twice. Each statement makes one commit
    at most, none if it changes nothing, so that more commits than statements are those of somebody else.
    """

    def __init__(self, engine: Recorder, relation: str, since: int) -> None:
        self._engine = engine
        self._relation = relation
        self._since = since
        self._statements = 0
        self._commits: Sequence[Commit] | None = None

    def run(self, statement: exp.Expr) -> None:
        """Run a statement that writes the root, and nothing else."""
        self._statements += 1
        self._commits = None
        self._engine.run(statement)

    def compact(self, statement: exp.Expr) -> None:
        """Run a statement that puts files together."""
        self._commits = None
        self._engine.compact(statement)

    def commits(self) -> Sequence[Commit]:
        """The newest commits, back to the version at the beginning; asked for once, until something is written."""
        if self._commits is None:
            self._commits = self._engine.commits(self._relation, self._since)
        return self._commits

    def appended(self) -> int | None:
        """How many rows the only statement so far has appended; None where the commits do not tell."""
        if self._statements != 1 or len(self._made) > 1:
            return None
        return self._made[0].appended if self._made else 0

    def check(self) -> None:
        """Raise Overtaken if somebody else has written the root too."""
        if len(self._made) > self._statements:
            raise Overtaken

    @property
    def _made(self) -> list[Commit]:
        return [c for c in self.commits() if c.version > self._since and c.operation not in KEEPS_ROWS]
