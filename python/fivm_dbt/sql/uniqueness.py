"""Which columns tell the rows of a relation apart: declared keys, and those that the operators make."""

from __future__ import annotations

from itertools import islice, product

from fivm_dbt.catalog import Catalog
from fivm_dbt.ir.nodes import (
    Aggregate,
    ClockFilter,
    Distinct,
    Filter,
    Join,
    Map,
    Node,
    Scan,
    SemiJoin,
    Window,
)
from fivm_dbt.ir.scalar import ColumnId

Key = frozenset[ColumnId]
_MANY = 8
"""More keys of a join are not looked at: their number is the product of those of its factors."""


def unique_keys(node: Node, catalog: Catalog) -> tuple[Key, ...]:
    """Sets of fields in which no two rows of ``node`` are equal; none where nothing is known.

    A key of ``R ⋈ S`` is one of R with one of S; what is grouped has its group keys; the rest keeps what it shows.
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
        return tuple(frozenset(below[c] for c in key) for key in keys if key <= below.keys())
    if isinstance(node, Aggregate):
        return (frozenset((node.alias, key.name) for key in node.keys),)
    if isinstance(node, Distinct):
        return (frozenset(f.id for f in node.fields),)
    if isinstance(node, Join):
        choices = islice(product(*(unique_keys(factor, catalog) for factor in node.factors)), _MANY)
        return tuple(frozenset[ColumnId]().union(*choice) for choice in choices)
    return ()
