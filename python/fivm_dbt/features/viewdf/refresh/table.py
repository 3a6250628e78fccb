"""A refresh of a viewdf model writes its table part by part, each time with the head (ADR 0028, 0037)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fivm_dbt.features.viewdf.plan.model import ViewdfPlan
from fivm_dbt.features.viewdf.spark.compared import Anew
from fivm_dbt.features.viewdf.spark.statements import Statement
from fivm_dbt.plan.model.head import HeadId, NextHead, noted_head
from fivm_dbt.refresh.decide import raised_alarm
from fivm_dbt.refresh.heads import has_set, head_of_build, next_head
from fivm_dbt.refresh.recorder import OwnRows, Recorder
from fivm_dbt.refresh.run import Overtaken
from fivm_dbt.spark.formats import FORMAT, Commit, MissingRelation, NotVersioned, Touched
from fivm_dbt.spark.heads import OVERTAKEN


class PartTable:
    """One table. ``head`` and ``version`` are those that the next commit starts from, None and -1 where there is none.

    Parts that were not there are appended, which two processes could do at once: only one of them gets the
    number of the next head, and the other one has written nothing.
    """

    def __init__(
        self, plan: ViewdfPlan, engine: Recorder, head: HeadId | None = None, version: int = -1
    ) -> None:
        self.plan = plan
        self._engine = engine
        self.head = head
        self.version = version
        self.written = 0
        """How many statements have been committed."""
        self._last: Commit | None = None

    def write(
        self, statement: Statement | Anew, covered: Mapping[str, Any], *, is_whole: bool = False
    ) -> None:
        """Run a statement whose head says what is ``covered`` with it. Raises Overtaken.

        ``is_whole`` says that it writes the whole table anew.
        """
        assert self.head is not None
        self._commit(statement, next_head(self.head, self._based(covered)), is_whole=is_whole)

    def begin(self, statement: Statement, covered: Mapping[str, Any], *, is_there: bool) -> None:
        """Run the first statement of a build, whoever has written to a table that is there, or has restored it."""
        newest = self._engine.commits(self.plan.state_relation, None)[0] if is_there else None
        self.version = -1 if newest is None else newest.version
        name, based = self.plan.state_relation, self._based(covered)
        head = head_of_build(self.head, newest, based, name, replaces=is_there)
        self._commit(statement, head, is_whole=True)

    @property
    def appended(self) -> int | None:
        """How many rows of parts the last statement has appended; None where its commit does not tell."""
        if self._last is None or self._last.appended is None:
            return None
        return self._last.appended - 1  # without the head

    def _based(self, covered: Mapping[str, Any]) -> dict[str, Any]:
        return {**covered, "detail": {**covered["detail"], "base": self.version}}

    def _commit(self, statement: Statement | Anew, head: NextHead, *, is_whole: bool = False) -> None:
        name = self.plan.state_relation
        note = head.note(name)
        try:
            if isinstance(statement, Anew):
                own = OwnRows(statement.told(head), instead=statement.replaced)
                self._engine.commit(statement.statement(head), note, self.version, own, reads_replaced=True)
            else:
                self._engine.commit(statement(head), note, self.version)
        except Exception as error:
            if FORMAT.is_conflict(error) or raised_alarm(error) == OVERTAKEN or self._is_lost():
                raise Overtaken from error
            raise
        commits = self._engine.commits(name, max(self.version, 0))
        since = [c for c in commits if c.version > self.version]
        # A commit that was passed over is no error: then another one has that number.
        self._last = next((c for c in since if has_set(head.id, c, name)), None)
        foreign = [c for c in since if c is not self._last and FORMAT.touched(c) is not Touched.FILES]
        if self._last is None or (foreign and not is_whole):
            # Of rows of somebody else the next look at the head says what is to be done.
            raise Overtaken
        self.head, self.version = head.id, since[0].version
        self.written += 1

    def _is_lost(self) -> bool:
        """Whether another process has set the head since, or has finished a build and dropped what lay beside."""
        name = self.plan.state_relation
        try:
            newest = self._engine.commits(name, None)[0]
        except (MissingRelation, NotVersioned):
            return self.version >= 0
        found = noted_head(newest.note, name)
        return newest.version > self.version and found is not None and found[0] != self.head
