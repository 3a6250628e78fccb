"""A model may have one view whose rows are written as its text gives them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fivm_dbt.catalog import Column
from fivm_dbt.ir.node import Item
from fivm_dbt.ir.nodes import AsWritten
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.naming import ROOT, sibling, storable, unique_name
from fivm_dbt.plan.layout.root import Root
from fivm_dbt.plan.model.state import Partitioning, StateTable
from fivm_dbt.plan.model.state_layout import RESERVED, shown_from_table
from fivm_dbt.plan.model.view import View

Shown = tuple[tuple[str, Scalar], ...]
"""What a model's columns are over a row of its state."""


def stored_columns(
    output: Iterable[Column], rows: str, also: Iterable[str] = ()
) -> tuple[tuple[Item, ...], Shown]:
    """The state's columns over ``rows``, under names that a table takes, and what the model shows of them.

    The state has columns ``also`` of these names.
    """
    taken = {*RESERVED, *also}
    items, shown = [], []
    for column in output:
        name = unique_name(storable(column.name), taken)
        taken.add(name)
        items.append(Item(name, Scalar.column(rows, name), column.type))
        shown.append((column.name, Scalar.column("", name)))
    return tuple(items), tuple(shown)


def written_view(
    kept: str,
    output: Sequence[Column],
    keys: tuple[Item, ...],
    shown: Shown,
    partitioning: Partitioning,
    how: str,
) -> View:
    """The rows of a model, written ``how``: a state with the columns ``keys``, ``shown`` under the model's names.

    The state is beside the relation ``kept``.
    """
    name = sibling(kept, ROOT)
    node = AsWritten("result", tuple((c.name, c.type) for c in output))
    root = Root(
        node,
        keys,
        payload=(),
        is_global=False,
        is_bag=False,
        outputs=shown,
        filters=(),
        shown=(),
    )
    written = View(
        StateTable(name, keys, (), partitioning, is_global=False, is_plain=True),
        node,
        terms=(),
        key_sets=(),
        columns=tuple(output),
        presentation=root.presentation(name),
        rows=None,
        reason=f"the model itself, {how}",
    )
    return shown_from_table(written, sibling(kept, "state"))
