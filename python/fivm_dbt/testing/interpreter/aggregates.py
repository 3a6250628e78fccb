"""An aggregate call becomes a function of the rows of a group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from fivm_dbt.testing.interpreter.errors import NotUnderstood
from fivm_dbt.testing.interpreter.expressions import boolean_of, compile_expression, reads
from fivm_dbt.testing.interpreter.scope import Context, Env, Expression, at_depth
from fivm_dbt.testing.interpreter.types import Type
from fivm_dbt.testing.interpreter.values import Row, Value, row_key, sorted_rows


@dataclass(frozen=True)
class Aggregate:
    """An aggregate: its type, and its value over rows."""

    type: Type
    of: Callable[[Sequence[Env]], Value]


@dataclass
class Call:
    """A call of an aggregate, taken apart."""

    name: str
    arguments: list[exp.Expr]
    node: exp.Expr
    is_distinct: bool = False
    filter: exp.Expr | None = None
    order: exp.Expr | None = None
    ignores_nulls: bool = False
    is_star: bool = False


Fold = Callable[[list[Row]], Value]
Build = Callable[[list[Expression], Call], tuple[Type, Fold]]

AGGREGATES: dict[str, Build] = {}
"""By name: from the arguments to the type, and to the value over the rows' arguments."""


def aggregate(*names: str) -> Callable[[Build], Build]:
    def register(build: Build) -> Build:
        AGGREGATES.update(dict.fromkeys(names, build))
        return build

    return register


def taken_apart(node: exp.Expr) -> Call | None:
    """The call of an aggregate that a node is, with the clauses around it."""
    inner, clauses = node, []
    while isinstance(inner, (exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)):
        clauses.append(inner)
        inner = inner.this
    if not isinstance(inner, exp.Anonymous) or inner.this not in AGGREGATES:
        return None
    call = Call(inner.this, list(inner.expressions), node)
    if len(call.arguments) == 1 and isinstance(call.arguments[0], exp.Distinct):
        call.is_distinct = True
        if call.arguments[0].args.get("on") is not None:
            raise NotUnderstood("DISTINCT ON", node)
        call.arguments = list(call.arguments[0].expressions)
    if any(isinstance(a, (exp.Distinct, exp.Order, exp.Limit, exp.IgnoreNulls)) for a in call.arguments):
        raise NotUnderstood(f"{call.name} with a clause inside", node)
    if len(call.arguments) == 1 and isinstance(call.arguments[0], exp.Star):
        call.arguments, call.is_star = [], True
    for clause in clauses:
        if isinstance(clause, exp.Filter):
            call.filter = clause.expression.this
        elif isinstance(clause, exp.WithinGroup):
            call.order = clause.expression
        elif isinstance(clause, exp.IgnoreNulls):
            call.ignores_nulls = True
    return call


def has_aggregate(node: exp.Expr) -> bool:
    """Whether there is an aggregate of this query below ``node``: none of a subquery, and no function of a window."""
    if isinstance(node, (exp.Subquery, exp.Query, exp.Exists)):
        return False
    if isinstance(node, exp.Window):
        call = taken_apart(node.this)
        below = [node.args[a] for a in ("partition_by", "order", "spec") if node.args.get(a)]
        flat = [n for b in below for n in (b if isinstance(b, list) else [b])]
        if call is None:
            return any(has_aggregate(n) for n in [*_children(node.this), *flat])
        clauses = [n for n in (call.filter, call.order) if n is not None]
        return any(has_aggregate(n) for n in [*call.arguments, *clauses, *flat])
    if isinstance(node, exp.In) and node.args.get("query") is not None:
        return has_aggregate(node.this)
    if taken_apart(node) is not None:
        return True
    return any(has_aggregate(child) for child in _children(node))


def _children(node: exp.Expr) -> list[exp.Expr]:
    return list(node.iter_expressions())


def compile_aggregate(node: exp.Expr, context: Context) -> Aggregate:
    """An aggregate over rows of ``context``."""
    call = taken_apart(node)
    if call is None:
        raise NotUnderstood("an aggregate", node)
    arguments = [compile_expression(a, context) for a in call.arguments]
    keys = [compile_expression(o.this, context) for o in call.order.expressions] if call.order else []
    if keys and (not arguments or call.name.startswith("PERCENTILE")):
        # What is ordered is what is aggregated.
        arguments = [keys[0], *arguments]
    type_, fold = AGGREGATES[call.name](arguments, call)
    wanted = None if call.filter is None else boolean_of(call.filter, context).of
    values = [a.of for a in arguments]
    directions = order_of(call.order)

    def of(rows: Sequence[Env]) -> Value:
        chosen = [env for env in rows if wanted is None or wanted(env) is True]
        if keys:
            chosen = sorted_rows(chosen, directions, lambda env: [k.of(env) for k in keys])
        lines = [tuple(v(env) for v in values) for env in chosen]
        if call.is_distinct:
            lines = list({row_key(line): line for line in reversed(lines)}.values())[::-1]
        return fold(lines)

    return Aggregate(type_, of)


def order_of(order: exp.Expr | None) -> list[tuple[int, bool, bool]]:
    terms = order.expressions if order is not None else []
    return [(i, bool(o.args.get("desc")), bool(o.args.get("nulls_first"))) for i, o in enumerate(terms)]


def in_groups(node: exp.Expr, context: Context) -> Expression:
    """An aggregate where it stands: of the nearest groups around, which in a WHERE are those of the outer query."""
    depth, place = 0, context
    while place.groups is None and place.parent is not None:
        depth, place = depth + 1, place.parent
    if place.groups is None:
        raise NotUnderstood("an aggregate where there are no groups", node)
    return at_depth(place.groups.aggregate(node), depth)


@reads(exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)
def with_clauses(node: exp.Expr, context: Context) -> Expression:
    if taken_apart(node) is None:
        raise NotUnderstood(f"{type(node).__name__} of no aggregate", node)
    return in_groups(node, context)
