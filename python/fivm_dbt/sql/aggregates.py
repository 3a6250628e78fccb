"""Calls of aggregate functions are sums in a ring, or are recomputed per group as they are written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.errors import FivmError
from fivm_dbt.functions.function import Bits, Order
from fivm_dbt.functions.lookup import AROUND, aggregate_of, arguments, is_of
from fivm_dbt.ir.calls import function_name
from fivm_dbt.rings.registry import ring_named
from fivm_dbt.rings.ring import Ring
from fivm_dbt.sql.covariances import is_covariance, read_covariance
from fivm_dbt.sql.functions import refusal
from fivm_dbt.sql.parse import unsupported

_ORDERLESS = ("sort_array", "array_sort", "size", "cardinality", "array_size")
"""What asks of a list no more than its items."""

AROUND_AGGREGATES = AROUND


def called(node: exp.Expr) -> exp.Expr:
    """The call of a function without what stands around it."""
    while isinstance(node, AROUND_AGGREGATES):
        node = node.this
    return node


def first_argument(call: exp.Expr) -> exp.Expr:
    """What a function is applied to, without DISTINCT."""
    first: exp.Expr = call.expressions[0] if isinstance(call, exp.Anonymous) else call.this
    return first.expressions[0] if isinstance(first, exp.Distinct) else first


@dataclass(frozen=True)
class Call:
    """An aggregate call taken apart: ``function_node`` without what stands around it, its FILTER folded in."""

    function: str
    function_node: exp.Expr
    arguments: tuple[exp.Expr, ...]
    is_distinct: bool
    ring: type[Ring] | None
    """What it is maintained in by addition, where that is possible for some types of its argument."""
    conditions: tuple[exp.Expr, ...] = ()
    """Those of its FILTER."""

    @property
    def first_argument(self) -> exp.Expr:
        """What the function is applied to, without DISTINCT."""
        node = self.function_node
        if isinstance(node, exp.Mode) and node.this is None and isinstance(node.parent, exp.WithinGroup):
            ordered: exp.Expr = node.parent.expression.expressions[0].this
            return ordered
        return first_argument(node)


def read_call(node: exp.Expr) -> Call:
    """The call of ``node``, which may be in FILTER (WHERE ...) or WITHIN GROUP."""
    inner, conditions = node, []
    while isinstance(inner, AROUND_AGGREGATES):
        if isinstance(inner, exp.Filter):
            conditions.append(inner.expression.this)
        inner = inner.this
    name = function_name(inner) or ""
    first = inner.expressions[:1] if isinstance(inner, exp.Anonymous) else [inner.this]
    distinct = any(isinstance(part, exp.Distinct) for part in first)
    function = aggregate_of(inner)
    ring = ring_named(function.name) if function is not None else None
    if function is None or ring is None or distinct or inner.find(exp.Order) is not None:
        return Call(name, inner, (), distinct, None)
    given = _filtered(_arguments(inner), conditions)
    return Call(
        function=function.name,
        function_node=inner,
        arguments=given,
        is_distinct=False,
        ring=ring,
        conditions=tuple(conditions),
    )


def _filtered(given: tuple[exp.Expr, ...], conditions: list[exp.Expr]) -> tuple[exp.Expr, ...]:
    """The arguments where the FILTER holds, NULL elsewhere: what has a ring passes over NULLs."""
    if not conditions:
        return given
    condition = exp.and_(*(c.copy() for c in conditions))
    counted = given or (exp.Literal.number(1),)
    return tuple(exp.Case(ifs=[exp.If(this=condition.copy(), true=argument)]) for argument in counted)


def _arguments(node: exp.Expr) -> tuple[exp.Expr, ...]:
    """The arguments of an aggregate; none of COUNT(*) and COUNT(literal). COUNT(a, b) counts rows without NULLs."""
    if isinstance(node, exp.Count):
        first = node.this
        rest = node.expressions
        if isinstance(first, exp.Column) and isinstance(first.this, exp.Star):
            raise unsupported(node, f"{node.sql('spark')} is not maintained yet", "name the columns")
        if isinstance(first, exp.Star) or (isinstance(first, exp.Literal) and not rest):
            return ()
        if rest:
            present = exp.and_(
                *(exp.Not(this=exp.Is(this=e.copy(), expression=exp.Null())) for e in [first, *rest])
            )
            return (exp.Case(ifs=[exp.If(this=present, true=exp.Literal.number(1))]),)
    if is_covariance(node):
        return read_covariance(node).arguments
    return tuple(argument.copy() for argument in arguments(node))


def adds_exactly(call: Call, types: Sequence[SparkType | None], node: exp.Expr) -> bool:
    """Whether a call over these types is exact in its ring: not where it adds doubles, or needs too many digits.

    One argument whose type is not known is taken for one that is. Raises FIVM105 for types that are no numbers.
    """
    if call.ring is None or (None in types and len(types) > 1):
        return False
    others = [t for t in types if t is not None and not call.ring.takes(t)]
    for type_ in others:
        if not (
            type_.is_numeric or type_.is_string or type_.text == "void" or type_.text.startswith("interval")
        ):
            what = f"{call.function.upper()} over {type_} is not Spark SQL"
            raise unsupported(node, what, "CAST it to a number")
    return not others


def check_deterministic(node: exp.Expr, call: Call) -> None:
    """Refuse what may have another result when the same rows come in another order.

    :mod:`completions` makes most of these exact where they stand in a SELECT; those do not come here.
    """
    shown, function = node.sql("spark"), call.function_node
    refused = refusal(function)
    if refused is not None:
        raise refused
    is_given = isinstance(function, exp.Mode) and _is_ordered(call)
    if is_of(function, Order.TIES) and not is_given:
        _check_ties(node, call)
    if _is_ordered(call):
        return
    if is_of(function, Order.LIST) and not is_sorted(node):
        raise depends_on_order(node, f"write sort_array({shown}), whose order is fixed")
    if is_of(function, Order.ANY_ROW, Order.FIRST, Order.LAST):
        extreme = "max_by" if is_of(function, Order.LAST) else "min_by"
        value = call.first_argument.sql("spark")
        raise depends_on_order(
            node, f"say which row: {extreme}({value}, ...), or MIN({value}) where all are equal"
        )
    if is_of(function, Order.TEXT):
        raise depends_on_order(node, "order it: listagg(x, ',') WITHIN GROUP (ORDER BY x)")


def _check_ties(node: exp.Expr, call: Call) -> None:
    function = call.function_node
    if isinstance(function, exp.Mode):
        if not function.args.get("deterministic"):
            raise depends_on_order(node, "write mode(x, true), the least of the most frequent values")
    elif not names_its_ties(*function.expressions[:2]):
        raise depends_on_order(node, f"write {call.function}(x, struct(y, x)) where y is not NULL")


def is_sorted(node: exp.Expr) -> bool:
    """Whether the list is only counted or sorted where it stands; by a comparison of the user's, ties stay open."""
    parent = node.parent
    while isinstance(parent, exp.Paren):
        parent = parent.parent
    if parent is None or function_name(parent) not in _ORDERLESS:
        return False
    return function_name(parent) != "array_sort" or parent.find(exp.Lambda) is None


def names_its_ties(value: exp.Expr, by: exp.Expr) -> bool:
    """Whether ``max_by(value, by)`` has one right answer: rows with equal ``by`` have equal values.

    >>> import sqlglot
    >>> names_its_ties(*sqlglot.parse("x; if(y is null, null, struct(y, x))", dialect="spark"))
    True
    """
    if isinstance(by, exp.If) and isinstance(by.args["true"], exp.Null) and by.args.get("false") is not None:
        by = by.args["false"]
    parts = [p.expression if isinstance(p, exp.PropertyEQ) else p.unalias() for p in by.expressions]
    candidates = [by, *(parts if isinstance(by, exp.Struct) else [])]
    return value in candidates or value.find(exp.Column, exp.AggFunc) is None


def _is_ordered(call: Call) -> bool:
    """Whether an order is given for the rows, as in WITHIN GROUP (ORDER BY ...)."""
    parent = call.function_node.parent
    return isinstance(parent, exp.WithinGroup) or call.function_node.find(exp.Order) is not None


def depends_on_order(node: exp.Expr, remedy: str, why: str = "") -> FivmError:
    shown = f"{node.sql('spark')} {why}".rstrip()
    return unsupported(node, f"{shown} depends on the order in which rows are read", remedy, code="FIVM106")


def is_repeatable(call: Call, type_of: Callable[[exp.Expr], SparkType | None]) -> bool:
    """Whether the call gives the same bits for the same rows in any order: additions of doubles do not."""
    function = aggregate_of(call.function_node)
    if function is None or function.bits is Bits.OTHER:
        return False
    if function.bits is Bits.OF_EXACT:
        type_ = type_of(call.first_argument)
        return type_ is not None and not (type_.is_floating or type_.is_string)
    return True
