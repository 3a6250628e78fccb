"""The clock is a relation of one row; the date and time functions of a query become its columns.

``current_date()`` is the column ``__fivm_clock.date``. On one side of a refresh it is the clock of that side,
``__fivm_clock_old.date`` or ``__fivm_clock_new.date``, and a statement has a literal in its place. So the clock is
pinned as a version of an input is, and an interrupted refresh is done again with the very same time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timezone

from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import DATE, TIMESTAMP
from fivm_dbt.errors import Span
from fivm_dbt.ir.node import Node, Side, scalars_of
from fivm_dbt.ir.places import notes
from fivm_dbt.ir.rename import with_scalars
from fivm_dbt.ir.scalar import ColumnId, Scalar, as_type, column_ast, conjuncts, grouped
from fivm_dbt.naming import CLOCK

CLOCK_TYPES: Mapping[ColumnId, SparkType] = {
    (CLOCK, "date"): DATE,
    (CLOCK, "timestamp"): TIMESTAMP,
    (CLOCK, "timestamp_ntz"): SparkType("timestamp_ntz"),
}
"""The columns of the clock: a date, an instant, and a local time."""

# TIMESTAMP alone means what a setting of the session says.
_LITERAL_TYPES = {"date": "date", "timestamp": "timestamp_ltz", "timestamp_ntz": "timestamp_ntz"}

_NEGATED: Mapping[type[exp.Expr], type[exp.Expr]] = {
    exp.GT: exp.LTE,
    exp.GTE: exp.LT,
    exp.LT: exp.GTE,
    exp.LTE: exp.GT,
    exp.EQ: exp.NEQ,
    exp.NEQ: exp.EQ,
}

_NEVER_NULL = (
    exp.Column, exp.Literal, exp.Paren, exp.Neg, exp.Mul, exp.Add, exp.Sub, exp.Interval, exp.Var,
    exp.DataType, exp.DataTypeParam, exp.TsOrDsAdd, exp.TsOrDsToDate, exp.DateAdd, exp.DateSub, exp.TimestampAdd,
    exp.AddMonths, exp.LastDay, exp.DateTrunc, exp.TimestampTrunc, exp.Identifier,
)  # fmt: skip
"""Of these a clock makes NULL always or never: whether it does depends on the literals beside it."""


@dataclass(frozen=True)
class Clock:
    """A reading: the session's date, the instant in UTC, the session's local time, as ISO text; None where not used."""

    date: str | None = None
    timestamp: str | None = None
    timestamp_ntz: str | None = None

    @staticmethod
    def at(time: datetime) -> Clock:
        """The clock of a session in UTC at ``time``, which is UTC where it says nothing else.

        >>> Clock.at(datetime(2024, 5, 1, 12))
        Clock(date='2024-05-01', timestamp='2024-05-01 12:00:00+00:00', timestamp_ntz='2024-05-01 12:00:00')
        """
        utc = time.replace(tzinfo=timezone.utc) if time.tzinfo is None else time.astimezone(timezone.utc)
        local = utc.replace(tzinfo=None)
        return Clock(utc.date().isoformat(), utc.isoformat(sep=" "), local.isoformat(sep=" "))

    def only(self, kinds: frozenset[str]) -> Clock:
        """What a plan that uses just ``kinds`` sees of it: two readings that are equal then are no movement."""
        return Clock(**{kind: text for kind, text in asdict(self).items() if kind in kinds})

    def literal(self, kind: str) -> Scalar:
        """The value of a column of the clock."""
        text = getattr(self, kind)
        assert isinstance(text, str), f"{kind} was not read from the clock"
        return Scalar(as_type(exp.Literal.string(text), _LITERAL_TYPES[kind]))

    def as_dict(self) -> dict[str, str]:
        """For the head: what is used."""
        return {kind: text for kind, text in asdict(self).items() if text is not None}


# Scalars


def clock_kinds(scalar: Scalar) -> frozenset[str]:
    """The columns of the clock that an expression reads."""
    return frozenset(name for table, name in scalar.columns if table.startswith(CLOCK))


def row_columns(scalar: Scalar) -> frozenset[ColumnId]:
    """The columns of an expression that are not of the clock."""
    return frozenset(column for column in scalar.columns if not column[0].startswith(CLOCK))


def position(scalar: Scalar) -> tuple[str, Span | None]:
    """The first clock in an expression as the user wrote it, and where it stands."""
    column = next(c for c in scalar.ast().find_all(exp.Column, bfs=False) if c.table.startswith(CLOCK))
    place = notes(column)
    span = Span(place["start"], place["end"] + 1) if "start" in place else None
    return str(place.get("written", column.name)), span


def on_side(scalar: Scalar, side: Side) -> Scalar:
    """The expression with the clock of one side."""

    def replacement(column: ColumnId) -> Scalar | None:
        return Scalar.column(f"{CLOCK}_{side.value}", column[1]) if column[0] == CLOCK else None

    return scalar.substitute(replacement) if clock_kinds(scalar) else scalar


def not_all(predicates: tuple[Scalar, ...]) -> Scalar:
    """That not every predicate is true, for rows where they all are on the other side of a refresh.

    There the operands of a comparison with the clock are not NULL, on neither side, so that ``a >= b`` is not true
    where ``a < b`` is: Delta skips files by such a comparison, as it does not by ``NOT COALESCE(a >= b, FALSE)``.

    >>> not_all((Scalar.parse("e.d >= __fivm_clock_old.date"), Scalar.parse("e.a or e.b"))).sql
    'e.d < __fivm_clock_old.date OR NOT COALESCE(e.a OR e.b, FALSE)'
    """
    return Scalar(exp.or_(*(_not_true(p) for p in predicates), copy=False))


def _not_true(predicate: Scalar) -> exp.Expr:
    negated = _negated(predicate)
    if negated is not None:
        return negated
    return exp.Not(this=exp.Coalesce(this=predicate.ast(), expressions=[exp.Boolean(this=False)]))


def _negated(predicate: Scalar) -> exp.Expr | None:
    """The opposite comparison, where that is true for the rows for which this one is not true at another time only."""
    ast = predicate.ast()
    opposite = _NEGATED.get(type(ast))
    if opposite is None or not all(_same_nulls(ast.args[side]) for side in ("this", "expression")):
        return None
    return opposite(this=ast.this, expression=ast.expression)


def _same_nulls(operand: exp.Expr) -> bool:
    """Whether an operand is NULL for the same rows whatever the time is: without a clock, or with nothing else."""
    scalar = Scalar(operand.copy())
    if not clock_kinds(scalar):
        return True
    return not row_columns(scalar) and all(_keeps_nulls(part) for part in operand.walk())


def _keeps_nulls(part: exp.Expr) -> bool:
    if isinstance(part, exp.Cast):
        return part.to.is_type(*exp.DataType.TEMPORAL_TYPES)
    return isinstance(part, _NEVER_NULL)


def flips(comparison: Scalar, old: Side, new: Side) -> Scalar:
    """That a comparison with the clock may have another value (true, false, unknown) on the other side.

    >>> flips(Scalar.parse("e.d > __fivm_clock.date"), Side.OLD, Side.NEW).sql  # doctest: +NORMALIZE_WHITESPACE
    '(e.d > __fivm_clock_old.date AND e.d <= __fivm_clock_new.date) OR
     (e.d > __fivm_clock_new.date AND e.d <= __fivm_clock_old.date)'
    """
    found: list[exp.Expr] = []
    for part in bounds(comparison):
        before, after = on_side(part, old), on_side(part, new)
        not_before, not_after = _negated(before), _negated(after)
        if not_before is None or not_after is None:
            same = exp.NullSafeEQ(this=grouped(before.ast()), expression=grouped(after.ast()))
            found.append(exp.Not(this=same))
        else:
            found += [exp.and_(before.ast(), not_after), exp.and_(after.ast(), not_before)]
    return Scalar(exp.or_(*found, copy=False))


def any_of(predicates: Iterable[Scalar]) -> Scalar:
    return Scalar(exp.or_(*(p.ast() for p in predicates), copy=False))


def bounds(predicate: Scalar) -> tuple[Scalar, ...]:
    """The predicate as a conjunction: of BETWEEN its two bounds.

    >>> [b.sql for b in bounds(Scalar.parse("e.d between __fivm_clock.date and e.f"))]
    ['e.d >= __fivm_clock.date', 'e.d <= e.f']
    """
    found: list[Scalar] = []
    for part in conjuncts(predicate.ast()):
        if isinstance(part, exp.Between) and not part.args.get("symmetric"):
            low, high = part.args["low"], part.args["high"]
            found.append(Scalar(exp.GTE(this=part.this.copy(), expression=low)))
            found.append(Scalar(exp.LTE(this=part.this.copy(), expression=high)))
        else:
            found.append(Scalar(part))
    return tuple(found)


def comparisons(scalar: Scalar) -> tuple[Scalar, ...]:
    """The outermost comparisons in an expression that read the clock."""
    found: dict[Scalar, None] = {}

    def visit(node: exp.Expr) -> None:
        if isinstance(node, exp.Predicate) and clock_kinds(Scalar(node.copy())):
            found[Scalar(node.copy())] = None
            return
        for child in node.iter_expressions():
            visit(child)

    visit(scalar.ast())
    return tuple(found)


def with_columns(scalar: Scalar, columns: Mapping[Scalar, ColumnId]) -> Scalar:
    """The expression with each of the comparisons replaced by the column that holds its value."""

    def visit(node: exp.Expr) -> exp.Expr:
        column = columns.get(Scalar(node.copy())) if isinstance(node, exp.Predicate) else None
        if column is not None:
            return column_ast(*column)
        for child in list(node.iter_expressions()):
            new = visit(child)
            if new is not child:
                child.replace(new)
        return node

    return Scalar(visit(scalar.ast()))


# Nodes


def kinds_below(node: Node) -> frozenset[str]:
    """The columns of the clock that a query reads."""
    own = frozenset(kind for scalar in scalars_of(node) for kind in clock_kinds(scalar))
    return own.union(*(kinds_below(child) for child in node.inputs))


def pinned_clock(node: Node, old: Clock | None, new: Clock | None) -> Node:
    """``node`` with the clocks of both sides as literals."""
    readings = {f"{CLOCK}_{Side.OLD.value}": old, f"{CLOCK}_{Side.NEW.value}": new}

    def replacement(column: ColumnId) -> Scalar | None:
        reading = readings.get(column[0])
        return reading.literal(column[1]) if reading is not None else None

    def change(scalar: Scalar) -> Scalar:
        return scalar.substitute(replacement) if clock_kinds(scalar) else scalar

    inputs = tuple(pinned_clock(child, old, new) for child in node.inputs)
    changed: Node = with_scalars(node.with_inputs(inputs), change)
    return changed
