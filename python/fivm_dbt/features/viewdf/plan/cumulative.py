"""Some models only add up: ``V[j] = γ_{K; SUM}(Q(j) ⊎ V[j-1])``, as for sliding sums (ViewDF, section 5.2.2).

All later parts of such a model move by the same amount when one changes, so that late data is added to all of them in
one statement, instead of computing them one after the other. And parts in a row are running sums of what each adds:

    ``V[j] = γ_{K; SUM}(V[a-1] ⊎ Q(a) ⊎ ... ⊎ Q(j))``
"""

from __future__ import annotations

from dataclasses import replace

from fivm_dbt.features.viewdf.plan.by_part import OneByOne, by_part
from fivm_dbt.features.viewdf.plan.model import PART, Cumulative, PartQuery, Together
from fivm_dbt.ir.aggregate import Aggregate
from fivm_dbt.ir.node import Item, Node
from fivm_dbt.ir.nodes import Map, UnionAll
from fivm_dbt.ir.reads import Scan
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.parts.reference import Bound
from fivm_dbt.rewrite.pipeline import rewrite


def cumulative(node: Node, query: PartQuery, own: str) -> Cumulative | None:
    """How ``node``, UPDATE of the model ``own``, adds up; None where it does anything else.

    Its columns are the keys and the sums of one aggregate over a union of rows of the inputs with the rows of the part
    before, each column of which goes into the column of its own name. Sums of doubles are left out: the order in which
    they are added would be another.
    """
    mine = [r for r in query.reads if r.reference.relation == own]
    before = Bound(1, -1)
    if len(mine) != 1 or (mine[0].reference.low, mine[0].reference.high) != (before, before):
        return None
    if not isinstance(node, Map) or not isinstance(node.input, Aggregate):
        return None
    total, rows = node.input, node.input.input
    if total.is_global or not isinstance(rows, UnionAll):
        return None
    rows = UnionAll(_branches(rows), rows.alias)
    previous = [b for b in rows.branches if _reads(b, mine[0].placeholder)]
    if len(previous) != 1:
        return None
    copied = _copied(previous[0], rows)
    found = None if copied is None else _columns(node, total, copied)
    if found is None:
        return None
    return replace(found, added=_added(node, total, rows, previous[0], query))


def _added(node: Map, total: Aggregate, rows: UnionAll, previous: Node, query: PartQuery) -> Together | None:
    """What the branches but the ``previous`` part give for many parts, each column in the place of its sum or key."""
    others = tuple(b for b in rows.branches if b is not previous)
    if not others:
        return None
    source: Node = others[0] if len(others) == 1 else UnionAll(others, rows.alias)
    place = {f.scalar: given for f, given in zip(rows.fields, source.fields, strict=True)}
    arguments = {Scalar.column(total.alias, k.name): k.value for k in total.keys}
    arguments |= {Scalar.column(total.alias, c.name): c.argument for c in total.calls if c.argument}
    given = [place.get(arguments[item.value]) for item in node.items]
    items = [Item(i.name, g.scalar, g.type) for i, g in zip(node.items, given, strict=True) if g is not None]
    if len(items) < len(node.items):
        return None
    try:
        added = by_part(
            rewrite(Map(source, "added", tuple(items))), {r.placeholder for r in query.reads}, PART
        )
    except OneByOne:
        return None
    return Together(added, tuple(i.name for i in node.items))


def _branches(rows: UnionAll) -> tuple[Node, ...]:
    """Those of unions within the union too: their columns are its columns, by position."""
    nested = (_branches(b) if isinstance(b, UnionAll) else (b,) for b in rows.branches)
    return tuple(branch for branches in nested for branch in branches)


def _reads(node: Node, placeholder: str) -> bool:
    return any(isinstance(n, Scan) and n.relation == placeholder for n in node.walk())


def _copied(branch: Node, rows: UnionAll) -> dict[Scalar, str] | None:
    """By column of the union the own column that the branch puts there; None where it does more than that."""
    own = _own_columns(branch)
    if own is None or any(f.scalar not in own for f in branch.fields):
        return None
    return {field.scalar: own[f.scalar] for field, f in zip(rows.fields, branch.fields, strict=True)}


def _own_columns(node: Node) -> dict[Scalar, str] | None:
    """The columns of a scan, and of projections over it that rename them; None of anything else."""
    if isinstance(node, Scan):
        return {f.scalar: f.name for f in node.fields}
    if not isinstance(node, Map):
        return None
    below = _own_columns(node.input)
    if below is None:
        return None
    return {
        f.scalar: below[i.value] for f, i in zip(node.fields, node.items, strict=True) if i.value in below
    }


def _columns(node: Map, total: Aggregate, copied: dict[Scalar, str]) -> Cumulative | None:
    keys = {Scalar.column(total.alias, k.name): k.value for k in total.keys}
    sums = {
        Scalar.column(total.alias, c.name): c.argument
        for c in total.calls
        if c.function.lower() == "sum" and c.written is None and not c.type.is_floating
    }
    found: tuple[list[int], list[int]] = ([], [])
    for position, item in enumerate(node.items):
        into = 0 if item.value in keys else 1
        source = keys.get(item.value) if into == 0 else sums.get(item.value)
        if source is None or copied.get(source, "").lower() != item.name.lower():
            return None
        found[into].append(position)
    if len(found[0]) != len(total.keys) or not found[1]:
        return None
    return Cumulative(tuple(found[0]), tuple(found[1]))
