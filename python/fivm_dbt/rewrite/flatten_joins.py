"""Select-project-join subqueries are merged into the SELECT around them.

``Π_a(σ_p(R ⋈ Π_b(S ⋈ T))) = Π_{a∘b}(σ_{p∘b}(R ⋈ S ⋈ T))``: one n-ary join has one delta term per changed input,
while nested joins would evaluate the inner one again for each term of the outer one.
"""

from __future__ import annotations

from dataclasses import replace

from fivm_dbt.ir.aggregate import Aggregate, AggregateCall
from fivm_dbt.ir.clock import clock_kinds
from fivm_dbt.ir.match import Match
from fivm_dbt.ir.node import Item, Node
from fivm_dbt.ir.nodes import Filter, Join, Map, OuterJoin, SemiJoin, UnionAll, Window
from fivm_dbt.ir.rename import substituted, with_meaning
from fivm_dbt.ir.scalar import ColumnId, Scalar
from fivm_dbt.ir.sessions import Sessions

Meaning = dict[ColumnId, Scalar]


def flatten_joins(node: Node) -> Node:
    """``node`` with projections composed, filters gathered, and nested inner joins made one."""
    node = node.with_inputs(tuple(flatten_joins(child) for child in node.inputs))
    if isinstance(node, Filter):
        return _filter(node)
    if isinstance(node, Map):
        core, meaning = _dissolve(node.input)
        return Map(core, node.alias, _apply_items(node.items, meaning))
    if isinstance(node, Window):
        core, meaning = _dissolve(node.input)
        if any(
            meaning[c].may_raise
            for i in (*node.partition, *node.items)
            for c in i.value.columns & meaning.keys()
        ):
            core, meaning = node.input, {}  # DuckDB takes no such expression in the ORDER BY of a window
        parts = {
            "partition": _without_constants(_apply_items(node.partition, meaning), node.near is not None),
            "items": _apply_items(node.items, meaning),
            "near": with_meaning(node.near, meaning),
        }
        if isinstance(node, Sessions):
            parts["at"] = _apply(node.at, meaning)
        return replace(node, input=core, **parts)
    if isinstance(node, Match):
        core, meaning = _dissolve(node.input)
        partition = _apply_items(node.partition, meaning)
        return replace(node, input=core, partition=partition, columns=_apply_items(node.columns, meaning))
    if isinstance(node, Aggregate):
        core, meaning = _dissolve(node.input)
        keys = _apply_items(node.keys, meaning)
        calls = tuple(_apply_call(c, meaning) for c in node.calls)
        factored = with_meaning(node.factored, meaning)
        near = with_meaning(node.near, meaning)
        return replace(node, input=core, keys=keys, calls=calls, factored=factored, near=near)
    return node


def _filter(node: Filter) -> Node:
    inner = node.input
    if isinstance(inner, Filter):
        return Filter(inner.input, inner.predicates + node.predicates)
    if isinstance(inner, Join):
        return Join(inner.factors, inner.predicates + node.predicates)
    return node


def _dissolve(node: Node) -> tuple[Node, Meaning]:
    """``node`` without its own projection, and what the fields it had mean over the rest."""
    if isinstance(node, Map) and _is_mergeable(node.input):
        core, meaning = _dissolve(node.input)
        return core, {(node.alias, i.name): _apply(i.value, meaning) for i in node.items}
    if isinstance(node, Filter):
        core, meaning = _dissolve(node.input)
        predicates = tuple(_apply(p, meaning) for p in node.predicates)
        return _filter(Filter(core, predicates)), meaning
    if isinstance(node, Join):
        return _join(node)
    if isinstance(node, (OuterJoin, SemiJoin)):
        core, meaning = _dissolve(node.left)
        if _has_lateral(core):
            return node, {}
        predicates = tuple(_apply(p, meaning) for p in node.predicates)
        if any(clock_kinds(p) for p in predicates) and not any(clock_kinds(p) for p in node.predicates):
            # A comparison with the clock on the left stays a column there: it is no part of such a join's condition.
            return node, {}
        if isinstance(node, OuterJoin):
            return OuterJoin(core, node.right, predicates), meaning
        return SemiJoin(core, node.right, predicates, node.anti), meaning
    if node.passes_rows:
        core, meaning = _dissolve(node.inputs[0])
        return substituted(node, (core, *node.inputs[1:]), meaning), meaning
    return node, {}


def _has_lateral(node: Node) -> bool:
    """Whether rows are generated in the FROM clause that ``node`` makes: LATERAL VIEW stands behind all joins."""
    if node.makes_rows:
        return True
    in_clause = node.passes_rows or isinstance(node, Join)
    return in_clause and any(_has_lateral(child) for child in node.inputs)


def _join(node: Join) -> tuple[Join, Meaning]:
    factors: list[Node] = []
    predicates: list[Scalar] = []
    meaning: Meaning = {}
    for factor in node.factors:
        core, renamed = _dissolve(factor)
        meaning.update(renamed)
        # A HAVING stays with its aggregate; any other filter is a predicate of the join.
        if isinstance(core, Filter) and not isinstance(core.input, Aggregate):
            predicates += core.predicates
            core = core.input
        if isinstance(core, Join):
            factors += core.factors
            predicates += core.predicates
        else:
            factors.append(core)
    predicates += [_apply(p, meaning) for p in node.predicates]
    return Join(tuple(factors), tuple(predicates)), meaning


def _is_mergeable(node: Node) -> bool:
    """Whether a projection over ``node`` can dissolve: over a filtered aggregate it holds HAVING and stays."""
    return not (isinstance(node, Filter) and isinstance(node.input, (Aggregate, UnionAll)))


def _apply(scalar: Scalar, meaning: Meaning) -> Scalar:
    return scalar.substitute(meaning.get) if meaning else scalar


def _apply_items(items: tuple[Item, ...], meaning: Meaning) -> tuple[Item, ...]:
    return tuple(Item(i.name, _apply(i.value, meaning), i.type) for i in items)


def _without_constants(partition: tuple[Item, ...], is_near: bool) -> tuple[Item, ...]:
    """What rows are told apart by: a constant in PARTITION BY tells none apart. Of ``is_near`` block and day stay."""
    of, rest = (partition[:-2], partition[-2:]) if is_near else (partition, ())
    return (*(item for item in of if item.value.columns), *rest)


def _apply_call(call: AggregateCall, meaning: Meaning) -> AggregateCall:
    argument = _apply(call.argument, meaning) if call.argument is not None else None
    written = _apply(call.written, meaning) if call.written is not None else None
    return replace(call, argument=argument, written=written)
