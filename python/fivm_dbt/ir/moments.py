"""Shifts, truncations, casts and comparisons say where on the time line a value lies, seen from a column.

The line is in microseconds: of instants for TIMESTAMP, of the local time as if it were UTC for DATE and TIMESTAMP_NTZ.
In a session in UTC the two are one. In another zone they are up to 18 hours apart, days have 23 or 25 hours, and some
had twice as many: what depends on it has a slack, so that a bound holds in every zone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import lru_cache
from typing import Literal

from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.ir.scalar import ColumnId, Scalar, column_ast, conjuncts
from fivm_dbt.parts.shift import DAY, SECOND, Shift
from fivm_dbt.parts.time_units import COARSE, Unit, coarser, length_of, shifted, unit_named, unit_of_multiples

Kind = Literal["date", "instant", "local"]
TypeOf = Callable[[ColumnId], SparkType | None]

_KINDS: dict[str, Kind] = {"date": "date", "timestamp": "instant", "timestamp_ntz": "local"}
_CASTS: dict[exp.DType, Kind] = {
    exp.DType.DATE: "date",
    exp.DType.TIMESTAMP: "instant",
    exp.DType.TIMESTAMPTZ: "instant",
    exp.DType.TIMESTAMPLTZ: "instant",
    exp.DType.TIMESTAMPNTZ: "local",
}
_ZONES = 18 * 3_600 * SECOND
"""A local time is no farther from UTC."""

_ISO = re.compile(r"\s*\d{4}-\d{2}-\d{2}([ T]|\s*$)")
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True)
class Moment:
    """``column − below ≤ value ≤ column + above``; without a column seen from 1970. NULL where the column is.

    ``unit``: the value is the start of such a period, where that is known.
    """

    column: ColumnId | None
    below: Shift
    above: Shift
    kind: Kind
    unit: Unit | None = None


@dataclass(frozen=True)
class Difference:
    """``later − earlier ≤ most``; None is 1970. Where ``is_strict``, it is not true of NULL."""

    later: ColumnId | None
    earlier: ColumnId | None
    most: Shift
    is_strict: bool


def is_utc(session: Sequence[tuple[str, str]]) -> bool:
    """Whether a session shows instants as they are."""
    return dict(session).get("timezone", "").upper() in ("UTC", "ETC/UTC", "Z", "+00:00")


def may_be_utc(session: Sequence[tuple[str, str]]) -> bool:
    """Whether a session shows instants as they are, or does not say what it does.

    >>> may_be_utc(()), may_be_utc([("timezone", "Etc/UTC")]), may_be_utc([("timezone", "Europe/Vienna")])
    (True, True, False)
    """
    return is_utc([("timezone", session_zone(session))])


def session_zone(session: Sequence[tuple[str, str]]) -> str:
    """The time zone of a session: UTC where it does not tell."""
    found = dict(session).get("timezone", "unknown")
    return "UTC" if found == "unknown" else found


def kind_of(type_: SparkType | None) -> Kind | None:
    """What kind of time a type has, None for other types."""
    return None if type_ is None else _KINDS.get(type_.text)


def moment(scalar: Scalar, type_of: TypeOf, *, is_utc: bool) -> Moment | None:
    """Where a value lies on the time line; None where nothing is known of it.

    >>> tomorrow = Scalar.parse("date_trunc('day', r.ts) + interval '1' day")
    >>> day = moment(tomorrow, lambda c: SparkType("timestamp"), is_utc=True)
    >>> day.column, str(day.above), day.below.most, day.unit
    (('r', 'ts'), '1 day', -1, 'day')
    """
    return _Reader(type_of, is_utc).moment(scalar.ast())


def differences(predicate: Scalar, type_of: TypeOf, *, is_utc: bool) -> tuple[Difference, ...]:
    """What a condition says about distances in time, where it is true.

    >>> band = "b.ts between a.ts - interval 5 minutes and a.ts"
    >>> for d in differences(Scalar.parse(band), lambda c: SparkType("timestamp"), is_utc=True):
    ...     print(d.later, d.earlier, d.most)
    ('a', 'ts') ('b', 'ts') 5 minutes
    ('b', 'ts') ('a', 'ts') 0
    """
    known = ((column, type_of(column)) for column in sorted(predicate.columns))
    return _differences(predicate, tuple((c, t) for c, t in known if t is not None), is_utc)


@lru_cache(maxsize=10_000)
def _differences(
    predicate: Scalar, types: tuple[tuple[ColumnId, SparkType], ...], is_utc: bool
) -> tuple[Difference, ...]:
    """A condition is met in many ways by which rows come about: it is read once."""
    reader = _Reader(dict(types).get, is_utc)
    return tuple(found for part in conjuncts(predicate.ast()) for found in reader.differences(part))


def written_distance(value: Scalar, column: ColumnId, type_of: TypeOf, *, is_utc: bool) -> Shift | None:
    """A constant that is added to a column, or that bounds a frame over it: an interval, or a number of days."""
    return _Reader(type_of, is_utc).distance(value.ast(), column_ast(*column))


@dataclass(frozen=True)
class _Reader:
    type_of: TypeOf
    is_utc: bool

    def moment(self, node: exp.Expr) -> Moment | None:
        node = node.unnest()
        if isinstance(node, exp.Column):
            kind = kind_of(self.type_of((node.table, node.name)))
            return None if kind is None else Moment((node.table, node.name), Shift(), Shift(), kind)
        if isinstance(node, exp.Literal):
            return self._constant(node)
        if isinstance(node, (exp.Cast, exp.TryCast)):
            kind = _CASTS.get(node.args["to"].this)
            inner = self.moment(node.this)
            return None if inner is None or kind is None else self._cast(inner, kind)
        if isinstance(node, exp.TsOrDsToDate) or _is_call(node, "TO_DATE"):
            inner = self.moment(node.this if isinstance(node, exp.TsOrDsToDate) else node.expressions[0])
            return None if inner is None else self._cast(inner, "date")
        if isinstance(node, (exp.TimestampTrunc, exp.DateTrunc)):
            return self._truncated(node)
        if _is_call(node, "TIMESTAMP_MICROS"):
            return self._counted(node.expressions[0])
        return self._shifted(node)

    def _counted(self, node: exp.Expr) -> Moment | None:
        """An instant as the microseconds since 1970, on which the bounds of windows are computed."""
        node = node.unnest()
        if isinstance(node, exp.UnixMicros):
            inner = self.moment(node.this)
            return None if inner is None else self._cast(inner, "instant")
        if isinstance(node, exp.Column):
            return self.moment(node)
        if not isinstance(node, (exp.Add, exp.Sub)):
            return None
        inner, by = self._counted(node.left), _whole(node.right)
        if inner is None:
            return None
        if by is not None:
            shift = Shift(0, -by if isinstance(node, exp.Sub) else by)
            below, above = inner.below + _negated(shift), inner.above + shift
            return replace(inner, below=below, above=above, unit=shifted(inner.unit, shift))
        slide = _remainder_of(node.right) if isinstance(node, exp.Sub) else None
        if slide is None:
            return None
        rest = Shift(0, slide - 1)
        is_plain = self.is_utc and node.left == node.right.expressions[0]
        unit = unit_of_multiples(slide) if is_plain else None
        return replace(inner, below=inner.below + rest, unit=coarser(inner.unit, unit) if unit else None)

    def _shifted(self, node: exp.Expr) -> Moment | None:
        """A moment and a constant distance from it."""
        if isinstance(node, exp.Add):
            for one, other in ((node.left, node.right), (node.right, node.left)):
                inner, by = self.moment(one), self.distance(other, one)
                if inner is not None and by is not None:
                    return self._moved(inner, by)
        if isinstance(node, exp.Sub):
            inner, by = self.moment(node.left), self.distance(node.right, node.left)
            return None if inner is None or by is None else self._moved(inner, _negated(by))
        if isinstance(node, (exp.TsOrDsAdd, exp.TimestampAdd, exp.AddMonths)):
            number = _whole(node.expression)
            unit = "month" if isinstance(node, exp.AddMonths) else _unit(node)
            inner = self.moment(node.this)
            if inner is None or number is None or unit is None:
                return None
            if not isinstance(node, exp.TimestampAdd):
                inner = self._cast(inner, "date")
            return self._moved(inner, _times(number, length_of(unit)))
        return None

    def distance(self, node: exp.Expr, of: exp.Expr) -> Shift | None:
        """A constant interval, or a number of days where a date is moved by a number."""
        node = node.unnest()
        if isinstance(node, exp.Interval):
            return _interval(node)
        number = _whole(node)
        inner = self.moment(of) if number is not None else None
        is_date = inner is not None and inner.kind == "date"
        return Shift(0, number * DAY) if number is not None and is_date else None

    def _moved(self, of: Moment, by: Shift) -> Moment:
        """Whole days are added to an instant in local time."""
        if of.kind == "instant" and not self.is_utc and (by.months or abs(by.micros) >= DAY):
            by = replace(by, slack=DAY)
        kind: Kind = "instant" if of.kind == "date" and by.micros % DAY else of.kind
        moved = self._cast(of, kind)
        back = replace(_negated(by), slack=by.slack)
        return Moment(moved.column, moved.below + back, moved.above + by, kind, shifted(of.unit, by))

    def _cast(self, of: Moment, kind: Kind) -> Moment:
        if of.kind == kind:
            return of
        between = Shift(slack=self._apart(of.kind, kind))
        if kind == "date":
            rest = Shift(0, DAY - 1, self._apart(of.kind, kind))
            return Moment(of.column, of.below + rest, of.above + between, kind, coarser(of.unit, "day"))
        return Moment(of.column, of.below + between, of.above + between, kind, of.unit)

    def _truncated(self, node: exp.Expr) -> Moment | None:
        unit = _unit(node)
        inner = self.moment(node.this)
        # TRUNC to less than a week is NULL.
        if inner is None or unit is None or (isinstance(node, exp.DateTrunc) and unit not in COARSE):
            return None
        if isinstance(node, exp.DateTrunc):
            inner = self._cast(inner, "date")
        elif inner.kind == "date":
            inner = self._cast(inner, "instant")
            inner = replace(inner, unit=inner.unit or "day")
        grain = (
            DAY if inner.unit in ("day", "week", "month", "quarter", "year") or inner.kind == "date" else 1
        )
        slack = 0 if self.is_utc or inner.kind != "instant" else DAY
        length = length_of(unit)
        rest = length + Shift(0, -min(grain, max(length.most, 1)), slack)
        return Moment(
            inner.column,
            inner.below + rest,
            inner.above + Shift(slack=slack),
            inner.kind,
            coarser(inner.unit, unit),
        )

    def _constant(self, node: exp.Literal) -> Moment | None:
        """A written time; in another zone than UTC it is not known to the hour."""
        if not node.is_string or not _ISO.match(node.name):
            return None
        try:
            time = datetime.fromisoformat(node.name.strip())
        except ValueError:
            return None
        is_day = len(node.name.strip()) == len("2024-01-01")
        utc = time.replace(tzinfo=timezone.utc) if time.tzinfo is None else time
        apart = 0 if self.is_utc or time.tzinfo is not None else _ZONES
        micros = (utc - _EPOCH).days * DAY + (utc - _EPOCH).seconds * SECOND + (utc - _EPOCH).microseconds
        return Moment(
            None, Shift(0, -micros, apart), Shift(0, micros, apart), "date" if is_day else "instant"
        )

    def _apart(self, one: Kind, other: Kind) -> int:
        is_same_line = self.is_utc or (one == "instant") == (other == "instant")
        return 0 if is_same_line else _ZONES

    def differences(self, node: exp.Expr) -> Iterator[Difference]:
        if isinstance(node, exp.Between) and not node.args.get("symmetric"):
            yield from self._at_most(node.args["low"], node.this)
            yield from self._at_most(node.this, node.args["high"])
        elif isinstance(node, (exp.EQ, exp.NullSafeEQ)):
            is_strict = isinstance(node, exp.EQ)
            yield from self._at_most(node.left, node.right, is_strict=is_strict)
            yield from self._at_most(node.right, node.left, is_strict=is_strict)
        elif isinstance(node, (exp.LT, exp.LTE)):
            yield from self._at_most(node.left, node.right, is_less=isinstance(node, exp.LT))
        elif isinstance(node, (exp.GT, exp.GTE)):
            yield from self._at_most(node.right, node.left, is_less=isinstance(node, exp.GT))

    def _at_most(
        self, small: exp.Expr, large: exp.Expr, *, is_less: bool = False, is_strict: bool = True
    ) -> Iterator[Difference]:
        """``small ≤ large``, also where one side is the distance of two moments and the other an interval."""
        one, other = self.moment(small), self.moment(large)
        if one is not None and other is not None:
            grain = DAY if one.kind == other.kind == "date" else 1
            most = (
                one.below
                + other.above
                + Shift(0, -grain if is_less else 0, self._apart(one.kind, other.kind))
            )
            if one.column != other.column:
                yield Difference(one.column, other.column, most, is_strict)
            return
        pair, by = _subtraction(small), _written_length(large, small)
        if pair is None or by is None:
            pair, by = _subtraction(large), _written_length(small, large)
            if pair is None or by is None:
                return
            pair, by = pair[::-1], _negated(by)
        first, second = self.moment(pair[0]), self.moment(pair[1])
        if first is not None and second is not None and first.column != second.column:
            # Spark subtracts local times.
            slack = 0 if self.is_utc else DAY
            most = first.below + second.above + by + Shift(slack=slack)
            yield Difference(first.column, second.column, most, is_strict)


def _remainder_of(node: exp.Expr) -> int | None:
    """By what a value is divided whose rest this is, a written number above zero."""
    is_rest = isinstance(node, exp.Anonymous) and node.name.upper() == "PMOD" and len(node.expressions) == 2
    divisor = _whole(node.expressions[1]) if is_rest else None
    return divisor if divisor is not None and divisor > 0 else None


def _is_call(node: exp.Expr, name: str) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.upper() == name and len(node.expressions) == 1


def _unit(node: exp.Expr) -> Unit | None:
    """The unit of a call, where it is written: not where a column has it."""
    unit = node.args.get("unit")
    is_written = isinstance(unit, exp.Var) or (isinstance(unit, exp.Literal) and unit.is_string)
    return unit_named(unit.name) if unit is not None and is_written else None


def _counts_days(node: exp.Expr) -> bool:
    """DATEDIFF of two dates; with a unit it counts what has passed in whole."""
    return isinstance(node, exp.DateDiff) and node.args.get("unit") is None


def _subtraction(node: exp.Expr) -> tuple[exp.Expr, exp.Expr] | None:
    """The two moments whose distance an expression is."""
    node = node.unnest()
    if _counts_days(node):
        return node.this, node.expression
    return (node.left, node.right) if isinstance(node, exp.Sub) else None


def _written_length(node: exp.Expr, distance: exp.Expr) -> Shift | None:
    """What a distance is compared with: an interval, or a number of days."""
    node = node.unnest()
    if _counts_days(distance.unnest()):
        number = _whole(node)
        return None if number is None else Shift(0, number * DAY)
    found = _interval(node) if isinstance(node, exp.Interval) else None
    return None if found is None or found.months else found


def _interval(node: exp.Interval) -> Shift | None:
    """A written interval of one unit."""
    unit, value = node.args.get("unit"), node.this
    sign = -1 if isinstance(value, exp.Neg) else 1
    value = value.this if isinstance(value, exp.Neg) else value
    known = unit_named(unit.name) if isinstance(unit, exp.Var) else None
    if known is None or not isinstance(value, exp.Literal):
        return None
    try:
        number = int(value.name)
    except ValueError:
        return None
    return _times(sign * number, length_of(known))


def _whole(node: exp.Expr) -> int | None:
    """A written whole number, also as a product with one, which DATE_SUB becomes."""
    node = node.unnest()
    if isinstance(node, exp.Mul):
        left, right = _whole(node.left), _whole(node.right)
        return None if left is None or right is None else left * right
    return Scalar(node).as_number


def _times(number: int, shift: Shift) -> Shift:
    return Shift(number * shift.months, number * shift.micros)


def _negated(shift: Shift) -> Shift:
    return Shift(-shift.months, -shift.micros)
