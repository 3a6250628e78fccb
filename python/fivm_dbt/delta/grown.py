"""Groups to which rows only come are put together from what the state has of them and the change.

MIN, MAX, BOOL_AND and others of a group's rows are the same aggregate of those of any parts of them, and counts and
sums add up. With ΔR that has no row that goes, and γ' the aggregates of aggregates,

``γ_K(new R) ⋉ keys(ΔR) = γ'_K( γ_K(old R) ⋉ keys(ΔR) ⊎ γ_K(ΔR) )``

of which the old part is in the state: neither the input nor a copy of its rows is read. These aggregates have no
inverse, so that a group that a row leaves is recomputed (F-IVM, section 2: a semiring is enough for inserts).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from fivm_dbt.catalog.types import BIGINT
from fivm_dbt.delta.own_state import TOGETHER
from fivm_dbt.delta.term import Term, scans
from fivm_dbt.functions.of_parts import adds_up_by_parts, of_itself
from fivm_dbt.ir.aggregate import Aggregate, AggregateCall
from fivm_dbt.ir.build import aggregate
from fivm_dbt.ir.node import Item, Node
from fivm_dbt.ir.nodes import Map, UnionAll
from fivm_dbt.ir.scalar import ColumnId, Scalar
from fivm_dbt.naming import COUNT, is_kept, old_rows, unique_name
from fivm_dbt.rings.registry import over_rows


def loses_with(
    node: Node, static: frozenset[str], views: Mapping[str, frozenset[str] | None]
) -> frozenset[str] | None:
    """What has to lose rows for ``node`` to lose any, as :func:`old_rows`; None where it may although nothing does.

    ``views`` says the same of the inner views below.
    """
    if not all(n.is_linear for n in node.walk() if n.inputs):
        return None
    found: set[str] = set()
    for relation in {scan.relation for scan in scans(node)} - static:
        losing = views.get(relation) if is_kept(relation) else frozenset({old_rows(relation)})
        if losing is None:
            return None
        found |= losing
    return frozenset(found)


@TOGETHER.add(Aggregate)
def grown(rows: Map, groups: Aggregate, stored: Node, changed: tuple[Term, ...]) -> Map | None:
    """``rows`` of affected groups from the ``stored`` ones, which have their columns, and the rows that have come.

    None where some call of ``groups`` has no aggregate of aggregates, or something else than all groups is stored.
    """
    columns = {i.value: i.name for i in rows.items}
    names = [f.name for f in groups.fields]
    own = {n: columns.get(Scalar.column(groups.alias, n)) for n in names}
    again = {c.name: _of_parts(c, f"{groups.alias}_parts") for c in groups.calls}
    if rows.input is not groups or not groups.keys or None in (*own.values(), *again.values()):
        return None
    alias = f"{groups.alias}_parts"
    table = stored.fields[0].table
    before = tuple(Item(f.name, Scalar.column(table, str(own[f.name])), f.type) for f in groups.fields)
    came = _came(groups, changed)
    after = tuple(Item(f.name, f.scalar, f.type) for f in came.fields)
    parts = UnionAll((Map(stored, alias, before), Map(came, alias, after)), alias)
    keys = tuple(replace(k, value=Scalar.column(alias, k.name)) for k in groups.keys)
    calls = tuple(
        AggregateCall.as_written(c.name, c.function, value, c.type)
        for c in groups.calls
        if (value := again[c.name]) is not None
    )
    return Map(Aggregate(parts, groups.alias, keys, calls), rows.alias, rows.items)


def _of_parts(call: AggregateCall, alias: str) -> Scalar | None:
    """An aggregate over the rows of a group from those over parts of them; None where these do not tell it."""
    part = Scalar.column(alias, call.name)
    if call.written is None:
        is_exact = adds_up_by_parts(type_ for _, type_ in call.arguments)
        adds = call.function == "count" or (call.function == "sum" and is_exact)
        return aggregate("sum", part).cast(call.type.text) if adds else None
    function = of_itself(call.written)
    if call.type.struct_fields:
        # An engine that orders structs otherwise than Spark has to see their fields.
        part = part.cast(call.type.text)
    # The change has equal rows once, with their number.
    return aggregate(function.name, part) if function is not None and function.is_idempotent else None


def _came(groups: Aggregate, changed: tuple[Term, ...]) -> Aggregate:
    """``γ_K(ΔR)``."""
    alias = f"{groups.alias}_came"
    items: list[Item] = []
    meaning: dict[ColumnId, Scalar] = {}
    for f in groups.input.fields:
        name = unique_name(f.name, {COUNT, *(i.name.lower() for i in items)})
        items.append(Item(name, f.scalar, f.type))
        meaning[f.id] = Scalar.column(alias, name)
    branches = tuple(Map(t.node, alias, (*items, Item(COUNT, t.multiplicity, BIGINT))) for t in changed)
    keys = tuple(replace(k, value=k.value.substitute(meaning.get)) for k in groups.keys)
    count = Scalar.column(alias, COUNT)
    calls = tuple(_counted(c, meaning, count) for c in groups.calls)
    rows = branches[0] if len(branches) == 1 else UnionAll(branches, alias)
    return Aggregate(rows, f"{alias}_groups", keys, calls)


def _counted(call: AggregateCall, meaning: Mapping[ColumnId, Scalar], count: Scalar) -> AggregateCall:
    """A call over rows each of which counts several times."""
    parts = (call.argument, call.written)
    argument, written = (None if part is None else part.substitute(meaning.get) for part in parts)
    if written is not None:
        return replace(call, argument=argument, written=written)
    value = over_rows(replace(call, argument=argument), count)
    return AggregateCall.as_written(call.name, call.function, value, call.type)
