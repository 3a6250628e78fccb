"""The guard: a refresh that is expected to cost more than a build becomes one, of all or of a part (ADR 0047, 0078)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from fivm_dbt.plan.recomputed_parts import inputs_in_part, parts_of_views
from fivm_dbt.refresh.costs import Costs, Expected
from fivm_dbt.refresh.observe import Finished, Observed
from fivm_dbt.refresh.partial_build import PartialBuildRun, judged, may_pay, may_pay_from
from fivm_dbt.refresh.reach import ChangesByTime, Reached, reached_views
from fivm_dbt.refresh.report import InputChange, Report
from fivm_dbt.steps.binding import Binding, BoundClock


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
        is_known = self._in_part.issuperset(changed) and (clock is None or not clock.moved)
        may_be_part = may_pay(expected, is_read=is_read) and is_known
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
        found = {name: observed[name] for name in sorted(changed)}
        changes = ChangesByTime(self.plan, self.engine, found, state.inputs)
        return reached_views(self.plan, changes) if changes.are_told else None

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
        if not self._may_build():
            return False
        is_read = self.plan.is_read
        return any(
            self._costs_in_part(o.name).may_be_dearer(o.name, o.rows_written, is_read=is_read)
            for o in observed.values()
            if o.moved
        )

    def _costs_in_part(self, name: str) -> Costs:
        """What is known of costs, with the least that a build may take which is asked for."""
        least = self.costs.build if name not in self._in_part else may_pay_from(self.costs)
        return replace(self.costs, build=least)

    @cached_property
    def _in_part(self) -> frozenset[str]:
        """The inputs of whose changes may be known what they reach."""
        return inputs_in_part(self.plan, parts_of_views(self.plan))

    def _may_build(self) -> bool:
        """Whether a build may stand in the place of a refresh. What was dropped since no build computes again."""
        return self.plan.config.fivm_rebuild == "auto" and not self.dropped
