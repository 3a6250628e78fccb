"""Foreign keys that are promised to hold (``fivm_trust_keys``) make deltas smaller.

With ``C.k → P.k`` no old row of ``C`` has a partner that was not in ``P`` before: new parents meet new children alone.
In ``Δ(P ⋈ C) = ΔP ⋈ old(C) + new(P) ⋈ ΔC`` the first term therefore needs of ``ΔP`` just the rows whose key a row has
that goes, because it is updated or deleted. New parents then cost nothing: ``C`` is not read for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from fivm_dbt.catalog import Relation
from fivm_dbt.delta.key_sets import equalities
from fivm_dbt.delta.term import Term
from fivm_dbt.ir.node import Node, Side
from fivm_dbt.ir.nodes import Filter, Join, UnionAll
from fivm_dbt.ir.one_sided import SemiJoin
from fivm_dbt.ir.reads import Scan
from fivm_dbt.ir.scalar import ColumnId, Scalar
from fivm_dbt.naming import old_rows


@dataclass(frozen=True)
class Reference:
    """``columns`` of ``child`` have values that the key ``target`` of a row of ``parent`` has, or NULL."""

    child: str
    columns: tuple[str, ...]
    parent: str
    target: tuple[str, ...]


def references(relations: Iterable[Relation]) -> tuple[Reference, ...]:
    """The declared foreign keys to declared keys: where a value is there twice, a second parent is no new key."""
    every = list(relations)
    keys = {r.name: [set(key) for key in r.keys] for r in every}
    return tuple(
        Reference(child.name, foreign.columns, foreign.target, foreign.target_columns)
        for child in every
        for foreign in child.foreign_keys
        if any(key <= set(foreign.target_columns) for key in keys.get(foreign.target, ()))
    )


def parents_first(node: Node, known: tuple[Reference, ...], *, is_named: bool = True) -> Node:
    """``node`` with the factors of its joins in an order in which the change of a parent meets its old children.

    Not where columns are told by their position (``is_named``), as in branches of a union.
    """
    passes = is_named if isinstance(node, Filter) else not isinstance(node, UnionAll)
    node = node.with_inputs(tuple(parents_first(child, known, is_named=passes) for child in node.inputs))
    if not isinstance(node, Join) or not is_named:
        return node
    rest, ordered = list(node.factors), list[Node]()
    while rest:
        free = (f for f in rest if not any(references_between(f, p, node, known) for p in rest if p is not f))
        chosen = next(free, rest[0])
        rest.remove(chosen)
        ordered.append(chosen)
    return Join(tuple(ordered), node.predicates)


def without_new_parents(term: Term, known: tuple[Reference, ...]) -> Term:
    """``term`` where the change of a parent that meets old children is restricted to keys that were there before."""
    return Term(_restricted(term.node, known), term.multiplicity)


def _restricted(node: Node, known: tuple[Reference, ...]) -> Node:
    node = node.with_inputs(tuple(_restricted(child, known) for child in node.inputs))
    if not isinstance(node, Join):
        return node
    factors = list(node.factors)
    for position, parent in enumerate(factors):
        scan = scan_of(parent)
        if scan is None or scan.side is not Side.DELTA:
            continue
        old = [f for f in factors if (s := scan_of(f)) is not None and s.side is Side.OLD]
        found = next((r for child in old for r in references_between(child, parent, node, known)), None)
        if found is not None:
            factors[position] = _of_old_keys(parent, found.target)
    return Join(tuple(factors), node.predicates)


def references_between(
    child: Node, parent: Node, join: Join, known: tuple[Reference, ...]
) -> list[Reference]:
    """The foreign keys by which a factor of a join refers to another one, all columns of them being joined."""
    below, above = scan_of(child), scan_of(parent)
    if below is None or above is None:
        return []
    pairs = {frozenset(pair) for pair in equalities(join.predicates)}

    def is_joined(reference: Reference) -> bool:
        return all(
            frozenset(pair) in pairs
            for pair in zip(
                columns_in(below, reference.columns), columns_in(above, reference.target), strict=True
            )
        )

    return [r for r in known if (r.child, r.parent) == (below.relation, above.relation) and is_joined(r)]


def columns_in(scan: Scan, columns: tuple[str, ...]) -> Iterator[ColumnId]:
    """Declared columns as the query calls them."""
    names = {name.lower(): name for name, _ in scan.columns}
    return ((scan.alias, names.get(column, column)) for column in columns)


def scan_of(factor: Node) -> Scan | None:
    """The scan that a factor is, perhaps filtered."""
    while isinstance(factor, Filter):
        factor = factor.input
    return factor if isinstance(factor, Scan) else None


def _of_old_keys(parent: Node, key: tuple[str, ...]) -> Node:
    """The change of a parent, less the keys of which no row goes: whether it passes a filter is asked afterwards."""
    if isinstance(parent, Filter):
        return Filter(_of_old_keys(parent.input, key), parent.predicates)
    assert isinstance(parent, Scan)
    types = dict(parent.columns)
    own = [name for _, name in columns_in(parent, key)]
    gone = Scan(
        old_rows(parent.relation), f"{parent.alias}_gone", tuple((n, types[n]) for n in own), Side.DELTA
    )
    same = (Scalar.equal((parent.alias, n), (gone.alias, n)) for n in own)
    return SemiJoin(parent, gone, tuple(same), anti=False)
