"""Promised keys of inputs say which columns of a view determine others, and whether a row may be there twice.

With ``U`` a key of ``R``, ``U → every column of R``; an equality of a join makes its sides determine each other. Keys
that follow from the rest need not be compared, and rows whose columns determine a key of each relation are no two.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fivm_dbt.catalog import Relation
from fivm_dbt.delta.key_sets import equalities
from fivm_dbt.ir.node import Item, Node
from fivm_dbt.ir.nodes import Filter, Join, Map
from fivm_dbt.ir.reads import Scan
from fivm_dbt.ir.scalar import ColumnId

Promised = Mapping[str, Relation]
"""The inputs whose declared keys and dependencies are promised to hold."""


@dataclass(frozen=True)
class _Rule:
    """``left → right``."""

    left: frozenset[ColumnId]
    right: frozenset[ColumnId]


def determined_keys(core: Node, keys: tuple[Item, ...], promised: Promised) -> tuple[str, ...]:
    """Names of ``keys`` of a view over ``core`` that the others determine: later ones first, none without a promise."""
    if not _is_plain(core):
        return ()
    rules = list(_rules(core, promised))
    kept = list(keys)
    for key in reversed(keys):
        rest = [k for k in kept if k is not key]
        if rest and key.value.columns <= _closure(_columns(rest), rules):
            kept = rest
    return tuple(k.name for k in keys if k not in kept)


def is_set(core: Node, keys: tuple[Item, ...], promised: Promised) -> bool:
    """Whether no two rows of ``core`` have the same ``keys``: these determine a promised key of each relation."""
    if not _is_plain(core):
        return False
    known = _closure(_columns(keys), list(_rules(core, promised)))
    return all(any(key <= known for key in _keys_of(scan, promised)) for scan in _scans(core))


def _is_plain(node: Node) -> bool:
    """Whether it is made of joins, filters and projections of inputs alone."""
    if isinstance(node, Scan):
        return True
    return isinstance(node, (Join, Filter, Map)) and all(_is_plain(child) for child in node.inputs)


def _scans(node: Node) -> Iterator[Scan]:
    return (n for n in node.walk() if isinstance(n, Scan))


def _keys_of(scan: Scan, promised: Promised) -> Iterator[frozenset[ColumnId]]:
    relation = promised.get(scan.relation)
    for key in relation.keys if relation is not None else ():
        columns = _read(scan, key)
        if len(columns) == len(key):
            yield columns


def _read(scan: Scan, columns: tuple[str, ...]) -> frozenset[ColumnId]:
    """Those of the declared columns that are read."""
    return frozenset((scan.alias, name) for name, _ in scan.columns if name.lower() in columns)


def _rules(node: Node, promised: Promised) -> Iterator[_Rule]:
    for inner in node.walk():
        if isinstance(inner, Scan):
            relation = promised.get(inner.relation)
            for dependency in relation.determines if relation is not None else ():
                determinant = _read(inner, dependency.determinant)
                if len(determinant) == len(dependency.determinant):
                    yield _Rule(determinant, _read(inner, dependency.dependent))
        if isinstance(inner, (Join, Filter)):
            types = {f.id: f.type for child in inner.inputs for f in child.fields}
            for left, right in equalities(inner.predicates):
                if types.get(left) != types.get(right):
                    continue  # Of '1' and '01' neither is what the other one is told by.
                yield _Rule(frozenset((left,)), frozenset((right,)))
                yield _Rule(frozenset((right,)), frozenset((left,)))
        if isinstance(inner, Map):
            for item in inner.items:
                yield _Rule(item.value.columns, frozenset(((inner.alias, item.name),)))
                if item.value.is_column:
                    yield _Rule(frozenset(((inner.alias, item.name),)), item.value.columns)


def _closure(columns: frozenset[ColumnId], rules: list[_Rule]) -> frozenset[ColumnId]:
    known, before = columns, frozenset[ColumnId]()
    while known != before:
        before = known
        known = known.union(*(rule.right for rule in rules if rule.left <= known))
    return known


def _columns(keys: tuple[Item, ...] | list[Item]) -> frozenset[ColumnId]:
    """The columns that are keys by themselves: from an expression its columns cannot be told."""
    return frozenset(c for k in keys if k.value.is_column for c in k.value.columns)
