"""What is known of a model before its views are planned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fivm_dbt.catalog import TableStatistics
from fivm_dbt.config import Config
from fivm_dbt.delta.foreign_keys import Reference
from fivm_dbt.delta.orphans import Orphans
from fivm_dbt.ir.node import Node
from fivm_dbt.parts.length import Length
from fivm_dbt.plan.keep.trees.eager import EagerTerm
from fivm_dbt.plan.layout.promised_keys import Promised
from fivm_dbt.plan.retention import Retained
from fivm_dbt.sql.typing import Typer


@dataclass(frozen=True)
class Given:
    """What holds for all views of a model.

    ``static`` are the relations that never change, ``references`` the foreign keys that are promised to hold,
    ``promised`` the inputs whose keys do, ``orphans`` those whose orphans are worth keeping where a new parent would
    read all children, ``dropped`` the inputs whose dropped parts do not count as deleted.
    """

    config: Config
    typer: Typer
    static: frozenset[str]
    references: tuple[Reference, ...]
    promised: Promised
    orphans: Mapping[Reference, Orphans]
    is_utc: bool
    dropped: Retained
    measured: TableStatistics | None = None
    by_ranges: bool = False
    """Whether a state is partitioned, and an input read, by ranges of a key that is counted up."""
    lengthens: bool = False
    """Whether a state with few rows a month is partitioned by years."""
    seeks_first: bool = False
    """Whether what a change looks for in a large input is found by its keys first."""
    meets_first: bool = False
    """Whether what a change meets before a large input is staged."""


@dataclass(frozen=True)
class Topmost:
    """The query over the inner views, under the name of its relation, and the names that its columns are shown by.

    Where rows come from periods, ``part_length`` is that of their parts; ``rows_a_day`` are those that are expected of
    each date, where that is known. Where it ``is_joined_on_read`` it is no
    table: its query runs when the model is read. It ``is_grouped`` where its rows have different keys already.
    ``eager`` are terms by which rows are grouped before they meet a change.
    """

    name: str
    node: Node
    names: tuple[str, ...]
    part_length: Length | None
    rows_a_day: float | None
    is_joined_on_read: bool
    is_grouped: bool
    eager: tuple[EagerTerm, ...]
