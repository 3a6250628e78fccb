"""An expression in a context becomes a type and a function of the row."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from sqlglot import exp

from fivm_dbt.testing.interpreter.casts import cast
from fivm_dbt.testing.interpreter.errors import NotUnderstood
from fivm_dbt.testing.interpreter.scope import Context, Env, Expression, at_depth, column_at, field_of
from fivm_dbt.testing.interpreter.types import (
    BIGINT,
    BOOLEAN,
    INT,
    NULL,
    STRING,
    Type,
    decimal,
    type_of,
    wider,
)
from fivm_dbt.testing.interpreter.values import Value, fits

Compile = Callable[[exp.Expr, Context], Expression]

NODES: dict[type[exp.Expr], Compile] = {}
"""How a node of each class is read."""


def reads(*classes: type[exp.Expr]) -> Callable[[Compile], Compile]:
    def register(function: Compile) -> Compile:
        NODES.update(dict.fromkeys(classes, function))
        return function

    return register


def compile_expression(node: exp.Expr, context: Context) -> Expression:
    """What ``node`` means in a context. Above groups, what is grouped by is the key whatever it looks like."""
    if context.groups is not None:
        found = context.groups.key_of(node)
        if found is not None:
            return found
    function = NODES.get(type(node))
    if function is None:
        raise NotUnderstood(type(node).__name__, node)
    _check_arguments(node)
    return function(node, context)


_READ: dict[type[exp.Expr], frozenset[str]] = {}
"""Arguments of nodes that their readers use; other nodes have ``this``, ``expression`` and ``expressions``."""


def uses(node_class: type[exp.Expr], *arguments: str) -> None:
    _READ[node_class] = frozenset(arguments)


def _check_arguments(node: exp.Expr) -> None:
    known = _READ.get(type(node), frozenset(("this", "expression", "expressions")))
    for name, value in node.args.items():
        if value not in (None, False, []) and name not in known:
            raise NotUnderstood(f"{type(node).__name__} with {name}", node)


def converted(expression: Expression, target: Type) -> Expression:
    """An expression as a value of another type."""
    source, of = expression.type, expression.of
    if source == target:
        return expression
    if source == NULL:
        return Expression(target, lambda env: None)
    return Expression(target, lambda env: cast(of(env), source, target))


def unified(expressions: list[Expression], node: exp.Expr) -> tuple[Type, list[Expression]]:
    """All as the type that has the values of each."""
    common: Type | None = NULL
    # Strings first, as Spark does: whether there is a common type does not depend on the order.
    for expression in sorted(expressions, key=lambda e: e.type.name != "string"):
        common = wider(common, expression.type) if common is not None else None
    if common is None:
        raise NotUnderstood(f"common type of {', '.join(str(e.type) for e in expressions)}", node)
    return common, [converted(e, common) for e in expressions]


def constant(value: Value, type_: Type, node: exp.Expr | None = None) -> Expression:
    return Expression(type_, lambda env: value, node)


def constant_of(expression: Expression, node: exp.Expr) -> Value:
    """The value of what has to be a constant."""
    if any(node.find_all(exp.Column)):
        raise NotUnderstood("a constant that is a column", node)
    return expression.of(Env((), None))


@reads(exp.Literal)
def literal(node: exp.Expr, context: Context) -> Expression:
    text = node.name
    if node.args.get("is_string"):
        return constant(text, STRING, node)
    if text.isdigit():
        value = int(text)
        if fits(value, INT) or fits(value, BIGINT):
            return constant(value, INT if fits(value, INT) else BIGINT, node)
        return constant(Decimal(text), decimal(len(text), 0), node)
    if "e" in text.lower():
        return constant(float(text), Type("double"), node)
    exact = Decimal(text)
    digits, exponent = exact.as_tuple().digits, exact.as_tuple().exponent
    assert isinstance(exponent, int)
    return constant(exact, decimal(max(len(digits), -exponent), -exponent), node)


uses(exp.Literal, "this", "is_string")


@reads(exp.Null)
def null(node: exp.Expr, context: Context) -> Expression:
    return constant(None, NULL, node)


@reads(exp.Boolean)
def boolean(node: exp.Expr, context: Context) -> Expression:
    return constant(bool(node.this), BOOLEAN, node)


@reads(exp.Paren, exp.Ordered)
def inner(node: exp.Expr, context: Context) -> Expression:
    return compile_expression(node.this, context)


uses(exp.Ordered, "this", "desc", "nulls_first")


@reads(exp.Alias)
def alias(node: exp.Expr, context: Context) -> Expression:
    return compile_expression(node.this, context)


uses(exp.Alias, "this", "alias")


@reads(exp.Column)
def column(node: exp.Expr, context: Context) -> Expression:
    parts = [node.args[p].name for p in ("catalog", "db", "table", "this") if node.args.get(p)]
    found = _named(parts, node, context)
    if found is None:
        raise NotUnderstood(f"unknown column {'.'.join(parts)}", node)
    return found


uses(exp.Column, "this", "table", "db", "catalog")


@reads(exp.Identifier)
def identifier(node: exp.Expr, context: Context) -> Expression:
    """A parameter of a lambda, or a column in a place where only names may stand."""
    found = _named([node.name], node, context)
    if found is None:
        raise NotUnderstood(f"unknown name {node.name}", node)
    return found


uses(exp.Identifier, "this", "quoted")


def _named(parts: list[str], node: exp.Expr, context: Context) -> Expression | None:
    """A name's column: of the nearest context that has it, and there before the aliases of other items."""
    depth, place = 0, context
    while True:
        here = _here(parts, node, place)
        if here is not None:
            return at_depth(here, depth)
        if place.parent is None:
            return None
        depth, place = depth + 1, place.parent


def _here(parts: list[str], node: exp.Expr, place: Context) -> Expression | None:
    if place.groups is not None:
        found = place.groups.named(parts, node)
    else:
        where = place.find(parts, node)
        found = None if where is None else column_at(where.index, place.columns[where.index].type)
        for field in () if where is None else where.fields:
            assert found is not None
            found = field_of(found, field, node)
    if found is not None:
        return found
    defined = place.aliases.get(parts[0].lower())
    if defined is None:
        return None
    found = compile_expression(defined, place)
    for field in parts[1:]:
        found = field_of(found, field, node)
    return found


@reads(exp.Dot)
def dot(node: exp.Expr, context: Context) -> Expression:
    return field_of(compile_expression(node.this, context), node.expression.name, node)


@reads(exp.Cast, exp.TryCast)
def cast_node(node: exp.Expr, context: Context) -> Expression:
    source = compile_expression(node.this, context)
    return converted(source, type_of(node.args["to"]))


uses(exp.Cast, "this", "to", "safe")
uses(exp.TryCast, "this", "to", "safe")


@reads(exp.Case)
def case(node: exp.Expr, context: Context) -> Expression:
    operand = node.args.get("this")
    branches = node.args["ifs"]
    tests = []
    for branch in branches:
        test = branch.this if operand is None else exp.EQ(this=operand.copy(), expression=branch.this.copy())
        tests.append(boolean_of(test, context).of)
    values = [compile_expression(b.args["true"], context) for b in branches]
    default = node.args.get("default")
    values.append(compile_expression(default, context) if default is not None else constant(None, NULL))
    type_, converted_values = unified(values, node)
    pairs = list(zip(tests, [v.of for v in converted_values], strict=False))
    last = converted_values[-1].of

    def evaluate(env: Env) -> Value:
        for test, value in pairs:
            if test(env) is True:
                return value(env)
        return last(env)

    return Expression(type_, evaluate)


uses(exp.Case, "this", "ifs", "default")


def boolean_of(node: exp.Expr, context: Context) -> Expression:
    """A condition."""
    found = compile_expression(node, context)
    if found.type not in (BOOLEAN, NULL):
        if found.type == STRING:
            return converted(found, BOOLEAN)
        raise NotUnderstood(f"a condition of type {found.type}", node)
    return found
