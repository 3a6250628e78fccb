"""A refresh of a viewdf model wants some parts: those that are ready, and those that late data has changed."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta

from fivm_dbt.features.viewdf.plan.model import PartPlan
from fivm_dbt.features.viewdf.refresh.known import KnownParts, needing_dropped, touched
from fivm_dbt.parts.intervals import Intervals
from fivm_dbt.parts.length import Length
from fivm_dbt.refresh.run import TimeRange

_LEAST, _GREATEST = -(10**12), 10**12
"""Beyond any part."""


class PartsWanted:
    """What is asked for of a model's parts: those ``within`` a range of time, until just before its end."""

    def __init__(self, parts: PartPlan, within: TimeRange) -> None:
        self.parts = parts
        self.within = within

    @property
    def asked(self) -> Intervals:
        """The parts in the range of time that is asked for: all, unless the command line says otherwise."""
        length = self.parts.length
        low, high = self.within
        first = length.part_of(length.on_clock(low)) if low is not None else _LEAST
        before = None if high is None else length.on_clock(high - timedelta(microseconds=1))
        last = length.part_of(before) if before is not None else _GREATEST
        return Intervals.of((first, last))

    def first(self, known: KnownParts) -> int | None:
        """The part to begin with, None where an input has none."""
        start, there = self.parts.start, known.there(self.parts)
        if isinstance(start, datetime):
            return self.parts.length.part_of(self.parts.length.on_clock(start))
        if known.first is not None and (start == "newest" or known.dropped):
            # What is older than parts that retention has dropped would be dropped too.
            return known.first
        return self.parts.recurrence.first_part(start, there)

    def has_work(self, known: KnownParts) -> bool:
        """Whether parts wait to be computed in the range that is asked for: another one was, or fewer."""
        first = self.first(known)
        if first is None:
            return False
        ready = self.parts.recurrence.ready(first, known.computed, known.there(self.parts), self.asked)
        return bool(ready) or bool(known.pending & self.asked)

    def found(
        self,
        first: int,
        known: KnownParts,
        changed: Mapping[str, Intervals],
        changed_inputs: Collection[str],
        written: Intervals,
        gone: Mapping[str, Intervals],
    ) -> tuple[Intervals, Intervals]:
        """The parts that have become ready, and the computed ones that have to be computed again.

        ``changed`` are the parts of inputs in which rows have changed, ``changed_inputs`` those with any change. Parts
        that an interrupted refresh has ``written`` are computed again, ``gone`` are those that have been dropped.
        """
        there = known.there(self.parts)
        recurrence = self.parts.recurrence
        ready = recurrence.ready(first, known.computed, there, self.asked)
        computed = known.computed - known.dropped
        affected = recurrence.affected(first, self._by_key(changed), computed) | (known.pending & computed)
        affected |= self._written_before(written, computed, gone)
        if known.first is not None and first < known.first:
            # What began with INITIALIZE has a part before it now.
            affected |= Intervals.of((known.first, known.first)) & computed
        plain = set(self.parts.plain) & set(changed_inputs)
        if plain:
            concerned = self._of_plain(computed)
            affected |= concerned - needing_dropped(self.parts, concerned, gone)
        return ready, affected

    def given_up(self, known: KnownParts, ready: Intervals, gone: Mapping[str, Intervals]) -> Intervals:
        """Those of the ``ready`` parts of which retention has dropped what they are computed from, while they waited.

        Later parts have been computed in the meantime. What a model needs next is kept; what it waits for longer than
        retention would be an error in every run. A model that reads itself leaves no part out.
        """
        if self.parts.recurrence.own or not known.computed:
            return Intervals()
        before = ready & Intervals.of((_LEAST, known.computed.last))
        return needing_dropped(self.parts, before, gone)

    def too_late(self, first: int, known: KnownParts, changed: Mapping[str, Intervals]) -> Intervals:
        """The parts that changes of the inputs would change, had retention not dropped them."""
        return self.parts.recurrence.affected(first, self._by_key(changed), known.dropped)

    def _by_key(self, changed: Mapping[str, Intervals]) -> dict[str, Intervals]:
        """Parts of inputs as references count them."""
        return {
            i.key: touched(i, changed.get(i.relation, Intervals()))
            for i in self.parts.inputs
            if i.relation != self.parts.model
        }

    def _written_before(
        self, written: Intervals, computed: Intervals, gone: Mapping[str, Intervals]
    ) -> Intervals:
        """What interrupted attempts have written, and what follows from it; but for what can only stay as it is."""
        wanted = written
        for reference in self.parts.recurrence.own:
            wanted |= reference.dependents(written)
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

    def waiting(self, known: KnownParts) -> str | None:
        """What a part waits for though there is something later, None where nothing is missing in between."""
        first, there = self.first(known), known.there(self.parts)
        if first is None:
            others = {i.relation for i in self.parts.inputs if i.relation != self.parts.model}
            empty = sorted(name for name in others if not known.seen.get(name))
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
