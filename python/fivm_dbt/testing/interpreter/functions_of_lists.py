"""Functions of arrays, maps and structs are here, and those with lambdas."""

from __future__ import annotations

from collections.abc import Callable
from functools import cmp_to_key

from sqlglot import exp

from fivm_dbt.testing.interpreter.comparisons import comparable
from fivm_dbt.testing.interpreter.errors import NotUnderstood
from fivm_dbt.testing.interpreter.expressions import (
    boolean_of,
    compile_expression,
    constant_of,
    converted,
    reads,
    unified,
    uses,
)
from fivm_dbt.testing.interpreter.functions import function, special
from fivm_dbt.testing.interpreter.scope import Column, Context, Env, Expression, strict
from fivm_dbt.testing.interpreter.types import BOOLEAN, INT, STRING, Type, array, struct
from fivm_dbt.testing.interpreter.values import MapValue, Value, compare, equal, key


def _element(argument: Expression, node: exp.Expr) -> Type:
    if argument.type.name != "array":
        raise NotUnderstood(f"{node.name} of {argument.type}", node)
    found: Type = argument.type.args[0]
    return found


@function("ARRAY")
def array_(arguments: list[Expression], node: exp.Expr) -> Expression:
    type_, items = unified(arguments, node)
    return Expression(array(type_), lambda env: tuple(i.of(env) for i in items))


@function("MAP")
def map_(arguments: list[Expression], node: exp.Expr) -> Expression:
    (keys, ks), (values, vs) = unified(arguments[::2], node), unified(arguments[1::2], node)

    def of(env: Env) -> Value:
        return MapValue((k.of(env), v.of(env)) for k, v in zip(ks, vs, strict=True))

    return Expression(Type("map", (keys, values)), of)


@function("NAMED_STRUCT")
def named_struct(arguments: list[Expression], node: exp.Expr) -> Expression:
    names = [constant_of(a, n) for a, n in zip(arguments[::2], node.expressions[::2], strict=True)]
    values = arguments[1::2]
    type_ = struct(*((n, v.type) for n, v in zip(names, values, strict=True)))
    return Expression(type_, lambda env: tuple(v.of(env) for v in values))


@reads(exp.Struct)
def struct_node(node: exp.Expr, context: Context) -> Expression:
    fields: list[tuple[str, Expression]] = []
    for number, item in enumerate(node.expressions, start=1):
        if isinstance(item, (exp.PropertyEQ, exp.Alias)):
            name = item.alias if isinstance(item, exp.Alias) else item.this.name
            value = item.this if isinstance(item, exp.Alias) else item.expression
        else:
            name, value = (
                item.name if isinstance(item, (exp.Column, exp.Identifier)) else f"col{number}",
                item,
            )
        fields.append((name, compile_expression(value, context)))
    values = [v for _, v in fields]
    return Expression(struct(*((n, v.type) for n, v in fields)), lambda env: tuple(v.of(env) for v in values))


@reads(exp.Tuple)
def tuple_(node: exp.Expr, context: Context) -> Expression:
    items = [compile_expression(n, context) for n in node.expressions]
    type_ = Type("struct", tuple((f"col{i}", e.type) for i, e in enumerate(items, start=1)))
    return Expression(type_, lambda env: tuple(e.of(env) for e in items))


@function("SIZE", "CARDINALITY", "ARRAY_SIZE")
def size(arguments: list[Expression], node: exp.Expr) -> Expression:
    of = arguments[0].of
    nothing = None if node.name == "ARRAY_SIZE" else -1
    return Expression(INT, lambda env: nothing if (v := of(env)) is None else len(v))


def _placed(left: Value, right: Value) -> int:
    if left is None or right is None:
        return int(left is not None) - int(right is not None)
    return compare(left, right)


@function("SORT_ARRAY")
def sort_array(arguments: list[Expression], node: exp.Expr) -> Expression:
    """NULLs first, and last in descending order."""
    _element(arguments[0], node)
    ascending = len(arguments) < 2 or constant_of(arguments[1], node.expressions[1]) is True
    return strict(
        arguments[0].type,
        lambda a: tuple(sorted(a, key=cmp_to_key(_placed), reverse=not ascending)),
        arguments[0],
    )


@special("ARRAY_SORT")
def array_sort(node: exp.Expr, context: Context) -> Expression:
    """NULLs last."""
    if len(node.expressions) != 1:
        raise NotUnderstood("ARRAY_SORT with an order of its own", node)
    value = compile_expression(node.expressions[0], context)
    _element(value, node)

    def of(items: Value) -> Value:
        there = sorted((i for i in items if i is not None), key=cmp_to_key(compare))
        return (*there, *(i for i in items if i is None))

    return strict(value.type, of, value)


@function("ARRAY_DISTINCT")
def array_distinct(arguments: list[Expression], node: exp.Expr) -> Expression:
    def of(items: Value) -> Value:
        return tuple({key(v): v for v in reversed(items)}.values())[::-1]

    return strict(arguments[0].type, of, arguments[0])


@function("ARRAY_JOIN")
def array_join(arguments: list[Expression], node: exp.Expr) -> Expression:
    values = [converted(arguments[0], array(STRING)), *arguments[1:]]

    def of(items: Value, separator: str, instead: str | None = None) -> str:
        return separator.join(
            str(instead) if i is None else i for i in items if i is not None or instead is not None
        )

    return strict(STRING, of, *values)


@function("ARRAY_CONTAINS")
def array_contains(arguments: list[Expression], node: exp.Expr) -> Expression:
    element = Expression(_element(arguments[0], node), lambda env: None)
    type_ = comparable(element, arguments[1], node)[0].type
    values = converted(arguments[0], array(type_)), converted(arguments[1], type_)

    def of(items: Value, wanted: Value) -> bool | None:
        if any(i is not None and equal(i, wanted) for i in items):
            return True
        return None if None in items else False

    return strict(BOOLEAN, of, *values)


@function("ARRAY_MAX", "ARRAY_MIN")
def array_extreme(arguments: list[Expression], node: exp.Expr) -> Expression:
    sign = 1 if node.name == "ARRAY_MAX" else -1

    def of(items: Value) -> Value:
        there = [i for i in items if i is not None]
        return sorted(there, key=cmp_to_key(lambda a, b: -sign * compare(a, b)))[0] if there else None

    return strict(_element(arguments[0], node), of, arguments[0])


@function("ELEMENT_AT", "TRY_ELEMENT_AT", "GET")
def element_at(arguments: list[Expression], node: exp.Expr) -> Expression:
    base, place = arguments
    if base.type.name == "map":
        return strict(base.type.args[1], lambda m, k: m.get(k), base, converted(place, base.type.args[0]))

    def of(items: Value, number: int) -> Value:
        index = number if node.name == "GET" else number - 1 if number > 0 else len(items) + number
        return items[index] if 0 <= index < len(items) else None

    return strict(_element(base, node), of, base, place)


@reads(exp.Bracket)
def element(node: exp.Expr, context: Context) -> Expression:
    base, place = compile_expression(node.this, context), compile_expression(node.expressions[0], context)
    if base.type.name == "array" and place.type.is_integral:
        return strict(base.type.args[0], lambda a, i: a[i] if 0 <= i < len(a) else None, base, place)
    if base.type.name == "map":
        return strict(base.type.args[1], lambda m, k: m.get(k), base, converted(place, base.type.args[0]))
    raise NotUnderstood(f"element of {base.type}", node)


uses(exp.Bracket, "this", "expressions", "offset", "safe", "returns_list_for_maps")


@function("MAP_KEYS", "MAP_VALUES")
def of_map(arguments: list[Expression], node: exp.Expr) -> Expression:
    index = 0 if node.name == "MAP_KEYS" else 1
    return strict(
        array(arguments[0].type.args[index]), lambda m: tuple(pair[index] for pair in m), arguments[0]
    )


def _lambda(node: exp.Expr, types: list[Type], context: Context) -> tuple[Context, exp.Expr]:
    """The context of a lambda's body: its parameters, and all around it."""
    if not isinstance(node, exp.Lambda) or len(node.expressions) > len(types):
        raise NotUnderstood("a lambda", node)
    names = [p.name for p in node.expressions]
    columns = tuple(Column(n, t) for n, t in zip(names, types, strict=False))
    return Context(columns, context, context.relations, is_lambda=True), node.this


@special("TRANSFORM", "FILTER", "EXISTS", "ANY_MATCH", "FORALL")
def higher_order(node: exp.Expr, context: Context) -> Expression:
    value = compile_expression(node.expressions[0], context)
    element = _element(value, node)
    inside, body = _lambda(node.expressions[1], [element, INT], context)
    width = len(inside.columns)
    is_test = node.name != "TRANSFORM"
    found = boolean_of(body, inside) if is_test else compile_expression(body, inside)
    of = value.of

    def evaluate(env: Env) -> Value:
        items = of(env)
        if items is None:
            return None
        results = [found.of(Env((item, n)[:width], env)) for n, item in enumerate(items)]
        return _ENDS[node.name](items, results)

    types = {"TRANSFORM": array(found.type), "FILTER": value.type}
    return Expression(types.get(node.name, BOOLEAN), evaluate)


def _quantified(decides: bool) -> Callable[[Value, list[Value]], Value]:
    def of(items: Value, results: list[Value]) -> bool | None:
        if decides in results:
            return decides
        return None if None in results else not decides

    return of


_ENDS: dict[str, Callable[[Value, list[Value]], Value]] = {
    "TRANSFORM": lambda items, results: tuple(results),
    "FILTER": lambda items, results: tuple(i for i, r in zip(items, results, strict=True) if r is True),
    "EXISTS": _quantified(True),
    "FORALL": _quantified(False),
}


@special("AGGREGATE", "REDUCE")
def reduce_(node: exp.Expr, context: Context) -> Expression:
    value, start = (compile_expression(n, context) for n in node.expressions[:2])
    inside, body = _lambda(node.expressions[2], [start.type, _element(value, node)], context)
    step = compile_expression(body, inside)
    if step.type != start.type or len(node.expressions) > 3:
        raise NotUnderstood(f"{node.name} that changes its type", node)

    def of(env: Env) -> Value:
        items, total = value.of(env), start.of(env)
        if items is None:
            return None
        for item in items:
            total = step.of(Env((total, item), env))
        return total

    return Expression(start.type, of)
