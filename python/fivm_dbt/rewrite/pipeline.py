"""The pipeline lists the passes in their order, as data."""

from __future__ import annotations

import logging
from collections.abc import Callable
from time import perf_counter

from fivm_dbt.ir.node import Node
from fivm_dbt.ir.printer import count_nodes, render
from fivm_dbt.rewrite.clock import separate_clock
from fivm_dbt.rewrite.flatten_joins import flatten_joins
from fivm_dbt.rewrite.own_row import own_rows
from fivm_dbt.rewrite.prune_columns import prune_columns
from fivm_dbt.rewrite.push_down import push_down

logger = logging.getLogger(__name__)

PASSES: tuple[Callable[[Node], Node], ...] = (
    own_rows,
    flatten_joins,
    push_down,
    prune_columns,
    separate_clock,
)


def rewrite(node: Node, *, is_pruned: bool = True) -> Node:
    """``node`` after all passes. ``-v`` logs each pass with its time, ``-vv`` the tree after it.

    Without ``is_pruned`` operators keep columns that nobody uses.
    """
    for rewrite_pass in PASSES:
        if rewrite_pass is prune_columns and not is_pruned:
            continue
        start = perf_counter()
        node = rewrite_pass(node)
        logger.info(
            "%s: %d nodes, %.1f ms", rewrite_pass.__name__, count_nodes(node), 1e3 * (perf_counter() - start)
        )
        logger.debug("%s", render(node))
    return node
