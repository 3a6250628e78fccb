"""The plan of a viewdf model says from which parts it is computed, and how (ViewDF, section 4)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone
from functools import cached_property
from typing import Literal

from fivm_dbt.catalog import Column, SparkType
from fivm_dbt.features.viewdf.parts.schedule import Recurrence, Start
from fivm_dbt.features.viewdf.sql.references import split_initialize
from fivm_dbt.ir.node import Node
from fivm_dbt.ir.written import WrittenClause
from fivm_dbt.parts.length import Length
from fivm_dbt.parts.reference import PartReference
from fivm_dbt.plan.model.inputs import Reader
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.sql.edits import without_comments

PART = "__fivm_part"
"""Column of a statement over several parts: the number of the part that a row is of."""

OfPlain = Literal["all", "future"] | timedelta
"""What the change of an input without parts leads to: every part anew, none, or the parts of so long ago."""


@dataclass(frozen=True)
class PartInput:
    """A relation that is read by parts. ``length`` is that of the parts which references count.

    ``key`` is what references call it: the relation, and its parts' length where that is not the relation's ``own``.
    """

    key: str
    relation: str
    column: str
    type: SparkType
    length: Length
    own: Length
    lateness: timedelta | None
    is_computed: bool

    @property
    def is_clock(self) -> bool:
        """Whether the column has what a clock shows, or a viewdf model when parts begin that are counted by a clock.

        All its parts are counted by that clock then, of any length: hours of it make up its days.
        """
        return self.type.is_clock or self.own.is_of_clock

    @property
    def counted(self) -> Length:
        """``length`` by which the column is compared."""
        return self.length.by_clock if self.is_clock else self.length

    @property
    def stored(self) -> Length:
        """``own`` in the same way."""
        return self.own.by_clock if self.is_clock else self.own


@dataclass(frozen=True)
class PartRead:
    """A reference of a query: the name that stands in its place, and which parts are read."""

    placeholder: str
    reference: PartReference


@dataclass(frozen=True)
class PartQuery:
    """INITIALIZE or UPDATE with placeholders for its references.

    ``names`` are those of its columns in the state; PART_TIMESTAMP is one that is left out. ``matches`` are its
    patterns, which Spark cannot run as they stand.
    """

    sql: str
    reads: tuple[PartRead, ...]
    names: tuple[str, ...]
    matches: tuple[WrittenClause, ...] = ()


@dataclass(frozen=True)
class Together:
    """UPDATE for many parts in one statement: the relational form with PART as a column that everything agrees in."""

    node: Node
    names: tuple[str, ...]


@dataclass(frozen=True)
class Cumulative:
    """The columns by which a model groups, and those that it adds up, by their positions.

    ``added`` are the rows that a part adds to those of the one before, for many parts, in the columns of UPDATE; None
    where they can only be told for one part at a time.
    """

    keys: tuple[int, ...]
    sums: tuple[int, ...]
    added: Together | None = None


@dataclass(frozen=True)
class PartPlan:
    """How the parts of a model are computed.

    ``cumulative`` says how it adds up, if it does nothing else. ``together`` is None where one part is computed after
    the other, ``why_in_turn`` then says why. ``columns`` are those that are kept, without PART_TIMESTAMP.
    ``readers`` are the models that old parts are kept for, where there is a ``retention``.
    """

    model: str
    length: Length
    start: Start | datetime
    initialize: PartQuery | None
    update: PartQuery
    inputs: tuple[PartInput, ...]
    plain: tuple[str, ...]
    of_plain: OfPlain
    columns: tuple[Column, ...]
    together: Together | None
    why_in_turn: str | None
    cumulative: Cumulative | None
    stalest_first: bool
    retention: timedelta | None
    readers: tuple[Reader, ...]
    rollup: timedelta | None

    @cached_property
    def recurrence(self) -> Recurrence:
        """Which parts are read for which: those of UPDATE, and of INITIALIZE for the first one."""
        initial = self.update if self.initialize is None else self.initialize
        return Recurrence(
            self.model,
            tuple(r.reference for r in self.update.reads),
            tuple(r.reference for r in initial.reads if r.reference.relation != self.model),
        )

    @cached_property
    def recorded_inputs(self) -> tuple[PartInput, ...]:
        """The inputs of which it is recorded what has been seen of their parts, one for each relation, by its name.

        Viewdf models record that themselves.
        """
        found = {i.relation: i for i in self.inputs if i.relation != self.model and not i.is_computed}
        return tuple(found[name] for name in sorted(found))

    @property
    def reads_itself(self) -> bool:
        return bool(self.recurrence.own)

    def input(self, key: str) -> PartInput:
        return next(i for i in self.inputs if i.key == key)

    @property
    def signature(self) -> dict[str, str]:
        """What the parts that have been computed depend on."""
        found = {"part length": str(self.length), "first part": str(self.start)}
        for item in self.inputs:
            found[f"parts of {item.key}"] = f"{item.column} {item.type} by {item.length}, {item.lateness}"
            if item.is_clock and item.length != item.own:
                found[f"parts of {item.key}"] += ", by the clock"
        return found

    def period_of(self, part: int) -> date:
        """The first day of the period in whose files a part lies, in UTC."""
        return period_of(self.length, part)

    def most_in(self, period: date) -> int:
        """So many parts begin in a period, or one more."""
        end = {
            "DAY": period + timedelta(days=1),
            "MONTH": date(period.year + period.month // 12, period.month % 12 + 1, 1),
            "YEAR": date(period.year + 1, 1, 1),
        }[self.partition_unit]
        low, high = (self.length.part_of(datetime.combine(d, time(), timezone.utc)) for d in (period, end))
        return high - low + 1

    @property
    def partition_unit(self) -> str:
        return unit_of_periods(self.length)


def unit_of_periods(length: Length) -> str:
    """The period by which parts of a length lie together in directories: a hundred or so of them."""
    if not length.is_fixed:
        return "YEAR"
    return "DAY" if length.many < 3600 else "MONTH" if length.many < 86_400 else "YEAR"


def period_of(length: Length, part: int) -> date:
    """The first day, in UTC, of the period in which a part begins."""
    day = length.start_of(part).date()
    return {"DAY": day, "MONTH": day.replace(day=1), "YEAR": date(day.year, 1, 1)}[unit_of_periods(length)]


@dataclass(frozen=True, kw_only=True)
class ViewdfPlan(Plan):
    """A viewdf model: its time parts are computed one by one, or many at once, from parts."""

    parts: PartPlan

    @property
    def part_length(self) -> Length | None:
        return self.parts.length

    @property
    def why_no_tree(self) -> str:
        return "the model is computed by parts"

    @property
    def _own_signature(self) -> dict[str, str]:
        update, initialize = split_initialize(self.sql)
        parts = {"SQL": without_comments(update)}
        if initialize is not None:
            parts["INITIALIZE"] = without_comments(initialize)
        return parts | self.parts.signature
