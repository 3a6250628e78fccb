"""A model may have one view whose rows are written as its text gives them."""

from __future__ import annotations

from collections.abc import Sequence

from fivm_dbt.catalog import Column
from fivm_dbt.ir.node import Item
from fivm_dbt.ir.nodes import AsWritten
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.naming import sibling
from fivm_dbt.plan.layout.root import Root
from fivm_dbt.plan.model.state import Partitioning, StateTable
from fivm_dbt.plan.model.state_layout import shown_from_table
from fivm_dbt.plan.model.view import View


def written_view(
    model: str,
    output: Sequence[Column],
    keys: tuple[Item, ...],
    shown: tuple[tuple[str, Scalar], ...],
    partitioning: Partitioning,
    how: str,
) -> View:
    """The rows of ``model``, written ``how``: a state with the columns ``keys``, ``shown`` under the model's names."""
    name = sibling(model, "root")
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
    return shown_from_table(written, sibling(model, "state"))
