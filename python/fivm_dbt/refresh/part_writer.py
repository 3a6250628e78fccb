"""Writing parts of a viewdf model, those that are new or have changed, and recording them (ViewDF, sections 4.1, 4.3).

A part that is new is one statement, which appends it straight from its query. One that was there is staged and
compared first, so that it stays as it is, with its ``last_updated``, where its rows are the same. What is written is
counted and recorded for many parts at a time.
"""

from __future__ import annotations

from sqlglot import exp

from fivm_dbt.parts.intervals import Intervals
from fivm_dbt.plan.binding import staged_state
from fivm_dbt.plan.plan import Plan
from fivm_dbt.refresh.known_parts import KnownParts
from fivm_dbt.refresh.recorder import Recorder
from fivm_dbt.refresh.root_writes import RootWrites
from fivm_dbt.spark.part_catalog import InputParts, PartEntry, Recorded, add_parts, record_parts
from fivm_dbt.spark.parts import append_parts, changed_parts_query, part_rows, replace_parts
from fivm_dbt.spark.pieces import table

AT_ONCE = 500
"""Parts that are computed in one statement, where they can be, and so many are recorded in one."""


class PartWriter:
    """Writes parts for one refresh.

    ``before``: what was known of parts, and is in the catalog. ``touched`` are parts that an interrupted attempt may
    have written.
    """

    def __init__(
        self,
        plan: Plan,
        engine: Recorder,
        root: RootWrites,
        by: Recorded,
        before: KnownParts,
        touched: Intervals,
    ) -> None:
        assert plan.parts is not None
        self._plan = plan
        self._length = plan.parts.length
        self._engine = engine
        self._root = root
        self._by = by
        self._before = before
        self._touched = touched
        self._unrecorded = Intervals()
        self._appended = Intervals()
        """Of these the last one, if the newest commit has written it alone and it was not there."""
        self._inputs: list[InputParts] = []
        self.computed = Intervals()
        self.changed = Intervals()
        """Of the computed ones those that have been written."""
        self.rows = 0
        """The rows that have been written, of parts that are recorded."""

    def write(self, parts: Intervals, compared: Intervals, query: exp.Query) -> Intervals:
        """Write what ``query`` gives for ``parts``; of those to be ``compared``, where it is not what is stored.

        Returns the parts that were written.
        """
        if not compared:
            write = replace_parts if parts & self._touched else append_parts
            self._root.run(write(self._plan, query.subquery("computed", copy=False), parts))
            self.note(parts, parts)
            self._appended = parts
            return parts
        name = staged_state(self._plan, self._plan.top)
        self._engine.stage(name, query)
        different = self._engine.query(changed_parts_query(self._plan, name, compared))
        changed = (parts - compared) | Intervals.numbers(int(str(row[0])) for row in different)
        if changed:
            self._root.run(replace_parts(self._plan, table(name), changed))
        self._engine.unstage(name)
        self.note(parts, changed)
        return changed

    def note(self, parts: Intervals, changed: Intervals) -> None:
        """Take down that parts have been computed, and which of them have been written."""
        self.computed |= parts
        self.changed |= changed | (parts & self._touched)
        self._unrecorded |= parts
        self._appended = Intervals()
        if len(self._unrecorded) >= AT_ONCE:
            self.record()

    def note_input(self, parts: InputParts) -> None:
        """Take down in which parts of an input rows have changed."""
        self._inputs.append(parts)
        if sum(len(i.changes) for i in self._inputs) >= AT_ONCE:
            self.record()

    def record(self) -> None:
        """Write into the catalog what has been taken down since the last time."""
        engine, plan, before = self._engine, self._plan, self._before
        for group in list(self._unrecorded.groups(AT_ONCE)) or [Intervals()]:
            rows = self._rows(group)
            entries = [PartEntry(p, rows.get(p, 0), p in self.changed) for p in group]
            for statement, is_known in ((add_parts, False), (record_parts, True)):
                own = [e for e in entries if (e.part in before.computed) is is_known]
                inputs = [i.among(before.seen.get(i.relation, Intervals()), is_known) for i in self._inputs]
                if own or any(i.changes for i in inputs):
                    engine.run(statement(plan, self._length, own, inputs, self._by))
            self.rows += sum(e.rows for e in entries if e.is_changed)
            self._inputs = []
        self._unrecorded = Intervals()

    def _rows(self, parts: Intervals) -> dict[int, int]:
        """How many rows parts have: of a single new one its commit says it, others are counted."""
        if not parts:
            return {}
        if len(parts) == 1 and parts == self._appended:
            appended = self._root.appended()
            if appended is not None:
                return {parts.first: appended}
        counted = self._engine.query(part_rows(self._plan, parts))
        return {int(str(part)): int(str(rows)) for part, rows in counted}
