"""The table of known functions of rows has those that take values of any type, too."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from fivm_dbt.testing.interpreter import aggregate_functions, aggregate_moments  # noqa: F401
from fivm_dbt.testing.interpreter.aggregates import AGGREGATES, in_groups
from fivm_dbt.testing.interpreter.comparisons import comparable
from fivm_dbt.testing.interpreter.errors import NotUnderstood
from fivm_dbt.testing.interpreter.expressions import boolean_of, compile_expression, reads, unified
from fivm_dbt.testing.interpreter.scope import Context, Env, Expression, at_depth
from fivm_dbt.testing.interpreter.types import BOOLEAN
from fivm_dbt.testing.interpreter.values import Value, compare, equal

Build = Callable[[list[Expression], exp.Expr], Expression]

FUNCTIONS: dict[str, Build] = {}
"""By name: from arguments that have been read to the call."""

SPECIAL: dict[str, Callable[[exp.Expr, Context], Expression]] = {}
"""Those that read their arguments themselves."""


def function(*names: str) -> Callable[[Build], Build]:
    def register(build: Build) -> Build:
        FUNCTIONS.update(dict.fromkeys(names, build))
        return build

    return register


def special(*names: str) -> Callable[..., Callable[[exp.Expr, Context], Expression]]:
    def register(
        build: Callable[[exp.Expr, Context], Expression],
    ) -> Callable[[exp.Expr, Context], Expression]:
        SPECIAL.update(dict.fromkeys(names, build))
        return build

    return register


@reads(exp.Anonymous)
def call(node: exp.Expr, context: Context) -> Expression:
    name = node.this
    if name in SPECIAL:
        return SPECIAL[name](node, context)
    if name in FUNCTIONS:
        if any(isinstance(a, (exp.Kwarg, exp.Distinct, exp.Star, exp.Lambda)) for a in node.expressions):
            raise NotUnderstood(f"{name} with other arguments than values", node)
        return FUNCTIONS[name]([compile_expression(a, context) for a in node.expressions], node)
    if name in AGGREGATES:
        return in_groups(node, context)
    raise NotUnderstood(f"function {name}", node)


@special("GROUPING", "GROUPING_ID")
def grouping(node: exp.Expr, context: Context) -> Expression:
    depth, place = 0, context
    while place.groups is None and place.is_lambda and place.parent is not None:
        depth, place = depth + 1, place.parent
    if place.groups is None:
        raise NotUnderstood(f"{node.name} where there are no groups", node)
    build = place.groups.grouping if node.this == "GROUPING" else place.groups.grouping_id
    return at_depth(build(node.expressions), depth)


@special("IF", "IFF")
def if_(node: exp.Expr, context: Context) -> Expression:
    test = boolean_of(node.expressions[0], context).of
    type_, (yes, no) = unified([compile_expression(n, context) for n in node.expressions[1:]], node)
    return Expression(type_, lambda env: yes.of(env) if test(env) is True else no.of(env))


@function("COALESCE", "NVL", "IFNULL")
def coalesce(arguments: list[Expression], node: exp.Expr) -> Expression:
    type_, values = unified(arguments, node)

    def of(env: Env) -> Value:
        return next((found for v in values if (found := v.of(env)) is not None), None)

    return Expression(type_, of)


@function("NVL2")
def nvl2(arguments: list[Expression], node: exp.Expr) -> Expression:
    test = arguments[0].of
    type_, (yes, no) = unified(arguments[1:], node)
    return Expression(type_, lambda env: yes.of(env) if test(env) is not None else no.of(env))


@function("NULLIF")
def nullif(arguments: list[Expression], node: exp.Expr) -> Expression:
    one, other = comparable(arguments[0], arguments[1], node)
    value = arguments[0].of

    def of(env: Env) -> Value:
        a, b = one.of(env), other.of(env)
        return None if a is not None and b is not None and equal(a, b) else value(env)

    return Expression(arguments[0].type, of)


@function("GREATEST", "LEAST")
def greatest(arguments: list[Expression], node: exp.Expr) -> Expression:
    """NULLs are passed over."""
    type_, values = unified(arguments, node)
    sign = 1 if node.name == "GREATEST" else -1

    def of(env: Env) -> Value:
        best: Value = None
        for value in (v.of(env) for v in values):
            if value is not None and (best is None or compare(value, best) * sign > 0):
                best = value
        return best

    return Expression(type_, of)


@function("ISNULL", "ISNOTNULL")
def is_null(arguments: list[Expression], node: exp.Expr) -> Expression:
    of, wanted = arguments[0].of, node.name == "ISNULL"
    return Expression(BOOLEAN, lambda env: (of(env) is None) is wanted)


@function("ISNAN")
def is_nan(arguments: list[Expression], node: exp.Expr) -> Expression:
    of = arguments[0].of
    return Expression(BOOLEAN, lambda env: (v := of(env)) is not None and v != v)


@function("EQUAL_NULL")
def equal_null(arguments: list[Expression], node: exp.Expr) -> Expression:
    one, other = comparable(arguments[0], arguments[1], node)

    def of(env: Env) -> bool:
        a, b = one.of(env), other.of(env)
        return a is b if a is None or b is None else equal(a, b)

    return Expression(BOOLEAN, of)
