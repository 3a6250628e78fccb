"""Which columns tell the rows of a relation apart: declared keys, and those that the operators make."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, product

from sqlglot import exp

from fivm_dbt.catalog import Catalog
from fivm_dbt.ir.aggregate import Aggregate
from fivm_dbt.ir.node import Node
from fivm_dbt.ir.nodes import ClockFilter, Distinct, Filter, Join, Map, OuterJoin, Scan, SemiJoin, Window
from fivm_dbt.ir.scalar import ColumnId, Scalar
from fivm_dbt.sql.expressions import unparenthesized

Key = frozenset[ColumnId]
_MANY = 8
"""More keys of a join are not looked at: their number is the product of those of its factors."""


def unique_keys(node: Node, catalog: Catalog) -> tuple[Key, ...]:
    """Sets of fields in which no two rows of ``node`` are equal; none where nothing is known.

    A key of ``R ⋈ S`` and of ``R LEFT JOIN S`` is one of R with one of S: of one row of R there are partners, or one
    row without any. What is grouped has its group keys, ``ROW_NUMBER() OVER (PARTITION BY p)`` is one with ``p``, and
    the rest keeps what it shows.
    """
    if isinstance(node, Scan):
        relation = catalog.find(node.relation)
        declared = relation.keys if relation is not None else ()
        fields = {f.name.lower(): f.id for f in node.fields}
        return tuple(
            frozenset(fields[n] for n in key) for key in declared if key and set(key) <= fields.keys()
        )
    if isinstance(node, (Filter, ClockFilter, SemiJoin)):
        return unique_keys(node.inputs[0], catalog)
    if isinstance(node, (Map, Window)):
        shown = {item.value: (node.alias, item.name) for item in node.items}
        below = {f.id: shown[f.scalar] for f in node.input.fields if f.scalar in shown}
        keys = unique_keys(node.input, catalog)
        kept = tuple(frozenset(below[c] for c in key) for key in keys if key <= below.keys())
        return kept if isinstance(node, Map) else (*kept, *_numbered(node))
    if isinstance(node, Aggregate):
        return (frozenset((node.alias, key.name) for key in node.keys),)
    if isinstance(node, Distinct):
        return (frozenset(f.id for f in node.fields),)
    if isinstance(node, (Join, OuterJoin)):
        factors = node.factors if isinstance(node, Join) else node.inputs
        choices = islice(product(*(unique_keys(factor, catalog) for factor in factors)), _MANY)
        return tuple(frozenset[ColumnId]().union(*choice) for choice in choices)
    return ()


def _numbered(node: Window) -> Iterator[Key]:
    """``ROW_NUMBER()`` with what it partitions by, where that is shown."""
    shown = {item.value: (node.alias, item.name) for item in node.items}
    for item in node.items:
        call = item.value.ast()
        if isinstance(call, exp.Window) and isinstance(call.this, exp.RowNumber):
            by = [Scalar(unparenthesized(p.copy())) for p in call.args.get("partition_by") or []]
            if all(p in shown for p in by):
                yield frozenset({(node.alias, item.name), *(shown[p] for p in by)})
