"""PIVOT and UNPIVOT are read as what they abbreviate: conditional aggregates, and a row per column."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from fivm_dbt.catalog.types import STRING, SparkType
from fivm_dbt.errors import FivmError
from fivm_dbt.ir.node import Field, Item
from fivm_dbt.ir.nodes import Explode, Filter, Map
from fivm_dbt.ir.scalar import Scalar, cast_ast
from fivm_dbt.naming import unique_name
from fivm_dbt.sql.aggregation import aggregated
from fivm_dbt.sql.expressions import unparenthesized
from fivm_dbt.sql.functions import is_aggregate
from fivm_dbt.sql.lowered import Ctes
from fivm_dbt.sql.parse import span_of, unsupported
from fivm_dbt.sql.part import Part
from fivm_dbt.sql.scope import Source
from fivm_dbt.sql.subqueries import Around

if TYPE_CHECKING:
    from fivm_dbt.sql.lower import Lowering


def pivoted(lowering: Lowering, part: Part, pivot: exp.Pivot, ctes: Ctes) -> Part:
    """The part of a FROM clause behind which PIVOT or UNPIVOT stands."""
    name = pivot.alias or lowering.alias("pivoted")
    columns = (
        _unpivot(lowering, part, pivot) if pivot.args.get("unpivot") else _pivot(lowering, part, pivot, ctes)
    )
    node, outputs = columns
    return Part((Source(name, outputs),), outputs, (node,))


def _pivot(
    lowering: Lowering, part: Part, pivot: exp.Pivot, ctes: Ctes
) -> tuple[Map, tuple[tuple[str, Field], ...]]:
    """A group per value of the other columns. A cell without a row is NULL, also of COUNT; see ``_has_numbers``."""
    (turned,) = pivot.args["fields"]
    keys = turned_columns(turned.this)
    used = {c.name.lower() for e in (turned.this, *pivot.expressions) for c in e.find_all(exp.Column)}
    others = [n for n, _ in part.outputs if n.lower() not in used]
    cells: list[tuple[str, exp.Expr, exp.Expr]] = []
    for value in turned.expressions:
        if len(turned_columns(value)) != len(keys):
            what = f"a value of PIVOT has {len(turned_columns(value))} parts for {len(keys)} columns"
            raise unsupported(value, what, "give each value a part for each column")
        condition = exp.and_(
            *(
                exp.NullSafeEQ(this=key.copy(), expression=v.copy())
                for key, v in zip(keys, turned_columns(value), strict=True)
            )
        )
        for call in pivot.expressions:
            cells.append((cell_name(value, call, len(pivot.expressions)), call.unalias(), condition))
    select = (
        exp.Select(group=exp.Group(expressions=[exp.column(n) for n in others])) if others else exp.Select()
    )
    around = Around(lowering, part.node, part.scope, ctes)

    def read(cell: Callable[[exp.Expr, exp.Expr], exp.Expr]) -> tuple[Map, tuple[tuple[str, Field], ...]]:
        projections: list[tuple[str, exp.Expr]] = [(n, exp.column(n)) for n in others]
        projections += [(name, cell(call, condition)) for name, call, condition in cells]
        node = aggregated(lowering, select, around, projections, "pivoted")
        assert isinstance(node, Map)
        return node, tuple((n, f) for (n, _), f in zip(projections, node.fields, strict=True))

    node, outputs = read(_cell)
    if _has_numbers([field.type for _, field in outputs[len(others) :]]):
        return node, outputs
    return read(_among)


def _has_numbers(types: Sequence[SparkType]) -> bool:
    """Whether Spark makes a group for each value first, so that a cell of no rows is NULL whatever its aggregate.

    It does so where every cell is a number or a truth value; otherwise each aggregate is of the rows of its cell,
    and of none COUNT is 0 and COLLECT_LIST the empty array.
    """
    return all(t.is_numeric or t.text == "boolean" for t in types)


def turned_columns(node: exp.Expr) -> list[exp.Expr]:
    """The columns that PIVOT turns, or the parts of one of their values, without the value's alias."""
    inner = unparenthesized(node.this if _is_named(node) else node)
    return list(inner.expressions) if isinstance(inner, exp.Tuple) else [inner]


def _cell(call: exp.Expr, condition: exp.Expr) -> exp.Expr:
    """``call`` over the rows of one cell, NULL where it has none."""
    one = exp.Case(ifs=[exp.If(this=condition.copy(), true=exp.Literal.number(1))])
    there = exp.GT(this=exp.Count(this=one), expression=exp.Literal.number(0))
    return exp.Case(ifs=[exp.If(this=there, true=_among(call, condition))])


def _among(call: exp.Expr, condition: exp.Expr) -> exp.Expr:
    """The aggregates of ``call`` over the rows of one cell."""

    def visit(part: exp.Expr) -> exp.Expr:
        if is_aggregate(part):
            return exp.Filter(this=part.copy(), expression=exp.Where(this=condition.copy()))
        return part

    found = call.copy()
    if is_aggregate(found):
        found = visit(found)
    else:
        for part in [p for p in found.walk() if is_aggregate(p)]:
            part.replace(visit(part))
    return found


def cell_name(value: exp.Expr, call: exp.Expr, calls: int) -> str:
    """The name of a cell as Spark gives it. Raises FIVM105 for one of several aggregates that has no plain name."""
    shown = value.args["alias"].name if _is_named(value) else _shown(value)
    if calls == 1:
        return shown
    return f"{shown}_{call.alias or _plain_name(call)}"


def _is_named(value: exp.Expr) -> bool:
    return isinstance(value, (exp.PivotAlias, exp.Alias))


def _plain_name(call: exp.Expr) -> str:
    """The name of a simple aggregate over a column."""
    argument = call.this
    if isinstance(call, (exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max)):
        if isinstance(argument, exp.Star):
            return f"{call.key}(1)"
        if isinstance(argument, exp.Column):
            return f"{call.key}({argument.name})"
    raise unsupported(
        call, "one of several aggregates of PIVOT without a name", "write it with AS and a name"
    )


def _shown(value: exp.Expr) -> str:
    """A value as Spark's CAST(... AS STRING) shows it."""
    inner = unparenthesized(value)
    if isinstance(inner, exp.Tuple):
        return "{" + ", ".join(_shown(part) for part in inner.expressions) + "}"
    if isinstance(inner, (exp.Boolean, exp.Null)):
        return inner.sql(dialect="spark").lower()
    if isinstance(inner, exp.Cast) and isinstance(inner.this, exp.Literal):
        inner = inner.this
    return inner.name if isinstance(inner, exp.Literal) else inner.sql(dialect="spark")


def _unpivot(lowering: Lowering, part: Part, pivot: exp.Pivot) -> tuple[Map, tuple[tuple[str, Field], ...]]:
    """A row for each of the columns listed; NULLs are left out unless INCLUDE NULLS is said."""
    (turned,) = pivot.args["fields"]
    if isinstance(turned.this, exp.Tuple) or isinstance(pivot.expressions[0].unnest(), exp.Tuple):
        raise unsupported(pivot, "UNPIVOT into several value columns", "unpivot one after the other")
    value_name, key_name = pivot.expressions[0].name, turned.this.name
    listed = [_listed(e) for e in turned.expressions]
    fields = [_field(part, column) for column, _ in listed]
    type_ = lowering.typer.common([f.type for f in fields])
    if type_ is None:
        shown = ", ".join(f"{f.name} {f.type}" for f in fields)
        raise FivmError("FIVM113", f"no common type of {shown}", span=span_of(pivot), remedy="CAST them")
    arguments: list[exp.Expr] = []
    for (_, label), field in zip(listed, fields, strict=True):
        arguments += [exp.Literal.string(label), cast_ast(field.scalar.ast(), type_)]
    stack = exp.Stack(this=exp.Literal.number(len(listed)), expressions=arguments)
    made = Explode(
        part.node, lowering.alias("unpivoted"), Scalar(stack), (("label", STRING), ("cell", type_))
    )
    cell = Scalar.column(made.alias, "cell")
    is_there = Scalar(exp.Not(this=exp.Is(this=cell.ast(), expression=exp.Null())))
    rows = made if pivot.args.get("include_nulls") else Filter(made, (is_there,))
    gone = {f.id for f in fields}
    items: list[Item] = []
    names: list[str] = []
    for name, field in part.outputs:
        if field.id not in gone:
            names.append(name)
            items.append(Item(unique_name(name, {i.name.lower() for i in items}), field.scalar, field.type))
    for name, column, kind in ((key_name, "label", STRING), (value_name, "cell", type_)):
        names.append(name)
        unique = unique_name(name, {i.name.lower() for i in items})
        items.append(Item(unique, Scalar.column(made.alias, column), kind))
    node = Map(rows, lowering.alias("unpivoted"), tuple(items))
    return node, tuple(zip(names, node.fields, strict=True))


def _listed(node: exp.Expr) -> tuple[str, str]:
    """A column of UNPIVOT and the label of its rows."""
    if _is_named(node):
        return node.this.name, node.args["alias"].name
    return node.name, node.name


def _field(part: Part, name: str) -> Field:
    found = next((f for n, f in part.outputs if n.lower() == name.lower()), None)
    if found is None:
        raise part.scope.unknown(exp.column(name))
    return found
