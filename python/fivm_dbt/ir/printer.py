"""Relational nodes print as an indented tree, for ``explain`` and logs."""

from __future__ import annotations

from fivm_dbt.ir.node import Node


def render(node: Node, indent: int = 0) -> str:
    """The tree below ``node``, one operator a line."""
    lines = [f"{'  ' * indent}{node.described}"]
    lines += [render(child, indent + 1) for child in node.inputs]
    return "\n".join(lines)


def count_nodes(node: Node) -> int:
    """How many operators there are from ``node`` down."""
    return 1 + sum(count_nodes(child) for child in node.inputs)
