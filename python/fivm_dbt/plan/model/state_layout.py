"""One table holds the states of all views of a model, and knows which columns are whose (ADR 0028).

A commit of one table is atomic, and commits of several are not: so the views are partitions of one table. Its columns
are pooled by type, for a column that only one view has is NULL in the rows of all others, and NULLs cost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import BIGINT
from fivm_dbt.ir.build import text
from fivm_dbt.ir.comparison import Comparison
from fivm_dbt.ir.presentation import of_rows
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.naming import (
    COMMIT,
    COUNT,
    COVERAGE,
    HEAD,
    OF,
    PARTITION,
    PREFIX,
    TO,
    VIEW,
    split_name,
    unique_name,
)

if TYPE_CHECKING:
    from fivm_dbt.plan.model.state import StateTable
    from fivm_dbt.plan.model.view import View

Role = Literal["key", "determined", "sum"]
"""What a MERGE does with a column: it finds rows by it, takes it from the delta, or adds it up."""


RESERVED = frozenset({COUNT, PARTITION, VIEW, OF, TO, HEAD, COMMIT, COVERAGE})
"""Names of columns that the table has besides those of its views."""


@dataclass(frozen=True)
class StoredColumn:
    """A column of the table. It has the same role in all views, so that one MERGE serves them."""

    name: str
    type: SparkType
    role: Role


@dataclass(frozen=True)
class StateLayout:
    """The table ``relation``: its columns before ``__fivm_view`` and ``__fivm_partition``, and who has which.

    ``places`` has of each view its columns and where they are stored.
    """

    relation: str
    columns: tuple[StoredColumn, ...]
    places: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]

    @cached_property
    def _by_view(self) -> dict[str, dict[str, str]]:
        return {view: dict(columns) for view, columns in self.places}

    def stored_as(self, view: View) -> Mapping[str, str]:
        """Which column of the table a column of the view's state is."""
        return self._by_view[view.name]

    def label(self, view: View) -> str:
        """The value of ``__fivm_view`` in the rows of a view."""
        return view_label(self.relation, view.name)


def view_label(table: str, view: str) -> str:
    """What a view is called in the table of its model: the end of its own name.

    >>> view_label("analytics.daily__fivm_state", "analytics.daily__fivm_root")
    'root'
    """
    model = split_name(table)[-1].rsplit(PREFIX, 1)[0]
    return split_name(view)[-1].removeprefix(f"{model}{PREFIX}")


def lay_out_states(relation: str, views: Sequence[View]) -> StateLayout:
    """Pool the columns of these views. The last one, the root, keeps its names; the others take what fits of these."""
    columns: list[StoredColumn] = []
    taken = set(RESERVED)
    places = {}
    for view in reversed(views):
        free = list(columns)
        place = {}
        for name, type_, role in _columns(view.state):
            found = next(
                (
                    c
                    for c in free
                    if (c.type, c.role) == (type_, role) and (c.name == COUNT) == (name == COUNT)
                ),
                None,
            )
            if found is None:
                found = StoredColumn(COUNT if name == COUNT else unique_name(name, taken), type_, role)
                taken.add(found.name)
                columns.append(found)
            else:
                free.remove(found)
            place[name] = found.name
        places[view.name] = tuple(place.items())
    ordered = sorted(columns, key=lambda c: ("key", "determined", "sum").index(c.role))
    return StateLayout(relation, tuple(ordered), tuple((v.name, places[v.name]) for v in views))


def shown_from_table(root: View, table: str) -> View:
    """The root, of which the model's view shows the rows in ``table``: its columns have their own names there."""
    own = Comparison(Scalar.column("", VIEW), "=", text(view_label(table, root.name)))
    return replace(root, presentation=of_rows(root.presentation, table, own.scalar))


def _columns(state: StateTable) -> list[tuple[str, SparkType, Role]]:
    keys: list[tuple[str, SparkType, Role]] = [
        (k.name, k.type, "determined" if k.name in state.determined else "key") for k in state.keys
    ]
    types = {COUNT: BIGINT, **{p.name: p.type for p in state.payload}}
    return [*keys, *((name, types[name], "sum") for name in state.stored_names)]
