"""Every operator keeps just the columns that something above it uses.

What a scan does not keep cannot change the model: a change of other columns nets to nothing when it is staged.
"""

from __future__ import annotations

from fivm_dbt.ir.node import Node


def prune_columns(node: Node) -> Node:
    """``node`` with all its own fields, and nothing unused below."""
    return node.only(node.ids)
