"""Every operator keeps just the columns that something above it uses.

What a scan does not keep cannot change the model: a change of other columns nets to nothing when it is staged.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from fivm_dbt.ir.aggregate import Aggregate
from fivm_dbt.ir.clock import scalars_of
from fivm_dbt.ir.match import Match
from fivm_dbt.ir.node import Item, Node
from fivm_dbt.ir.nodes import Join, Map, Scan, UnionAll, Values, Window
from fivm_dbt.ir.scalar import ColumnId, Scalar
from fivm_dbt.ir.sessions import Sessions


def prune_columns(node: Node, needed: frozenset[ColumnId] | None = None) -> Node:
    """``node`` with only the fields in ``needed`` (all of them by default), and nothing unused below."""
    if needed is None:
        needed = frozenset(f.id for f in node.fields)
    if isinstance(node, Scan):
        return Scan(
            node.relation,
            node.alias,
            tuple(c for c in node.columns if (node.alias, c[0]) in needed),
            node.side,
        )
    if isinstance(node, Values):
        return node
    if isinstance(node, Map):
        items = tuple(i for i in node.items if (node.alias, i.name) in needed)
        return Map(prune_columns(node.input, _used(i.value for i in items)), node.alias, items)
    if node.passes_rows or isinstance(node, Join):
        wanted = needed | _used(scalars_of(node))
        return node.with_inputs(tuple(prune_columns(child, wanted & child.ids) for child in node.inputs))
    if isinstance(node, Window):
        items = tuple(i for i in node.items if (node.alias, i.name) in needed)
        at = (node.at,) if isinstance(node, Sessions) else ()
        used = _used((*(i.value for i in (*node.partition, *items)), *at))
        return replace(node, input=prune_columns(node.input, used), items=items)
    if isinstance(node, Match):
        # All its columns order the rows, so that none of them can be spared.
        items = tuple(i for i in node.items if (node.alias, i.name) in needed)
        used = _used(i.value for i in (*node.partition, *node.columns))
        return replace(node, input=prune_columns(node.input, used), items=items)
    if isinstance(node, Aggregate):
        calls = tuple(c for c in node.calls if (node.alias, c.name) in needed)
        parts = [s for c in calls for s in (c.argument, c.written) if s is not None]
        used = _used([*(k.value for k in node.keys), *parts])
        return Aggregate(prune_columns(node.input, used), node.alias, node.keys, calls, node.is_global)
    if isinstance(node, UnionAll):
        kept = [i for i, f in enumerate(node.fields) if f.id in needed]
        return UnionAll(tuple(_positions(branch, kept) for branch in node.branches), node.alias)
    raise TypeError(f"prune_columns does not know {type(node).__name__}")


def _positions(branch: Node, kept: list[int]) -> Node:
    """A branch of a union with just its columns at the positions ``kept``."""
    wanted = frozenset(branch.fields[i].id for i in kept)
    pruned = prune_columns(branch, wanted)
    if len(pruned.fields) == len(kept):
        return pruned
    # An aggregate keeps all its keys: cut them with a projection.
    alias = f"{branch.fields[0].table}_kept"
    items = tuple(Item(f.name, f.scalar, f.type) for f in branch.fields if f.id in wanted)
    return Map(pruned, alias, items)


def _used(scalars: Iterable[Scalar]) -> frozenset[ColumnId]:
    return frozenset(c for scalar in scalars for c in scalar.columns)
