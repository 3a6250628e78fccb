"""A reference names the parts of an input for a part of a model: ``M[j*60 .. j*60+59]`` (ViewDF, sections 2, 4.2)."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from fivm_dbt.errors import FivmError
from fivm_dbt.parts.intervals import Intervals

VARIABLES = ("i", "j")
"""What the own part is called: i in INITIALIZE, j in UPDATE."""


@dataclass(frozen=True)
class Bound:
    """``⌊(factor × j + offset) / divisor⌋``, which does not fall as j grows."""

    factor: int = 1
    offset: int = 0
    divisor: int = 1

    @staticmethod
    def of(text: str | int) -> Bound:
        """A bound as it is written: sums, differences, products with numbers, and division by a number at the end.

        Raises FIVM205 for anything else. ``/`` is ``⌊ ⌋``, below zero too.

        >>> Bound.of("j * 60 + 59"), Bound.of("(i - 1) / 60")
        (Bound(factor=60, offset=59, divisor=1), Bound(factor=1, offset=-1, divisor=60))
        """
        try:
            parsed = sqlglot.parse_one(str(text), dialect="spark")
        except SqlglotError:
            raise _not_linear(text) from None
        found = _linear(parsed, text)
        if found.factor < 1:
            raise FivmError(
                "FIVM205",
                f"{text}: a part cannot be computed from parts that do not follow it",
                remedy="name the own part, as in j, j-1 or j*60",
            )
        return found

    def reduced(self) -> Bound:
        """The same bound with the least numbers.

        >>> Bound(120, -1, 60).reduced(), Bound(60, 59, 3600).reduced()
        (Bound(factor=2, offset=-1, divisor=1), Bound(factor=1, offset=0, divisor=60))
        """
        common = gcd(self.factor, self.divisor)
        return Bound(self.factor // common, self.offset // common, self.divisor // common)

    def at(self, part: int) -> int:
        return (self.factor * part + self.offset) // self.divisor

    def least_reaching(self, part: int) -> int:
        """The least j for which the bound is at least ``part``."""
        return -((self.offset - self.divisor * part) // self.factor)

    def greatest_within(self, part: int) -> int:
        """The greatest j for which the bound is at most ``part``."""
        return (self.divisor * (part + 1) - self.offset - 1) // self.factor

    def __str__(self) -> str:
        product = "j" if self.factor == 1 else f"j*{self.factor}"
        total = f"{product}{self.offset:+d}" if self.offset else product
        return total if self.divisor == 1 else f"({total})/{self.divisor}"


@dataclass(frozen=True)
class PartReference:
    """``relation[low .. high]``, both ends included."""

    relation: str
    low: Bound
    high: Bound

    @staticmethod
    def of(relation: str, low: str | int, high: str | int | None = None) -> PartReference:
        """A reference as it is written; without ``high`` it is one part. FIVM205 where it could be empty."""
        first = Bound.of(low)
        last = first if high is None else Bound.of(high)
        if first.factor * last.divisor != last.factor * first.divisor or first.at(0) > last.at(0):
            raise FivmError(
                "FIVM205",
                f"{relation}[{first} .. {last}] has no parts, or ever more of them",
                remedy="let both ends go with j in the same way, the first one first",
            )
        return PartReference(relation, first, last)

    def parts(self, part: int) -> range:
        """The parts that the own ``part`` is computed from."""
        return range(self.low.at(part), self.high.at(part) + 1)

    def dependents(self, changed: Intervals) -> Intervals:
        """The own parts that are computed from any of the ``changed`` ones.

        ``{ j : low(j) ≤ p ≤ high(j) } = [ least j with high(j) ≥ p, greatest j with low(j) ≤ p ]``

        >>> str(PartReference.of("m", "j*60", "j*60+59").dependents(Intervals.of((61, 61), (119, 120))))
        '1..2'
        """
        return Intervals.of(
            *((self.high.least_reaching(a), self.low.greatest_within(b)) for a, b in changed.ranges)
        )

    def __str__(self) -> str:
        ends = str(self.low) if self.low == self.high else f"{self.low} .. {self.high}"
        return f"{self.relation}[{ends}]"


def _linear(node: exp.Expr, text: str | int) -> Bound:
    """The bound that an expression is."""
    if isinstance(node, exp.Paren):
        return _linear(node.this, text)
    if isinstance(node, exp.Column) and node.name.lower() in VARIABLES and not node.table:
        return Bound()
    number = _number(node)
    if number is not None:
        return Bound(0, number)
    if isinstance(node, (exp.Add, exp.Sub)):
        left, right = _linear(node.left, text), _linear(node.right, text)
        sign = 1 if isinstance(node, exp.Add) else -1
        if right.factor == 0 and right.divisor == 1:
            # A whole number goes under the division.
            return Bound(left.factor, left.offset + sign * right.offset * left.divisor, left.divisor)
        if left.factor == 0 and left.divisor == 1 and sign == 1:
            return Bound(right.factor, right.offset + left.offset * right.divisor, right.divisor)
        if left.divisor == right.divisor == 1:
            return Bound(left.factor + sign * right.factor, left.offset + sign * right.offset)
    if isinstance(node, exp.Mul):
        sides = [_linear(node.left, text), _linear(node.right, text)]
        for one, other in (sides, sides[::-1]):
            if one.factor == 0 and one.divisor == other.divisor == 1:
                return Bound(one.offset * other.factor, one.offset * other.offset)
    if isinstance(node, (exp.Div, exp.IntDiv)):
        value, by = _linear(node.left, text), _linear(node.right, text)
        if by.factor == 0 and by.divisor == 1 and by.offset > 0:
            return Bound(value.factor, value.offset, value.divisor * by.offset)
    raise _not_linear(text)


def _number(node: exp.Expr) -> int | None:
    if isinstance(node, exp.Neg):
        inner = _number(node.this)
        return None if inner is None else -inner
    return int(node.this) if isinstance(node, exp.Literal) and node.is_int else None


def _not_linear(text: str | int) -> FivmError:
    return FivmError(
        "FIVM205",
        f"{text!r} is no number of a part",
        remedy="write it with j, whole numbers and + - * /, as in j-1 or j*60+59",
    )
