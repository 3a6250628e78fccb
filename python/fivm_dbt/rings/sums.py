"""SUM(x): the sum, and how many values are not NULL, which keeps it apart from a sum of nothing.

Of doubles (``fivm_float: approximate``) three counts more: of NaN and of either infinity, which are not in the sum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import DOUBLE, INT
from fivm_dbt.ir.scalar import Scalar, as_type
from fivm_dbt.rings.doubles import infinity, is_above, is_below, is_finite_part, is_nan, nan, unscaled
from fivm_dbt.rings.integers import INTEGERS, presence
from fivm_dbt.rings.kinds import numbers_for
from fivm_dbt.rings.numbers import Numbers, Typed
from fivm_dbt.rings.polynomial import Polynomial
from fivm_dbt.rings.ring import Payload, Ring, ring_of

_SPECIAL = {"nan": is_nan, "infinity": is_above, "minus_infinity": is_below}


@ring_of("sum")
class Sums(Ring):
    """NULL where the count of x is 0, else what :meth:`value` makes of the sum."""

    adds_doubles = True

    @staticmethod
    def takes(type_: SparkType) -> bool:
        return type_.is_integral or type_.is_decimal

    @property
    def columns(self) -> Mapping[str, Numbers]:
        _, type_ = self.added(self.argument, self.argument_type)
        counts = dict.fromkeys(("count", *self.special), INTEGERS)
        return {"sum": numbers_for((type_,)), **counts}

    def lift(self, place: int, value: Scalar, type_: SparkType) -> Payload:
        of_counts = (presence(value), *(_SPECIAL[name](value) for name in self.special))
        return (Polynomial.of(*self.added(value, type_)), *(Polynomial.of(c, INT) for c in of_counts))

    def finish(self, payload: Sequence[Scalar]) -> Scalar:
        total, count, *special = (part.ast() for part in payload)
        value = self.value(total, count)
        if special:
            value = _unless_special(value, *special)
        nothing = exp.EQ(this=count.copy(), expression=exp.Literal.number(0))
        return Scalar(exp.Case(ifs=[exp.If(this=nothing, true=exp.Null())], default=value))

    def added(self, value: Scalar, type_: SparkType) -> Typed:
        """What is added up of a value."""
        return value, DOUBLE if type_.is_floating else type_

    def value(self, total: exp.Expr, count: exp.Expr) -> exp.Expr:
        """The result from a sum of at least one value, all of them finite."""
        if self.argument_type.is_floating:
            return unscaled(total)
        return as_type(total, self.call.type.text) if self.call.type != self.columns["sum"].type else total

    @property
    def special(self) -> tuple[str, ...]:
        """The counts of what is not finite among doubles."""
        if not self.argument_type.is_floating or is_finite_part(self.argument):
            return ()
        return tuple(_SPECIAL)


def _unless_special(finite: exp.Expr, nans: exp.Expr, above: exp.Expr, below: exp.Expr) -> exp.Expr:
    """The finite value, NaN or an infinity where such values are among the rows, as Spark adds them."""
    zero = exp.Literal.number(0)
    some, others, neither = (exp.NEQ(this=part, expression=zero.copy()) for part in (nans, above, below))
    no_number = exp.or_(some, exp.and_(others.copy(), neither.copy()))
    cases = [(no_number, nan()), (others, infinity()), (neither, exp.Neg(this=infinity()))]
    return exp.Case(ifs=[exp.If(this=when, true=then) for when, then in cases], default=finite)
