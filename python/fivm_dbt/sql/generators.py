"""LATERAL VIEW, LATERAL explode(...) and explode(...) in a select list become one operator."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import INT
from fivm_dbt.errors import FivmError
from fivm_dbt.functions.function import Kind
from fivm_dbt.functions.lookup import arguments, find
from fivm_dbt.functions.widening import VOID
from fivm_dbt.ir.calls import function_name
from fivm_dbt.ir.node import Field, Node
from fivm_dbt.ir.nodes import Explode
from fivm_dbt.ir.scalar import Scalar, column_ast
from fivm_dbt.naming import unique_name
from fivm_dbt.sql.column_names import column_names
from fivm_dbt.sql.expressions import check_row_level, qualify, unparenthesized
from fivm_dbt.sql.group_keys import Projections
from fivm_dbt.sql.parse import unsupported
from fivm_dbt.sql.part import Part
from fivm_dbt.sql.scope import Scope, Source
from fivm_dbt.sql.typing import known_type

if TYPE_CHECKING:
    from fivm_dbt.sql.lower import Lowering


def is_generator(node: exp.Expr) -> bool:
    """Whether a call makes several rows of one."""
    function = find(node)
    return function is not None and function.kind is Kind.GENERATOR and not function.refused


def lateral_view(
    lowering: Lowering, part: Part, scope: Scope, lateral: exp.Lateral, *, outer: bool = False
) -> Part:
    """The rows of ``part``, each with every row that the generator makes of it; ``scope`` is what it may name."""
    alias = lateral.args.get("alias")
    name = alias.name if alias is not None and alias.name else lowering.alias("generated")
    names = [c.name for c in alias.args.get("columns") or []] if alias is not None else []
    node, columns = _explode(
        lowering,
        part.node,
        scope=scope,
        call=lateral.this,
        names=names,
        outer=outer or bool(lateral.args.get("outer")),
    )
    source = Source(name, columns)
    if any(s.name.lower() == name.lower() for s in part.sources):
        raise FivmError("FIVM104", f"two relations are called {name}", remedy="give each its own alias")
    return replace(
        part,
        sources=(*part.sources, source),
        outputs=(*part.outputs, *columns),
        factors=(node,),
        predicates=(),
    )


def generated_columns(
    lowering: Lowering, scope: Scope, relation: Node, projections: Projections
) -> tuple[Scope, Node, Projections]:
    """A SELECT whose list has a generator: the generator moves into FROM, its columns take its place."""
    result: Projections = []
    for name, value in projections:
        inner, names = (
            (value.this, [e.name for e in value.expressions])
            if isinstance(value, exp.Aliases)
            else (value, [])
        )
        if not is_generator(inner):
            result.append((name, value))
            continue
        wanted = names or (
            [name] if name and name != inner.sql(dialect="spark", comments=False).lower() else []
        )
        relation, columns = _explode(lowering, relation, scope=scope, call=inner, names=wanted, outer=False)
        alias = lowering.alias("generated_columns")
        source = Source(alias, columns)
        scope = replace(scope, sources=(*scope.sources, source))
        result += [(n, column_ast(alias, n)) for n, _ in columns]
    return scope, relation, result


def _explode(
    lowering: Lowering, relation: Node, scope: Scope, call: exp.Expr, names: list[str], outer: bool
) -> tuple[Explode, tuple[tuple[str, Field], ...]]:
    function = function_name(call) or ""
    if not is_generator(call):
        raise unsupported(
            call, f"{function or call.key} makes rows in a way that is not maintained yet", "use explode"
        )
    for argument in call.iter_expressions():
        check_row_level(argument)
    generator = Scalar(qualify(call, scope))
    types = _types(lowering, generator, scope, call)
    shown = column_names(names, [n for n, _ in types], call, function)
    taken: set[str] = set()
    columns = []
    for name, (_, type_) in zip(shown, types, strict=True):
        column = unique_name(name, taken)
        taken.add(column.lower())
        columns.append((column, type_))
    alias = lowering.alias("generated")
    node = Explode(relation, alias, generator, tuple(columns), outer)
    fields = tuple(
        (shown_name, Field(alias, name, type_))
        for shown_name, (name, type_) in zip(shown, columns, strict=True)
    )
    return node, fields


def _types(
    lowering: Lowering, generator: Scalar, scope: Scope, shown: exp.Expr
) -> list[tuple[str, SparkType]]:
    """Names and types of the generated columns."""
    call = generator.ast()
    function = function_name(call) or ""
    given, *values = arguments(call)
    if function == "stack":
        rows = Scalar(unparenthesized(given)).as_number
        if rows is None or rows < 1 or not values:
            raise unsupported(shown, "STACK without a number of rows and values", "write STACK(2, a, b)")
        types = [
            known_type(t, v)
            for t, v in zip(
                lowering.typer.types([Scalar(v.copy()) for v in values], scope.types), values, strict=True
            )
        ]
        width = -(-len(values) // rows)
        return [(f"col{i}", _one_type(types[i::width], shown)) for i in range(width)]
    (collection,) = lowering.typer.types([Scalar(given.copy())], scope.types)
    type_ = known_type(collection, shown)
    is_inline = function.startswith("inline")
    made = type_.element_columns(inline=is_inline)
    if made is None:
        wanted = "an array of structs" if is_inline else "an array or a map"
        raise unsupported(shown, f"{function} over {type_}", f"give it {wanted}")
    return [("pos", INT), *made] if function.startswith("pos") else made


def _one_type(types: list[SparkType], shown: exp.Expr) -> SparkType:
    """The type of a column of STACK; Spark converts nothing but NULLs there."""
    found = dict.fromkeys(t for t in types if t != VOID)
    if len(found) > 1:
        what = f"STACK puts {' and '.join(t.text for t in found)} into one column"
        raise unsupported(shown, what, "CAST them to one type")
    return next(iter(found), VOID)
