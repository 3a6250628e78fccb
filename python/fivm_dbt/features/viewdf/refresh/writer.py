"""The writer writes parts of a viewdf model that are new or have changed (ViewDF, sections 4.1, 4.3).

A part that is new is one statement, which appends it straight from its query. One that was there is compared first,
so that it stays as it is, with its ``last_updated``, where its rows are the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import partial
from typing import Any

from fivm_dbt.features.viewdf.plan.model import ViewdfPlan
from fivm_dbt.features.viewdf.refresh.table import PartTable
from fivm_dbt.features.viewdf.spark.compared import Anew, compared_query, compared_rows, differences_query
from fivm_dbt.features.viewdf.spark.queries import Query
from fivm_dbt.features.viewdf.spark.statements import (
    Statement,
    append_parts,
    computed,
    drop_parts,
    replace_parts,
)
from fivm_dbt.parts.intervals import Intervals
from fivm_dbt.refresh.recorder import Recorder
from fivm_dbt.steps.binding import staged_state

AT_ONCE = 500
"""Parts that are computed again in one statement, where they can be."""

NEW_AT_ONCE = 5_000
"""The same of parts that were not there: nothing is compared, and a statement has its price whatever it does."""

ANEW_BYTES = 4 * 1024 * 1024
"""So much of whole periods is written anew by a transaction, with what changes in them. Of more a statement replaces
the parts that have changed, and looks for their files."""

Covering = Callable[[bool], Mapping[str, Any]]
"""What the next commit covers, if it is the last one or if others follow."""


class PartWriter:
    """Writes parts for one refresh.

    ``touched`` are parts that an interrupted attempt may have written. What this one writes is ``written`` down before
    it is, so that the head has it. ``part_bytes`` is how large a part is, None where that is not known.
    """

    def __init__(
        self,
        plan: ViewdfPlan,
        engine: Recorder,
        place: PartTable,
        touched: Intervals,
        part_bytes: float | None,
    ) -> None:
        self._plan = plan
        self._part_bytes = part_bytes
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
        self.rows: int | None = 0
        """How many rows the written parts have; None where neither a commit nor a comparison has told it."""

    def write(
        self, parts: Intervals, compared: Intervals, query: Query, *, is_last: bool = False
    ) -> Intervals:
        """Write what ``query`` gives for ``parts``; of those to be ``compared``, where it is not what is stored.

        Returns the parts that were written. ``is_last`` says that nothing follows.
        """
        if not compared:
            source = computed(query)
            is_new = not parts & self._touched
            write = append_parts if is_new else replace_parts
            self._write(lambda head: write(self._plan, source, parts, head), parts, parts, is_last=is_last)
            self._count(self._place.appended if is_new else None)
            return parts
        name = staged_state(self._plan, self._plan.top)
        before = self._place.version
        self._engine.stage(name, compared_query(self._plan, query, compared, before))
        rows, differing = self._compared(name)
        changed = (parts - compared) | (differing & compared)
        self._count(sum(rows[p] for p in changed | (parts & self._touched)))
        periods = sorted({self._plan.parts.period_of(p) for p in changed})
        if not changed:
            self._note(parts, changed)
        elif self._are_small(periods) and not parts & self._touched:
            anew = Anew(self._plan, name, periods, before)
            self._write(anew, parts, changed, is_last=is_last)
        else:
            source = compared_rows(self._plan, name)
            write = partial(replace_parts, self._plan, source, changed)
            self._write(write, parts, changed, is_last=is_last)
        self._engine.unstage(name)
        return changed

    def _compared(self, staged: str) -> tuple[Counter[int], Intervals]:
        """How many rows each part has now, and which are other ones than before."""
        rows: Counter[int] = Counter()
        differing = set()
        for part, has, differs in self._engine.added_up(staged, differences_query(self._plan, staged)):
            rows[int(str(part))] += int(str(has))
            if int(str(differs)):
                differing.add(int(str(part)))
        return rows, Intervals.numbers(differing)

    def _are_small(self, periods: Sequence[date]) -> bool:
        """Whether all that lies in some periods is little, and the engine can say what changes in it."""
        if self._part_bytes is None or not self._engine.writes_changes:
            return False
        parts = sum(self._plan.parts.most_in(period) for period in periods)
        return parts * self._part_bytes <= ANEW_BYTES

    def shift(self, statement: Statement, later: Intervals, *, is_last: bool) -> None:
        """Run a statement that changes ``later`` parts; ``is_last`` says that nothing follows."""
        self._write(statement, later, later, is_last=is_last)
        self._count(None)

    def drop(self, parts: Intervals) -> None:
        """Take parts out of the table."""
        assert self.covering is not None
        self._place.write(lambda head: drop_parts(self._plan, parts, head), self.covering(False))
        self._count(None)

    def _write(
        self, statement: Statement | Anew, parts: Intervals, changed: Intervals, *, is_last: bool
    ) -> None:
        assert self.covering is not None
        self._note(parts, changed)
        covered = self.covering(is_last)
        self._place.write(statement, covered)
        self.is_ended = "open" not in covered

    def _count(self, rows: int | None) -> None:
        """Add the rows of parts that have been written, if they are known."""
        self.rows = None if self.rows is None or rows is None else self.rows + rows

    def _note(self, parts: Intervals, changed: Intervals) -> None:
        """Take down that parts have been computed, and which of them are written."""
        self.computed |= parts
        self.changed |= changed | (parts & self._touched)
        self.written |= changed
