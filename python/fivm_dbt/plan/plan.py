"""The Plan of one model. A refresh only binds versions and literals to it; it decides nothing."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from fivm_dbt.catalog import Column, Presentation, Relation, SparkType
from fivm_dbt.config import Config
from fivm_dbt.delta.term import Term
from fivm_dbt.ir.nodes import Item, Node
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.naming import COUNT, digest, sibling, split_name
from fivm_dbt.rings import Component

STATE_VERSION = 1
"""Raised when the layout of state tables or the journal changes; part of every plan hash."""

Capture = Literal["change feed", "version difference", "snapshot", "static"]


@dataclass(frozen=True)
class PlanInput:
    """An input: the columns that the plan reads, and how its change is captured when nothing else is known."""

    relation: Relation
    columns: tuple[Column, ...]
    is_static: bool

    @property
    def name(self) -> str:
        return self.relation.name

    @property
    def starts_with_snapshot(self) -> bool:
        """Seeds are dropped and created anew by dbt: only an own snapshot tells what changed."""
        return self.relation.is_recreated and not self.is_static


@dataclass(frozen=True)
class PayloadColumn:
    """A state column holding a component of the payload."""

    name: str
    component: Component


@dataclass(frozen=True)
class Partitioning:
    """The hidden partition column of a state: the period of a time key, a given column, or a hash bucket.

    ``expression`` is over the state's key columns (bare names). ``buckets`` is None where the number is chosen from
    the inputs' size when the state is built, and kept until a rebuild.
    """

    kind: Literal["time", "value", "bucket"]
    expression: Scalar | None
    type: SparkType
    reason: str
    buckets: int | None = None


@dataclass(frozen=True)
class StateTable:
    """A Delta table with one row per key: hidden partition, keys, multiplicity, payload.

    ``grouped_by`` are the keys by which rows are replaced together, if those are not all: buckets are hashed over them.
    """

    relation: str
    keys: tuple[Item, ...]
    payload: tuple[PayloadColumn, ...]
    partitioning: Partitioning
    is_global: bool
    grouped_by: tuple[str, ...] = ()

    @property
    def payload_names(self) -> tuple[str, ...]:
        """The multiplicity first, then the other components."""
        return (COUNT, *(p.name for p in self.payload))


@dataclass(frozen=True)
class Recompute:
    """Why a model is recomputed instead of maintained, and what is known of its text.

    ``changes_by_itself``: every run recomputes, also when no input has moved. ``not_repeatable``: why a second
    evaluation over the same rows may differ, so that there is nothing to compare with.
    """

    reason: str
    changes_by_itself: bool
    not_repeatable: str | None


@dataclass(frozen=True)
class Plan:
    """How the model ``relation`` is built and refreshed."""

    relation: str
    sql: str
    config: Config
    session: tuple[tuple[str, str], ...]
    inputs: tuple[PlanInput, ...]
    query: Node
    core: Node
    terms: tuple[Term, ...]
    root: StateTable
    output: tuple[Column, ...]
    presentation: Presentation
    recompute: Recompute | None = None

    @property
    def model(self) -> str:
        """The model's own name, for messages."""
        return self.relation.split(".")[-1].strip("`")

    def input(self, name: str) -> PlanInput:
        return next(i for i in self.inputs if i.name == name)

    @cached_property
    def signature(self) -> dict[str, str]:
        """What a state depends on, part by part: when it differs from the recorded one, the difference is the reason.

        It covers meaning, state layout and session semantics, not cost decisions.
        """
        parts = {
            "state version": str(STATE_VERSION),
            "SQL": self.sql,
            "root layout": json.dumps(
                [[k.name, k.value.sql, k.type.text] for k in self.root.keys]
                + [[p.name, p.component.lift.sql, p.component.type.text] for p in self.root.payload]
            ),
            "presentation": self.presentation.sql,
            "partitioning": f"{self.root.partitioning.kind} {self._partition_text()}",
            "fivm_static": ", ".join(i.name for i in self.inputs if i.is_static),
        }
        if self.recompute is not None:
            # Whatever changes in an input moves its version, and then everything is computed anew.
            return parts | {"maintenance": "recompute"} | {f"session {k}": v for k, v in self.session}
        for item in self.inputs:
            parts[f"columns of {item.name}"] = ", ".join(f"{c.name} {c.type}" for c in item.columns)
            if item.relation.presentation is not None:
                parts[f"definition of {item.name}"] = item.relation.presentation.sql
        parts.update({f"session {key}": value for key, value in self.session})
        return parts

    def _partition_text(self) -> str:
        by = self.root.partitioning
        return by.expression.sql if by.expression is not None else str(by.buckets or "by size")

    @cached_property
    def plan_hash(self) -> str:
        return hashlib.sha256(json.dumps(self.signature, sort_keys=True).encode()).hexdigest()[:16]

    def snapshot_table(self, input_name: str) -> str:
        """The own snapshot of an input."""
        last = split_name(input_name)[-1]
        same = [i.name for i in self.inputs if split_name(i.name)[-1] == last]
        suffix = f"snapshot_{last}" if len(same) < 2 else f"snapshot_{last}_{digest(input_name)}"
        return sibling(self.relation, suffix)

    def to_json(self) -> str:
        """The whole plan as JSON, stable across processes."""
        from fivm_dbt.plan.encode import encode

        return json.dumps(encode(self), indent=2, sort_keys=True)
