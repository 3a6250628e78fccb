"""A part map tells from which parts of the inputs a part of a view comes (ViewDF, 4.1 and 4.2).

A part is a stretch of time of a relation. From projections, group keys, conditions of joins, written times, the clock
and window frames follows how far the rows of an input are from those of the view that they have a part in:

    ``view[t] ← input[t + low .. t + high]``

It is what a user would write as partition references, and is only shown: what a refresh reads is bounded by the changes
themselves (:mod:`fivm_dbt.delta.near_changes`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from fivm_dbt.catalog import EventTime
from fivm_dbt.delta.distances import NOW, ORIGIN, TODAY, Distances
from fivm_dbt.delta.ways import PlacedRead, TooMany, Unknown, Way
from fivm_dbt.errors import FivmError
from fivm_dbt.ir.moments import kind_of
from fivm_dbt.ir.node import Field, Node
from fivm_dbt.ir.reads import Scan
from fivm_dbt.naming import split_name
from fivm_dbt.parts.length import Length
from fivm_dbt.parts.moved import default_length, length, reference
from fivm_dbt.parts.reference import PartReference
from fivm_dbt.parts.shift import DAY, Shift
from fivm_dbt.parts.time_units import Unit, length_of

_EPOCH = datetime(1970, 1, 1)
Place = tuple[int, ...]


@dataclass(frozen=True)
class InputParts:
    """What a part of a view is computed from in a ``relation``, which the query calls ``alias``.

    The rows whose ``column`` is from ``low`` after the view's own time to ``high`` after it, None for all that are
    earlier or later; without a column all rows. ``within`` are limits that do not depend on the part. ``parts`` are
    their numbers, of parts that are a ``part`` long, where these can be told from those of the view: months have no
    fixed number of days, nor days of a time zone of minutes. Rows come at most ``lateness`` late, where that is
    declared.
    """

    relation: str
    alias: str
    column: str | None = None
    low: Shift | None = None
    high: Shift | None = None
    within: tuple[str, ...] = ()
    parts: PartReference | None = None
    part: str | None = None
    lateness: str | None = None


@dataclass(frozen=True)
class PartMap:
    """The parts of ``relation``, by its ``column``, each a ``part`` long, and what each is computed from.

    ``unit``: every value of the column is the start of such a period.
    """

    relation: str
    column: str
    part: str
    unit: Unit | None
    inputs: tuple[InputParts, ...]

    @property
    def rest(self) -> Shift:
        """How much earlier than the end of a part its last time is: a period, or nothing that would count."""
        return Shift() if self.unit is None else length_of(self.unit)


def part_map(
    relation: str,
    node: Node,
    names: tuple[str, ...],
    times: Mapping[str, EventTime],
    *,
    is_utc: bool,
    part: str | None = None,
) -> PartMap | None:
    """The map of a view ``node``, shown in ``relation`` with the columns ``names``; None where no time is known.

    ``times`` are the declared times of relations. The view's time is its first column from which that of an input is
    known, ``part`` the length of its parts, where that is configured. FIVM201 where a declared length cannot be read.
    """
    scans = tuple(_scans(node, ()))
    for field, name in zip(node.fields, names, strict=True):
        if kind_of(field.type) is None:
            continue
        seen = _Seen(node, field, times, is_utc)
        found = tuple(i for place, scan in scans if (i := seen.input(place, scan)) is not None)
        if any(i.column is not None for i in found):
            return _in_parts(PartMap(relation, name, part or "", seen.unit, found), times, is_utc=is_utc)
    return None


def _scans(node: Node, place: Place) -> Iterator[tuple[Place, Scan]]:
    if isinstance(node, Scan):
        yield place, node
    for number, child in enumerate(node.inputs):
        yield from _scans(child, (*place, number))


@dataclass
class _Seen:
    """The inputs of ``node`` as they are seen from the times of its ``field``."""

    node: Node
    field: Field
    times: Mapping[str, EventTime]
    is_utc: bool
    unit: Unit | None = None
    """Of what period these are starts, as the last input tells."""

    def input(self, place: Place, scan: Scan) -> InputParts | None:
        """What is known of an input; None where all rows that it has a part in are without a time."""
        distances = Distances(self.is_utc, with_origin=True, with_frames=True)
        nothing = InputParts(scan.relation, scan.alias)
        try:
            ways = [w for w in distances.ways(self.node, place) if any(r.place == place for r in w.reads)]
        except (TooMany, Unknown):
            return nothing
        own = [(w.columns[self.field.id][0], w) for w in ways if self.field.id in w.columns]
        if len(own) < len(ways):
            return nothing
        own = [(variable, way) for variable, way in own if variable not in distances.nulls]
        if not own:
            return None
        units = {distances.units.get(v) for v, _ in own}
        self.unit = units.pop() if len(units) == 1 else None
        found = (self._around(c, scan, own, place, distances) for c in self._candidates(scan))
        known = [i for i in found if i is not None]
        return min(known, key=lambda i: (i.low is None) + (i.high is None), default=nothing)

    def _candidates(self, scan: Scan) -> list[str]:
        """The time columns of an input, of which the declared one is its time."""
        columns = [name for name, type_ in scan.columns if kind_of(type_) is not None]
        declared = self.times.get(scan.relation)
        if declared is not None:
            return [c for c in columns if c.lower() == declared.column.lower()] or columns
        return columns

    def _around(
        self, column: str, scan: Scan, own: list[tuple[int, Way]], place: Place, distances: Distances
    ) -> InputParts | None:
        """The distance of a column from the view's time over all ways; None where nothing is known of it."""
        lows: list[Shift | None] = []
        highs: list[Shift | None] = []
        limits: list[tuple[str, ...]] = []
        for variable, way in own:
            time = _variable(next(r for r in way.reads if r.place == place), column)
            is_daily = distances.units.get(variable) == distances.units.get(time) == "day"
            for ends, later, earlier in ((lows, variable, time), (highs, time, variable)):
                most = way.most(later).get(earlier)
                ends.append(None if most is None else _whole_days(most[0]) if is_daily else most[0])
            limits.append(tuple(_limits(time, way)))
        low, high = _longest(lows), _longest(highs)
        if low is None and high is None:
            return None
        within = limits[0] if len(set(limits)) == 1 else ()
        return InputParts(
            scan.relation,
            scan.alias,
            column=column,
            low=None if low is None else _negated(low),
            high=high,
            within=within,
        )


def _variable(read: PlacedRead, column: str) -> int:
    return read.columns[read.scan.alias, column][0]


def _whole_days(most: Shift) -> Shift:
    """Between starts of days there are whole days."""
    return most if most.months else Shift(0, most.micros // DAY * DAY, most.slack)


def _longest(shifts: list[Shift | None]) -> Shift | None:
    known = [s for s in shifts if s is not None]
    return max(known, key=lambda s: s.most) if len(known) == len(shifts) else None


def _negated(shift: Shift) -> Shift:
    """The other way; its slack is that of the other end."""
    return Shift(-shift.months, -shift.micros, shift.slack)


def _limits(time: int, way: Way) -> Iterator[str]:
    """What a column is compared with that is the same for all parts: written times, and the clock."""
    least, most = way.least(time), way.most(time)
    for name, variable in (("", ORIGIN), ("now", NOW), ("today", TODAY)):
        if variable in least:
            yield f"from {_seen_from(name, _negated(least[variable][0]))}"
        if variable in most:
            yield f"to {_seen_from(name, most[variable][0])}"


def _seen_from(name: str, shift: Shift) -> str:
    if name:
        sign = "+" if shift.most > 0 else "-"
        return name if shift.is_nothing else f"{name} {sign} {Shift(abs(shift.months), abs(shift.micros))}"
    time = _EPOCH + timedelta(microseconds=shift.micros)
    text = time.isoformat(sep=" ") if shift.micros % DAY else time.date().isoformat()
    return f"{text} {Shift(shift.months)}" if shift.months else text


def _in_parts(found: PartMap, times: Mapping[str, EventTime], *, is_utc: bool) -> PartMap:
    """With the numbers of parts: as long as they are declared to be, or as everything is whole numbers of."""
    shifts = [s for i in found.inputs for s in (i.low, i.high)]
    part = found.part or found.unit or default_length(*shifts)
    if found.unit is not None and found.rest.most > length(part, "batch_size").most:
        part = found.unit
    found = replace(found, part=part)
    inputs = tuple(_numbered(i, found, times.get(i.relation), is_utc=is_utc) for i in found.inputs)
    return replace(found, inputs=inputs)


def _numbered(item: InputParts, of: PartMap, time: EventTime | None, *, is_utc: bool) -> InputParts:
    if item.column is None:
        return item
    if time is not None and time.lateness is not None:
        length(time.lateness, "fivm_lateness")
        item = replace(item, lateness=time.lateness)
    if item.low is None or item.high is None:
        return item
    part = None if time is None else time.part
    if part is not None and length(part, "fivm_part_length").is_nothing:
        raise FivmError("FIVM201", f"fivm_part_length: {part!r} is no length", remedy="give one above zero")
    part = part or default_length(item.low, item.high, length(of.part, "batch_size"))
    if not (is_utc or _is_same_in_zones(item, of.part, part)):
        return replace(item, part=part)
    # The last time in a part, or what is just short of its end.
    last = item.high + (Shift(0, -1) if of.unit is None else _negated(of.rest))
    parts = reference(split_name(item.relation)[-1], of.part, part, item.low, last)
    return replace(item, parts=parts, part=part)


def _is_same_in_zones(item: InputParts, own: str, other: str) -> bool:
    """Whether part numbers follow from distances whatever the time zone is.

    Days and longer parts are counted in local time, shorter ones in UTC: between the two they do not, and among the
    latter only where no distance depends on the zone.
    """
    assert item.low is not None and item.high is not None
    is_fixed = Length.of(own).is_fixed
    return is_fixed == Length.of(other).is_fixed and not (is_fixed and (item.low.slack or item.high.slack))
