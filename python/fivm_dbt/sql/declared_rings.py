"""Calls of a declared ring's function are written as sums: the components of the ring, and its result over them.

``ratio(x, w)`` becomes ``COALESCE(SUM(x * w), 0) / COALESCE(SUM(w * <1 where x is known>), 0)``. It is what is
maintained, each sum with its parts in the relations of a join, and what is recomputed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce

import sqlglot
from sqlglot import exp

from fivm_dbt.ir.calls import function_name
from fivm_dbt.ir.dialect import SPARK_TEXT
from fivm_dbt.ir.scalar import Scalar, as_type
from fivm_dbt.rings.declared import DECLARED, DeclaredRing
from fivm_dbt.rings.integers import presence
from fivm_dbt.sql.aggregates import AROUND_AGGREGATES
from fivm_dbt.sql.edits import Edit, Text
from fivm_dbt.sql.parse import parse, unsupported


def in_sums(sql: str) -> tuple[Edit, ...]:
    """The edits that write each call of a declared ring as sums. FIVM105 for a call that makes no sense.

    Raises FIVM112 for one that is a column without a name.
    """
    if not any(name in sql.lower() for name in DECLARED):
        return ()
    text = Text(sql)
    return tuple(_edit(call, text) for call in parse(sql).find_all(exp.Anonymous) if _is_declared(call))


def _is_declared(call: exp.Expr) -> bool:
    return (function_name(call) or "") in DECLARED


def _edit(call: exp.Anonymous, text: Text) -> Edit:
    name = function_name(call) or ""
    ring, place = DECLARED[name], text.call(call)
    outer, conditions = call.parent, []
    while isinstance(outer, AROUND_AGGREGATES):
        conditions.append(outer.expression.this)
        outer = outer.parent
    if isinstance(outer, exp.Window):
        raise unsupported(call, f"{name} over a window", "aggregate with GROUP BY")
    if isinstance(outer, exp.Select):
        raise unsupported(call, f"{name} without a name", "write AS and a name", code="FIVM112")
    if len(call.expressions) != len(ring.arguments) or any(_is_distinct(a) for a in call.expressions):
        remedy = f"write {name}({', '.join(ring.arguments)})"
        raise unsupported(call, f"{name} takes {len(ring.arguments)} arguments, each once", remedy)
    if place is None or any(_is_declared(inner) for a in call.expressions for inner in a.walk()):
        raise unsupported(call, f"{name} inside of such a call", "aggregate in a subquery first")
    start, end = text.start(place[0]), text.end(text.end_of_call(place[2]))
    return Edit(start, end - start, _written(ring, call.expressions, conditions).sql(dialect="spark"))


def _is_distinct(argument: exp.Expr) -> bool:
    return isinstance(argument, exp.Distinct)


def _written(ring: DeclaredRing, arguments: Sequence[exp.Expr], conditions: Sequence[exp.Expr]) -> exp.Expr:
    """The result over the sums."""
    given = {
        name: as_type(argument.copy(), type_.text)
        for (name, type_), argument in zip(ring.types().items(), arguments, strict=True)
    }
    result = sqlglot.parse_one(ring.result, dialect=SPARK_TEXT)
    sums = {name: _component(ring, name, given, conditions) for name in ring.shown}

    def over_sums(node: exp.Expr) -> exp.Expr:
        return exp.paren(sums[node.name].copy()) if isinstance(node, exp.Column) else node

    return exp.paren(result.transform(over_sums))


def _component(
    ring: DeclaredRing, name: str, given: dict[str, exp.Expr], conditions: Sequence[exp.Expr]
) -> exp.Expr:
    """The sum of a component over the rows of which all arguments are known."""
    parts: list[exp.Expr] = []
    for number, factors in ring.factors(name):
        added: exp.Expr = exp.Sum(this=reduce(_times, _known(given, factors)))
        if conditions:
            added = exp.Filter(
                this=added, expression=exp.Where(this=exp.and_(*(c.copy() for c in conditions)))
            )
        total: exp.Expr = exp.Coalesce(this=added, expressions=[exp.Literal.number(0)])
        parts.append(total if number == 1 else _times(Scalar.number(number).ast(), total))
    return reduce(_plus, parts) if parts else exp.Literal.number(0)


def _known(given: dict[str, exp.Expr], factors: tuple[str, ...]) -> Iterator[exp.Expr]:
    """Factors, and for each argument that is none of them an indicator that it is known."""
    yield from (given[factor].copy() for factor in factors)
    yield from (presence(Scalar(value.copy())).ast() for name, value in given.items() if name not in factors)


def _times(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    return exp.Mul(this=left, expression=right)


def _plus(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    return exp.Add(this=left, expression=right)
