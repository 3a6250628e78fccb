"""LATERAL subqueries in FROM: computed for every row on their left, unnested like subqueries in expressions."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from fivm_dbt.ir.nodes import Field, Filter, Item, Join, Map, Node, OuterJoin
from fivm_dbt.ir.scalar import conjuncts
from fivm_dbt.sql.expressions import to_scalar, unparenthesized
from fivm_dbt.sql.outer_joins import as_one_item, gathered
from fivm_dbt.sql.parse import unsupported
from fivm_dbt.sql.part import Part
from fivm_dbt.sql.scope import Source
from fivm_dbt.sql.subqueries import Around, correlated, is_one_group, joined_value, query_of, same
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
        joined = _with_totals(around, left, query, name, given, keeps_all=outer)
        if outer and on is not None and unparenthesized(on) != exp.Boolean(this=True):
            raise unsupported(on, "LEFT JOIN LATERAL of a total with a condition", "filter in WHERE")
    else:
        lowered, scope = correlated(around, query)
        item = as_one_item(around.lowering, Part((), (), (lowered.node,))).node
        width = len(lowered.names)
        conditions = same(scope, item.fields[width : width + len(scope.captured)])
        columns = tuple(zip(given or lowered.names, item.fields[:width], strict=True))
        sources, outputs = (*left.sources, Source(name, columns)), (*left.outputs, *columns)
        if outer:
            both = Part(sources, outputs, (left.node, item))
            extra = () if on is None else tuple(to_scalar(p, both.scope) for p in conjuncts(on))
            return Part(sources, outputs, (OuterJoin(left.node, item, (*conditions, *extra)),))
        joined = Part(sources, outputs, (Join((left.node, item), conditions),))
    if on is None:
        return joined
    predicates = tuple(to_scalar(p, joined.scope) for p in conjuncts(on))
    return Part(joined.sources, joined.outputs, (Filter(joined.node, predicates),))


def _with_totals(
    around: Around, left: Part, query: exp.Select, name: str, given: list[str], *, keeps_all: bool
) -> Part:
    """A query without GROUP BY has one row for every row on the left: each of its columns is a scalar subquery.

    With HAVING it may have none: then the row on the left goes, or, in a LEFT JOIN, stays with NULLs.
    """
    lowering = around.lowering
    before = around.relation.fields
    names, values = [], []
    for expression in query.expressions:
        one = query.copy()
        one.set("expressions", [expression.unalias().copy()])
        around, value = joined_value(around, one.subquery())
        values.append(to_scalar(value, around.scope))
        names.append(expression.alias_or_name or expression.sql(dialect="spark").lower())
    if query.args.get("having") is not None and not keeps_all:
        one = query.copy()
        one.set("expressions", [exp.true()])
        around, passes = joined_value(around, one.subquery())
        around = replace(around, relation=Filter(around.relation, (to_scalar(passes, around.scope),)))
    alias = lowering.alias("totals")
    items, meaning = gathered(before, alias)
    types = lowering.typer.types(values, around.scope.types)
    columns: list[tuple[str, Field]] = []
    made: list[Item] = []

    for position, (shown, scalar, type_) in enumerate(
        zip(given or names, values, types, strict=True), start=1
    ):
        known = known_type(type_, query.expressions[position - 1])
        made.append(Item(f"total_{position}", scalar, known))
        columns.append((shown, Field(alias, f"total_{position}", known)))
    node: Node = Map(around.relation, alias, (*items, *made))
    moved = left.at(node, meaning)
    return Part((*moved.sources, Source(name, tuple(columns))), (*moved.outputs, *columns), (node,))
