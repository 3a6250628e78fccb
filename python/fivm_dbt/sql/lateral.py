"""LATERAL subqueries in FROM are computed for every row on their left, and unnested as other subqueries are."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from fivm_dbt.ir.node import Field, Item, Node
from fivm_dbt.ir.nodes import Filter, Join, Map
from fivm_dbt.ir.one_sided import OuterJoin
from fivm_dbt.ir.scalar import Scalar, conjuncts
from fivm_dbt.naming import unique_name
from fivm_dbt.sql.column_names import column_names
from fivm_dbt.sql.domains import correlated, same
from fivm_dbt.sql.expressions import to_scalar, unparenthesized
from fivm_dbt.sql.membership import has_subquery, query_of
from fivm_dbt.sql.outer_joins import as_one_item, gathered
from fivm_dbt.sql.part import Part
from fivm_dbt.sql.scope import Source
from fivm_dbt.sql.subqueries import Around, joined_total, with_columns
from fivm_dbt.sql.totals import is_one_group
from fivm_dbt.sql.typing import known_type


def lateral_join(around: Around, left: Part, join: exp.Join, *, outer: bool) -> Part:
    """``left, LATERAL (query)``: each row on the left with the rows that the query has for it."""
    lateral = join.this
    query = query_of(lateral.this)
    alias = lateral.args.get("alias")
    name = alias.name if alias is not None and alias.name else around.lowering.alias("lateral")
    given = [c.name for c in alias.args.get("columns") or []] if alias is not None else []
    on = join.args.get("on")
    if isinstance(query, exp.Select) and is_one_group(query):
        return _with_total(around, left, query=query, name=name, given=given, on=on, outer=outer)
    lowered, scope = correlated(around, query)
    item = as_one_item(around.lowering, Part((), (), (lowered.node,))).node
    width = len(lowered.names)
    conditions = same(scope, item.fields[width : width + len(scope.captured)])
    columns = tuple(zip(column_names(given, lowered.names, lateral), item.fields[:width], strict=True))
    both = replace(
        left,
        sources=(*left.sources, Source(name, columns)),
        outputs=(*left.outputs, *columns),
        factors=(left.node, item),
        predicates=(),
    )
    inside = both.scope_in(around.scope.outer)
    extra = () if on is None else tuple(to_scalar(p, inside) for p in conjuncts(on))
    if outer:
        return replace(both, factors=(OuterJoin(left.node, item, (*conditions, *extra)),))
    joined = Join((left.node, item), conditions)
    return replace(both, factors=(Filter(joined, extra) if extra else joined,))


def _with_total(
    around: Around,
    left: Part,
    query: exp.Select,
    name: str,
    given: list[str],
    on: exp.Expr | None,
    *,
    outer: bool,
) -> Part:
    """A query without GROUP BY has one row for every row on the left.

    With HAVING it may have none, and the condition of the join may not hold: then the row on the left goes, or, in a
    LEFT JOIN, stays with NULLs.
    """
    lowering = around.lowering
    before = around.relation.fields
    around, values, passes = joined_total(around, query)
    shown: list[Scalar] = []
    for value in values:
        around, plain = with_columns(around, value) if has_subquery(value) else (around, value)
        shown.append(to_scalar(plain, around.scope))
    kept: list[Scalar] = []
    if passes is not None:
        around, plain = with_columns(around, passes) if has_subquery(passes) else (around, passes)
        kept.append(to_scalar(plain, around.scope))
    types = [
        known_type(t, e)
        for t, e in zip(lowering.typer.types(shown, around.scope.types), query.expressions, strict=True)
    ]
    names = [e.alias_or_name or e.sql(dialect="spark").lower() for e in query.expressions]
    alias = lowering.alias("totals")
    items, meaning = gathered(before, alias)
    taken = {i.name.lower() for i in items}
    made = []
    for scalar, type_ in zip(shown, types, strict=True):
        made.append(Item(unique_name("total", taken), scalar, type_))
        taken.add(made[-1].name.lower())
    columns = tuple(
        (n, Field(alias, item.name, item.type))
        for n, item in zip(column_names(given, names, query), made, strict=True)
    )
    if kept and not outer:
        around = replace(around, relation=Filter(around.relation, tuple(kept)))
    if kept and outer:
        made = [replace(i, value=_where(kept, i.value)) for i in made]
    node: Node = Map(around.relation, alias, (*items, *made))
    moved = left.at(node, meaning)
    joined = replace(
        moved, sources=(*moved.sources, Source(name, columns)), outputs=(*moved.outputs, *columns)
    )
    if on is None or unparenthesized(on) == exp.Boolean(this=True):
        return joined
    inside = joined.scope_in(around.scope.outer)
    conditions = [to_scalar(p, inside) for p in conjuncts(on)]
    if not outer:
        return replace(joined, factors=(Filter(node, tuple(conditions)),))
    return _null_unless(around, joined, columns, conditions)


def _null_unless(
    around: Around, part: Part, columns: tuple[tuple[str, Field], ...], conditions: list[Scalar]
) -> Part:
    """The part with NULL in ``columns`` of the rows for which the conditions do not hold."""
    alias = around.lowering.alias("joined")
    items, meaning = gathered(part.node.fields, alias)
    optional = {field.id for _, field in columns}
    made = tuple(
        replace(item, value=_where(conditions, item.value)) if field.id in optional else item
        for item, field in zip(items, part.node.fields, strict=True)
    )
    return part.at(Map(part.node, alias, made), meaning)


def _where(conditions: list[Scalar], value: Scalar) -> Scalar:
    holds = exp.and_(*(c.ast() for c in conditions))
    return Scalar(exp.Case(ifs=[exp.If(this=holds, true=value.ast())]))
