"""Generators are functions that make several rows of one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from fivm_dbt.testing.interpreter.errors import NotUnderstood
from fivm_dbt.testing.interpreter.expressions import compile_expression, constant_of, unified
from fivm_dbt.testing.interpreter.scope import Column, Context, Env, Expression
from fivm_dbt.testing.interpreter.types import INT, Type
from fivm_dbt.testing.interpreter.values import Row

NAMES = frozenset("EXPLODE EXPLODE_OUTER POSEXPLODE POSEXPLODE_OUTER INLINE INLINE_OUTER STACK".split())


@dataclass(frozen=True)
class Generator:
    """What a generator makes: its columns, and its rows."""

    columns: tuple[Column, ...]
    rows: Callable[[Env], list[Row]]


def generator_of(node: exp.Expr, context: Context, is_outer: bool = False) -> Generator | None:
    """The generator that a node calls, None where it calls none. ``is_outer``: a row of NULLs where there are none."""
    if not isinstance(node, exp.Anonymous) or node.this not in NAMES:
        return None
    arguments = [a.expression if isinstance(a, exp.Kwarg) else a for a in node.expressions]
    compiled = [compile_expression(a, context) for a in arguments]
    if node.this == "STACK":
        return _stack(compiled, node)
    if len(compiled) != 1:
        raise NotUnderstood(node.this, node)
    columns = _columns(node, compiled[0].type)
    has_place = node.this.startswith("POS")
    of, kind = compiled[0].of, node.this.removesuffix("_OUTER")
    is_map = compiled[0].type.name == "map"

    def rows(env: Env) -> list[Row]:
        items = of(env) or ()
        if kind == "INLINE":
            found = [item if item is not None else (None,) * len(columns) for item in items]
        else:
            found = [tuple(item) if is_map else (item,) for item in items]
            if has_place:
                found = [(n, *line) for n, line in enumerate(found)]
        if not found and (is_outer or node.this.endswith("_OUTER")):
            return [(None,) * len(columns)]
        return found

    return Generator(columns, rows)


def _columns(node: exp.Expr, type_: Type) -> tuple[Column, ...]:
    place = (Column("pos", INT),) if node.this.startswith("POS") else ()
    if node.this.startswith("INLINE"):
        if type_.name != "array" or type_.args[0].name != "struct":
            raise NotUnderstood(f"inline of {type_}", node)
        return tuple(Column(n, t) for n, t in type_.args[0].args)
    if type_.name == "array":
        return (*place, Column("col", type_.args[0]))
    if type_.name == "map":
        return (*place, Column("key", type_.args[0]), Column("value", type_.args[1]))
    raise NotUnderstood(f"explode of {type_}", node)


def _stack(arguments: list[Expression], node: exp.Expr) -> Generator:
    count = constant_of(arguments[0], node.expressions[0])
    values = arguments[1:]
    width = -(-len(values) // count)
    if len(values) != width * count:
        raise NotUnderstood("stack whose last row is not full", node)
    columns = [unified(values[i::width], node) for i in range(width)]
    shown = tuple(Column(f"col{i}", t) for i, (t, _) in enumerate(columns))
    return Generator(
        shown, lambda env: [tuple(items[n].of(env) for _, items in columns) for n in range(count)]
    )
