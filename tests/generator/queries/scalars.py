"""Random scalar expressions and predicates go over typed columns, as Spark SQL text."""

from __future__ import annotations

import random
from dataclasses import dataclass

_WORDS = ("'a'", "'b'", "'ab'")
_DATES = ("DATE '2024-01-30'", "DATE '2024-02-15'", "DATE '2024-03-31'")
_AMOUNTS = ("-1.25", "0.5", "1.50", "2.75")


@dataclass(frozen=True)
class Type:
    """What the generator has to know of a type. *Inexact* columns, quotients, and arrays are shown but not used."""

    name: str
    precision: int = 0
    scale: int = 0

    @property
    def is_integral(self) -> bool:
        return self.name in ("int", "bigint")

    @property
    def is_exact_number(self) -> bool:
        return self.is_integral or self.name == "decimal"

    @property
    def can_be_key(self) -> bool:
        return self.name not in ("inexact", "double", "array")


INT, BIGINT, STRING, DATE, BOOLEAN, DOUBLE = (
    Type(n) for n in ("int", "bigint", "string", "date", "boolean", "double")
)
INEXACT = Type("inexact")
ARRAY = Type("array")


def type_of(text: str) -> Type:
    """The type of a table's column.

    >>> type_of("decimal(8,2)")
    Type(name='decimal', precision=8, scale=2)
    """
    if text.startswith("decimal("):
        precision, scale = text[8:-1].split(",")
        return Type("decimal", int(precision), int(scale))
    return Type(text)


@dataclass(frozen=True)
class Col:
    """A column that can be referred to by ``ref``."""

    ref: str
    name: str
    type: Type


class Scalars:
    """Random expressions over the columns of one FROM clause."""

    def __init__(self, rng: random.Random, columns: list[Col]) -> None:
        self.rng = rng
        self.columns = columns

    def of(self, *names: str) -> list[Col]:
        return [c for c in self.columns if c.type.name in names]

    @property
    def numbers(self) -> list[Col]:
        return [c for c in self.columns if c.type.is_exact_number]

    @property
    def keys(self) -> list[Col]:
        return [c for c in self.columns if c.type.can_be_key]

    @property
    def summable(self) -> list[Col]:
        """Numbers that are narrow enough to be summed up."""
        return [c for c in self.numbers if c.type.precision <= 20]

    def value(self, column: Col) -> tuple[str, Type]:
        """The column, or now and then an expression over it, or a condition as a value."""
        if self.rng.random() < 0.04:
            return self.predicate(1), BOOLEAN
        return self.same_kind(column)

    def same_kind(self, column: Col) -> tuple[str, Type]:
        """The column, or now and then an expression over it: of a number a number."""
        if self.rng.random() < 0.65 or not column.type.can_be_key:
            return column.ref, column.type
        if column.type.is_exact_number:
            return self.number(column)
        return self.rng.choice(_FORMS[column.type.name]).format(column.ref), column.type

    def number(self, column: Col) -> tuple[str, Type]:
        """Arithmetic over exact numbers; decimals grow as Spark's do."""
        rng, ref, type_ = self.rng, column.ref, column.type
        form = rng.choice(("add", "negate", "double", "case", "coalesce", "product"))
        if form == "add":
            return f"{ref} + {rng.randint(1, 3)}", wider(type_, 1)
        if form == "negate":
            return f"-{ref}", type_
        if form == "double":
            return f"2 * {ref}", wider(type_, 2)
        if form == "case":
            return f"CASE WHEN {self.predicate(0)} THEN {ref} ELSE 0 END", wider(type_, 10)
        others = [c for c in self.numbers if c.type.precision + type_.precision <= 20 and c != column]
        if form == "product" and others:
            other = rng.choice(others)
            return f"{ref} * {other.ref}", _product(type_, other.type)
        return f"COALESCE({ref}, 0)", wider(type_, 10)

    def predicate(self, depth: int = 1) -> str:
        """A condition: comparison, IS NULL, BETWEEN, IN, LIKE, and AND / OR / NOT of such."""
        rng = self.rng
        roll = rng.random()
        if depth and roll < 0.15:
            return f"({self.predicate(depth - 1)} OR {self.predicate(depth - 1)})"
        if depth and roll < 0.25:
            return f"({self.predicate(depth - 1)} AND {self.predicate(depth - 1)})"
        if depth and roll < 0.32:
            return f"NOT ({self.predicate(depth - 1)})"
        usable = [c for c in self.columns if c.type.can_be_key]
        if not usable:
            return "1 = 1"
        column = rng.choice(usable)
        if rng.random() < 0.12:
            return f"{column.ref} IS {rng.choice(('', 'NOT '))}NULL"
        return self._comparison(column)

    def _comparison(self, column: Col) -> str:
        rng, ref = self.rng, column.ref
        if column.type == BOOLEAN:
            return rng.choice((ref, f"NOT {ref}", f"{ref} = TRUE"))
        if column.type == STRING and rng.random() < 0.4:
            return f"{ref} {rng.choice(('', 'NOT '))}LIKE '{rng.choice(('a%', '%b', '_'))}'"
        same = [c for c in self.columns if c.type == column.type and c != column]
        roll = rng.random()
        if same and roll < 0.25:
            return f"{ref} {rng.choice(('=', '<>', '<', '>=', '<=>'))} {rng.choice(same).ref}"
        if roll < 0.45:
            low, high = sorted((self.literal(column.type), self.literal(column.type)), key=_order)
            return f"{ref} BETWEEN {low} AND {high}"
        if roll < 0.6:
            listed = ", ".join(sorted({self.literal(column.type) for _ in range(3)}))
            return f"{ref} {rng.choice(('', '', 'NOT '))}IN ({listed})"
        return f"{ref} {rng.choice(('=', '<>', '<', '<=', '>', '>='))} {self.literal(column.type)}"

    def literal(self, type_: Type) -> str:
        if type_ == STRING:
            return self.rng.choice(_WORDS)
        if type_ == DATE:
            return self.rng.choice(_DATES)
        if type_ == BOOLEAN:
            return self.rng.choice(("TRUE", "FALSE"))
        if type_.name == "decimal":
            return self.rng.choice(_AMOUNTS)
        return str(self.rng.randint(-2, 3))


_FORMS = {
    "string": (
        "UPPER({0})",
        "CONCAT({0}, 'z')",
        "COALESCE({0}, '?')",
        "CASE WHEN {0} = 'a' THEN 'x' ELSE {0} END",
    ),
    "date": ("TRUNC({0}, 'MM')", "COALESCE({0}, DATE '2024-03-03')"),
    "boolean": ("NOT {0}", "COALESCE({0}, FALSE)"),
}


def _order(literal: str) -> tuple[float, str]:
    try:
        return float(literal), ""
    except ValueError:
        return 0.0, literal


def wider(type_: Type, digits: int) -> Type:
    if type_.name != "decimal":
        return type_
    return Type("decimal", min(38, max(type_.precision, digits + type_.scale) + 1), type_.scale)


def _product(left: Type, right: Type) -> Type:
    if left.is_integral and right.is_integral:
        return BIGINT if BIGINT in (left, right) else INT
    (p1, s1), (p2, s2) = (_digits(t) for t in (left, right))
    return Type("decimal", min(38, p1 + p2 + 1), s1 + s2)


def _digits(type_: Type) -> tuple[int, int]:
    if type_.name == "decimal":
        return type_.precision, type_.scale
    return (10, 0) if type_ == INT else (20, 0)


def summed(type_: Type) -> Type:
    if type_.is_integral:
        return BIGINT
    return Type("decimal", min(38, type_.precision + 10), type_.scale)
