"""The last value up to the own row is the own one: ``LAST_VALUE(x) OVER (… UNBOUNDED PRECEDING) = x``.

Where rows are equal in the order of the window they are equal in ``x`` too, else the query is refused as one that has
several right results.
"""

from __future__ import annotations

from dataclasses import replace

from fivm_dbt.ir.frames import has_window, with_own_values
from fivm_dbt.ir.node import Node
from fivm_dbt.ir.nodes import Map
from fivm_dbt.ir.window import Window


def own_rows(node: Node) -> Node:
    """``node`` without window functions that give what stands in the row; a projection where no other ones are left."""
    node = node.with_inputs(tuple(own_rows(child) for child in node.inputs))
    if type(node) is not Window:
        return node
    exact = frozenset(f.scalar for f in node.input.fields if f.type.is_exact)
    items = tuple(replace(item, value=with_own_values(item.value, exact)) for item in node.items)
    if any(has_window(i.value) for i in items):
        return replace(node, items=items)
    return Map(node.input, node.alias, items)
