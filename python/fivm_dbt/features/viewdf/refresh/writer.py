"""The writer writes parts of a viewdf model that are new or have changed (ViewDF, sections 4.1, 4.3).

A part that is new is one statement, which appends it straight from its query. One that was there is staged and
compared first, so that it stays as it is, with its ``last_updated``, where its rows are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fivm_dbt.features.viewdf.plan.model import ViewdfPlan
from fivm_dbt.features.viewdf.refresh.table import PartTable
from fivm_dbt.features.viewdf.spark.queries import Query
from fivm_dbt.features.viewdf.spark.statements import (
    Statement,
    append_parts,
    changed_parts_query,
    computed,
    drop_parts,
    replace_parts,
)
from fivm_dbt.parts.intervals import Intervals
from fivm_dbt.refresh.recorder import Recorder
from fivm_dbt.spark.pieces import table
from fivm_dbt.steps.binding import staged_state

AT_ONCE = 500
"""Parts that are computed in one statement, where they can be, and so many are recorded in one."""

Covering = Callable[[bool], Mapping[str, Any]]
"""What the next commit covers, if it is the last one or if others follow."""


class PartWriter:
    """Writes parts for one refresh.

    ``touched`` are parts that an interrupted attempt may have written. What this one writes is ``written`` down before
    it is, so that the head has it.
    """

    def __init__(self, plan: ViewdfPlan, engine: Recorder, place: PartTable, touched: Intervals) -> None:
        self._plan = plan
        self._engine = engine
        self._place = place
        self._touched = touched
        self.covering: Covering | None = None
        self.computed = Intervals()
        self.changed = Intervals()
        """Of the computed ones those that have been written."""
        self.written = touched
        """All that may be other rows by now than the last finished refresh has left."""
        self.is_ended = False
        """Whether the last commit has said what is covered in the end."""
        self.appended: int | None = 0
        """How many rows have been appended, where nothing else has been written, and the commits tell it."""

    def write(
        self, parts: Intervals, compared: Intervals, query: Query, *, is_last: bool = False
    ) -> Intervals:
        """Write what ``query`` gives for ``parts``; of those to be ``compared``, where it is not what is stored.

        Returns the parts that were written. ``is_last`` says that nothing follows.
        """
        if not compared:
            source = computed(query)
            before, is_new = self.appended, not parts & self._touched
            write = append_parts if is_new else replace_parts
            self._write(lambda head: write(self._plan, source, parts, head), parts, parts, is_last=is_last)
            came = self._place.appended
            self.appended = before + came if is_new and before is not None and came is not None else None
            return parts
        name = staged_state(self._plan, self._plan.top)
        self._engine.stage(name, query)
        different = self._engine.query(changed_parts_query(self._plan, name, compared))
        changed = (parts - compared) | Intervals.numbers(int(str(row[0])) for row in different)
        if changed:
            self._write(
                lambda head: replace_parts(self._plan, table(name), changed, head),
                parts,
                changed,
                is_last=is_last,
            )
        else:
            self._note(parts, changed)
        self._engine.unstage(name)
        return changed

    def shift(self, statement: Statement, later: Intervals) -> None:
        """Run a statement that changes ``later`` parts."""
        self._write(statement, later, later, is_last=False)

    def drop(self, parts: Intervals) -> None:
        """Take parts out of the table."""
        assert self.covering is not None
        self._place.write(lambda head: drop_parts(self._plan, parts, head), self.covering(False))
        self.appended = None

    def _write(self, statement: Statement, parts: Intervals, changed: Intervals, *, is_last: bool) -> None:
        assert self.covering is not None
        self._note(parts, changed)
        covered = self.covering(is_last)
        self._place.write(statement, covered)
        self.appended = None
        self.is_ended = "open" not in covered

    def _note(self, parts: Intervals, changed: Intervals) -> None:
        """Take down that parts have been computed, and which of them are written."""
        self.computed |= parts
        self.changed |= changed | (parts & self._touched)
        self.written |= changed
