"""The refresh of a maintained model: observe, pin, stage, apply, record (docs/architecture.md).

The plan has decided everything; here versions and literals are bound and statements run in their order. Whatever
stops it, the next run finds a *started* entry and goes on with the very same versions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from fivm_dbt.errors import FivmError
from fivm_dbt.naming import sibling
from fivm_dbt.plan.applying import StateSize, replaced_states
from fivm_dbt.plan.binding import Binding
from fivm_dbt.plan.plan import inner_views
from fivm_dbt.refresh.bind import bind, recorded_binding, stage_inputs, versions_read
from fivm_dbt.refresh.clock import finished_clock, is_by_the_day, movement, read_clock
from fivm_dbt.refresh.decide import (
    broken_promise,
    changed_by_others,
    choose_buckets,
    lost_inputs,
    raised_alarm,
    unreadable,
    why_rebuild,
)
from fivm_dbt.refresh.dropped import check_rebuild, recorded_drops
from fivm_dbt.refresh.engine import Commit, MissingRelation, VersionUnavailable
from fivm_dbt.refresh.journal import Entry
from fivm_dbt.refresh.layout import state_sizes
from fivm_dbt.refresh.model_parts import record_partitions
from fivm_dbt.refresh.observe import (
    Observed,
    RecordedInput,
    State,
    check_free,
    observe,
    read_state,
    recorded_states,
)
from fivm_dbt.refresh.publish import drop_states, publish, show_again, show_helpers, write_snapshots
from fivm_dbt.refresh.report import Action, InputChange, Report
from fivm_dbt.refresh.resume import Gone, bound_again
from fivm_dbt.refresh.run import Overtaken, Run
from fivm_dbt.refresh.runner import Update, build_states
from fivm_dbt.spark.merge import NEGATIVE, OVERFLOW
from fivm_dbt.spark.state import TWICE


class _Unusable(Exception):
    """Nothing can be added to the states; the text says why."""


@dataclass(frozen=True)
class _Moved:
    """What a refresh starts from, when versions have moved: the state that was left, and what there is now."""

    state: State
    observed: dict[str, Observed]
    changes: tuple[InputChange, ...]
    binding: Binding
    rolled_forward: bool


class MaintainedRun(Run):
    """One call of a refresh of a maintained model."""

    def _execute(self, full_refresh: bool, entries: Sequence[Entry] | None) -> Report:
        state = read_state(self.journal.entries(self.plan.relation) if entries is None else entries)
        check_free(self.plan, state)
        if full_refresh:
            return self._build(state, "full refresh")
        if state.finished is None:
            return self._build(state, None)
        self.dropped = recorded_drops(state.finished)
        self.states = recorded_states(state.finished)
        self.state_bytes = state.finished.detail["state_bytes"]
        self.sizes = {name: StateSize(*size) for name, size in state.finished.detail.get("sizes", {}).items()}
        reason = why_rebuild(self.plan, self.engine, self.journal, state.finished)
        if reason:
            return self._build(state, reason)
        rolled_forward = False
        if state.unfinished is not None:
            if state.unfinished.plan_hash != self.plan.plan_hash:
                return self._build(state, "the refresh that was interrupted had another plan")
            if "binding" not in state.unfinished.detail:
                return self._build(state, "a build was interrupted")
            report = self._roll_forward(state)
            if report is not None:
                return report
            rolled_forward = True
            state = read_state(self.journal.entries(self.plan.relation))
        return self._refresh(state, rolled_forward)

    # Building

    def _build(self, state: State, reason: str | None, snapshots: frozenset[str] = frozenset()) -> Report:
        """Compute the whole state at the inputs' newest versions."""
        check_rebuild(self.plan, self.dropped, reason or "no reason")
        action: Action = "built" if state.finished is None else "rebuilt"
        before = state.inputs if state.finished is not None else {}
        clock = read_clock(self.plan, self.engine, None)
        observed = observe(self.plan, self.engine, {})
        kept = snapshots | {i.name for i in self.plan.inputs if i.starts_with_snapshot}
        kept |= {name for name, record in before.items() if record.snapshot is not None and name in observed}
        buckets = choose_buckets(self.plan, self.engine, observed)
        binding = bind(self.plan, observed, buckets=buckets, clock=clock)
        claim = self._claim(state, {"kind": "build"})
        self.engine.progress(f"building {self.plan.model}" + (f": {reason}" if reason else ""))
        try:
            self.states = {self.plan.state_relation: build_states(self.plan, self.engine, binding)}
        except Exception as error:
            if raised_alarm(error) == TWICE:
                raise self._twice() from error
            if raised_alarm(error) != OVERFLOW:
                raise
            raise FivmError(
                "FIVM402",
                "a product of sums in its view tree has more than 38 digits",
                remedy="CAST what is multiplied to fewer digits, or use fivm_strategy: first_order",
                model=self.plan.model,
            ) from error
        self.sizes = state_sizes(self.plan, self.engine)
        recorded = write_snapshots(self.plan, self.engine, binding, kept & {i.name for i in self.plan.inputs})
        publish(self.plan, self.engine)
        self._remove_orphans(state)
        record_partitions(self.plan, self.engine, claim.refresh, versions_read(binding), None)
        detail = self._detail("build", observed, recorded, binding) | {"signature": self.plan.signature}
        self._finish(claim, detail)
        return self._report(action, claim.refresh, reason=reason)

    def _remove_orphans(self, state: State) -> None:
        """Drop the tables of the last build that this plan does not have, and show its inner views for theirs."""
        build = self.journal.last_build(self.plan.relation) if state.finished is not None else None
        before = inner_views(build.detail["signature"]) if build is not None else set()
        if build is not None:
            last = {*build.detail["states"], *before, sibling(self.plan.relation, "root")}
            drop_states(self.engine, last - {self.plan.state_relation})
        show_helpers(self.plan, self.engine, before)

    # Refreshing

    def _refresh(self, state: State, rolled_forward: bool) -> Report:
        assert state.finished is not None
        clock = read_clock(self.plan, self.engine, state.finished.detail)
        observed = observe(self.plan, self.engine, state.inputs)
        is_moved = any(o.moved for o in observed.values()) or (clock is not None and clock.moved)
        if self.is_lazy or not is_moved:
            foreign = self._changed_by_others()
            if foreign is not None:
                return self._build(state, foreign)
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
        buckets = int(state.finished.detail["buckets"])
        try:
            staged = stage_inputs(self.plan, self.engine, observed, state.inputs, self.journal)
        except VersionUnavailable as error:
            return self._build(state, unreadable(self.plan, error))
        self._note_dropped(staged)
        binding = bind(self.plan, observed, buckets=buckets, staged=staged, clock=clock)
        promise = broken_promise(self.plan, binding)
        if promise is not None:
            return self._build(state, promise)
        changes = tuple(s.change for s in staged.values())
        moved = _Moved(state, observed, changes, binding, rolled_forward)
        if not binding.moved:
            return self._advance(moved)
        if not binding.changed:
            return self._only_time_passed(moved)
        try:
            return self._apply(moved, self._update(moved.binding))
        except _Unusable as error:
            return self._build(state, str(error))

    def _wait(
        self, finished: Entry, observed: dict[str, Observed], why: str | None, *, rolled: bool
    ) -> Report:
        """Leave the model as it is: the histories of its inputs keep what changed until somebody asks for it."""
        self._show()
        moved = [name for name, o in observed.items() if o.moved]
        reasons = [f"{', '.join(moved)} changed"] if moved else []
        reasons += [why] if why is not None else []
        return self._report(
            "waiting",
            finished.refresh,
            reason="; ".join(reasons) or "its result changes by itself",
            rolled=rolled,
        )

    def _only_time_passed(self, moved: _Moved) -> Report:
        """No row that the model reads changed, but it may be in another range by now.

        If none is, nothing is written: the recorded time is as right as the present one. A new date is recorded, so
        that the rest of the day does not look for what has not moved.
        """
        assert moved.state.finished is not None
        try:
            update = self._update(moved.binding)
        except _Unusable as error:
            return self._build(moved.state, str(error))
        if update.finds_a_change():
            return self._apply(moved, update)
        if is_by_the_day(self.plan) or any(o.moved for o in moved.observed.values()):
            return self._advance(moved)
        self._show()
        action: Action = "refreshed" if moved.rolled_forward else "no change"
        return self._report(action, moved.state.finished.refresh, rolled=moved.rolled_forward)

    def _update(self, binding: Binding) -> Update:
        """The steps of a refresh, over the versions of the states that deltas are added to.

        Raises _Unusable where a state is gone, or is not what the last refresh left.
        """
        try:
            found = self._state_commits()
        except MissingRelation as error:
            raise _Unusable(f"a state table is missing: {error}") from error
        reason = changed_by_others(self.plan, found, self.states)
        if reason is not None:
            raise _Unusable(reason)
        before = found[self.plan.state_relation][0].version
        binding = replace(binding, before=before, replaced=replaced_states(self.plan, self.sizes))
        return Update(self.plan, self.engine, binding)

    def _advance(self, moved: _Moved) -> Report:
        """Versions moved, or the date, but the model is the same: only the journal goes forward."""
        state = moved.state
        foreign = self._changed_by_others()
        if foreign is not None:
            return self._build(state, foreign)
        recorded = {name: record.snapshot for name, record in state.inputs.items()}
        detail = self._detail("advance", moved.observed, recorded, moved.binding) | self._state_detail()
        entry = Entry(self.plan.relation, state.next_refresh, 0, "finished", self.plan.plan_hash, detail)
        if not self.journal.claim(entry):
            raise Overtaken
        self._show()
        return self._report("no change", entry.refresh, inputs=moved.changes, rolled=moved.rolled_forward)

    def _apply(self, moved: _Moved, update: Update) -> Report:
        """Claim, merge, record."""
        state, observed, binding = moved.state, moved.observed, update.started_from
        snapshots = {name: record.snapshot for name, record in state.inputs.items()}
        observed_inputs = self._detail("refresh", observed, snapshots, binding)["inputs"]
        detail = {
            "binding": recorded_binding(binding),
            "inputs": observed_inputs,
            "before": binding.before,
            "dropped": {n: str(parts) for n, parts in self.dropped.items()},
        }
        claim = self._claim(state, detail)
        try:
            update.finish()
        except VersionUnavailable as error:
            return self._lost_meanwhile(error)
        except Exception as error:
            return self._alarm(error, state)
        kept = frozenset(name for name in binding.changed if snapshots.get(name) is not None)
        written = snapshots | write_snapshots(self.plan, self.engine, binding, kept)
        self.anew |= {change.view: change.anew for change in update.merged}
        touched = next((m.touched for m in update.merged if m.view == self.plan.top.name), ())
        record_partitions(self.plan, self.engine, claim.refresh, versions_read(binding), touched)
        self._finish(claim, self._detail("refresh", observed, written, binding))
        self._show()
        return self._report(
            "refreshed",
            claim.refresh,
            reason=movement(binding.clock),
            inputs=moved.changes,
            merged=update.merged,
            rolled=moved.rolled_forward,
        )

    def _changed_by_others(self) -> str | None:
        """Why the state is not what the last refresh left, by a look at its version; None if it is."""
        return changed_by_others(self.plan, self._state_commits(), self.states)

    def _state_commits(self) -> dict[str, Sequence[Commit]]:
        """The commits of the state, back to the one that the last refresh left."""
        name = self.plan.state_relation
        return {name: self.engine.commits(name, self.states.get(name))}

    def _show(self) -> None:
        """Put the model's view back where it is gone or altered: what is shown is the states."""
        self.shown_again = show_again(self.plan, self.engine) or self.shown_again

    def _alarm(self, error: Exception, state: State) -> Report:
        """What the checks inside a MERGE found: an overflow is rebuilt from, a negative multiplicity is an error."""
        raised = raised_alarm(error)
        if raised == OVERFLOW:
            state = read_state(self.journal.entries(self.plan.relation))
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

    def _twice(self) -> FivmError:
        return FivmError(
            "FIVM405",
            "two rows of the model are the same, which fivm_trust_keys and the declared keys of its inputs rule out; "
            "nothing was written",
            remedy="correct the rows or the declared keys, or leave fivm_trust_keys out and run with --full-refresh",
            model=self.plan.model,
        )

    def _lost_meanwhile(self, error: VersionUnavailable) -> Report:
        """A version that a claimed refresh reads was cleaned up after it had been chosen."""
        state = read_state(self.journal.entries(self.plan.relation))
        return self._build(state, unreadable(self.plan, error))

    # Rolling forward

    def _roll_forward(self, state: State) -> Report | None:
        """Finish the interrupted refresh with its recorded versions; a report only where it had to be rebuilt."""
        assert state.unfinished is not None
        entry = state.unfinished
        self.engine.progress(f"finishing refresh {entry.refresh} of {self.plan.model}, which was interrupted")
        self.dropped = recorded_drops(entry)
        before = int(entry.detail["before"])
        binding = replace(bind(self.plan, {}, buckets=0, recorded=entry.detail["binding"]), before=before)
        recorded = {name: RecordedInput.of(data) for name, data in entry.detail["inputs"].items()}
        try:
            binding = bound_again(self.plan, self.engine, binding, recorded)
        except Gone as error:
            return self._build(state, str(error), error.recreated)
        claim = self._claim(state, {k: v for k, v in entry.detail.items() if k != "owner"})
        done = self._already_applied(before)
        try:
            if not done or self.plan.config.fivm_merge == "per_partition":
                staged = stage_inputs(self.plan, self.engine, {}, {}, self.journal, bound=binding)
                binding = binding.with_spans(span for s in staged.values() for span in s.spans)
                Update(self.plan, self.engine, binding, done).finish()
        except VersionUnavailable as error:
            return self._lost_meanwhile(error)
        except Exception as error:
            return self._alarm(error, state)
        kept = frozenset(n for n in binding.changed if recorded[n].snapshot is not None)
        snapshots = {n: r.snapshot for n, r in recorded.items()} | write_snapshots(
            self.plan, self.engine, binding, kept
        )
        inputs = {n: RecordedInput(r.table, r.commit, snapshots[n]).as_dict() for n, r in recorded.items()}
        # What had been merged before the interruption is not known any more: all of it may be new.
        record_partitions(self.plan, self.engine, claim.refresh, versions_read(binding), None)
        times = finished_clock(binding.clock)
        self._finish(claim, {"kind": "refresh", "inputs": inputs, "buckets": binding.buckets, **times})
        return None

    def _already_applied(self, before: int) -> int:
        """How many of the refresh's writes are committed: those of ours after the version it started from."""
        commits = self.engine.commits(self.plan.state_relation, before)
        return sum(1 for c in commits if c.version > before and c.operation in ("MERGE", "WRITE"))
