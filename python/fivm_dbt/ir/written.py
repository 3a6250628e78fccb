"""Clauses that Spark does not know, where they stand in a query's text."""

from __future__ import annotations

from dataclasses import dataclass

from fivm_dbt.ir.node import Node
from fivm_dbt.naming import PREFIX

INPUT = f"{PREFIX}match_input"
"""The relation that stands for what a clause reads."""


@dataclass(frozen=True)
class WrittenClause:
    """An operator that a clause stands for, over a scan of INPUT, the relation before it.

    ``start`` to ``end`` is all of it, ``start`` to ``relation_end`` the relation that it reads.
    """

    start: int
    relation_end: int
    end: int
    node: Node
