"""The guard: a refresh that is expected to cost more than a build becomes one, of all or of a part (ADR 0047, 0078)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from fivm_dbt.plan.model.recompute import RecomputedParts
from fivm_dbt.plan.recomputed_parts import inputs_in_part, parts_of_views
from fivm_dbt.refresh.costs import Costs, Expected
from fivm_dbt.refresh.observe import Finished, Observed
from fivm_dbt.refresh.partial_build import PartialBuild, PartialBuildRun
from fivm_dbt.refresh.reach import ChangesByTime, Reached, reached_views, share_of
from fivm_dbt.refresh.report import InputChange, Report
from fivm_dbt.steps.binding import Binding, BoundClock

ASKED_FROM = 0.5
"""So much of a build's seconds a refresh has to be expected to take before the times of its changes are asked for."""


class GuardedRun(PartialBuildRun):
    """The part of a run of a maintained model that compares what a refresh and builds are expected to cost."""

    def _instead_of_reading(
        self, state: Finished, observed: dict[str, Observed], clock: BoundClock | None
    ) -> Report | None:
        """A build in the place of a refresh, before changes are read; None where a refresh pays, or nobody can tell."""
        moved = [o.name for o in observed.values() if o.moved]
        return self._instead(state, observed, moved, clock, self._expected_of_written(observed))

    def _instead_of_applying(
        self,
        state: Finished,
        observed: dict[str, Observed],
        binding: Binding,
        changes: Sequence[InputChange],
    ) -> Report | None:
        """The same when changes have been counted."""
        expected = self.costs.expected({c.relation: c.inserted + c.deleted for c in changes})
        self.expected = expected.seconds
        if not self._may_build():
            return None
        return self._instead(state, observed, binding.changed, binding.clock, expected)

    def _instead(
        self,
        state: Finished,
        observed: dict[str, Observed],
        changed: Collection[str],
        clock: BoundClock | None,
        expected: Expected,
    ) -> Report | None:
        """A build of what the changes reach, or of all; None where a refresh pays."""
        is_read = self.plan.is_read
        may_be_part = may_pay(expected, is_read=is_read) and (clock is None or not clock.moved)
        reached = self._reached(state, observed, changed) if may_be_part else None
        if reached is not None:
            partitions = {name: size.partitions for name, size in self.sizes.items()}
            part = judged(reached, partitions, self.costs, expected, is_read=is_read)
            if part is not None:
                self.expected = part.expected.seconds
                return self._build_parts(state, observed, clock, part)
        if not expected.is_dearer(is_read=is_read):
            return None
        self.expected = expected.seconds
        return self._build(state, expected.text, costs=self.costs.instead())

    def _reached(
        self, state: Finished, observed: Mapping[str, Observed], changed: Collection[str]
    ) -> Reached | None:
        """The parts of the views that the changed inputs reach; None where nobody can tell."""
        if not self._in_part.issuperset(changed):
            return None
        found = {name: observed[name] for name in sorted(changed)}
        changes = ChangesByTime(self.plan, self.engine, found, state.inputs)
        return reached_views(self.plan, self._parts, changes) if changes.are_told else None

    def _expected_of_written(self, observed: Mapping[str, Observed]) -> Expected:
        """What the histories of the inputs let expect, before a change is read: nothing where a build is no choice.

        Nor is it where only the rows of the change tell whether a build may be: of inputs that are promised not to
        change, or whose old parts may have been dropped.
        """
        moved = [o for o in observed.values() if o.moved]
        items = [self.plan.input(o.name) for o in moved]
        if not self._may_build() or any(i.is_static or i.retention is not None for i in items):
            return Expected(None, None)
        return self.costs.expected_of_written({o.name: o.rows_written for o in moved})

    def _may_be_dearer(self, observed: Mapping[str, Observed]) -> bool:
        """Whether the change has to be counted before it is applied, because a build might cost less."""
        return self._may_build() and any(self._is_to_be_counted(o) for o in observed.values() if o.moved)

    def _is_to_be_counted(self, moved: Observed) -> bool:
        """The same of one input: of all that is compared first whether a build of a part might cost less."""
        change, is_read = (moved.name, moved.rows_written), self.plan.is_read
        if not self.costs.may_be_dearer(*change, is_read=is_read, of_build=ASKED_FROM):
            return False
        return moved.name in self._in_part or self.costs.may_be_dearer(*change, is_read=is_read)

    @cached_property
    def _parts(self) -> Mapping[str, RecomputedParts]:
        return parts_of_views(self.plan)

    @cached_property
    def _in_part(self) -> frozenset[str]:
        """The inputs of whose changes may be known what they reach."""
        return inputs_in_part(self.plan, self._parts)

    def _may_build(self) -> bool:
        """Whether a build may stand in the place of a refresh. What was dropped since no build computes again."""
        return self.plan.config.fivm_rebuild == "auto" and not self.dropped


def may_pay(expected: Expected, *, is_read: bool) -> bool:
    """Whether it is worth the while to ask for the times of changes."""
    if expected.build is None:
        return False
    return replace(expected, build=ASKED_FROM * expected.build).is_dearer(is_read=is_read)


def judged(
    reached: Reached, partitions: Mapping[str, int], costs: Costs, expected: Expected, *, is_read: bool
) -> PartialBuild | None:
    """The build of these parts, where it is expected to cost less than a refresh and than a build of all.

    ``partitions`` are those that each view has.
    """
    shares = [share_of(part, partitions.get(part.view.name, 0)) for part in reached.parts]
    if not shares or shares[-1] is None:
        return None
    # What is placed by a hash below is taken for as large a part as the rest.
    share = max(share for share in shares if share is not None)
    seconds = costs.of_part(share)
    if seconds is None or expected.build is None or seconds >= expected.build:
        return None
    found = PartialBuild(reached, share, replace(expected, build=seconds))
    return found if found.expected.is_dearer(is_read=is_read) else None
