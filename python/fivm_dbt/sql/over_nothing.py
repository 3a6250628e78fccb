"""An aggregate without GROUP BY has a row where there are no rows; this module says what stands in it.

A correlated total is grouped by the values d of its correlation, and a group without rows is no group. Its row is
added by joining the groups to the domain, ``D ⟕ γ_d(R)``: where there is no partner, each aggregate has its value over
nothing. A reader that joins the groups to its own rows does the same there (:mod:`fivm_dbt.sql.totals`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from fivm_dbt.catalog.types import INT
from fivm_dbt.functions.nothing import named_over_nothing, value_over_nothing
from fivm_dbt.ir.aggregate import Aggregate, AggregateCall
from fivm_dbt.ir.node import Item
from fivm_dbt.ir.nodes import Map
from fivm_dbt.ir.one_sided import OuterJoin
from fivm_dbt.ir.scalar import Scalar, cast_ast
from fivm_dbt.naming import PREFIX
from fivm_dbt.sql.aggregates import AROUND_AGGREGATES, called
from fivm_dbt.sql.domains import Domain, equal_columns
from fivm_dbt.sql.expressions import unparenthesized
from fivm_dbt.sql.functions import is_aggregate
from fivm_dbt.sql.parse import unsupported

if TYPE_CHECKING:
    from fivm_dbt.sql.lower import Lowering

MATCHED = f"{PREFIX}matched"


def over_nothing(value: exp.Expr) -> exp.Expr | None:
    """The value of an expression over aggregates when there are no rows, None where that is plainly NULL.

    >>> from sqlglot import parse_one
    >>> print(over_nothing(parse_one("count(*) + coalesce(sum(x), 1)", dialect="spark")).sql("spark"))
    (CAST(0 AS BIGINT) + COALESCE(NULL, 1))
    """
    result = unparenthesized(_over_nothing(value.copy()))
    return None if isinstance(result, exp.Null) else exp.paren(result)


def _over_nothing(part: exp.Expr) -> exp.Expr:
    if isinstance(part, exp.Query):
        return part  # its aggregates are of its own rows
    call = called(part) if isinstance(part, AROUND_AGGREGATES) else part
    if is_aggregate(call):
        return _known(value_over_nothing(call), call)
    for child in list(part.iter_expressions()):
        new = _over_nothing(child)
        if new is not child:
            child.replace(new)
    return part


def completed(lowering: Lowering, groups: Aggregate, domain: Domain, alias: str) -> Map:
    """``groups``, keyed by the columns of a domain alone, with a row for each of its values; it has the same fields
    under ``alias``."""
    marked = Map(
        groups,
        lowering.alias("totals"),
        (
            *(Item(f.name, f.scalar, f.type) for f in groups.fields),
            Item(MATCHED, Scalar.number(1), INT),
        ),
    )
    every = domain.again(lowering.alias)
    assert every.node is not None
    keys, mark = marked.fields[: len(groups.keys)], marked.fields[-1]
    ours = tuple(f.scalar for f in every.outer.fields)
    joined = OuterJoin(every.node, marked, equal_columns(ours, keys))
    items = [Item(k.name, value, k.type) for k, value in zip(groups.keys, ours, strict=True)]
    for call, field in zip(groups.calls, marked.fields[len(groups.keys) : -1], strict=True):
        items.append(Item(call.name, _with_nothing(call, field.scalar, mark.scalar), call.type))
    return Map(joined, alias, tuple(items))


def _with_nothing(call: AggregateCall, value: Scalar, mark: Scalar) -> Scalar:
    empty = named_over_nothing(call.function, call.type)
    if call.written is not None:
        empty = _known(empty, call.written.ast())
    if empty is None or isinstance(empty, exp.Null):
        return value
    missing = exp.Is(this=mark.ast(), expression=exp.Null())
    return Scalar(exp.Case(ifs=[exp.If(this=missing, true=cast_ast(empty, call.type))], default=value.ast()))


def _known(empty: exp.Expr | None, call: exp.Expr) -> exp.Expr:
    if empty is None:
        what = f"what {call.sql('spark')} is over no rows is not known here"
        raise unsupported(call, what, "aggregate in a subquery in FROM, by the columns that are compared")
    return empty
