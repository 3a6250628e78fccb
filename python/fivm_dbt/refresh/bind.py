"""Versions become a binding: each input gets a capture, and its net change is staged."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fivm_dbt.delta.prune import prune_terms
from fivm_dbt.ir.node import Side
from fivm_dbt.ir.reads import reads
from fivm_dbt.naming import CLOCK, old_rows
from fivm_dbt.parts.intervals import Intervals
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.refresh.clock import clock_detail, recorded_clock
from fivm_dbt.refresh.dropped import dropped_in
from fivm_dbt.refresh.engine import Expected
from fivm_dbt.refresh.observe import Observed, RecordedInput, keeps_columns
from fivm_dbt.refresh.recorder import Recorder
from fivm_dbt.refresh.report import InputChange
from fivm_dbt.spark.capture import change_counts, change_query, change_summary
from fivm_dbt.spark.dropped import without_losses
from fivm_dbt.spark.formats import ChangeFeedUnavailable
from fivm_dbt.spark.near_changes import spans_of
from fivm_dbt.steps.binding import Binding, BoundClock, BoundInput, Span, is_own_change, staged_input


@dataclass(frozen=True)
class Staged:
    """A moved input whose net change lies staged, without the rows of parts that were ``dropped``.

    Where no more is asked than in which parts rows came or went, nothing is staged: ``parts`` are these.
    """

    bound: BoundInput
    change: InputChange
    spans: tuple[Span, ...] = ()
    dropped: Intervals = field(default_factory=Intervals)
    parts: Intervals | None = None

    @property
    def is_empty(self) -> bool:
        return self.change.inserted == 0 and self.change.deleted == 0


def stage_inputs(
    plan: Plan,
    engine: Recorder,
    observed: Mapping[str, Observed],
    recorded: Mapping[str, RecordedInput],
    *,
    bound: Binding | None = None,
    known: Mapping[str, Staged] | None = None,
) -> dict[str, Staged]:
    """Stage the net change of every moved input, or, rolling forward, of every input that the binding says changed.

    Those ``known`` already are left as they are.
    """
    if bound is not None:
        again = [b for b in bound.inputs if b.name in bound.changed]
        _stage_all(plan, engine, again)
        return {b.name: _staged(plan, engine, b) for b in again}
    result = dict(known or {})
    moved = [o for o in observed.values() if o.moved and o.name not in result]
    for b in _captured(plan, engine, moved, recorded):
        result[b.name] = _staged(plan, engine, b)
    return result


def defer_input(plan: Plan, engine: Recorder, observed: Observed, record: RecordedInput) -> BoundInput | None:
    """Have the net change of a moved input computed by the delta that reads it.

    None where its change feed is not read, or the engine cannot do that: it has to be staged.
    """
    if not engine.defers:
        return None
    bound = _capture(engine, observed, record)
    if bound.capture != "change feed":
        return None
    counts = [count.unalias() for count in change_counts()]
    engine.defer(staged_input(plan, bound.name), change_query(plan, bound), counts)
    return bound


def counted(plan: Plan, engine: Recorder, deferred: BoundInput) -> InputChange:
    """How large a deferred change was, once it was read."""
    name = staged_input(plan, deferred.name)
    counts = engine.counted(name) or engine.query(change_summary(name))[0]
    inserted, deleted = (int(str(count)) for count in counts)
    change = InputChange(
        deferred.name,
        deferred.capture,
        inserted=inserted,
        deleted=deleted,
        from_version=deferred.old,
        to_version=deferred.new,
    )
    tell_change(plan, engine, change)
    return change


def _captured(
    plan: Plan, engine: Recorder, moved: Sequence[Observed], recorded: Mapping[str, RecordedInput]
) -> list[BoundInput]:
    """Stage the changes of moved inputs, all at once where all can be read as they are captured first."""
    bound = [_capture(engine, o, recorded[o.name]) for o in moved]
    for b, o in zip(bound, moved, strict=True):
        _tell_why_compared(engine, b, o)
    try:
        _stage_all(plan, engine, bound)
    except ChangeFeedUnavailable as why:
        if len(bound) > 1:
            return [b for o in moved for b in _captured(plan, engine, [o], recorded)]
        engine.progress(f"change feed of {bound[0].name} does not reach back ({why}): {_comparing(bound[0])}")
        bound = [_difference(bound[0])]
        _stage_all(plan, engine, bound)
        return bound
    for place, (b, o) in enumerate(zip(bound, moved, strict=True)):
        if b.capture == "change feed" and not keeps_columns(engine, o):
            engine.unstage(staged_input(plan, b.name))
            engine.progress(f"{b.name} was replaced meanwhile: {_comparing(b)}")
            bound[place] = _difference(b)
            _stage_all(plan, engine, bound[place : place + 1])
    return bound


def _stage_all(plan: Plan, engine: Recorder, bound: Sequence[BoundInput]) -> None:
    engine.stage_all([(staged_input(plan, b.name), change_query(plan, b)) for b in bound])


def expected_reads(plan: Plan, observed: Mapping[str, Observed], before: int) -> list[Expected]:
    """What deltas read, of terms that may have rows, as a whole or near their changes; and the states, where views read
    others.

    The states are at version ``before``. What has not been found out yet is taken for changed: inner views, and the
    inputs that moved.
    """
    moved = {name for name, o in observed.items() if o.moved}
    changed = frozenset({*moved, *map(old_rows, moved), *(v.name for v in plan.helpers), CLOCK})
    # Of another fivm model its state is read, by a condition.
    tables = {item.name for item in plan.inputs if item.relation.presentation is None}
    inner = {view.name for view in plan.helpers}
    counted: Counter[str] = Counter()
    by_condition: Counter[str] = Counter()
    # A change of components is what their keys show, less what they showed.
    of_states = sum(not is_own_change(view) for view in plan.helpers)
    for term in (t for view in plan.stored for t in prune_terms(view.terms, changed)):
        for read in reads(term.node):
            scan = read.source
            if scan.side is Side.DELTA:
                continue
            if scan.relation in inner:
                of_states += 1
            elif scan.relation in tables and read.lookup is None:
                counted[scan.relation] += 1
                by_condition[scan.relation] += bool(read.times)
    found = [Expected(plan.state_relation, before, is_restricted=True, reads=of_states)] if inner else []
    for name, count in counted.items():
        version = observed[name].head.version
        found.append(Expected(name, version, is_near=by_condition[name] == count, reads=count))
    return found


def _difference(bound: BoundInput) -> BoundInput:
    return replace(bound, capture="version difference")


def _comparing(bound: BoundInput) -> str:
    return f"comparing versions {bound.old} and {bound.new}"


def _capture(engine: Recorder, observed: Observed, record: RecordedInput) -> BoundInput:
    """Change feed where it tells, else the difference of two versions; a snapshot for what is created anew.

    Each version is read by the columns that it has, which no feed across them is.
    """
    old, new = record.commit.version, observed.head.version
    if record.snapshot is not None:
        return BoundInput(observed.name, "snapshot", None, new, record.snapshot)
    bound = BoundInput(observed.name, "change feed", old, new)
    is_told = observed.same_columns and not observed.is_summed
    return bound if is_told and engine.has_change_feed(observed.table) else _difference(bound)


def _tell_why_compared(engine: Recorder, bound: BoundInput, observed: Observed) -> None:
    """Say why versions are compared of an input that may well have a change feed."""
    if bound.capture != "version difference":
        return
    if observed.is_summed:
        engine.progress(f"{bound.name} adds up what has been appended to it: {_comparing(bound)}")
    elif not observed.same_columns:
        engine.progress(f"columns of {bound.name} may be others than before: {_comparing(bound)}")


def _staged(plan: Plan, engine: Recorder, bound: BoundInput) -> Staged:
    """What has been staged of an input, without the rows of parts that were dropped."""
    name = staged_input(plan, bound.name)
    change, spans = _summary(plan, engine, bound)
    dropped = dropped_in(plan, engine, bound, name) if change.deleted else Intervals()
    if dropped:
        engine.progress(
            f"{plan.model}: {len(dropped):,} parts of {bound.name} were dropped: their results stay"
        )
        engine.unstage(name)
        query = change_query(plan, bound)
        engine.stage(name, without_losses(plan.input(bound.name), query, dropped))
        change, spans = _summary(plan, engine, bound)
    tell_change(plan, engine, change)
    return Staged(bound, change, spans, dropped)


def tell_change(plan: Plan, engine: Recorder, change: InputChange) -> None:
    """Say by how much an input has changed."""
    came, gone = f"+{change.inserted:,}", f"-{change.deleted:,}"
    engine.progress(f"{plan.model}: {change.relation} {came} {gone} ({change.capture})")


def _summary(plan: Plan, engine: Recorder, bound: BoundInput) -> tuple[InputChange, tuple[Span, ...]]:
    """How many rows a staged change has, and from when they are."""
    times = plan.times_of(bound.name)
    name = staged_input(plan, bound.name)
    rows = engine.added_up(name, change_summary(name, times))
    summary = [row[1:] if times else row for row in rows if not times or int(str(row[0])) == 0]
    inserted, deleted = (sum(int(str(row[place])) for row in summary) for place in (0, 1))
    change = InputChange(
        bound.name,
        bound.capture,
        inserted=inserted,
        deleted=deleted,
        from_version=bound.old,
        to_version=bound.new,
    )
    return change, spans_of(bound.name, times, rows)


def bind(
    plan: Plan,
    observed: Mapping[str, Observed],
    *,
    buckets: int,
    staged: Mapping[str, Staged] | None = None,
    deferred: BoundInput | None = None,
    recorded: dict[str, Any] | None = None,
    clock: BoundClock | None = None,
) -> Binding:
    """The binding of a refresh from what was staged, of a build from the newest versions, or as it was recorded.

    A ``deferred`` change is taken to have rows that came and rows that went.
    """
    if recorded is not None:
        inputs = tuple(BoundInput(**data) for data in recorded["inputs"])
        times = recorded_clock(recorded)
        return Binding(
            inputs,
            frozenset(recorded["changed"]),
            int(recorded["buckets"]),
            clock=times,
            replaced=frozenset(recorded.get("replaced", ())),
            losing=frozenset(recorded.get("losing", recorded["changed"])),
        )
    given = staged or {}
    captured = {s.bound.name: s.bound for s in given.values()}
    unread = {} if deferred is None else {deferred.name: deferred}
    known = captured | unread
    inputs = tuple(
        known.get(o.name) or BoundInput(o.name, "static", None, o.head.version)
        for o in (observed[i.name] for i in plan.inputs)
    )
    changed = frozenset(name for name, s in given.items() if not s.is_empty) | frozenset(unread)
    losing = frozenset(name for name, s in given.items() if s.change.deleted) | frozenset(unread)
    spans = tuple(span for s in given.values() for span in s.spans)
    return Binding(inputs, changed, buckets, clock=clock, losing=losing, spans=spans)


def versions_read(binding: Binding) -> str:
    """The versions of the inputs as JSON, for the catalog of parts."""
    return versions_text({b.name: b.new for b in binding.inputs})


def versions_text(versions: Mapping[str, int]) -> str:
    return json.dumps(dict(versions), sort_keys=True)


def recorded_binding(binding: Binding) -> dict[str, Any]:
    """A binding as JSON, for the head of a refresh that is open."""
    inputs = [
        {"name": b.name, "capture": b.capture, "old": b.old, "new": b.new, "snapshot": b.snapshot}
        for b in binding.inputs
    ]
    times = {} if binding.clock is None else {"clock": clock_detail(binding.clock)}
    return {
        "inputs": inputs,
        "changed": sorted(binding.changed),
        "buckets": binding.buckets,
        "replaced": sorted(binding.replaced),
        "losing": sorted(binding.losing),
        **times,
    }
