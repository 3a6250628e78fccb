"""A maintained model is refreshed: observe, pin, stage, compute, write with the head (docs/refresh.md).

The plan has decided everything; here versions and literals are bound and statements run in their order. Whatever stops
it, nothing is half done: a refresh is one commit, which is made if the head is still the one that was read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from fivm_dbt.errors import FivmError
from fivm_dbt.plan.model.plan import FactorisedPlan
from fivm_dbt.refresh.bind import (
    bind,
    counted,
    defer_input,
    expected_reads,
    recorded_binding,
    stage_inputs,
    versions_read,
    versions_text,
)
from fivm_dbt.refresh.clock import finished_clock, is_by_the_day, movement, read_clock
from fivm_dbt.refresh.closed import came_too_late, closed, first_open_after
from fivm_dbt.refresh.decide import (
    Decision,
    broken_promise,
    is_large,
    known_still,
    lost_inputs,
    raised_alarm,
    unreadable,
    why_rebuild,
)
from fivm_dbt.refresh.dropped import recorded_drops
from fivm_dbt.refresh.guard import GuardedRun
from fivm_dbt.refresh.heads import next_head, with_open
from fivm_dbt.refresh.layout import state_sizes
from fivm_dbt.refresh.model_parts import last_recorded, record_partitions
from fivm_dbt.refresh.observe import (
    Coverage,
    Finished,
    Observed,
    RecordedInput,
    State,
    keeps_columns,
    observe,
)
from fivm_dbt.refresh.publish import write_snapshots
from fivm_dbt.refresh.report import Action, InputChange, Report
from fivm_dbt.refresh.resume import Gone, bound_again
from fivm_dbt.refresh.runner import Update
from fivm_dbt.refresh.writes import MAX_LITERALS
from fivm_dbt.spark.alarms import NEGATIVE, OVERFLOW
from fivm_dbt.spark.formats import ChangeFeedUnavailable, VersionUnavailable
from fivm_dbt.spark.state import TWICE
from fivm_dbt.steps.applying import Tail, appends, replaced_states
from fivm_dbt.steps.binding import Binding, BoundInput, staged_input
from fivm_dbt.steps.read_once import read_once


@dataclass(frozen=True)
class _Moved:
    """What a refresh starts from, when versions have moved: the state that was left, and what there is now."""

    state: Finished
    observed: dict[str, Observed]
    changes: tuple[InputChange, ...]
    binding: Binding
    rolled_forward: bool
    deferred: BoundInput | None = None
    """The input whose change is computed by the delta that reads it."""


class MaintainedRun(GuardedRun):
    """One call of a refresh of a maintained model."""

    def execute(self, full_refresh: bool, state: State | None = None) -> Report:
        state = self._left(state)
        if full_refresh:
            return self._build(state, "full refresh")
        if not isinstance(state, Finished):
            return self._build(state, self._why_missing(state))
        self.dropped = recorded_drops(state.finished)
        reason = why_rebuild(self.plan, state.finished) or self._load(state)
        if reason:
            return self._build(state, reason, costs=known_still(self.plan, state.finished))
        if state.unfinished is None:
            return self._refresh(state, rolled_forward=False)
        if state.unfinished.plan_hash != self.plan.plan_hash:
            return self._build(state, "the refresh that was interrupted had another plan")
        report = self._roll_forward(state, state.unfinished)
        if report is not None:
            return report
        state = self._left(None)
        if not isinstance(state, Finished):
            return self._build(state, self._why_missing(state))
        self._load(state)
        return self._refresh(state, rolled_forward=True)

    def _refresh(self, state: Finished, rolled_forward: bool, may_defer: bool = True) -> Report:
        self._complete(state.finished)
        clock = read_clock(self.plan, self.engine, state.finished.detail)
        observed = observe(self.plan, self.engine, state.inputs)
        is_moved = any(o.moved for o in observed.values()) or (clock is not None and clock.moved)
        if self.is_lazy and is_moved:
            return self._wait(state.finished, observed, movement(clock), rolled=rolled_forward)
        lost = lost_inputs(self.plan, observed, state.inputs)
        if lost is not None:
            return self._build(state, lost[0], lost[1])
        if not is_moved:
            self._show()
            return self._report(
                "refreshed" if rolled_forward else "no change", state.finished.refresh, rolled=rolled_forward
            )
        built = self._instead_of_reading(state, observed, clock)
        if built is not None:
            return built
        self.decided(Decision("refreshed", movement(clock), observed))
        buckets = int(state.finished.detail["buckets"])
        self.engine.expect(expected_reads(self.plan, observed, self.base))
        try:
            may_defer = may_defer and not self._may_be_dearer(observed)
            deferred = self._defer(state, observed) if may_defer else None
            staged = {} if deferred else stage_inputs(self.plan, self.engine, observed, state.inputs)
        except VersionUnavailable as error:
            return self._build(state, unreadable(self.plan, error))
        self._note_dropped(staged)
        binding = bind(self.plan, observed, buckets=buckets, staged=staged, deferred=deferred, clock=clock)
        promise = broken_promise(self.plan, binding)
        if promise is not None:
            return self._build(state, promise)
        changes = tuple(s.change for s in staged.values())
        moved = _Moved(
            state,
            observed,
            changes=changes,
            binding=binding,
            rolled_forward=rolled_forward,
            deferred=deferred,
        )
        if not binding.moved:
            return self._advance(moved)
        if changes:
            built = self._instead_of_applying(state, observed, binding, changes)
            if built is not None:
                return built
        update = self._update(moved.binding)
        return self._apply(moved, update) if binding.changed else self._only_time_passed(moved, update)

    def _complete(self, finished: Coverage) -> None:
        """Do what comes after a commit, where the last refresh was cut off there."""
        detail, length = finished.detail, self.plan.partition_length
        self._complete_build(finished)
        if length is not None and detail["touched"] != []:
            known = last_recorded(self.plan, self.engine)
            # Refreshes of a state that was lost have had greater numbers, and a build records everything anew.
            is_build = detail["kind"] == "build"
            if known is None or known < finished.refresh or (is_build and known != finished.refresh):
                read = versions_text({name: d["version"] for name, d in detail["inputs"].items()})
                record_partitions(self.plan, self.engine, finished.refresh, read, detail["touched"])

    def _only_time_passed(self, moved: _Moved, update: Update) -> Report:
        """No row that the model reads changed, but it may be in another range by now.

        If none is, nothing is written: the recorded time is as right as the present one. A new date is recorded, so
        that the rest of the day does not look for what has not moved.
        """
        if update.finds_a_change():
            return self._apply(moved, update)
        if is_by_the_day(self.plan) or any(o.moved for o in moved.observed.values()):
            return self._advance(moved)
        self._show()
        action: Action = "refreshed" if moved.rolled_forward else "no change"
        return self._report(action, moved.state.finished.refresh, rolled=moved.rolled_forward)

    def _update(self, binding: Binding) -> Update:
        """The steps of a refresh, over the version of the states that deltas are added to."""
        binding = replace(binding, before=self.base, tails=self.tail.views)
        return Update(self.plan, self.engine, binding, self.sizes)

    def _replaced(self, changed: Mapping[str, float]) -> frozenset[str]:
        """The states whose partitions are written anew; for that they are counted, where a build has not come to it."""
        if not self.sizes:
            self.sizes = state_sizes(self.plan, self.engine)
        tells, deletes = self.engine.writes_changes, self._may_delete
        return replaced_states(self.plan, self.sizes, changed, writes_changes=tells, deletes_rows=deletes)

    def _advance(self, moved: _Moved) -> Report:
        """Versions moved, or the date, but the model is the same: only the head goes forward."""
        state = moved.state
        recorded = {name: record.snapshot for name, record in state.inputs.items()}
        self.anew = {}
        self._tell("no change", changes=moved.changes)
        detail = self._detail("advance", moved.observed, recorded, moved.binding) | {"touched": []}
        covered = self._covered(state, detail)
        self._set_head(covered)
        self._show()
        return self._report(
            "no change", state.next_refresh, inputs=moved.changes, rolled=moved.rolled_forward
        )

    def _apply(self, moved: _Moved, update: Update) -> Report:
        """Compute, write with the head, say so."""
        if moved.deferred is not None:
            return self._apply_deferred(moved, moved.deferred, update)
        state, observed, binding = moved.state, moved.observed, update.started_from
        snapshots = {name: record.snapshot for name, record in state.inputs.items()}
        try:
            update.finds_a_change()
            late = came_too_late(self.plan, self.first_open, update.touched)
            if late is not None:
                return self._build(state, late)
            self.first_open = first_open_after(self.plan, self.first_open, update.touched)
            binding = self._plan_writes(update)
            kept = frozenset(name for name in binding.changed if snapshots.get(name) is not None)
            written = snapshots | write_snapshots(self.plan, self.engine, binding, kept)
            touched = [text for m in update.merged if m.view == self.plan.top.name for text in m.touched]
            detail = self._detail("refresh", observed, written, binding)
            is_joined = isinstance(self.plan, FactorisedPlan)
            rows = sum(m.rows for m in update.merged if is_joined or m.view == self.plan.top.name)
            known = ((o.name, o.rows_written) for o in observed.values() if o.moved)
            came = {name: many for name, many in known if many}
            self._tell("refreshed", movement(binding.clock), moved.changes, rows, came)
            detail["touched"] = touched if len(touched) <= MAX_LITERALS else None
            started = {
                "binding": recorded_binding(binding),
                "inputs": self._detail("refresh", observed, snapshots, binding)["inputs"],
                "before": binding.before,
                "dropped": {n: str(parts) for n, parts in self.dropped.items()},
            }
            self._write(state, update, detail, started)
        except VersionUnavailable as error:
            return self._build(state, unreadable(self.plan, error))
        except Exception as error:
            return self._alarm(error, state)
        record_partitions(self.plan, self.engine, state.next_refresh, versions_read(binding), touched)
        self._show()
        return self._report(
            "refreshed",
            state.next_refresh,
            reason=movement(binding.clock),
            inputs=moved.changes,
            merged=update.merged,
            rolled=moved.rolled_forward,
        )

    def _defer(self, state: Finished, observed: Mapping[str, Observed]) -> BoundInput | None:
        """The input whose change is left to the delta that reads it, None where changes have to be staged."""
        if not self.engine.defers:
            return None
        large = partial(is_large, self.plan, self.engine, self.sizes)
        name = read_once(self.plan, [o.name for o in observed.values() if o.moved], large)
        if name is None:
            return None
        try:
            return defer_input(self.plan, self.engine, observed[name], state.inputs[name])
        except ChangeFeedUnavailable:
            return None

    def _apply_deferred(self, moved: _Moved, deferred: BoundInput, update: Update) -> Report:
        """Compute the delta, and with it the change that it reads; then go on as if that had been staged."""
        try:
            update.finds_a_change()
            change = counted(self.plan, self.engine, deferred)
        except ChangeFeedUnavailable:
            return self._stage_after_all(moved, deferred)
        except VersionUnavailable as error:
            return self._build(moved.state, unreadable(self.plan, error))
        except Exception as error:
            return self._alarm(error, moved.state)
        if not keeps_columns(self.engine, moved.observed[deferred.name]):
            return self._stage_after_all(moved, deferred)
        self.expected = self.costs.expected({change.relation: change.inserted + change.deleted}).seconds
        moved = replace(moved, changes=(change,), deferred=None)
        return self._apply(moved, update) if change.inserted or change.deleted else self._advance(moved)

    def _stage_after_all(self, moved: _Moved, deferred: BoundInput) -> Report:
        """Begin again by staging a change that could not be read as it was to be."""
        self.engine.unstage(staged_input(self.plan, deferred.name))
        return self._refresh(moved.state, moved.rolled_forward, may_defer=False)

    def _plan_writes(self, update: Update) -> Binding:
        """Decide how the deltas are written, and what is in the tail then."""
        if not update.finds_a_change():
            return update.plan_writes(frozenset(), self.sizes)
        may_append, longer = appends(self.plan, self.sizes), update.longer(self.tail)
        if may_append and not longer.is_full(self.plan, self.sizes):
            # Who reads the model has to add up the tail, so the view has to say so before there is one.
            if not self.tail.views:
                self._show()
            self.tail = longer
            return update.plan_append()
        had_tail, self.tail = bool(self.tail.views), Tail()
        if not had_tail:
            replaced = self._replaced(update.changed_per_partition)
            vectors = self.vectors if self._may_delete else None
            binding = update.plan_writes(replaced, self.sizes, vectors, closed(self.plan, self.first_open))
            self.vectors = update.deleted(self.vectors)
            return binding
        # All of it goes where nothing is appended any more: a MERGE over a tail would count it twice.
        goes, self.tail = longer.folded(self.sizes) if may_append else (longer, Tail())
        return update.plan_fold(goes, self.tail, self.sizes)

    def _write(
        self, state: Finished, update: Update, detail: dict[str, Any], started: Mapping[str, Any]
    ) -> None:
        """Write the deltas. Between several statements the head says what is covered still, and what is open."""
        before = state.finished.as_dict()
        self.anew = {change.view: change.anew for change in update.merged}
        covered = self._covered(state, detail)
        for number, of, run in update.writes():
            assert self.head is not None
            now = covered if number == of else with_open(before, self.plan, started, number)
            head = next_head(self.head, {**now, "detail": {**now["detail"], "base": self.base}})
            run(head)
            self._committed(head)

    def _alarm(self, error: Exception, state: State) -> Report:
        """What stopped a write: another was faster, or what its checks found. An overflow is rebuilt from."""
        raised = raised_alarm(error)
        self._check_overtaken(error)
        if raised == OVERFLOW:
            return self._build(state, "a decimal sum overflowed, and addition cannot bring it back")
        if raised == NEGATIVE:
            raise FivmError(
                "FIVM401",
                "the change removes rows that the state does not have; nothing was written",
                remedy="the state or an input's history is damaged: run with --full-refresh",
                model=self.plan.model,
            ) from error
        if raised == TWICE:
            raise self._twice() from error
        raise error

    # Going on with several statements

    def _roll_forward(self, state: Finished, entry: Coverage) -> Report | None:
        """Finish a refresh of several statements that was interrupted; a report only where it had to be rebuilt."""
        self.decided(Decision("refreshed", "an interrupted refresh is finished first"))
        self.engine.progress(f"finishing refresh {entry.refresh} of {self.plan.model}, which was interrupted")
        self.dropped = recorded_drops(entry)
        self._tell("refreshed", "it was interrupted, and has been finished")
        before = int(entry.detail["before"])
        binding = replace(bind(self.plan, {}, buckets=0, recorded=entry.detail["binding"]), before=before)
        recorded = {name: RecordedInput.of(data) for name, data in entry.detail["inputs"].items()}
        try:
            binding = bound_again(self.plan, self.engine, binding, recorded)
            staged = stage_inputs(self.plan, self.engine, {}, {}, bound=binding)
            binding = binding.with_spans(span for s in staged.values() for span in s.spans)
            update = Update(self.plan, self.engine, binding, self.sizes, int(entry.detail["done"]))
            update.finds_a_change()
            update.plan_writes(binding.replaced, self.sizes)
            kept = frozenset(n for n in binding.changed if recorded[n].snapshot is not None)
            snapshots = {n: r.snapshot for n, r in recorded.items()}
            snapshots |= write_snapshots(self.plan, self.engine, binding, kept)
            inputs = {
                n: RecordedInput(r.table, r.commit, snapshots[n]).as_dict() for n, r in recorded.items()
            }
            times = finished_clock(binding.clock)
            detail = {
                "kind": "refresh",
                "inputs": inputs,
                "buckets": binding.buckets,
                "touched": None,
                **times,
            }
            self._write(state, update, detail, {k: v for k, v in entry.detail.items() if k != "done"})
        except Gone as error:
            return self._build(state, str(error), error.recreated)
        except VersionUnavailable as error:
            return self._build(state, unreadable(self.plan, error))
        except Exception as error:
            return self._alarm(error, state)
        # What had been merged before the interruption is not known any more: all of it may be new.
        record_partitions(self.plan, self.engine, state.next_refresh, versions_read(binding), None)
        return None
