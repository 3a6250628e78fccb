"""A refresh of a viewdf model: which parts are ready, which late data has changed, and computing them (ViewDF, 4).

Computing a part again gives the same rows, so that an interrupted refresh needs no more than to be begun anew: from the
versions of the last finished one. What it had written already, the state's change feed tells; these parts are computed
again with those that follow from them, at the versions of now: what the attempt has read may be gone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone

from fivm_dbt.naming import part_catalog
from fivm_dbt.parts.intervals import Intervals
from fivm_dbt.plan.binding import Binding
from fivm_dbt.plan.part_plan import PartPlan
from fivm_dbt.plan.plan import Plan
from fivm_dbt.refresh.bind import Staged, bind, stage_inputs, versions_read
from fivm_dbt.refresh.decide import changed_by_others, lost_inputs, unreadable, why_rebuild
from fivm_dbt.refresh.dropped import DROPPING, being_dropped, check_rebuild, recorded_drops
from fivm_dbt.refresh.engine import ChangeFeedUnavailable, VersionUnavailable
from fivm_dbt.refresh.journal import Entry, Journal, create_once, now
from fivm_dbt.refresh.known_parts import (
    KnownParts,
    check_not_dropped,
    merged_now,
)
from fivm_dbt.refresh.observe import Observed, State, check_free, read_state, recorded_states
from fivm_dbt.refresh.part_inputs import PartInputs, Upstream
from fivm_dbt.refresh.part_order import PartOrder
from fivm_dbt.refresh.part_swap import begin, show
from fivm_dbt.refresh.part_writer import AT_ONCE, PartWriter
from fivm_dbt.refresh.parts_wanted import EventTime, PartsWanted
from fivm_dbt.refresh.publish import publish, show_again, write_snapshots
from fivm_dbt.refresh.recorder import Recorder
from fivm_dbt.refresh.report import Action, InputChange, PartChange, Report
from fivm_dbt.refresh.retention import NEEDS, needs, read_by_nobody, too_old, watermark
from fivm_dbt.refresh.root_writes import RootWrites
from fivm_dbt.refresh.run import Overtaken, Run
from fivm_dbt.spark.part_catalog import (
    InputParts,
    Recorded,
    create_catalog,
    forget_attempt,
    forget_model,
    mark_dropped,
    mark_merged,
)
from fivm_dbt.spark.parts import (
    compact_periods,
    drop_parts,
)


@dataclass(frozen=True, kw_only=True)
class _Found:
    """What a refresh starts from: the inputs' versions, and what is known of parts with what has changed of them."""

    state: State
    observed: dict[str, Observed]
    binding: Binding
    staged: Mapping[str, Staged] = field(default_factory=dict)
    known: KnownParts
    changed: Mapping[str, Intervals] = field(default_factory=dict)
    dropped: Mapping[str, Intervals]
    by: Recorded
    root: RootWrites
    is_build: bool
    is_again: bool = False
    touched: Intervals = field(default_factory=Intervals)
    inputs: tuple[InputParts, ...] = ()
    before: KnownParts = field(default_factory=KnownParts)
    """What was known when the last refresh was finished."""
    watermarks: Mapping[str, int | None]
    """Of inputs that are viewdf models."""
    snapshots: frozenset[str] = frozenset()


class PartRun(Run):
    """One call of a refresh of a viewdf model."""

    def __init__(
        self, plan: Plan, engine: Recorder, journal: Journal, within: EventTime = (None, None)
    ) -> None:
        super().__init__(plan, engine, journal, is_lazy=False)
        assert plan.parts is not None
        self.parts: PartPlan = plan.parts
        self.inputs = PartInputs(plan, engine)
        self.wanted = PartsWanted(plan.parts, within)
        self.versions: dict[str, int] = {}
        self.building = plan
        """The plan by which parts are written: of a model that is built anew beside what is shown."""

    # What there is

    def _execute(self, full_refresh: bool, entries: Sequence[Entry] | None) -> Report:
        state = read_state(self.journal.entries(self.plan.relation) if entries is None else entries)
        check_free(self.plan, state)
        upstream = self.inputs.upstream(self.journal)
        if full_refresh:
            return self._build(state, upstream, _ON_REQUEST)
        if state.finished is None:
            return self._build(state, upstream, None)
        reason = why_rebuild(self.plan, self.engine, self.journal, state.finished)
        if reason is None and state.unfinished is not None and state.unfinished.detail["kind"] == "build":
            reason = "a build was interrupted"
        self.states, self.dropped = recorded_states(state.finished), recorded_drops(state.finished)
        if reason is None and state.unfinished is None:
            root = self.plan.root.relation
            left = self.states[root]
            reason = changed_by_others(self.plan, self.engine.commits(root, left), left)
        if reason is not None:
            return self._build(state, upstream, reason)
        self.state_bytes = state.finished.detail["state_bytes"]
        return self._refresh(state, upstream)

    def _gone(self, upstream: Mapping[str, Upstream]) -> dict[str, Intervals]:
        """By input the parts that have been dropped."""
        return self.dropped | {name: u.dropped for name, u in upstream.items()}

    def _build(
        self,
        state: State,
        upstream: Mapping[str, Upstream],
        reason: str | None,
        snapshots: frozenset[str] = frozenset(),
    ) -> Report:
        """Compute every part that is ready, from nothing. ``snapshots``: inputs to keep a snapshot of from now on."""
        upstream, observed = self.inputs.observe(self.journal, upstream, {})
        if state.finished is not None and reason != _ON_REQUEST:
            check_rebuild(self.plan, self._gone(upstream), reason or "")
        binding = bind(self.plan, observed, buckets=1)
        self.versions = {b.name: b.new for b in binding.inputs}
        self.engine.progress(f"building {self.plan.model}" + (f": {reason}" if reason else ""))
        claim = self._claim(state, {"kind": "build"})
        self._ready_catalog()
        self.engine.run(forget_model(self.plan))
        self.building = begin(self.plan, self.engine)
        building = self.building.root.relation
        root = RootWrites(self.engine, building, self.engine.commits(building, None)[0].version)
        by = self._recorded(claim, binding)
        known = KnownParts()
        for item in self.inputs.others:
            if item.is_computed:
                known = known.with_seen(item.relation, upstream[item.relation].computed)
            else:
                known = known.with_seen(item.relation, self.inputs.look_at(item, self.versions, by))
        found = _Found(
            state=state,
            observed=observed,
            binding=binding,
            known=known,
            dropped=self._gone(upstream),
            by=by,
            root=root,
            is_build=True,
            watermarks=_watermarks(upstream),
            snapshots=snapshots,
        )
        return self._compute(found, claim, "built" if state.finished is None else "rebuilt", reason)

    def _refresh(self, state: State, upstream: Mapping[str, Upstream]) -> Report:
        """Compute the parts that have become ready, and those that late data has changed."""
        assert state.finished is not None
        upstream, observed = self.inputs.observe(self.journal, upstream, state.inputs)
        lost = lost_inputs(self.plan, observed, state.inputs)
        if lost is not None:
            return self._build(state, upstream, lost[0], lost[1])
        known = KnownParts.of(state.finished.detail["parts"])
        before = known
        dropping = being_dropped(state)
        known = replace(known, dropped=known.dropped | dropping)
        new_upstream = {name: u.computed - known.seen.get(name, Intervals()) for name, u in upstream.items()}
        has_moved = any(o.moved for o in observed.values()) or any(new_upstream.values())
        if not has_moved and state.unfinished is None and not self.wanted.has_work(known):
            return self._show_unchanged(state)
        try:
            appended = self.inputs.appended(observed, state.inputs)
            staged = stage_inputs(
                self.plan, self.engine, observed, state.inputs, self.journal, known=appended
            )
        except VersionUnavailable as error:
            return self._build(state, upstream, unreadable(self.plan, error))
        self._note_dropped(staged)
        binding = bind(self.plan, observed, buckets=1, staged=staged)
        self.versions = {b.name: b.new for b in binding.inputs}
        written, touched = self.states[self.plan.root.relation], Intervals()
        try:
            if state.unfinished is not None:
                written, touched = self.inputs.touched(written)
        except (ChangeFeedUnavailable, VersionUnavailable) as error:
            return self._build(state, upstream, f"an interrupted refresh cannot be gone on with: {error}")
        claim = self._claim(state, {"kind": "parts", **({DROPPING: str(dropping)} if dropping else {})})
        self._ready_catalog()
        root = RootWrites(self.engine, self.plan.root.relation, written)
        if state.unfinished is not None:
            was_known = {self.plan.relation: before.computed, **before.seen}
            self.engine.run(forget_attempt(self.plan, claim.refresh, was_known))
        if dropping:
            self._drop(dropping, root)
        by = self._recorded(claim, binding)
        changed: dict[str, Intervals] = {}
        inputs: list[InputParts] = []
        for item in self.inputs.others:
            found_there = self.inputs.moved(item, staged)
            if not item.is_computed:
                inputs += found_there.groups(AT_ONCE)
            moved = found_there.parts
            gone = upstream[item.relation].dropped if item.relation in upstream else Intervals()
            changed[item.relation] = (moved & known.effective(item)) - gone
            arrived = upstream[item.relation].computed if item.is_computed else moved
            known = known.with_seen(item.relation, arrived)
            if item.relation in staged and staged[item.relation].dropped:
                self.engine.run(mark_dropped(self.plan, item.relation, staged[item.relation].dropped))
        found = _Found(
            state=state,
            observed=observed,
            binding=binding,
            staged=staged,
            known=known,
            changed=changed,
            dropped=self._gone(upstream),
            by=by,
            root=root,
            is_build=False,
            is_again=state.unfinished is not None,
            touched=touched,
            inputs=tuple(inputs),
            before=before,
            watermarks=_watermarks(upstream),
        )
        return self._compute(found, claim, "refreshed", None)

    def _ready_catalog(self) -> None:
        create_once(self.engine, part_catalog(self.plan.relation), create_catalog(self.plan))

    def _recorded(self, claim: Entry, binding: Binding) -> Recorded:
        return Recorded(claim.refresh, datetime.now(timezone.utc), versions_read(binding))

    # Computing

    def _compute(self, found: _Found, claim: Entry, action: Action, reason: str | None) -> Report:
        known = found.known
        root = found.root
        writer = PartWriter(self.building, self.engine, root, found.by, found.before, found.touched)
        for parts in found.inputs:
            writer.note_input(parts)
        first = self.wanted.first(known)
        ready = affected = pending = Intervals()
        if first is not None:
            gone = {**found.dropped, self.plan.relation: known.dropped}
            ready, affected = self.wanted.found(
                first, known, found.changed, found.binding.changed, found.touched, gone
            )
        stray = found.touched - known.computed - ready
        if stray:
            # An interrupted attempt has computed them from rows that are gone.
            root.run(drop_parts(self.plan, stray))
        if first is not None:
            asked = self.wanted.asked
            pending = affected - asked
            affected &= asked
            check_not_dropped(self.parts, ready | affected, gone)
            self._announce(ready, affected)
            order = PartOrder(self.building, self.engine, root, writer, self.versions, known, asked)
            pending |= order.compute(first, ready, affected)
            known = replace(known, first=first, computed=known.computed | ready, pending=pending)
        writer.record()
        root.check()
        show(self.plan, self.building, self.engine)
        known = replace(known, watermark=watermark(self.parts, known, found.watermarks))
        claim, known = self._put_away(claim, known, found, writer.changed | found.touched)
        if found.is_build:
            publish(self.plan, self.engine)
        else:
            self.shown_again = show_again(self.plan, self.engine)
        recorded = write_snapshots(self.plan, self.engine, found.binding, self._snapshots(found))
        before = {n: r.snapshot for n, r in found.state.inputs.items()} if not found.is_build else {}
        detail = self._detail(
            "build" if found.is_build else "parts", found.observed, before | recorded, found.binding
        )
        detail |= {"parts": known.as_dict(), NEEDS: needs(self.parts, known)}
        if found.is_build:
            detail |= {"signature": self.plan.signature}
        since_finished = None if found.is_build or found.is_again else root.commits()
        self._finish(claim, detail, since_finished)
        late = Intervals() if first is None else self.wanted.too_late(first, found.known, found.changed)
        return self._part_report(found, claim, action, reason, ready, writer, known, late)

    def _snapshots(self, found: _Found) -> frozenset[str]:
        """The inputs that keep an own snapshot: those that did, and seeds, which are created anew each time."""
        if found.is_build:
            return found.snapshots | {i.name for i in self.plan.inputs if i.starts_with_snapshot}
        kept = {n for n, r in found.state.inputs.items() if r.snapshot is not None}
        return frozenset(kept & found.binding.changed)

    def _announce(self, ready: Intervals, affected: Intervals) -> None:
        many = len(ready) + len(affected)
        if many:
            how = "together" if self.parts.together is not None else "one after the other"
            self.engine.progress(
                f"{self.plan.model}: {len(ready):,} parts to compute ({ready}), {len(affected):,} again ({affected}), "
                f"{how}"
            )

    def _put_away(
        self, claim: Entry, known: KnownParts, start: _Found, written: Intervals
    ) -> tuple[Entry, KnownParts]:
        """Drop parts that are too old, and merge the files of others. What is dropped is written down before it is."""
        version = None if start.is_build else self.states[self.plan.root.relation]
        found = read_by_nobody(self.parts, too_old(self.parts, known), self.journal, version, written)
        if found.kept:
            self.engine.progress(
                f"{self.plan.model}: keeping {len(found.kept):,} parts ({found.kept}) that are older than "
                f"fivm_retention, which {', '.join(found.waiting)} may still read"
            )
        gone = found.parts
        if gone:
            self.engine.progress(
                f"{self.plan.model}: dropping {len(gone):,} parts ({gone}), older than fivm_retention"
            )
            earlier = Intervals.read(claim.detail.get(DROPPING, "none"))
            detail = {**claim.detail, DROPPING: str(earlier | gone)}
            claim = replace(claim, attempt=claim.attempt + 1, detail=detail, recorded_at=now())
            if not self.journal.claim(claim):
                raise Overtaken
            self._drop(gone, start.root)
            known = replace(known, dropped=known.dropped | gone)
        merged = merged_now(self.parts, known)
        if merged:
            last = max(merged)
            self.engine.progress(
                f"{self.plan.model}: merging the files of {len(merged):,} periods up to {last}"
            )
            before = self.parts.period_of(merged[last].last + 1)
            start.root.compact(compact_periods(self.plan, before))
            for period, parts in sorted(merged.items()):
                self.engine.run(mark_merged(self.plan, parts, period))
                known = replace(known, merged=known.merged | parts)
        return claim, known

    def _drop(self, parts: Intervals, root: RootWrites) -> None:
        root.run(drop_parts(self.plan, parts))
        self.engine.run(mark_dropped(self.plan, self.plan.relation, parts))

    # Telling

    def _show_unchanged(self, state: State) -> Report:
        assert state.finished is not None
        self.shown_again = show_again(self.plan, self.engine)
        self.state_bytes = state.finished.detail.get("state_bytes")
        known = KnownParts.of(state.finished.detail["parts"])
        report = self._report("no change", state.finished.refresh)
        return replace(report, parts=PartChange(waiting=self.wanted.waiting(known)))

    def _part_report(
        self,
        found: _Found,
        claim: Entry,
        action: Action,
        reason: str | None,
        ready: Intervals,
        writer: PartWriter,
        known: KnownParts,
        late: Intervals,
    ) -> Report:
        again, changed = writer.computed - ready, writer.changed
        inputs: tuple[InputChange, ...] = tuple(s.change for s in found.staged.values())
        is_same = action == "refreshed" and not writer.computed
        report = self._report(
            "no change" if is_same else action,
            claim.refresh,
            reason=reason,
            inputs=inputs,
            rolled=found.is_again,
        )
        parts = PartChange(
            computed=str(ready),
            again=str(again),
            changed=str(changed & again),
            rows=writer.rows,
            pending=str(known.pending),
            waiting=self.wanted.waiting(known),
            too_late=str(late),
        )
        return replace(report, parts=parts, rows_merged=parts.rows, partitions=len(changed))


def _watermarks(upstream: Mapping[str, Upstream]) -> dict[str, int | None]:
    return {name: found.watermark for name, found in upstream.items()}


_ON_REQUEST = "full refresh"
