"""Orphans are rows of a child without a parent; they are kept so that new parents meet them alone.

Of ``ΔP ⋈ old(C)`` the rows of ``ΔP`` whose key ``P`` had before need all of ``C``; those whose key is new have partners
among the orphans alone: ``ΔP ⋈ old(C) = (ΔP ⋉ old P) ⋈ old(C) + ΔP ⋈ old(orphans)``. It holds for any changes, whether
declared keys are true or not; if they are, there are hardly any orphans, and ``C`` is not read for new parents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import BIGINT
from fivm_dbt.delta.derive import derive
from fivm_dbt.delta.foreign_keys import Reference, columns_in, references_between, scan_of
from fivm_dbt.delta.term import Term, at_side
from fivm_dbt.ir.node import Item, Node, Side
from fivm_dbt.ir.nodes import Distinct, Filter, Join, Map
from fivm_dbt.ir.one_sided import OuterJoin, Restrict, SemiJoin
from fivm_dbt.ir.reads import Scan
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.naming import COUNT, split_name

_OWN = "own_state"


@dataclass(frozen=True)
class Orphans:
    """Orphans of a foreign key, kept in ``relation``: ``columns`` of the child, ``target`` the key of the parent."""

    relation: str
    reference: Reference
    columns: tuple[tuple[str, SparkType], ...]
    target: tuple[tuple[str, SparkType], ...]

    @property
    def reason(self) -> str:
        child, parent = (split_name(n)[-1] for n in (self.reference.child, self.reference.parent))
        return f"orphans of {child}: rows without one in {parent}, which new rows of {parent} meet"

    @property
    def child(self) -> Scan:
        return Scan(self.reference.child, "child", self.columns)

    @property
    def parent(self) -> Scan:
        return Scan(self.reference.parent, "parent", self.target)

    @property
    def node(self) -> SemiJoin:
        """``σ[k is not null] C ▷ P``: a row without a key never has a parent."""
        return SemiJoin(self._with_key, self.parent, self._same(self.parent), anti=True)

    @property
    def by(self) -> tuple[str, ...]:
        return tuple(name for _, name in columns_in(self.child, self.reference.columns))

    @property
    def _with_key(self) -> Filter:
        return Filter(self.child, tuple(Scalar.is_not_null(("child", name)) for name in self.by))

    def _same(self, parent: Scan) -> tuple[Scalar, ...]:
        pairs = zip(self.by, columns_in(parent, self.reference.target), strict=True)
        return tuple(Scalar.equal(("child", name), theirs) for name, theirs in pairs)

    def delta(self, stored: Mapping[str, str], static: frozenset[str]) -> tuple[Term, ...]:
        """``ΔO = ΔC ▷ new P − old O ⋉ keys that came + old C ⋉ keys that went``.

        A key came if ``ΔP`` has it and ``old P`` does not, and went if ``new P`` does not: rows of C in between keep
        what they are. ``stored`` gives the column of the state for each column of the child.
        """
        new_parent = at_side(self.parent, Side.NEW)
        terms = [
            Term(SemiJoin(t.node, new_parent, self._same(self.parent), anti=True), t.multiplicity)
            for t in derive(self._with_key, static)
        ]
        for changed in derive(self.parent, static):
            assert isinstance(changed.node, Scan)
            columns = (*((stored[name], type_) for name, type_ in self.columns), (COUNT, BIGINT))
            own = Scan(self.relation, _OWN, columns, Side.OLD)
            came = keys_of_change(changed.node, self.reference.target, Side.OLD, anti=True)
            items = tuple(Item(n, Scalar.column(_OWN, stored[n]), t) for n, t in self.columns)
            count = Item(COUNT, Scalar.column(_OWN, COUNT), BIGINT)
            found = restricted(own, tuple((_OWN, stored[name]) for name in self.by), came)
            minus = Scalar.parse(f"-{Scalar.column('child', COUNT).sql}")
            terms.append(Term(Map(found, "child", (*items, count)), minus))
            went = keys_of_change(changed.node, self.reference.target, Side.NEW, anti=True)
            key = tuple(("child", name) for name in self.by)
            terms.append(Term(restricted(at_side(self._with_key, Side.OLD), key, went), Scalar.number(1)))
        return tuple(terms)


def keys_of_change(changed: Scan, key: tuple[str, ...], side: Side, *, anti: bool) -> Distinct:
    """The keys of a change that the relation has on one side of the refresh; ``anti``: that it does not have."""
    types = dict(changed.columns)
    names = [name for _, name in columns_in(changed, key)]
    there = Scan(changed.relation, f"{changed.alias}_there", tuple((n, types[n]) for n in names), side)
    same = tuple(Scalar.equal((changed.alias, n), (there.alias, n)) for n in names)
    items = tuple(
        Item(f"key_{i}", Scalar.column(changed.alias, n), types[n]) for i, n in enumerate(names, start=1)
    )
    return Distinct(Map(SemiJoin(changed, there, same, anti), f"{changed.alias}_keys", items))


def restricted(node: Node, columns: tuple[tuple[str, str], ...], keys: Distinct) -> Restrict:
    """The rows of ``node`` whose ``columns`` are among ``keys``."""
    pairs = zip(columns, keys.fields, strict=True)
    return Restrict(node, keys, tuple((Scalar.column(*column), f.scalar) for column, f in pairs))


def meeting_orphans(
    term: Term, known: tuple[Reference, ...], orphans: Callable[[Reference], str]
) -> tuple[Term, ...]:
    """``term`` in two where a changed parent meets all old children: known keys meet them, the others orphans.

    ``orphans`` gives the relation in which those of a foreign key are kept.
    """
    for join, rebuilt in _joins(term.node):
        for position, changed, child, reference in _meetings(join, known):
            old = scan_of(join.factors[child])
            assert old is not None
            lonely = Scan(orphans(reference), old.alias, old.columns, Side.OLD)
            of_orphans = _with_factor(join, child, _with_scan(join.factors[child], lonely))
            keys = keys_of_change(changed, reference.target, Side.OLD, anti=False)
            known_only = restricted(changed, tuple(columns_in(changed, reference.target)), keys)
            of_known = _with_factor(join, position, _with_scan(join.factors[position], known_only))
            return tuple(Term(rebuilt(new), term.multiplicity) for new in (of_known, of_orphans))
    return (term,)


def _meetings(join: Join, known: tuple[Reference, ...]) -> Iterator[tuple[int, Scan, int, Reference]]:
    """Where a changed parent is joined with old children: its position and scan, the child's position, the key."""
    for position, parent in enumerate(join.factors):
        changed = scan_of(parent)
        if changed is None or changed.side is not Side.DELTA:
            continue
        for place, child in enumerate(join.factors):
            old = scan_of(child)
            if old is not None and old.side is Side.OLD:
                for reference in references_between(child, parent, join, known):
                    yield position, changed, place, reference


def _joins(node: Node) -> Iterator[tuple[Join, Callable[[Node], Node]]]:
    """The joins in ``node`` in whose rows it is linear, each with what ``node`` is with another one in its place."""
    if isinstance(node, Join):
        yield node, lambda new: new
    places = node.inputs
    if isinstance(node, (OuterJoin, SemiJoin, Restrict)):
        places = places[:1]
    elif not isinstance(node, (Map, Filter, Join)):
        return
    for position, child in enumerate(places):
        for join, rebuilt in _joins(child):
            yield join, _inside(node, position, rebuilt)


def _inside(node: Node, position: int, rebuilt: Callable[[Node], Node]) -> Callable[[Node], Node]:
    def around(new: Node) -> Node:
        inputs = list(node.inputs)
        inputs[position] = rebuilt(new)
        return node.with_inputs(tuple(inputs))

    return around


def _with_factor(join: Join, position: int, factor: Node) -> Join:
    factors = list(join.factors)
    factors[position] = factor
    return Join(tuple(factors), join.predicates)


def _with_scan(factor: Node, new: Node) -> Node:
    """A scan that may be filtered, with something in its place."""
    if isinstance(factor, Filter):
        return Filter(_with_scan(factor.input, new), factor.predicates)
    return new
