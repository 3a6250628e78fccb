"""Rows are kept as an inner view, placed by the keys by which they are looked up."""

from __future__ import annotations

from dataclasses import dataclass

from fivm_dbt.ir.local import Local
from fivm_dbt.ir.node import Item, Node
from fivm_dbt.ir.nodes import Map
from fivm_dbt.ir.rename import rebuilt
from fivm_dbt.ir.scalar import ColumnId, Scalar
from fivm_dbt.naming import storable, unique_name
from fivm_dbt.plan.keep.helper_views import HelperViews
from fivm_dbt.plan.keep.kept_views import KeptViews, column_of

Meaning = dict[ColumnId, Scalar]
"""What columns are called by now."""


@dataclass(frozen=True)
class Rows:
    """``node`` gives rows; ``meaning`` is what columns are called there, and ``keys`` what key expressions are."""

    node: Node
    meaning: Meaning
    keys: dict[Scalar, Scalar]

    def under(self, node: Local) -> Local:
        """An operator that recomputes keys, over these rows."""

        def change(scalar: Scalar) -> Scalar:
            return self.keys.get(scalar) or scalar.substitute(self.meaning.get)

        return rebuilt(node, (self.node,), change)

    def applied(
        self, meaning: Meaning, predicates: tuple[Scalar, ...]
    ) -> tuple[Node, Meaning, tuple[Scalar, ...]]:
        """The rows, what columns above mean by now, and predicates over them."""
        through = {column: value.substitute(self.meaning.get) for column, value in meaning.items()}
        return (
            self.node,
            {**self.meaning, **through},
            tuple(p.substitute(self.meaning.get) for p in predicates),
        )


@dataclass(frozen=True)
class KeptRows:
    """Keeps rows among the ``views`` of a query; ``helpers`` keeps listings of joins as factors."""

    views: KeptViews
    helpers: HelperViews

    def by_key(self, rows: Node, used: frozenset[ColumnId], keys: tuple[Item, ...], reason: str) -> Rows:
        """``rows`` as a scan of a view that is placed by ``keys``.

        As they are where they cannot be kept or never change, where they come from a view that is placed like this
        already, or from an input that is read as fast.
        """
        is_there = self.views.is_placed(rows, keys) or self.helpers.is_copy(rows, keys)
        if is_there or not self.views.can_change(rows):
            return Rows(rows, {}, {})
        return self._kept_by_key(rows, used, keys, reason)

    def whole(self, rows: Node, keys: tuple[Item, ...]) -> Rows:
        """``rows`` as a scan of a view, also where they never change: each refresh may read all of them."""
        return self._kept_by_key(rows, rows.ids, keys, "the rows beside what is evaluated on demand")

    def _kept_by_key(
        self, rows: Node, used: frozenset[ColumnId], keys: tuple[Item, ...], reason: str
    ) -> Rows:
        fields = [f for f in rows.fields if f.id in used]
        if not all(f.type.is_groupable for f in fields) or not all(k.type.is_groupable for k in keys):
            return Rows(rows, {}, {})
        alias = self.views.alias()
        items: list[Item] = []
        meaning: Meaning = {}
        for f in fields:
            items.append(Item(free(f.name, items), f.scalar, f.type))
            meaning[f.id] = Scalar.column(alias, items[-1].name)
        placed: dict[Scalar, Scalar] = {}
        for key in keys:
            if not key.value.columns:
                continue
            found = next((i for i in items if i.value == key.value), None)
            if found is None:
                found = Item(free(key.name, items), key.value, key.type)
                items.append(found)
            placed[key.value] = Scalar.column(alias, found.name)
        by = tuple(dict.fromkeys(column_of(column) for column in placed.values()))
        shown = Map(rows, alias, tuple(items))
        return Rows(self.views.keep(self.helpers.listing(shown) or shown, by, reason), meaning, placed)


def shown_whole(node: Node, alias: str) -> Map:
    """All columns of ``node``, under names of their own."""
    items: list[Item] = []
    for f in node.fields:
        items.append(Item(free(f.name, items), f.scalar, f.type))
    return Map(node, alias, tuple(items))


def free(wanted: str, items: list[Item]) -> str:
    return unique_name(storable(wanted), {i.name for i in items})
