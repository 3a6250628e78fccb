"""An operator's keys tell its rows apart: keys of its inputs, as far as it shows them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice, product

from fivm_dbt.catalog import Catalog
from fivm_dbt.ir.node import Item, Key, Node

_MANY = 8
"""More keys of a join are not looked at: their number is the product of those of its factors."""


def keys_shown(rows: Node, alias: str, items: Iterable[Item], catalog: Catalog) -> tuple[Key, ...]:
    """The keys of ``rows`` of which all columns are shown among ``alias.(items)``."""
    shown = {item.value: (alias, item.name) for item in items}
    above = {f.id: shown[f.scalar] for f in rows.fields if f.scalar in shown}
    keys = rows.unique_keys(catalog)
    return tuple(frozenset(above[c] for c in key) for key in keys if key <= above.keys())


def keys_together(joined: Iterable[Node], catalog: Catalog) -> tuple[Key, ...]:
    """The keys of a join: one of each of what is ``joined``."""
    choices = islice(product(*(node.unique_keys(catalog) for node in joined)), _MANY)
    return tuple(frozenset[tuple[str, str]]().union(*choice) for choice in choices)
