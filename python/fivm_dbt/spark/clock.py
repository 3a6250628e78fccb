"""Statements have the clock as literals of the recorded times, never as a function that tells the time."""

from __future__ import annotations

from fivm_dbt.ir.clock import kinds_below, pinned_clock
from fivm_dbt.ir.node import Node
from fivm_dbt.steps.binding import Binding


def at_time(node: Node, binding: Binding) -> Node:
    """``node`` with the clocks of both sides as literals; itself where it does not read them."""
    if not kinds_below(node):
        return node
    assert binding.clock is not None, "the clock is used but was not read"
    return pinned_clock(node, binding.clock.old, binding.clock.new)
