"""Functions that take a function of the user's have these types."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import INT
from fivm_dbt.functions.function import Arguments
from fivm_dbt.functions.type_rules import array_of, element, element_of, map_of, parts_of_map
from fivm_dbt.functions.widening import common_type
from fivm_dbt.ir.scalar import cast_ast


def _result(arguments: Arguments, place: int, given: Sequence[SparkType | None]) -> SparkType | None:
    """The type of a lambda's body over arguments of the types ``given``."""
    body = arguments.nodes[place] if place < len(arguments.nodes) else None
    if not isinstance(body, exp.Lambda):
        return None
    names = [p.name for p in body.expressions]
    if len(names) > len(given) or any(t is None for t in given[: len(names)]):
        return None
    types = {name: t for name, t in zip(names, given, strict=False) if t is not None}

    def visit(node: exp.Expr) -> exp.Expr:
        # A variable in a lambda is read as a bare identifier.
        is_bare = isinstance(node, exp.Identifier) and not isinstance(node.parent, (exp.Column, exp.Dot))
        if isinstance(node, exp.Dot) and isinstance(node.this, exp.Identifier) and node.this.name in types:
            return exp.Dot(
                this=exp.paren(cast_ast(exp.Null(), types[node.this.name])), expression=node.expression
            )
        return cast_ast(exp.Null(), types[node.name]) if is_bare and node.name in types else node

    return arguments.type_of(body.this.copy().transform(visit))


def transform(arguments: Arguments) -> SparkType | None:
    """``transform(a, x -> f(x))``, or of the element and its place."""
    return array_of(_result(arguments, 1, [element(arguments), INT]))


def aggregate(arguments: Arguments) -> SparkType | None:
    """``aggregate(a, start, (acc, x) -> f, acc -> g)``: of the start's type unless it is finished by g."""
    start = arguments.type(1)
    merged = _result(arguments, 2, [start, element(arguments)])
    if merged != start:
        return None
    return _result(arguments, 3, [start]) if len(arguments.nodes) > 3 else start


def zip_with(arguments: Arguments) -> SparkType | None:
    """``zip_with(a, b, (x, y) -> f)``."""
    return array_of(_result(arguments, 2, [element(arguments), element_of(arguments.type(1))]))


def map_zip_with(arguments: Arguments) -> SparkType | None:
    """``map_zip_with(m, n, (k, v, w) -> f)``."""
    (key, v), (other, w) = parts_of_map(arguments.type(0)), parts_of_map(arguments.type(1))
    both = common_type([key, other])
    return map_of(both, _result(arguments, 2, [both, v, w]))


def transform_keys(arguments: Arguments) -> SparkType | None:
    """``transform_keys(m, (k, v) -> f)``."""
    key, value = parts_of_map(arguments.type(0))
    return map_of(_result(arguments, 1, [key, value]), value)


def transform_values(arguments: Arguments) -> SparkType | None:
    """``transform_values(m, (k, v) -> f)``."""
    key, value = parts_of_map(arguments.type(0))
    return map_of(key, _result(arguments, 1, [key, value]))
