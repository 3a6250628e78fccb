"""A model that is not maintained is refreshed: its text runs again when an input has moved."""

from __future__ import annotations

from fivm_dbt.plan.model.plan import RecomputedPlan
from fivm_dbt.refresh.bind import bind
from fivm_dbt.refresh.clock import movement, read_clock
from fivm_dbt.refresh.decide import Decision, why_rebuild
from fivm_dbt.refresh.dropped import recorded_drops
from fivm_dbt.refresh.observe import Finished, Observed, State, observe
from fivm_dbt.refresh.publish import publish
from fivm_dbt.refresh.reach import ChangesByTime
from fivm_dbt.refresh.recompute import Touched, find_touched, write_recomputed
from fivm_dbt.refresh.report import Report
from fivm_dbt.refresh.run import Run
from fivm_dbt.steps.binding import BoundClock


class RecomputedRun(Run[RecomputedPlan]):
    """One call of a refresh of a model that is recomputed (``fivm_policy``, ``fivm_strategy: reevaluate``)."""

    def execute(self, full_refresh: bool, state: State | None = None) -> Report:
        state = self._left(state)
        if full_refresh:
            return self._write(state, "full refresh")
        if not isinstance(state, Finished):
            return self._write(state, self._why_missing(state))
        self.dropped = recorded_drops(state.finished)
        reason = why_rebuild(self.plan, state.finished) or self._load(state)
        return self._refresh(state) if reason is None else self._write(state, reason)

    def _refresh(self, state: Finished) -> Report:
        self._complete_build(state.finished)
        clock = read_clock(self.plan, self.engine, state.finished.detail)
        observed = observe(self.plan, self.engine, state.inputs)
        is_moved = any(o.moved for o in observed.values()) or (clock is not None and clock.moved)
        if not is_moved and not self.plan.recompute.changes_by_itself:
            self._show()
            return self._report("no change", state.finished.refresh)
        if self.is_lazy:
            return self._wait(state.finished, observed, movement(clock), rolled=False)
        touched = self._touched(state, clock, observed)
        return self._write(state, movement(clock), clock, observed, touched)

    def _write(
        self,
        state: State,
        reason: str | None,
        clock: BoundClock | None = None,
        moved: dict[str, Observed] | None = None,
        touched: Touched | None = None,
    ) -> Report:
        """Run the model's text at the inputs' newest versions, as a build does but without own snapshots.

        Where it is known which rows the inputs that ``moved`` can reach, the ``touched`` ones, for these alone.
        """
        self.decided(Decision(self._as_build("recomputed"), reason, moved or {}))
        clock = clock or read_clock(self.plan, self.engine, None)
        observed = moved if moved is not None else observe(self.plan, self.engine, {})
        binding = bind(self.plan, observed, buckets=1, clock=clock)
        action = self._as_build("recomputed")
        self._tell(action, reason)
        head, _ = self._built(state, observed, {}, binding)
        why = self.plan.recompute.reason if reason is None else f"{reason}; {self.plan.recompute.reason}"
        why += ", where the changes reach" if touched is not None else ""
        self.engine.progress(f"recomputing {self.plan.model}: {why}")
        try:
            write_recomputed(self.plan, self.engine, binding, head, touched)
        except Exception as error:
            self._check_overtaken(error)
            raise
        self._committed(head)
        publish(self.plan, self.engine)
        self._remove_orphans(state.finished)
        return self._report(action, state.next_refresh, reason=reason)

    def _touched(
        self, state: Finished, clock: BoundClock | None, moved: dict[str, Observed]
    ) -> Touched | None:
        """What has to be recomputed of a state that is as the last refresh left it; None for all of it."""
        by_itself = self.plan.recompute.changes_by_itself or self.plan.not_repeatable is not None
        if by_itself or (clock is not None and clock.moved):
            return None
        return find_touched(self.plan, ChangesByTime(self.plan, self.engine, moved, state.inputs))
