"""Computing parts of a viewdf model and writing those that are new or have changed (ViewDF, sections 4.1 and 4.3)."""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from sqlglot import exp

from fivm_dbt.parts.intervals import Intervals
from fivm_dbt.plan.binding import staged_input, staged_state
from fivm_dbt.plan.part_plan import PartPlan
from fivm_dbt.plan.plan import Plan
from fivm_dbt.refresh.known_parts import KnownParts
from fivm_dbt.refresh.recorder import Recorder
from fivm_dbt.spark.part_catalog import PartEntry, Recorded, record_own
from fivm_dbt.spark.part_shift import change_of_part, part_rows, shift_parts, uncertain_changes
from fivm_dbt.spark.parts import (
    changed_parts_query,
    part_query,
    replace_parts,
    staged_rows_query,
    together_query,
)

AT_ONCE = 500
"""Parts that are computed in one statement; and after so many that are computed in turn they are recorded."""


@dataclass(frozen=True)
class Done:
    """Parts whose content is new or another than before, and those that this was not asked to follow."""

    changed: Intervals = field(default_factory=Intervals)
    pending: Intervals = field(default_factory=Intervals)

    def and_(self, other: Done) -> Done:
        return Done(self.changed | other.changed, self.pending | other.pending)


class PartWriter:
    """Computes parts for one refresh. ``versions`` are those that everything is read at, the root's own moving on.

    ``is_again`` says that an earlier attempt may have written some parts: what is computed again counts as changed.
    """

    def __init__(
        self, plan: Plan, engine: Recorder, versions: dict[str, int], by: Recorded, *, is_again: bool
    ) -> None:
        assert plan.parts is not None
        self.parts: PartPlan = plan.parts
        self.done: dict[int, PartEntry] = {}
        self._plan = plan
        self._engine = engine
        self._versions = versions
        self._by = by
        self._is_again = is_again
        self._recorded: set[int] = set()

    @property
    def changed(self) -> Intervals:
        """The parts that have been written."""
        return Intervals.numbers(p for p, entry in self.done.items() if entry.is_changed)

    @property
    def rows(self) -> int:
        """The rows that have been written."""
        return sum(entry.rows for entry in self.done.values() if entry.is_changed)

    def compute(
        self, first: int, ready: Intervals, affected: Intervals, known: KnownParts, asked: Intervals
    ) -> Done:
        """Compute the ``ready`` parts, and the ``affected`` ones again, with what follows from them in ``asked``."""
        if self.parts.together is None:
            return self._in_turn(first, ready | affected, known, asked)
        done = Done()
        if self.parts.initialize is not None and first in ready | affected:
            alone = Intervals.of((first, first))
            done = self._write(alone, alone & affected, is_first=True)
            ready, affected = ready - alone, affected - alone
        by_turns = [affected, ready] if self.parts.stalest_first else [ready | affected]
        for group in (group for parts in by_turns for group in parts.groups(AT_ONCE)):
            done = done.and_(self._write(group, group & affected, is_first=False))
        return done

    def _in_turn(self, first: int, wanted: Intervals, known: KnownParts, asked: Intervals) -> Done:
        """Part after part; where its content changed, those that are computed from it too, until nothing changes."""
        waiting, queued = list(wanted), set(wanted)
        heapify(waiting)
        computed, done = (known.computed | wanted) - known.dropped, Done()
        while waiting:
            part = heappop(waiting)
            start = self.parts.length.start_of(part)
            self._engine.progress(
                f"{self._plan.model}: part {part} ({start:%Y-%m-%d %H:%M}), then {len(waiting):,} more"
            )
            alone = Intervals.of((part, part))
            before = self._engine.commits(self._plan.root.relation, None)[0].version
            step = self._write(alone, alone & known.computed, is_first=part == first)
            done = done.and_(step)
            if part not in step.changed:
                continue
            later = self._to_shift(part, known, asked, len(waiting))
            if later and self._shift(part, later, before):
                done = done.and_(Done(later))
                continue
            for reference in self.parts.recurrence.own:
                later = (reference.dependents(alone) & computed) - alone
                done = done.and_(Done(pending=later - asked))
                for dependent in later & asked:
                    if dependent not in queued:
                        queued.add(dependent)
                        heappush(waiting, dependent)
        self._record()
        return done

    def _to_shift(self, part: int, known: KnownParts, asked: Intervals, waiting: int) -> Intervals:
        """The later parts to which the change of a part can be added at once: of a model that only adds up, all.

        Where many parts have changed, computing them one after the other is less work.
        """
        if self.parts.cumulative is None or self._is_again or part not in known.computed or known.pending:
            return Intervals()
        later = (known.computed - known.dropped) & Intervals.of((part + 1, known.computed.last))
        if later.gaps or later - asked:
            return Intervals()
        return later if 3 * (waiting + 1) < len(later) else Intervals()

    def _shift(self, part: int, later: Intervals, before: int) -> bool:
        """Add what a part has changed by to later parts; whether that could be done."""
        of, plan, engine, root = self.parts.cumulative, self._plan, self._engine, self._plan.root.relation
        assert of is not None
        after = engine.commits(root, None)[0].version
        name = staged_input(plan, f"{plan.relation}__shift")
        engine.stage(name, change_of_part(plan, of, part, before, after))
        is_certain = int(str(engine.query(uncertain_changes(plan, of, name))[0][0])) == 0
        if is_certain:
            engine.progress(f"{plan.model}: adding the change of part {part} to {len(later):,} later parts")
            for group in later.groups(AT_ONCE):
                engine.run(shift_parts(plan, of, name, group))
            version = engine.commits(root, None)[0].version
            rows = {int(str(p)): int(str(n)) for p, n in engine.query(part_rows(plan, later, version))}
            for moved in later:
                self.done[moved] = PartEntry(moved, rows.get(moved, 0), True)
            self._recorded -= set(later)
        engine.unstage(name)
        return is_certain

    def _write(self, parts: Intervals, compared: Intervals, *, is_first: bool) -> Done:
        """Compute some parts, compare those that had been computed, and write what is new or has changed."""
        plan, engine, root = self._plan, self._engine, self._plan.root.relation
        name = staged_state(plan, plan.top)
        self._versions[root] = engine.commits(root, None)[0].version
        engine.stage(name, self._query(parts, is_first))
        rows = {int(str(p)): int(str(n)) for p, n in engine.query(staged_rows_query(plan, name))}
        changed = parts
        if compared and not self._is_again:
            different = engine.query(changed_parts_query(plan, name, compared, self._versions[root]))
            changed = (parts - compared) | Intervals.numbers(int(str(row[0])) for row in different)
        is_empty = not compared and not self._is_again and not any(p in rows for p in changed)
        if changed and not is_empty:
            engine.run(replace_parts(plan, name, changed))
        engine.unstage(name)
        for part in parts:
            self.done[part] = PartEntry(part, rows.get(part, 0), part in changed)
        if len(self.done) - len(self._recorded) >= AT_ONCE or self.parts.together is not None:
            self._record()
        return Done(changed)

    def _query(self, parts: Intervals, is_first: bool) -> exp.Select:
        initialize = self.parts.initialize if is_first else None
        if self.parts.together is not None and initialize is None:
            return together_query(self._plan, parts, self._versions)
        return part_query(self._plan, initialize or self.parts.update, parts.first, self._versions)

    def _record(self) -> None:
        """Write what has been computed since the last time into the catalog."""
        entries = [self.done[p] for p in sorted(set(self.done) - self._recorded)]
        if entries:
            self._engine.run(record_own(self._plan, self.parts.length, entries, self._by))
            self._recorded |= {e.part for e in entries}
