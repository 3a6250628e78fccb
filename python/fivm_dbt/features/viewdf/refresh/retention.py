"""Old parts of a viewdf model may go when nothing is computed from them any more.

A late row may still change the parts from a model's *watermark* on, and so those that are computed from them. Of its
inputs and of itself a model needs what the parts from ``open`` on are computed from,

    ``open = min(watermark, parts that wait to be computed)``
    ``watermark = min over inputs, least j with high(j) ≥ watermark(input)``

where the watermark of a source is the part of its newest row, less the lateness that is declared, and another model
has written down its own. What a model needs of others it writes down too, because it is these that drop parts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from fivm_dbt.features.viewdf.plan.model import PartInput, PartPlan
from fivm_dbt.features.viewdf.refresh.known import KnownParts, touched
from fivm_dbt.parts.intervals import Intervals
from fivm_dbt.plan.model.inputs import Reader
from fivm_dbt.refresh.engine import Readable
from fivm_dbt.refresh.heads import read_state
from fivm_dbt.refresh.observe import Finished

NEEDS = "needs"
"""Key of a head's detail: by viewdf model that was read by parts, the first part that is still needed."""


def watermark(plan: PartPlan, known: KnownParts, upstream: Mapping[str, int | None]) -> int | None:
    """The first part that late rows may still change; None where an input has no part, or does not say.

    ``upstream`` are the watermarks of inputs that are viewdf models.
    """
    found = []
    for item in plan.inputs:
        if item.relation == plan.model:
            continue
        since = _may_change_from(item, known, upstream)
        if since is None:
            return None
        at = touched(item, Intervals.of((since, since))).first
        found += [r.high.least_reaching(at) for r in plan.recurrence.others if r.relation == item.key]
        for reference in plan.recurrence.initial:
            first = known.first if reference.relation == item.key else None
            if first is not None and reference.high.at(first) >= at:
                found.append(first)
    return min(found, default=None)


def _may_change_from(item: PartInput, known: KnownParts, upstream: Mapping[str, int | None]) -> int | None:
    """The first part of an input that may still change, in parts of its own length."""
    if item.is_computed:
        return upstream.get(item.relation)
    seen = known.seen.get(item.relation)
    if not seen:
        return None
    return item.stored.part_of(item.stored.start_of(seen.last) - (item.lateness or timedelta()))


def open_from(plan: PartPlan, known: KnownParts) -> int | None:
    """The first part that is still to be computed, or to be computed again; None where all may be."""
    if known.watermark is None or known.first is None or not known.computed:
        return None
    # A run for a range of time may have left parts out that could be computed.
    left = plan.recurrence.ready(known.first, known.computed, known.there(plan))
    waiting = [parts.first for parts in (known.pending, left) if parts]
    return min(known.watermark, known.computed.last + 1, *waiting)


def needs(plan: PartPlan, known: KnownParts) -> dict[str, int | None]:
    """By viewdf model that is read by parts the first part that is still needed; None where all are."""
    found: dict[str, int | None] = {}
    items = [i for i in plan.inputs if i.is_computed and i.relation != plan.model]
    since = open_from(plan, known) if items else None
    for item in items:
        if since is None:
            found[item.relation] = None
        else:
            # The same relation may be read by parts of two lengths.
            before, first = found.get(item.relation), _first_read(plan, item, known, since)
            found[item.relation] = first if before is None else min(before, first)
    return found


def _first_read(plan: PartPlan, item: PartInput, known: KnownParts, since: int) -> int:
    """The first part of an input, by its own length, that parts from ``since`` on are computed from."""
    recurrence = plan.recurrence
    first = [r.low.at(since) for r in recurrence.others if r.relation == item.key]
    if known.first is not None and since <= known.first:
        first += [r.low.at(known.first) for r in recurrence.initial if r.relation == item.key]
    low = min(first, default=since)
    return low if item.length == item.own else item.stored.within(item.counted, low).start


def too_old(plan: PartPlan, known: KnownParts) -> Intervals:
    """The parts that are older than ``fivm_retention``, but for those that the model itself still needs."""
    kept = known.computed - known.dropped
    if plan.retention is None or not kept:
        return Intervals()
    length = plan.length
    last = length.part_of(length.end_of(kept.last) - plan.retention) - 1
    since = open_from(plan, known) if kept.first <= last else None
    if since is None:
        return Intervals()
    needed = min((r.low.at(since) for r in plan.recurrence.own), default=since)
    return kept & Intervals.of((kept.first, min(last, needed - 1)))


@dataclass(frozen=True)
class Droppable:
    """Parts that can go; ``kept`` are as old, and stay because ``waiting`` still need them."""

    parts: Intervals
    kept: Intervals = field(default_factory=Intervals)
    waiting: tuple[str, ...] = ()


def read_by_nobody(
    plan: PartPlan, old: Intervals, engine: Readable, version: int | None, written: Intervals
) -> Droppable:
    """Those of the ``old`` parts that no reader needs any more.

    ``version`` is that of the state when the refresh began, None for a build: who has not seen it may need anything.
    ``written`` are the parts that this refresh has written, which nobody has seen.
    """
    if not old or not plan.readers:
        return Droppable(old)
    seen = old - written
    parts, waiting = seen, []
    for reader in plan.readers:
        left = _not_needed(plan.model, reader, engine, version, seen)
        if left != old:
            waiting.append(reader.model)
        parts &= left
    return Droppable(parts, old - parts, tuple(waiting))


def _not_needed(
    model: str, reader: Reader, engine: Readable, version: int | None, parts: Intervals
) -> Intervals:
    """Those of ``parts`` of a model that one of its readers needs no more."""
    state = read_state(engine, reader.state)
    if not isinstance(state, Finished) or state.unfinished is not None or version is None:
        return Intervals()
    seen = state.inputs.get(model)
    if seen is None or seen.commit.version < version:
        return Intervals()
    detail: Mapping[str, Any] = state.finished.detail
    if model not in detail.get(NEEDS, {}):
        return parts  # read as a whole, as it is at the time
    needed = detail[NEEDS][model]
    return parts & Intervals.of((parts.first, needed - 1)) if parts and needed is not None else Intervals()
