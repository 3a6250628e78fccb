"""Old rows of an input are its new rows less its change: ``old R = new R ⊎ −ΔR``.

Delta computes an old version of a table anew in each statement that reads one, and ΔR lies staged. An operator that is
linear in R has the same rows over either side of the equation, if multiplicities are multiplied (F-IVM, section 5).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from functools import reduce

from fivm_dbt.catalog.types import BIGINT
from fivm_dbt.delta.term import Term
from fivm_dbt.ir.buckets import Buckets
from fivm_dbt.ir.node import Item, Node, Side
from fivm_dbt.ir.nodes import Join, Map, UnionAll
from fivm_dbt.ir.reads import Scan
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.naming import COUNT, TIMES

_ONCE = Scalar.number(1).cast(BIGINT.text)


def old_from_new(term: Term, changed: Collection[str]) -> Term:
    """``term`` with the old rows of ``changed`` relations counted, wherever it is linear in them.

    ``ΔS ⋈ old R = ΔS ⋈ new R − ΔS ⋈ ΔR``, in one read. What is not linear keeps its old version: groups, the right
    sides of outer and semi joins, sets of keys.
    """
    node, times = _counted(term.node, changed)
    return replace(term, node=node, multiplicity=_product(term.multiplicity, times))


def _counted(node: Node, changed: Collection[str]) -> tuple[Node, tuple[Scalar, ...]]:
    """``node`` over counted rows, and the columns that the multiplicities of its rows are the product of."""
    match node:
        case Scan(relation, alias, columns, Side.OLD) if relation in changed:
            counted = Scan(relation, alias, (*columns, (COUNT, BIGINT)), Side.COUNTED)
            return counted, (Scalar.column(alias, COUNT),)
        case Join():
            inputs = [_counted(factor, changed) for factor in node.factors]
            return node.with_inputs(tuple(n for n, _ in inputs)), tuple(
                t for _, times in inputs for t in times
            )
        case _ if node.passes_rows:
            rows, times = _counted(node.inputs[0], changed)
            return node.with_inputs((rows, *node.inputs[1:])), times
        case Map() | Buckets():
            rows, times = _counted(node.input, changed)
            if not times:
                return node, ()
            items = (*node.items, _carried(times))
            return replace(node, input=rows, items=items), (Scalar.column(node.alias, TIMES),)
        case UnionAll():
            return _counted_union(node, changed)
        case _:
            return node, ()


def _counted_union(node: UnionAll, changed: Collection[str]) -> tuple[Node, tuple[Scalar, ...]]:
    inputs = [_counted(branch, changed) for branch in node.branches]
    if not any(times for _, times in inputs):
        return node, ()
    branches = (
        Map(rows, node.alias, (*_renamed(node, branch), _carried(times)))
        for branch, (rows, times) in zip(node.branches, inputs, strict=True)
    )
    return UnionAll(tuple(branches), node.alias), (Scalar.column(node.alias, TIMES),)


def _renamed(node: UnionAll, branch: Node) -> Iterable[Item]:
    pairs = zip(node.fields, branch.fields, strict=True)
    return (Item(outer.name, inner.scalar, outer.type) for outer, inner in pairs)


def _carried(times: tuple[Scalar, ...]) -> Item:
    return Item(TIMES, _product(Scalar.number(1), times) if times else _ONCE, BIGINT)


def _product(multiplicity: Scalar, times: tuple[Scalar, ...]) -> Scalar:
    """``multiplicity × times × …``, without a factor of one."""
    if not times:
        return multiplicity
    sign = multiplicity.as_number
    factors = times if sign in (1, -1) else (multiplicity, *times)
    value = reduce(Scalar.times, factors)
    return value.negated() if sign == -1 else value
