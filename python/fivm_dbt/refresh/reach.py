"""The times of changes say which rows of a result they can reach, and which rows of the inputs these need.

    ``result[t] ← input[t + low .. t + high]``

is turned around for what has changed, and taken as it is for what is read (:mod:`fivm_dbt.plan.recomputed_parts`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import DATE
from fivm_dbt.delta.term import scans
from fivm_dbt.parts.intervals import Intervals
from fivm_dbt.parts.length import Length
from fivm_dbt.parts.shift import DAY
from fivm_dbt.plan.model.plan import MaintainedPlan, Plan
from fivm_dbt.plan.model.recompute import InputReach, RecomputedParts
from fivm_dbt.plan.model.view import View
from fivm_dbt.plan.recomputed_parts import reach_in_part
from fivm_dbt.refresh.observe import Observed, RecordedInput, keeps_columns
from fivm_dbt.refresh.recorder import Recorder
from fivm_dbt.refresh.writes import MAX_LITERALS
from fivm_dbt.spark.built_in_part import Part
from fivm_dbt.spark.formats import FORMAT, ChangeFeedUnavailable
from fivm_dbt.spark.near_changes import Range, daily, times_of
from fivm_dbt.spark.reads import presented
from fivm_dbt.steps.binding import Within

_EPOCH, _MICROSECOND = datetime(1970, 1, 1, tzinfo=timezone.utc), timedelta(microseconds=1)
_FIRST, _LAST = ((datetime(year, 1, 1, tzinfo=timezone.utc) - _EPOCH) // _MICROSECOND for year in (1, 9999))
"""Dates that are in periods of Python's calendar, with the next one."""

_PERIODS = {unit: Length.of(unit) for unit in ("day", "month", "year")}
"""The periods of a date that partition a state."""

DAYS_OF = {"year": 365.0, "month": 30.4, "day": 1.0, "hour": 1 / 24}
"""How long the periods are that partition a state, in days."""


@dataclass(frozen=True)
class ChangedTimes:
    """When the rows were that came or went, and whether some of them have no time."""

    times: Intervals
    has_none: bool


class ChangesByTime:
    """The times in the change feeds of inputs, each asked for once."""

    def __init__(
        self,
        plan: Plan,
        engine: Recorder,
        observed: Mapping[str, Observed],
        recorded: Mapping[str, RecordedInput],
    ) -> None:
        self._plan = plan
        self._engine = engine
        self._observed = observed
        self._recorded = recorded
        self._known: dict[tuple[str, str], ChangedTimes | None] = {}

    @property
    def moved(self) -> frozenset[str]:
        """The inputs that changed."""
        return frozenset(o.name for o in self._observed.values() if o.moved)

    @property
    def are_told(self) -> bool:
        """Whether each of these has a change feed that tells what changed."""
        moved = (self._observed[name] for name in sorted(self.moved))
        return all(
            o.same_columns
            and not (o.recreated or o.forgotten or o.is_summed)
            and self._recorded[o.name].snapshot is None
            and self._engine.has_change_feed(o.table)
            for o in moved
        )

    def reached(self, reach: InputReach) -> list[Range] | None:
        """The times of the result that the changes of an input reach; None where that may be any."""
        key = reach.relation, reach.column
        if key not in self._known:
            self._known[key] = self._asked(reach.relation, reach.column, reach.type)
        changed = self._known[key]
        is_open = reach.low is None or reach.high is None
        if changed is None or (is_open and changed.has_none):
            # In the order of time rows without one come first, and a frame may reach from any row to them.
            return None
        return turned_around(reach, changed.times.ranges)

    def _asked(self, relation: str, column: str, type_: SparkType) -> ChangedTimes | None:
        presentation = self._plan.input(relation).relation.presentation
        old, new = self._recorded[relation].commit.version, self._observed[relation].head.version
        source = FORMAT.changes(relation if presentation is None else presentation.root, old, new)
        if presentation is not None:
            source = presented(presentation, source).subquery("changed")
        try:
            days = self._engine.query(daily(column, type_).from_(source))
        except ChangeFeedUnavailable:
            return None
        times = times_of(days, type_)
        if times is None or not keeps_columns(self._engine, self._observed[relation]):
            return None
        return ChangedTimes(times, any(first is None for first, _ in days))


def turned_around(reach: InputReach, ranges: Iterable[Range]) -> list[Range]:
    """The times of the result that have a part of rows in these ranges."""
    return [
        (
            None if first is None or reach.high is None else first - reach.high,
            None if last is None or reach.low is None else last - reach.low,
        )
        for first, last in ranges
    ]


def needed(reach: InputReach, ranges: Iterable[Range]) -> list[Range]:
    """The times of the rows that the result's rows in these ranges need."""
    return [
        (
            None if low is None or reach.low is None else low + reach.low,
            None if high is None or reach.high is None else high + reach.high,
        )
        for low, high in ranges
    ]


@dataclass(frozen=True)
class Reached:
    """The ``parts`` of views that changes reach, inner ones first, and what of each relation is read for them."""

    parts: tuple[Part, ...]
    within: tuple[Within, ...]


def reached_views(
    plan: MaintainedPlan, parts: Mapping[str, RecomputedParts], changes: ChangesByTime
) -> Reached | None:
    """What has to be computed anew of each view, by the ``parts`` of all; None where that may be any row of one.

    From the inputs up, a view is reached by what it reads; and from the model down, of a view below all that is needed
    is computed, and not only what is reached.
    """
    rows: dict[str, list[Range]] = {}
    for view in plan.stored:
        for name in sorted(_read(view) & (changes.moved | rows.keys())):
            found = _reached_by(plan, parts, view, name, changes, rows)
            if found is None:
                return None
            rows.setdefault(view.name, []).extend(found)
    within: list[Within] = []
    reached: list[Part] = []
    for view in reversed([v for v in plan.stored if v.name in rows]):
        own = parts[view.name]
        part = in_whole_partitions(Part(view, own.column, own.type, tuple(rows[view.name])))
        reached.append(part)
        for reach in own.inputs:
            ranges = needed(reach, part.ranges)
            within.append(Within(view.name, reach.relation, reach.column, reach.type, tuple(ranges)))
            if reach.relation in rows:
                rows[reach.relation] += ranges
    return Reached(tuple(reversed(reached)), tuple(within))


def _reached_by(
    plan: MaintainedPlan,
    parts: Mapping[str, RecomputedParts],
    view: View,
    name: str,
    changes: ChangesByTime,
    rows: Mapping[str, Sequence[Range]],
) -> list[Range] | None:
    """The times of a view that the change of an input, or of a view below it, reaches."""
    reach = reach_in_part(plan, parts, view.name, name)
    if reach is None:
        return None
    return changes.reached(reach) if plan.helper(name) is None else turned_around(reach, rows[name])


def _read(view: View) -> frozenset[str]:
    return frozenset(scan.relation for scan in scans(view.core))


def in_whole_partitions(part: Part) -> Part:
    """The same part with the rest of its partitions, where these are periods of a date and can be written down.

    Whole files are replaced then, and none is read.
    """
    state, ranges = part.view.state, tuple(_closed(part.ranges))
    length, is_date = (
        _PERIODS.get(state.partitioning.unit or ""),
        part.type == DATE == state.partitioning.type,
    )
    are_known = len(ranges) == len(part.ranges) and all(
        low >= _FIRST and high < _LAST for low, high in ranges
    )
    if length is None or not is_date or state.placing != (part.column,) or not are_known:
        return part
    periods = Intervals.of(
        *((length.part_of(_instant(low)), length.part_of(_instant(high))) for low, high in ranges)
    )
    if len(periods) > MAX_LITERALS:
        return part
    whole = ((_micros(length.start_of(a)), _micros(length.end_of(b)) - 1) for a, b in periods.ranges)
    texts = ("n", *(f"v{length.start_of(period).date().isoformat()}" for period in periods))
    return replace(part, ranges=tuple(whole), partitions=texts)


def _instant(micros: int) -> datetime:
    return _EPOCH + micros * _MICROSECOND


def _micros(instant: datetime) -> int:
    return (instant - _EPOCH) // _MICROSECOND


def share_of(part: Part, partitions: int) -> float | None:
    """How much of a view with so many partitions by time a part is, at most 1; None where nobody can tell."""
    state = part.view.state
    unit = state.partitioning.unit
    is_open = any(None in ends for ends in part.ranges)
    if unit is None or state.placing != (part.column,) or partitions < 1 or is_open:
        return None
    closed = Intervals.of(*_closed(part.ranges))
    days = sum(last // DAY - first // DAY + 1 for first, last in closed.ranges)
    return min(1.0, days / (DAYS_OF[unit] * partitions))


def _closed(ranges: Iterable[Range]) -> Iterator[tuple[int, int]]:
    yield from ((low, high) for low, high in ranges if low is not None and high is not None)
