"""Select-project-join subqueries are merged into the SELECT around them.

``Π_a(σ_p(R ⋈ Π_b(S ⋈ T))) = Π_{a∘b}(σ_{p∘b}(R ⋈ S ⋈ T))``: one n-ary join has one delta term per changed input,
while nested joins would evaluate the inner one again for each term of the outer one.
"""

from __future__ import annotations

from dataclasses import replace

from fivm_dbt.ir.aggregate import Aggregate
from fivm_dbt.ir.clock import clock_kinds
from fivm_dbt.ir.local import Local
from fivm_dbt.ir.node import Node
from fivm_dbt.ir.nodes import Filter, Join, Map, UnionAll
from fivm_dbt.ir.one_sided import OneSided
from fivm_dbt.ir.rename import substituted
from fivm_dbt.ir.scalar import ColumnId, Scalar

Meaning = dict[ColumnId, Scalar]


def flatten_joins(node: Node) -> Node:
    """``node`` with projections composed, filters gathered, and nested inner joins made one."""
    node = node.with_inputs(tuple(flatten_joins(child) for child in node.inputs))
    if isinstance(node, Filter):
        return _filter(node)
    if not node.computes_columns:
        return node
    (rows,) = node.inputs
    core, meaning = _dissolve(rows)
    if isinstance(node, Local) and not node.accepts(meaning):
        core, meaning = rows, {}
    over = substituted(node, (core,), meaning)
    return over.simplified() if isinstance(over, Local) else over


def parts_of_join(node: Node) -> tuple[tuple[Node, ...], tuple[Scalar, ...]]:
    """The factors and the predicates of a flat join; of another node itself, or what a filter is on."""
    return ((node.input,), node.predicates) if isinstance(node, Filter) else node.joined()


def joined(factors: tuple[Node, ...], predicates: tuple[Scalar, ...]) -> Node:
    """What :func:`parts_of_join` takes apart."""
    if len(factors) > 1:
        return Join(factors, predicates)
    return Filter(factors[0], predicates) if predicates else factors[0]


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
    if isinstance(node, OneSided):
        core, meaning = _dissolve(node.left)
        if _has_lateral(core):
            return node, {}
        predicates = tuple(_apply(p, meaning) for p in node.predicates)
        if any(clock_kinds(p) for p in predicates) and not any(clock_kinds(p) for p in node.predicates):
            # A comparison with the clock on the left stays a column there: it is no part of such a join's condition.
            return node, {}
        return replace(node, left=core, predicates=predicates), meaning
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
