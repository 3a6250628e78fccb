"""Parts are computed in an order, and several in one statement (ViewDF, sections 4.1 and 4.3).

Parts that do not depend on each other are computed many at once. Those of a model that reads itself go one after the
other, and what follows from a part that has changed is computed too, until nothing changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from heapq import heapify, heappop, heappush

from fivm_dbt.features.viewdf.plan.model import PartPlan, ViewdfPlan
from fivm_dbt.features.viewdf.refresh.known import KnownParts
from fivm_dbt.features.viewdf.refresh.table import PartTable
from fivm_dbt.features.viewdf.refresh.writer import AT_ONCE, NEW_AT_ONCE, PartWriter
from fivm_dbt.features.viewdf.spark.queries import part_query, parts_query
from fivm_dbt.features.viewdf.spark.shift import change_of_part, shift_parts, uncertain_changes
from fivm_dbt.features.viewdf.spark.sums import running_parts
from fivm_dbt.parts.intervals import Intervals
from fivm_dbt.refresh.decide import raised_alarm
from fivm_dbt.refresh.recorder import Recorder
from fivm_dbt.spark.alarms import OVERFLOW
from fivm_dbt.steps.binding import staged_input

TEXTS_AT_ONCE = 10
"""Parts that are computed in one statement where each takes the text of the model once more."""


class PartOrder:
    """The parts of one refresh. ``asked``: the command line may have asked for those of a range of time alone."""

    def __init__(
        self,
        plan: ViewdfPlan,
        engine: Recorder,
        place: PartTable,
        writer: PartWriter,
        versions: Mapping[str, int],
        known: KnownParts,
        asked: Intervals,
    ) -> None:
        self._plan = plan
        self._parts: PartPlan = plan.parts
        self._engine = engine
        self._place = place
        self._writer = writer
        self._versions = versions
        self._asked = asked
        self._before = known.computed - known.dropped
        self._may_shift = not known.pending
        self._done = Intervals()
        self.pending = Intervals()
        """What follows from parts that have changed, and was not asked for."""
        self._followed = Intervals()
        """Parts that have changed, by which the following ones have not been shifted."""

    def compute(self, first: int, ready: Intervals, affected: Intervals) -> None:
        """Compute the ``ready`` parts, and the ``affected`` ones again, with what follows from them."""
        if self._parts.reads_itself:
            self._in_turn(first, ready | affected)
            return
        groups = self._groups(ready, affected)
        for number, group in enumerate(groups, start=1):
            self._tell(group, None)
            query = parts_query(self._plan, first, group, self._versions)
            self._writer.write(group, group & affected, query, is_last=number == len(groups))

    def _groups(self, ready: Intervals, affected: Intervals) -> list[Intervals]:
        """The parts of each statement: all of a usual refresh, and many where nothing is compared."""
        is_together = self._parts.together is not None
        many = AT_ONCE if is_together else TEXTS_AT_ONCE
        if len(ready | affected) <= many and not (self._parts.stalest_first and ready and affected):
            return [ready | affected] if ready or affected else []
        new = NEW_AT_ONCE if is_together else TEXTS_AT_ONCE
        groups = [*affected.groups(many), *ready.groups(new)]
        return groups if self._parts.stalest_first else sorted(groups, key=lambda group: group.first)

    def _in_turn(self, first: int, wanted: Intervals) -> None:
        """Part after part; where its content changed, those that are computed from it too, until nothing changes."""
        waiting, queued = list(wanted), set(wanted)
        heapify(waiting)
        computed = self._before | wanted
        while waiting:
            part = heappop(waiting)
            if part in self._done:
                continue
            run = self._to_add_up(part, first, wanted)
            later = self._to_shift(part, len(waiting))
            before = self._place.version
            self._tell(run, len(waiting) + 1 - len(run))
            is_last = not later and not self._following(run, run, computed)
            is_last = is_last and all(p in run or p in self._done for p in waiting)
            changed = self._written(run, first, is_last=is_last)
            self._done |= run
            left = [p for p in waiting if p not in self._done]
            if changed and later and self._shift(part, later, before, is_last=not left):
                continue
            self._followed |= changed
            for following in self._following(changed, run, computed):
                self.pending |= following - self._asked
                for dependent in following & self._asked:
                    if dependent not in queued:
                        queued.add(dependent)
                        heappush(waiting, dependent)

    def _following(self, changed: Intervals, run: Intervals, computed: Intervals) -> list[Intervals]:
        """By reference the parts, not of this run, that are computed from some that have changed."""
        found = [(r.dependents(changed) & computed) - run for r in self._parts.recurrence.own]
        return [parts for parts in found if parts]

    def _written(self, run: Intervals, first: int, *, is_last: bool) -> Intervals:
        """Those of a run of parts that are written, as they are new or have changed."""
        of = self._parts.cumulative
        if len(run) > 1:
            assert of is not None
            query = running_parts(self._plan, of, first, run, self._versions)
            try:
                return self._writer.write(run, run & self._before, query, is_last=is_last)
            except Exception as error:
                if raised_alarm(error) != OVERFLOW:
                    raise
                self._engine.progress(
                    f"{self._plan.model}: a decimal sum overflows, one part after the other"
                )
        changed = Intervals()
        for part in run:
            alone = Intervals.of((part, part))
            is_initial = part == first and self._parts.initialize is not None
            text = self._parts.initialize if is_initial else self._parts.update
            assert text is not None
            query = part_query(self._plan, text, part, self._versions)
            ends = is_last and part == run.last
            changed |= self._writer.write(alone, alone & self._before, query, is_last=ends)
        return changed

    def _tell(self, parts: Intervals, waiting: int | None) -> None:
        start = self._parts.length.start_of(parts.first)
        rest = "" if waiting is None else f", then {waiting:,} more"
        what = f"part {parts}" if len(parts) == 1 else f"{len(parts):,} parts"
        self._engine.progress(f"{self._plan.model}: {what} ({start:%Y-%m-%d %H:%M}){rest}")

    # Models that only add up

    def _to_add_up(self, part: int, first: int, wanted: Intervals) -> Intervals:
        """The parts from ``part`` on that are computed in one statement, as running sums: those that are new together,
        and what follows from a part that has changed."""
        alone = Intervals.of((part, part))
        of = self._parts.cumulative
        if of is None or of.added is None or part == first:
            return alone
        if part in self._before and part - 1 not in self._followed:
            return alone
        run = (self._before | wanted) & self._asked & Intervals.of((part, part + AT_ONCE - 1))
        run = Intervals(run.ranges[:1])
        if part not in self._before:
            run = Intervals((run - self._before).ranges[:1])
        return run

    def _to_shift(self, part: int, waiting: int) -> Intervals:
        """The later parts to which the change of a part can be added at once: of a model that only adds up, all.

        Where many parts have changed, computing all from the first one on is less work.
        """
        of = self._parts.cumulative
        if of is None or not self._may_shift or part not in self._before or part - 1 in self._followed:
            return Intervals()
        later = self._before & Intervals.of((part + 1, self._before.last))
        if later.gaps or later - self._asked:
            return Intervals()
        return later if 3 * (waiting + 1) < len(later) else Intervals()

    def _shift(self, part: int, later: Intervals, before: int, *, is_last: bool) -> bool:
        """Add what a part has changed by, since a version, to later parts; whether that could be done."""
        of, plan, engine = self._parts.cumulative, self._plan, self._engine
        assert of is not None
        name = staged_input(plan, f"{plan.relation}__shift")
        engine.stage(name, change_of_part(plan, of, part, before, self._place.version))
        uncertain = engine.added_up(name, uncertain_changes(plan, of, name))
        is_certain = not any(int(str(count)) for (count,) in uncertain)
        if is_certain:
            engine.progress(f"{plan.model}: adding the change of part {part} to {len(later):,} later parts")
            for group in later.groups(AT_ONCE):
                ends = is_last and group.last == later.last
                self._writer.shift(partial(shift_parts, plan, of, name, group), group, is_last=ends)
        engine.unstage(name)
        return is_certain
