"""A comparison has two sides and an operator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sqlglot import exp

from fivm_dbt.ir.scalar import Scalar

Operator = Literal["=", "<=>", "<>", "<", "<=", ">", ">="]

_CLASSES: dict[Operator, type[exp.Binary]] = {
    "=": exp.EQ,
    "<=>": exp.NullSafeEQ,
    "<>": exp.NEQ,
    "<": exp.LT,
    "<=": exp.LTE,
    ">": exp.GT,
    ">=": exp.GTE,
}
_OPERATORS: dict[type[exp.Expr], Operator] = {kind: operator for operator, kind in _CLASSES.items()}
_TURNED: dict[Operator, Operator] = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True)
class Comparison:
    """``left operator right``."""

    left: Scalar
    operator: Operator
    right: Scalar

    @staticmethod
    def of(scalar: Scalar) -> Comparison | None:
        """An expression as the comparison that it is, its sides without parentheses; None for any other.

        >>> Comparison.of(Scalar.parse("(a.x + 1) < b.y"))
        Comparison(left=Scalar(a.x + 1), operator='<', right=Scalar(b.y))
        """
        node = scalar.ast()
        operator = _OPERATORS.get(type(node))
        if operator is None:
            return None
        return Comparison(Scalar(node.this.unnest()), operator, Scalar(node.expression.unnest()))

    @property
    def is_equality(self) -> bool:
        """Whether it holds for equal values alone, of NULL or not."""
        return self.operator in ("=", "<=>")

    @property
    def is_inequality(self) -> bool:
        """Whether it goes by the order of values."""
        return self.operator in _TURNED

    @property
    def turned(self) -> Comparison:
        """The same with its sides exchanged."""
        return Comparison(self.right, _TURNED.get(self.operator, self.operator), self.left)

    @property
    def scalar(self) -> Scalar:
        """The comparison as an expression.

        >>> Comparison(Scalar.parse("a.x"), "<=", Scalar.parse("b.x")).scalar.sql
        'a.x <= b.x'
        """
        return Scalar(_CLASSES[self.operator](this=self.left.ast(), expression=self.right.ast()))
