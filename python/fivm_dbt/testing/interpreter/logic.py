"""Logic combines conditions; BETWEEN and IN combine comparisons."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from fivm_dbt.testing.interpreter.errors import NotUnderstood
from fivm_dbt.testing.interpreter.expressions import boolean_of, compile_expression, reads, unified, uses
from fivm_dbt.testing.interpreter.scope import Context, Env, Expression, strict
from fivm_dbt.testing.interpreter.subqueries import in_query, not_in
from fivm_dbt.testing.interpreter.types import BOOLEAN
from fivm_dbt.testing.interpreter.values import Value, equal


@reads(exp.Is)
def is_(node: exp.Expr, context: Context) -> Expression:
    wanted = node.expression
    if isinstance(wanted, exp.Null):
        of = compile_expression(node.this, context).of
        return Expression(BOOLEAN, lambda env: of(env) is None)
    if isinstance(wanted, exp.Boolean):
        of, value = boolean_of(node.this, context).of, bool(wanted.this)
        return Expression(BOOLEAN, lambda env: of(env) is value)
    raise NotUnderstood("IS", node)


@reads(exp.And, exp.Or)
def logic(node: exp.Expr, context: Context) -> Expression:
    left, right = boolean_of(node.this, context).of, boolean_of(node.expression, context).of
    return _logic(isinstance(node, exp.Or), left, right)


def _logic(decides: bool, left: Callable[[Env], Value], right: Callable[[Env], Value]) -> Expression:
    """OR where True ``decides``, AND where False does."""

    def of(env: Env) -> bool | None:
        a = left(env)
        if a is decides:
            return decides
        b = right(env)
        if b is decides:
            return decides
        return None if a is None or b is None else not decides

    return Expression(BOOLEAN, of)


@reads(exp.Not)
def not_(node: exp.Expr, context: Context) -> Expression:
    """Spark brings NOT down to the operands of AND and OR: NOT IN of a query is not the opposite of IN."""
    operand = node.this.unnest()
    if isinstance(operand, exp.Not):
        return boolean_of(operand.this, context)
    if isinstance(operand, (exp.And, exp.Or)):
        left, right = (not_(exp.Not(this=n), context).of for n in (operand.this, operand.expression))
        return _logic(isinstance(operand, exp.And), left, right)
    if isinstance(operand, exp.In) and operand.args.get("query") is not None:
        return not_in(operand, context)
    return strict(BOOLEAN, lambda x: not x, boolean_of(operand, context))


@reads(exp.Between)
def between(node: exp.Expr, context: Context) -> Expression:
    low = exp.GTE(this=node.this.copy(), expression=node.args["low"].copy())
    high = exp.LTE(this=node.this.copy(), expression=node.args["high"].copy())
    return _logic(False, compile_expression(low, context).of, compile_expression(high, context).of)


uses(exp.Between, "this", "low", "high")


@reads(exp.In)
def in_(node: exp.Expr, context: Context) -> Expression:
    if node.args.get("query") is not None:
        return in_query(node, context)
    items = [compile_expression(n, context) for n in (node.this, *node.expressions)]
    _, (value, *listed) = unified(items, node)

    def of(env: Env) -> bool | None:
        wanted = value.of(env)
        if wanted is None:
            return None
        found = [item.of(env) for item in listed]
        if any(v is not None and equal(v, wanted) for v in found):
            return True
        return None if None in found else False

    return Expression(BOOLEAN, of)


uses(exp.In, "this", "expressions", "query")
