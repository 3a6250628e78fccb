"""AVG(x): the sum and the count of x, whose quotient is rounded as Spark's AVG rounds it."""

from __future__ import annotations

from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import BIGINT, DOUBLE
from fivm_dbt.ir.scalar import Scalar, as_type
from fivm_dbt.rings.doubles import unscaled
from fivm_dbt.rings.numbers import Typed
from fivm_dbt.rings.quotient import averages_exactly, decimal_average
from fivm_dbt.rings.ring import ring_of
from fivm_dbt.rings.sums import Sums


def added_up(value: Scalar, type_: SparkType) -> Typed:
    """What is added up for a mean: bigints as decimals, whose sum does not wrap around.

    >>> added_up(Scalar.parse("r.n"), BIGINT)
    (Scalar(CAST(r.n AS DECIMAL(19, 0))), SparkType(text='decimal(19,0)'))
    """
    if type_ != BIGINT:
        return value, type_
    wide = SparkType.decimal(19, 0)
    return value.cast(wide.text), wide


@ring_of("avg")
class Averages(Sums):
    """The payload of SUM; of bigints, which Spark averages without wrapping, a sum of decimals."""

    @staticmethod
    def takes(type_: SparkType) -> bool:
        return type_.is_integral or (type_.is_decimal and averages_exactly(type_))

    def added(self, value: Scalar, type_: SparkType) -> Typed:
        return added_up(value, type_) if type_ == BIGINT else super().added(value, type_)

    def value(self, total: exp.Expr, count: exp.Expr) -> exp.Expr:
        if self.argument_type.is_floating:
            # Divided first: the mean of large values is in range where their sum is not.
            return unscaled(exp.paren(exp.Div(this=total, expression=count.copy())))
        if self.call.type == DOUBLE:
            return exp.Div(this=as_type(total, "double"), expression=count.copy())
        return decimal_average(Scalar(total), Scalar(count), self.argument_type, self.call.type).ast()
