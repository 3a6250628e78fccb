"""In which order parts are computed, and how many in one statement (ViewDF, sections 4.1 and 4.3).

Parts that do not depend on each other are computed many at once. Those of a model that reads itself go one after the
other, and what follows from a part that has changed is computed too, until nothing changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heapify, heappop, heappush

from fivm_dbt.parts.intervals import Intervals
from fivm_dbt.plan.binding import staged_input
from fivm_dbt.plan.part_plan import PartPlan
from fivm_dbt.plan.plan import Plan
from fivm_dbt.refresh.known_parts import KnownParts
from fivm_dbt.refresh.part_writer import AT_ONCE, PartWriter
from fivm_dbt.refresh.recorder import Recorder
from fivm_dbt.spark.part_shift import change_of_part, shift_parts, uncertain_changes
from fivm_dbt.spark.parts import part_query, parts_query

TEXTS_AT_ONCE = 10
"""Parts that are computed in one statement where each takes the text of the model once more."""


class PartOrder:
    """The parts of one refresh. ``asked``: the command line may have asked for those of a range of time alone."""

    def __init__(
        self,
        plan: Plan,
        engine: Recorder,
        writer: PartWriter,
        versions: Mapping[str, int],
        known: KnownParts,
        asked: Intervals,
    ) -> None:
        assert plan.parts is not None
        self._plan = plan
        self._parts: PartPlan = plan.parts
        self._engine = engine
        self._writer = writer
        self._versions = versions
        self._asked = asked
        self._before = known.computed - known.dropped
        self._may_shift = not known.pending

    def compute(self, first: int, ready: Intervals, affected: Intervals) -> Intervals:
        """Compute the ``ready`` parts, and the ``affected`` ones again, with what follows from them.

        Returns those of which that follows too, and that were not asked for.
        """
        if self._parts.reads_itself:
            pending = self._in_turn(first, ready | affected)
        else:
            pending = Intervals()
            many = AT_ONCE if self._parts.together is not None else TEXTS_AT_ONCE
            by_turns = [affected, ready] if self._parts.stalest_first else [ready | affected]
            for group in (group for parts in by_turns for group in parts.groups(many)):
                self._tell(group, None)
                query = parts_query(self._plan, first, group, self._versions)
                self._writer.write(group, group & affected, query)
        self._writer.record()
        return pending

    def _in_turn(self, first: int, wanted: Intervals) -> Intervals:
        """Part after part; where its content changed, those that are computed from it too, until nothing changes."""
        waiting, queued = list(wanted), set(wanted)
        heapify(waiting)
        computed, pending = self._before | wanted, Intervals()
        while waiting:
            part = heappop(waiting)
            alone = Intervals.of((part, part))
            self._tell(alone, len(waiting))
            later = self._to_shift(part, len(waiting))
            before = self._version() if later else 0
            changed = self._one(part, is_first=part == first)
            if changed and later and self._shift(part, later, before):
                continue
            for reference in self._parts.recurrence.own:
                later = (reference.dependents(changed) & computed) - alone
                pending |= later - self._asked
                for dependent in later & self._asked:
                    if dependent not in queued:
                        queued.add(dependent)
                        heappush(waiting, dependent)
        return pending

    def _one(self, part: int, *, is_first: bool) -> Intervals:
        alone = Intervals.of((part, part))
        text = (
            self._parts.initialize if is_first and self._parts.initialize is not None else self._parts.update
        )
        query = part_query(self._plan, text, part, self._versions)
        return self._writer.write(alone, alone & self._before, query)

    def _tell(self, parts: Intervals, waiting: int | None) -> None:
        start = self._parts.length.start_of(parts.first)
        rest = "" if waiting is None else f", then {waiting:,} more"
        what = f"part {parts}" if len(parts) == 1 else f"{len(parts):,} parts"
        self._engine.progress(f"{self._plan.model}: {what} ({start:%Y-%m-%d %H:%M}){rest}")

    # Models that only add up

    def _to_shift(self, part: int, waiting: int) -> Intervals:
        """The later parts to which the change of a part can be added at once: of a model that only adds up, all.

        Where many parts have changed, computing them one after the other is less work.
        """
        if self._parts.cumulative is None or not self._may_shift or part not in self._before:
            return Intervals()
        later = self._before & Intervals.of((part + 1, self._before.last))
        if later.gaps or later - self._asked:
            return Intervals()
        return later if 3 * (waiting + 1) < len(later) else Intervals()

    def _version(self) -> int:
        return self._engine.commits(self._plan.root.relation, None)[0].version

    def _shift(self, part: int, later: Intervals, before: int) -> bool:
        """Add what a part has changed by, since a version, to later parts; whether that could be done."""
        of, plan, engine = self._parts.cumulative, self._plan, self._engine
        assert of is not None
        name = staged_input(plan, f"{plan.relation}__shift")
        engine.stage(name, change_of_part(plan, of, part, before, self._version()))
        is_certain = int(str(engine.query(uncertain_changes(plan, of, name))[0][0])) == 0
        if is_certain:
            engine.progress(f"{plan.model}: adding the change of part {part} to {len(later):,} later parts")
            for group in later.groups(AT_ONCE):
                engine.run(shift_parts(plan, of, name, group))
            self._writer.note(later, later)
        engine.unstage(name)
        return is_certain
