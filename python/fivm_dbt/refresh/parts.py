"""A refresh of a viewdf model: which parts are ready, which late data has changed, and computing them (ViewDF, 4).

Computing a part again gives the same rows, so that an interrupted refresh needs no more than to be begun anew: from the
versions of the last finished one. What it had written already, the state's change feed tells; these parts are computed
again with those that follow from them, at the versions of now: what the attempt has read may be gone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone

from fivm_dbt.naming import part_catalog
from fivm_dbt.parts.intervals import Intervals
from fivm_dbt.parts.length import Length
from fivm_dbt.plan.binding import Binding, staged_input
from fivm_dbt.plan.part_plan import PartInput, PartPlan
from fivm_dbt.plan.plan import Plan
from fivm_dbt.refresh.apply import publish, write_snapshots
from fivm_dbt.refresh.bind import Staged, bind, stage_inputs, versions_read
from fivm_dbt.refresh.decide import changed_by_others, lost_inputs, unreadable, why_rebuild
from fivm_dbt.refresh.dropped import check_rebuild, recorded_drops
from fivm_dbt.refresh.engine import ChangeFeedUnavailable, Row, VersionUnavailable
from fivm_dbt.refresh.journal import Entry, Journal, create_once, now
from fivm_dbt.refresh.known_parts import (
    KnownParts,
    check_not_dropped,
    dropped_now,
    merged_now,
    needing_dropped,
    touched,
)
from fivm_dbt.refresh.observe import Observed, State, check_free, observe, read_state, recorded_states
from fivm_dbt.refresh.part_order import PartOrder
from fivm_dbt.refresh.part_swap import begin, show
from fivm_dbt.refresh.part_writer import AT_ONCE, PartWriter
from fivm_dbt.refresh.recorder import Recorder
from fivm_dbt.refresh.report import Action, InputChange, PartChange, Report
from fivm_dbt.refresh.run import Overtaken, Run
from fivm_dbt.spark.part_catalog import (
    InputParts,
    Recorded,
    create_catalog,
    forget_model,
    mark_dropped,
    mark_merged,
    record_parts,
    record_staged,
)
from fivm_dbt.spark.part_queries import all_rows
from fivm_dbt.spark.parts import (
    compact_periods,
    drop_parts,
    input_parts_query,
    islands_query,
    numbered,
    touched_parts_query,
)
from fivm_dbt.spark.reads import table

EventTime = tuple[datetime | None, datetime | None]
"""From when, and until before when, parts are computed: ``--event-time-start`` and ``--event-time-end``."""


@dataclass(frozen=True)
class Upstream:
    """What another viewdf model says of its parts."""

    computed: Intervals
    dropped: Intervals


@dataclass(frozen=True)
class _Found:
    """What a refresh starts from: the inputs' versions, and what is known of parts with what has changed of them."""

    state: State
    observed: dict[str, Observed]
    binding: Binding
    staged: Mapping[str, Staged]
    known: KnownParts
    changed: Mapping[str, Intervals]
    dropped: Mapping[str, Intervals]
    by: Recorded
    is_build: bool
    is_again: bool
    touched: Intervals = field(default_factory=Intervals)
    inputs: tuple[InputParts, ...] = ()
    snapshots: frozenset[str] = frozenset()


class PartRun(Run):
    """One call of a refresh of a viewdf model."""

    def __init__(
        self, plan: Plan, engine: Recorder, journal: Journal, within: EventTime = (None, None)
    ) -> None:
        super().__init__(plan, engine, journal, is_lazy=False)
        assert plan.parts is not None
        self.parts: PartPlan = plan.parts
        self.within = within
        self.versions: dict[str, int] = {}
        self.building = plan
        """The plan by which parts are written: of a model that is built anew beside what is shown."""

    # What there is

    def _execute(self, full_refresh: bool, entries: Sequence[Entry] | None) -> Report:
        state = read_state(self.journal.entries(self.plan.relation) if entries is None else entries)
        check_free(self.plan, state)
        upstream = self._upstream()
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
            reason = changed_by_others(
                self.plan, {root: self.engine.commits(root, self.states[root])}, self.states
            )
        if reason is not None:
            return self._build(state, upstream, reason)
        self.state_bytes = state.finished.detail["state_bytes"]
        return self._refresh(state, upstream)

    def _upstream(self) -> dict[str, Upstream]:
        """The parts of inputs that are viewdf models, read before their versions: what is there then has its rows."""
        found = {}
        for relation in sorted({i.relation for i in self._others() if i.is_computed}):
            finished = read_state(self.journal.beside(relation).entries(relation)).finished
            known = KnownParts.of(finished.detail["parts"]) if finished is not None else KnownParts()
            found[relation] = Upstream(known.computed - known.dropped, known.dropped)
        return found

    def _gone(self, upstream: Mapping[str, Upstream]) -> dict[str, Intervals]:
        """By input the parts that have been dropped."""
        return self.dropped | {name: u.dropped for name, u in upstream.items()}

    def _others(self) -> list[PartInput]:
        """The inputs by parts, one for each relation."""
        by_name = {i.relation: i for i in self.parts.inputs if i.relation != self.plan.relation}
        return [by_name[name] for name in sorted(by_name)]

    def _build(
        self,
        state: State,
        upstream: Mapping[str, Upstream],
        reason: str | None,
        snapshots: frozenset[str] = frozenset(),
    ) -> Report:
        """Compute every part that is ready, from nothing. ``snapshots``: inputs to keep a snapshot of from now on."""
        if state.finished is not None and reason != _ON_REQUEST:
            check_rebuild(self.plan, self._gone(upstream), reason or "")
        observed = observe(self.plan, self.engine, {})
        binding = bind(self.plan, observed, buckets=1)
        self.versions = {b.name: b.new for b in binding.inputs}
        self.engine.progress(f"building {self.plan.model}" + (f": {reason}" if reason else ""))
        claim = self._claim(state, {"kind": "build"})
        self._ready_catalog()
        self.engine.run(forget_model(self.plan))
        self.building = begin(self.plan, self.engine)
        by = self._recorded(claim, binding)
        known = KnownParts()
        for item in self._others():
            if item.is_computed:
                known = known.with_seen(item.relation, upstream[item.relation].computed)
            else:
                known = known.with_seen(item.relation, self._look_at(item, by))
        gone = self._gone(upstream)
        found = _Found(state, observed, binding, {}, known, {}, gone, by, True, False, snapshots=snapshots)
        return self._compute(found, claim, "built" if state.finished is None else "rebuilt", reason)

    def _refresh(self, state: State, upstream: Mapping[str, Upstream]) -> Report:
        """Compute the parts that have become ready, and those that late data has changed."""
        assert state.finished is not None
        observed = observe(self.plan, self.engine, state.inputs)
        lost = lost_inputs(self.plan, observed, state.inputs)
        if lost is not None:
            return self._build(state, upstream, lost[0], lost[1])
        known = KnownParts.of(state.finished.detail["parts"])
        if state.unfinished is not None and "dropping" in state.unfinished.detail:
            dropped_before = Intervals.read(state.unfinished.detail["dropping"])
            known = replace(known, dropped=known.dropped | dropped_before)
        new_upstream = {name: u.computed - known.seen.get(name, Intervals()) for name, u in upstream.items()}
        has_moved = any(o.moved for o in observed.values()) or any(new_upstream.values())
        if not has_moved and state.unfinished is None and not self._has_work(known):
            return self._show_unchanged(state)
        try:
            staged = stage_inputs(self.plan, self.engine, observed, state.inputs)
        except VersionUnavailable as error:
            return self._build(state, upstream, unreadable(self.plan, error))
        self._note_dropped(staged)
        binding = bind(self.plan, observed, buckets=1, staged=staged)
        self.versions = {b.name: b.new for b in binding.inputs}
        try:
            touched = self._touched() if state.unfinished is not None else Intervals()
        except (ChangeFeedUnavailable, VersionUnavailable) as error:
            return self._build(state, upstream, f"an interrupted refresh cannot be gone on with: {error}")
        claim = self._claim(state, {"kind": "parts"})
        self._ready_catalog()
        by = self._recorded(claim, binding)
        changed: dict[str, Intervals] = {}
        inputs: list[InputParts] = []
        for item in self._others():
            moved = self._moved(item, staged, inputs)
            gone = upstream[item.relation].dropped if item.relation in upstream else Intervals()
            changed[item.relation] = (moved & known.effective(item)) - gone
            arrived = upstream[item.relation].computed if item.is_computed else moved
            known = known.with_seen(item.relation, arrived)
            if item.relation in staged and staged[item.relation].dropped:
                self.engine.run(mark_dropped(self.plan, item.relation, staged[item.relation].dropped))
        found = _Found(
            state,
            observed,
            binding,
            staged,
            known,
            changed,
            self._gone(upstream),
            by,
            False,
            state.unfinished is not None,
            touched,
            tuple(inputs),
        )
        return self._compute(found, claim, "refreshed", None)

    def _has_work(self, known: KnownParts) -> bool:
        """Whether parts wait to be computed in the range that is asked for: another one was, or fewer."""
        first = self._first(known)
        if first is None:
            return False
        ready = self.parts.recurrence.ready(first, known.computed, known.there(self.parts), self._asked)
        return bool(ready) or bool(known.pending & self._asked)

    @property
    def _asked(self) -> Intervals:
        """The parts in the range of time that is asked for: all, unless the command line says otherwise."""
        length = self.parts.length
        low, high = self.within
        first = length.part_of(low) if low is not None else _LEAST
        last = length.part_of(high - timedelta(microseconds=1)) if high is not None else _GREATEST
        return Intervals.of((first, last))

    def _touched(self) -> Intervals:
        """The parts that interrupted attempts have written since the last finished refresh."""
        root = self.plan.root.relation
        after, to = self.states[root], self.engine.commits(root, None)[0].version
        if to == after:
            return Intervals()
        if to < after:
            raise VersionUnavailable(f"{root} was dropped and created anew")
        rows = self.engine.query(touched_parts_query(self.plan, after, to))
        return Intervals.numbers(int(str(row[0])) for row in rows)

    def _look_at(self, item: PartInput, by: Recorded) -> Intervals:
        """Which parts an input has, by one scan of it: they are recorded at once."""
        self.engine.progress(f"{self.plan.model}: looking at the parts of {item.relation}")
        query = input_parts_query(item, all_rows(self.plan, item, self.versions), is_change=False)
        name = staged_input(self.plan, f"{item.relation}__parts")
        self.engine.stage(name, query)
        ranges = self.engine.query(islands_query(name))
        found = Intervals.of(*((int(str(a)), int(str(b))) for a, b in ranges))
        if found and item.own.is_fixed:
            self.engine.run(record_staged(self.plan, item.relation, item.own, name, by))
        elif found:
            changes = _changes(self.engine.query(numbered(name)))
            parts = InputParts(item.relation, item.own, changes)
            self.engine.run(record_parts(self.plan, self.parts.length, (), [parts], by))
        self.engine.unstage(name)
        return found

    def _moved(self, item: PartInput, staged: Mapping[str, Staged], inputs: list[InputParts]) -> Intervals:
        """The parts of an input in which rows have changed. ``inputs`` are those still to be recorded."""
        change = staged.get(item.relation)
        if change is None or change.is_empty:
            return Intervals()
        rows = self.engine.query(
            input_parts_query(item, table(staged_input(self.plan, item.relation)), is_change=True)
        )
        changes = _changes(rows)
        if not item.is_computed:
            inputs += [
                InputParts(item.relation, item.own, changes[at : at + AT_ONCE])
                for at in range(0, len(changes), AT_ONCE)
            ]
        return Intervals.numbers(part for part, _ in changes)

    def _ready_catalog(self) -> None:
        create_once(self.engine, part_catalog(self.plan.relation), create_catalog(self.plan))

    def _recorded(self, claim: Entry, binding: Binding) -> Recorded:
        return Recorded(claim.refresh, datetime.now(timezone.utc), versions_read(binding))

    # Computing

    def _first(self, known: KnownParts) -> int | None:
        start, there = self.parts.start, known.there(self.parts)
        if isinstance(start, datetime):
            return self.parts.length.part_of(start)
        if known.first is not None and start == "newest":
            return known.first
        return self.parts.recurrence.first_part(start, there)

    def _compute(self, found: _Found, claim: Entry, action: Action, reason: str | None) -> Report:
        known = found.known
        writer = PartWriter(self.building, self.engine, found.by, found.touched)
        for parts in found.inputs:
            writer.note_input(parts)
        first = self._first(known)
        ready = affected = pending = Intervals()
        if first is not None:
            ready, affected = self._wanted(found, first)
        stray = found.touched - known.computed - ready
        if stray:
            # An interrupted attempt has computed them from rows that are gone.
            self.engine.run(drop_parts(self.plan, stray))
        if first is not None:
            asked = self._asked
            pending = affected - asked
            affected &= asked
            check_not_dropped(
                self.parts, ready | affected, {**found.dropped, self.plan.relation: known.dropped}
            )
            self._announce(ready, affected)
            order = PartOrder(self.building, self.engine, writer, self.versions, known, asked)
            pending |= order.compute(first, ready, affected)
            known = replace(known, first=first, computed=known.computed | ready, pending=pending)
        writer.record()
        show(self.plan, self.building, self.engine)
        claim, known = self._put_away(claim, known)
        if found.is_build or not self.engine.exists(self.plan.relation):
            publish(self.plan, self.engine, {})
        recorded = write_snapshots(self.plan, self.engine, found.binding, self._snapshots(found))
        before = {n: r.snapshot for n, r in found.state.inputs.items()} if not found.is_build else {}
        detail = self._detail(
            "build" if found.is_build else "parts", found.observed, before | recorded, found.binding
        )
        detail |= {"parts": known.as_dict()}
        if found.is_build:
            detail |= {"signature": self.plan.signature}
        self._finish(claim, detail)
        return self._part_report(found, claim, action, reason, ready, writer, known)

    def _snapshots(self, found: _Found) -> frozenset[str]:
        """The inputs that keep an own snapshot: those that did, and seeds, which are created anew each time."""
        if found.is_build:
            return found.snapshots | {i.name for i in self.plan.inputs if i.starts_with_snapshot}
        kept = {n for n, r in found.state.inputs.items() if r.snapshot is not None}
        return frozenset(kept & found.binding.changed)

    def _wanted(self, found: _Found, first: int) -> tuple[Intervals, Intervals]:
        """The parts that have become ready, and the computed ones that have to be computed again."""
        known, there = found.known, found.known.there(self.parts)
        recurrence = self.parts.recurrence
        ready = recurrence.ready(first, known.computed, there, self._asked)
        by_key = {
            i.key: touched(i, found.changed.get(i.relation, Intervals()))
            for i in self.parts.inputs
            if i.relation != self.plan.relation
        }
        computed = known.computed - known.dropped
        affected = recurrence.affected(first, by_key, computed) | (known.pending & computed)
        gone = {**found.dropped, self.plan.relation: known.dropped}
        affected |= self._touched_before(found.touched, computed, gone)
        if known.first is not None and first < known.first:
            # What began with INITIALIZE has a part before it now.
            affected |= Intervals.of((known.first, known.first)) & computed
        plain = set(self.parts.plain) & found.binding.changed
        if plain:
            concerned = self._of_plain(computed)
            affected |= concerned - needing_dropped(self.parts, concerned, gone)
        return ready, affected

    def _touched_before(
        self, touched: Intervals, computed: Intervals, gone: Mapping[str, Intervals]
    ) -> Intervals:
        """What interrupted attempts have written, and what follows from it; but for what can only stay as it is."""
        wanted = touched
        for reference in self.parts.recurrence.own:
            wanted |= reference.dependents(touched)
        wanted &= computed
        return wanted - needing_dropped(self.parts, wanted, gone)

    def _of_plain(self, computed: Intervals) -> Intervals:
        """The parts that the change of an input without parts concerns, as it is configured."""
        of = self.parts.of_plain
        if isinstance(of, str) or not computed:
            return computed if of == "all" else Intervals()
        length: Length = self.parts.length
        since = length.part_of(length.end_of(computed.last) - of)
        return computed & Intervals.of((since, computed.last))

    def _announce(self, ready: Intervals, affected: Intervals) -> None:
        many = len(ready) + len(affected)
        if many:
            how = "together" if self.parts.together is not None else "one after the other"
            self.engine.progress(
                f"{self.plan.model}: {len(ready):,} parts to compute ({ready}), {len(affected):,} again ({affected}), "
                f"{how}"
            )

    def _put_away(self, claim: Entry, known: KnownParts) -> tuple[Entry, KnownParts]:
        """Drop parts that are too old, and merge the files of others. What is dropped is written down before it is."""
        gone = dropped_now(self.parts, known)
        if gone:
            self.engine.progress(
                f"{self.plan.model}: dropping {len(gone):,} parts ({gone}), older than fivm_retention"
            )
            detail = {**claim.detail, "dropping": str(gone)}
            claim = replace(claim, attempt=claim.attempt + 1, detail=detail, recorded_at=now())
            if not self.journal.claim(claim):
                raise Overtaken
            self.engine.run(drop_parts(self.plan, gone))
            self.engine.run(mark_dropped(self.plan, self.plan.relation, gone))
            known = replace(known, dropped=known.dropped | gone)
        merged = merged_now(self.parts, known)
        if merged:
            last = max(merged)
            self.engine.progress(
                f"{self.plan.model}: merging the files of {len(merged):,} periods up to {last}"
            )
            before = self.parts.period_of(merged[last].last + 1)
            self.engine.compact(compact_periods(self.plan, before).sql(dialect="spark"))
            for period, parts in sorted(merged.items()):
                self.engine.run(mark_merged(self.plan, parts, period))
                known = replace(known, merged=known.merged | parts)
        return claim, known

    # Telling

    def _show_unchanged(self, state: State) -> Report:
        assert state.finished is not None
        if not self.engine.exists(self.plan.relation):
            publish(self.plan, self.engine, {})
        self.state_bytes = state.finished.detail.get("state_bytes")
        known = KnownParts.of(state.finished.detail["parts"])
        report = self._report("no change", state.finished.refresh)
        return replace(report, parts=PartChange(waiting=self._waiting(known)))

    def _part_report(
        self,
        found: _Found,
        claim: Entry,
        action: Action,
        reason: str | None,
        ready: Intervals,
        writer: PartWriter,
        known: KnownParts,
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
            waiting=self._waiting(known),
        )
        return replace(report, parts=parts, rows_merged=parts.rows, partitions=len(changed))

    def _waiting(self, known: KnownParts) -> str | None:
        """What a part waits for though there is something later, None where nothing is missing in between."""
        first, there = self._first(known), known.there(self.parts)
        if first is None:
            empty = sorted({i.relation for i in self._others() if not known.seen.get(i.relation)})
            return f"the first part of {', '.join(empty)}" if empty else None
        gaps = known.computed.gaps
        part = gaps.first if gaps else known.computed.last + 1 if known.computed else first
        missing = []
        for read in self.parts.recurrence.others:
            wanted, known_there = read.parts(part), there.get(read.relation, Intervals())
            lacking = Intervals.of((wanted.start, wanted.stop - 1)) - known_there
            if lacking and known_there and lacking.first < known_there.last:
                missing.append(f"{read.relation}[{lacking}]")
        return f"part {part} for {', '.join(missing)}" if missing else None


def _changes(rows: Sequence[Row]) -> tuple[tuple[int, int], ...]:
    """Per part by how many rows an input has changed."""
    return tuple((int(str(part)), int(str(came)) - int(str(gone))) for part, came, gone in rows)


_ON_REQUEST = "full refresh"
_LEAST, _GREATEST = -(10**12), 10**12
"""Beyond any part."""
