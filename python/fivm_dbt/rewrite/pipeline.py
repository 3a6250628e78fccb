"""The pipeline lists the passes in their order, as data."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from time import perf_counter

from fivm_dbt.catalog import TableStatistics
from fivm_dbt.ir.node import Node
from fivm_dbt.ir.printer import count_nodes, render
from fivm_dbt.rewrite.clock import separate_clock
from fivm_dbt.rewrite.flatten_joins import flatten_joins
from fivm_dbt.rewrite.magic_sets import add_magic_sets
from fivm_dbt.rewrite.own_row import own_rows
from fivm_dbt.rewrite.prune_columns import prune_columns
from fivm_dbt.rewrite.push_down import push_down

logger = logging.getLogger(__name__)

Pass = tuple[str, Callable[[Node], Node]]
"""What it is called, and what it does."""


def passes(measured: TableStatistics | None = None, *, is_pruned: bool = True) -> tuple[Pass, ...]:
    """The passes in their order. Keys that are looked up are told where sizes are known (``measured``).

    Without ``is_pruned`` operators keep columns that nobody uses.

    >>> [name for name, _ in passes()]
    ['own_rows', 'flatten_joins', 'push_down', 'prune_columns', 'separate_clock']
    """
    magic: tuple[Pass, ...] = ()
    if measured is not None:
        magic = (("magic_sets", partial(add_magic_sets, measured=measured)),)
    return (
        ("own_rows", own_rows),
        ("flatten_joins", flatten_joins),
        ("push_down", push_down),
        *magic,
        *((("prune_columns", prune_columns),) if is_pruned else ()),
        ("separate_clock", separate_clock),
    )


def rewrite(node: Node, measured: TableStatistics | None = None, *, is_pruned: bool = True) -> Node:
    """``node`` after all passes. ``-v`` logs each pass with its time, ``-vv`` the tree after it."""
    for name, rewrite_pass in passes(measured, is_pruned=is_pruned):
        start = perf_counter()
        node = rewrite_pass(node)
        logger.info("%s: %d nodes, %.1f ms", name, count_nodes(node), 1e3 * (perf_counter() - start))
        logger.debug("%s", render(node))
    return node
