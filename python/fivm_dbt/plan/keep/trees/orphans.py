"""Orphans are worth keeping if new parents would read more than the orphans cost."""

from __future__ import annotations

from collections.abc import Iterable

from fivm_dbt.catalog import SparkType, TableStatistics
from fivm_dbt.delta.foreign_keys import Reference
from fivm_dbt.delta.orphans import Orphans
from fivm_dbt.delta.term import scans
from fivm_dbt.ir.node import Node
from fivm_dbt.ir.reads import Scan
from fivm_dbt.naming import sibling, split_name, storable
from fivm_dbt.viewtree.choice import UPKEEP
from fivm_dbt.viewtree.statistics import Statistics


def worthwhile_orphans(
    relation: str,
    declared: Iterable[Reference],
    query: Node,
    static: frozenset[str],
    measured: TableStatistics,
) -> dict[Reference, Orphans]:
    """The foreign keys within ``query`` of which the orphans may be kept for the model ``relation``.

    They are views only where a new parent would read all children.
    """
    read: dict[str, dict[str, Scan]] = {}
    for scan in scans(query):
        read.setdefault(scan.relation, {}).setdefault(scan.alias, scan)
    found: dict[Reference, Orphans] = {}
    for reference in declared:
        children, parents = (tuple(read.get(n, {}).values()) for n in (reference.child, reference.parent))
        columns, target = _columns(children), _columns(parents)
        if (
            reference.parent in static
            or not _has(columns, reference.columns)
            or not _has(target, reference.target)
        ):
            continue
        if any(not type_.is_groupable for type_ in columns.values()) or not _pays(
            reference, static, measured
        ):
            continue
        name = storable(split_name(reference.child)[-1])
        by = storable("_".join(reference.columns))
        key = tuple((n, t) for n, t in target.items() if n.lower() in reference.target)
        found[reference] = Orphans(
            sibling(relation, f"orphans_{name}_by_{by}"), reference, tuple(columns.items()), key
        )
    return found


def _columns(read: Iterable[Scan]) -> dict[str, SparkType]:
    return {name: type_ for scan in read for name, type_ in scan.columns}


def _has(columns: Iterable[str], wanted: Iterable[str]) -> bool:
    return set(wanted) <= {c.lower() for c in columns}


def _pays(reference: Reference, static: frozenset[str], measured: TableStatistics) -> bool:
    """``w(P) × rows of C > w(C) × (UPKEEP + rows of P) + w(P) × rows of P``.

    Each new child is looked up among the parents, and the key of each changed parent among the old ones.
    """
    child, parent = measured.rows_of(reference.child), measured.rows_of(reference.parent)
    if child is None or parent is None:
        return False
    shares = {"C": measured.share_of(reference.child), "P": measured.share_of(reference.parent)}
    sizes = Statistics(
        {"C": child, "P": parent}, changed={name: s for name, s in shares.items() if s is not None}
    )
    children = 0.0 if reference.child in static else sizes.weight("C")
    upkeep = children * (UPKEEP + parent) + sizes.weight("P") * parent
    return sizes.weight("P") * child > upkeep
