"""The rows of a factor lie in its files by the columns that readers of the result know first.

A reader of a factorised result goes from table to table along shared variables (F-IVM article, section 7.1). Delta has
no index, but files and row groups are skipped by the least and largest values in them, which are far apart where rows
lie in no order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from fivm_dbt.delta.key_sets import equalities
from fivm_dbt.delta.term import scans
from fivm_dbt.ir.nodes import Join
from fivm_dbt.ir.reads import Scan
from fivm_dbt.plan.model.view import View


def enumeration_prefixes(top: View) -> Iterator[tuple[Scan, tuple[str, ...]]]:
    """The tables that a result is joined from, in their sequence, each with the columns that those before have too."""
    joins = [n for n in top.core.walk() if isinstance(n, Join)]
    pairs = [pair for join in joins for pair in equalities(join.predicates)]
    known: set[tuple[str, str]] = set()
    for scan in scans(top.core):
        own = [
            c.id
            for c in scan.fields
            if any((a == c.id and b in known) or (b == c.id and a in known) for a, b in pairs)
        ]
        yield scan, tuple(name for _, name in own)
        known |= scan.ids


def clustered(views: tuple[View, ...]) -> tuple[View, ...]:
    """The views of a factorised result, of which the top is joined on read, each table sorted by its prefix first."""
    by: dict[str, tuple[str, ...]] = {}
    for scan, prefix in enumeration_prefixes(views[-1]):
        by.setdefault(scan.relation, prefix)
    return tuple(
        replace(view, state=replace(view.state, sorted_by=_sorted_by(view, by[view.name])))
        if view.name in by
        else view
        for view in views
    )


def _sorted_by(view: View, prefix: tuple[str, ...]) -> tuple[str, ...]:
    keys = [k.name for k in view.state.keys]
    return (*(k for k in keys if k in prefix), *(k for k in keys if k not in prefix))
