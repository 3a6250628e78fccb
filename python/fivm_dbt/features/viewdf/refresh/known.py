"""The head keeps what a viewdf model knows of parts between refreshes, as ranges of numbers.

Years of minutes are one range, so that a refresh does not read the history of its parts to go on with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

from fivm_dbt.errors import FivmError
from fivm_dbt.features.viewdf.parts.there import coarser, with_empty_parts
from fivm_dbt.features.viewdf.plan.model import PartInput, PartPlan
from fivm_dbt.parts.intervals import Intervals
from fivm_dbt.parts.reference import PartReference


@dataclass(frozen=True)
class KnownParts:
    """The first part, those computed, and those of each input that are there: ``seen`` have or have had rows.

    ``pending`` are computed parts that late data has changed the inputs of, and that have not been computed again:
    outside the range that was asked for. ``dropped`` are parts that retention has taken away, ``merged`` old ones whose
    rows lie in the files of a longer period. ``watermark`` is the first part that late rows may still change.
    """

    first: int | None = None
    computed: Intervals = field(default_factory=Intervals)
    seen: Mapping[str, Intervals] = field(default_factory=dict)
    pending: Intervals = field(default_factory=Intervals)
    dropped: Intervals = field(default_factory=Intervals)
    merged: Intervals = field(default_factory=Intervals)
    watermark: int | None = None

    def as_dict(self) -> dict[str, Any]:
        return {
            "first": self.first,
            "computed": str(self.computed),
            "seen": {name: str(parts) for name, parts in self.seen.items()},
            "pending": str(self.pending),
            "dropped": str(self.dropped),
            "merged": str(self.merged),
            "watermark": self.watermark,
        }

    @staticmethod
    def of(data: Mapping[str, Any]) -> KnownParts:
        return KnownParts(
            data["first"],
            Intervals.read(data["computed"]),
            seen={name: Intervals.read(text) for name, text in data["seen"].items()},
            pending=Intervals.read(data["pending"]),
            dropped=Intervals.read(data["dropped"]),
            merged=Intervals.read(data["merged"]),
            watermark=data.get("watermark"),
        )

    def there(self, plan: PartPlan) -> dict[str, Intervals]:
        """By reference the parts that are there: seen, or empty and no longer waited for."""
        return {i.key: _counted(i, self.effective(i)) for i in plan.inputs if i.relation != plan.model}

    def effective(self, item: PartInput) -> Intervals:
        """The parts of an input that are there, in parts of its own length."""
        return with_empty_parts(self.seen.get(item.relation, Intervals()), item.stored, item.lateness)

    def with_seen(self, relation: str, parts: Intervals) -> KnownParts:
        seen = {**self.seen, relation: self.seen.get(relation, Intervals()) | parts}
        return replace(self, seen=seen)


def _counted(item: PartInput, parts: Intervals) -> Intervals:
    """Parts of the input's own length as those that references count."""
    return parts if item.length == item.own else coarser(parts, item.stored, item.counted)


def touched(item: PartInput, parts: Intervals) -> Intervals:
    """The parts, as references count them, in which these parts of the input's own length lie."""
    if item.length == item.own:
        return parts
    return Intervals.of(
        *(
            (item.counted.part_of(item.stored.start_of(a)), item.counted.part_of(item.stored.start_of(b)))
            for a, b in parts.ranges
        )
    )


def check_not_dropped(plan: PartPlan, wanted: Intervals, dropped: Mapping[str, Intervals]) -> None:
    """Raise FIVM206 if one of the wanted parts needs what retention has taken away."""
    for reference, gone, needing in _in_need(plan, wanted, dropped):
        part = needing.first
        missing = next(p for p in reference.parts(part) if p in gone)
        relation = plan.input(reference.relation).relation
        raise FivmError(
            "FIVM206",
            f"part {part} ({plan.length.start_of(part):%Y-%m-%d %H:%M}) is to be computed from part {missing} of "
            f"{relation}, which fivm_retention has dropped",
            remedy=f"keep more of {relation} (fivm_retention), and rebuild both with --full-refresh",
        )


def needing_dropped(plan: PartPlan, wanted: Intervals, dropped: Mapping[str, Intervals]) -> Intervals:
    """The wanted parts that are computed from what retention has taken away: their results stay as they are."""
    found = Intervals()
    for _, _, needing in _in_need(plan, wanted, dropped):
        found |= needing
    return found


def _in_need(
    plan: PartPlan, wanted: Intervals, dropped: Mapping[str, Intervals]
) -> Iterator[tuple[PartReference, Intervals, Intervals]]:
    """The references that need dropped parts: with these, as references count them, and who needs them."""
    for read in plan.update.reads:
        item = plan.input(read.reference.relation)
        gone = touched(item, dropped.get(item.relation, Intervals()))
        needing = read.reference.dependents(gone) & wanted if gone else Intervals()
        if needing:
            yield read.reference, gone, needing


def merged_now(plan: PartPlan, known: KnownParts) -> dict[date, Intervals]:
    """By period the parts that are older than ``fivm_rollup``, of periods that are over and have not been merged."""
    kept = known.computed - known.dropped
    if plan.rollup is None or not kept:
        return {}
    length = plan.length
    boundary = plan.period_of(length.part_of(length.end_of(kept.last) - plan.rollup))
    found: dict[date, list[int]] = {}
    for part in kept - known.merged:
        if plan.period_of(part) >= boundary:
            break
        found.setdefault(plan.period_of(part), []).append(part)
    return {period: Intervals.numbers(parts) for period, parts in found.items()}
