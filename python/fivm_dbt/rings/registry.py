"""The registry turns SQL aggregates into payloads: the components of a call, and its result computed from them.

========== ======================================== =================================================
call       components (Σ multiplicity × lift)       result
========== ======================================== =================================================
COUNT(*)   the count of the key itself              count
COUNT(x)   [x is not null] in the integers          that
SUM(x)     x, [x is not null]                       NULL where the count of x is 0, else the sum
AVG(x)     x, [x is not null]                       NULL where the count of x is 0, else sum / count
========== ======================================== =================================================

Of doubles (``fivm_float: approximate``) SUM and AVG need three counts more: of NaN and of either infinity, which are
not in the sum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import BIGINT, DOUBLE, INT
from fivm_dbt.ir.aggregate import AggregateCall
from fivm_dbt.ir.scalar import Scalar, as_type
from fivm_dbt.rings.decimals import Decimals
from fivm_dbt.rings.doubles import (
    Doubles,
    infinity,
    is_above,
    is_below,
    is_finite_part,
    is_nan,
    nan,
    unscaled,
)
from fivm_dbt.rings.integers import Integers, presence
from fivm_dbt.rings.quotient import decimal_average
from fivm_dbt.rings.ring import Ring

INTEGERS, DECIMALS, DOUBLES = Integers(), Decimals(), Doubles()
RINGS: dict[str, Ring] = {ring.name: ring for ring in (INTEGERS, DECIMALS, DOUBLES)}


@dataclass(frozen=True)
class Component:
    """A payload column: ``Σ multiplicity × lift`` in a ring, over the rows of a key."""

    ring: str
    lift: Scalar
    lifted: SparkType

    @property
    def type(self) -> SparkType:
        return RINGS[self.ring].column_type(self.lifted)

    def term(self, multiplicity: Scalar) -> Scalar:
        """The contribution of one signed row."""
        return RINGS[self.ring].term(multiplicity, self.lift, self.lifted)


ROWS = Component("integers", Scalar.number(1), INT)
"""The number of rows of a key: a key dies when it is zero."""


TOTAL = "total"
"""The function of a call that is one component, never NULL: a payload of a view tree."""


def components(call: AggregateCall) -> tuple[Component, ...]:
    """The components that ``call`` needs besides :data:`ROWS`."""
    if call.argument is None:
        return ()
    if call.function == TOTAL:
        return (_total(call),)
    present = _present(call)
    if call.function == "count":
        return (present,)
    return (_sum(call), present, *_special(call))


def finish(call: AggregateCall, column: Callable[[Component], Scalar]) -> Scalar:
    """The result of ``call`` from its components' columns, with Spark's own type and value."""
    if call.argument is None:
        return column(ROWS)
    if call.function == TOTAL:
        return column(_total(call))
    count = column(_present(call))
    if call.function == "count":
        return count
    total = column(_sum(call))
    if _adds_doubles(call):
        value = _with_special(call, total, count, column)
    elif call.function == "sum":
        value = total.ast() if call.type == _sum(call).type else as_type(total.ast(), call.type.text)
    elif call.type == DOUBLE:
        value = exp.Div(this=as_type(total.ast(), "double"), expression=count.ast())
    else:
        assert call.argument_type is not None
        value = decimal_average(total, count, call.argument_type, call.type).ast()
    nothing = exp.EQ(this=count.ast(), expression=exp.Literal.number(0))
    return Scalar(exp.Case(ifs=[exp.If(this=nothing, true=exp.Null())], default=value))


def _adds_doubles(call: AggregateCall) -> bool:
    return call.argument_type is not None and call.argument_type.is_floating


def _special(call: AggregateCall) -> tuple[Component, ...]:
    """The counts of NaN, +∞ and −∞ among doubles."""
    if call.argument is None or not _adds_doubles(call) or is_finite_part(call.argument):
        return ()
    return tuple(Component("integers", lift(call.argument), INT) for lift in (is_nan, is_above, is_below))


def _with_special(
    call: AggregateCall, total: Scalar, count: Scalar, column: Callable[[Component], Scalar]
) -> exp.Expr:
    """The finite sum (or mean), NaN or an infinity where such values are among the rows, as Spark adds them."""
    special = _special(call)
    if not special:
        return unscaled(total.ast())
    nans, above, below = (column(c).ast() for c in special)
    zero = exp.Literal.number(0)
    some, others, neither = (exp.NEQ(this=part, expression=zero.copy()) for part in (nans, above, below))
    finite = unscaled(total.ast())
    if call.function == "avg":
        # Divided first: the mean of large values is in range where their sum is not.
        finite = unscaled(exp.paren(exp.Div(this=total.ast(), expression=count.ast())))
    no_number = exp.or_(some, exp.and_(others.copy(), neither.copy()))
    cases = [(no_number, nan()), (others, infinity()), (neither, exp.Neg(this=infinity()))]
    return exp.Case(ifs=[exp.If(this=when, true=then) for when, then in cases], default=finite)


def _total(call: AggregateCall) -> Component:
    assert call.argument is not None and call.argument_type is not None
    ring = "decimals" if call.type.is_decimal else "doubles" if call.type.is_floating else "integers"
    return Component(ring, call.argument, call.argument_type)


def _present(call: AggregateCall) -> Component:
    """``[x is not null]``, which keeps SUM apart from a sum of nothing."""
    assert call.argument is not None
    return Component("integers", presence(call.argument), INT)


def _sum(call: AggregateCall) -> Component:
    """The sum of the argument. Spark averages bigints without wrapping, so those are added as decimals."""
    assert call.argument is not None and call.argument_type is not None
    if call.argument_type.is_floating:
        return Component("doubles", call.argument, DOUBLE)
    if call.argument_type.is_decimal or (call.function == "avg" and call.argument_type == BIGINT):
        lifted = call.argument_type if call.argument_type.is_decimal else SparkType.decimal(19, 0)
        value = call.argument
        if not call.argument_type.is_decimal:
            value = Scalar(as_type(call.argument.ast(), lifted.text))
        return Component("decimals", value, lifted)
    return Component("integers", call.argument, call.argument_type)
