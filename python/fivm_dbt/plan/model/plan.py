"""The Plan of one model. A refresh only binds versions and literals to it; it decides nothing."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from fivm_dbt.catalog import Column, Presentation, Relation, Retention, SparkType, TableStatistics
from fivm_dbt.catalog.types import TIMESTAMP
from fivm_dbt.config import Config
from fivm_dbt.delta.key_sets import KeySet
from fivm_dbt.delta.near_changes import times_read
from fivm_dbt.delta.products import FactorisedDelta, ProductDelta
from fivm_dbt.delta.term import Term
from fivm_dbt.ir.clock import kinds_below
from fivm_dbt.ir.factored import Product
from fivm_dbt.ir.match import WrittenMatch
from fivm_dbt.ir.nodes import Item, Node
from fivm_dbt.ir.printer import render
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.naming import COUNT, digest, sibling, split_name
from fivm_dbt.parts.length import Length
from fivm_dbt.parts.parted import PART_TIMESTAMP
from fivm_dbt.plan.model.part_map import PartMap
from fivm_dbt.plan.model.part_plan import PartPlan
from fivm_dbt.plan.model.state_layout import StateLayout, lay_out_states
from fivm_dbt.rings import Component
from fivm_dbt.rings.products import sum_of_products
from fivm_dbt.sql.edits import Edit, edited, without_comments
from fivm_dbt.sql.part_references import split_initialize

STATE = "state version"
"""The part of the signature that names the layout of states."""

STATE_VERSION = 5
"""Raised when the layout of state tables or of their heads changes; part of every plan hash."""

_INNER_VIEW = "inner view "
"""What a part of the signature about an inner view begins with; then its relation."""

_LONG, _HASHED = 200, "sha256 "
"""Parts of a recorded signature that have more characters are hashes, which begin so."""

Capture = Literal[
    "change feed", "version difference", "snapshot", "static", "staged", "state", "built", "newest"
]


@dataclass(frozen=True)
class PlanInput:
    """An input: the columns that the plan reads, and how its change is captured when nothing else is known."""

    relation: Relation
    columns: tuple[Column, ...]
    is_static: bool
    retention: Retention | None = None
    """By what its parts are dropped, where their rows do not count as deleted then."""

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
    products: tuple[Product, ...] | None = None
    """What is added up over payloads of a view tree, instead of the component's lift over rows."""

    @property
    def type(self) -> SparkType:
        return self.component.type

    @property
    def lift_sql(self) -> str:
        """What one row contributes, for people."""
        if self.products is None:
            return self.component.lift.sql
        return " + ".join(p.sql for p in self.products).replace("+ - ", "- ") or "0"

    def term(self, multiplicity: Scalar) -> Scalar:
        """The contribution of one signed row."""
        if self.products is None:
            return self.component.term(multiplicity)
        return sum_of_products(self.products, multiplicity, self.component.ring, self.type)


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
    ``determined`` are keys that follow from the others by declared keys that are promised: a MERGE does not compare
    them. ``is_set`` says that by the same promise no row is there twice, so that the table has no multiplicity. Nor has
    it where rows are kept as a text gives them (``is_plain``): that may be several times.
    """

    relation: str
    keys: tuple[Item, ...]
    payload: tuple[PayloadColumn, ...]
    partitioning: Partitioning
    is_global: bool
    grouped_by: tuple[str, ...] = ()
    rows: Product | None = None
    """How many rows one of the input stands for, where that has payloads of a view tree."""
    determined: tuple[str, ...] = ()
    is_set: bool = False
    is_plain: bool = False
    is_grouped: bool = False
    """Whether the rows that it is computed from have different keys already."""
    sorted_by: tuple[str, ...] = ()
    """The keys by which rows lie sorted in the files of a partition; none where nobody reads them by a prefix."""
    bounded_by: str | None = None
    """A key, a bigint or a timestamp, of whose range in a delta nothing outside is read or written: the time parts of
    which a partition has many, so that one more part leaves those before it alone. In a partition it is NULL in all
    rows or in none."""

    @property
    def bounding(self) -> Item | None:
        """The key that it is bounded by."""
        return next((k for k in self.keys if k.name == self.bounded_by), None)

    @property
    def payload_names(self) -> tuple[str, ...]:
        """The components of a delta: the multiplicity first, then the others."""
        return (COUNT, *(p.name for p in self.payload))

    @property
    def stored_names(self) -> tuple[str, ...]:
        """Those of them that are columns of the table."""
        return self.payload_names[1:] if self.is_set or self.is_plain else self.payload_names

    @property
    def placing(self) -> tuple[str, ...]:
        """The keys that decide the partition of a row; none where one bucket has all."""
        by = self.partitioning
        if by.buckets == 1:
            return ()
        if by.expression is not None:
            return tuple(sorted(name for _, name in by.expression.columns))
        return self.grouped_by or tuple(k.name for k in self.keys)

    @property
    def merge_keys(self) -> tuple[str, ...]:
        """The keys by which a MERGE finds a row."""
        return tuple(k.name for k in self.keys if k.name not in self.determined)


@dataclass(frozen=True)
class TimeClass:
    """The class of a view over time (ViewDF, section 6), and why in words."""

    name: Literal["windowed", "constant extra state", "whole input"]
    why: str


@dataclass(frozen=True)
class View:
    """A maintained view: the query ``core``, its delta, the state that keeps it, and how its rows are shown.

    ``key_sets`` are the affected keys that the delta looks up. ``rows`` are the shown columns as expressions over a
    state's row, where a row of the state's delta is a row of the view's delta: in a bag, but not where components are
    added up. Of a view of a view tree (``is_payload``) they are what is added to keys and payloads, each row once.
    ``reason`` says why the view is kept.
    """

    state: StateTable
    core: Node
    terms: tuple[Term, ...]
    key_sets: tuple[KeySet, ...]
    columns: tuple[Column, ...]
    presentation: Presentation
    rows: tuple[tuple[str, Scalar], ...] | None
    reason: str
    is_payload: bool = False
    step: Scalar | None = None
    """Of a map that is read between the steps of a refresh: which step a row of its delta belongs to."""
    split: FactorisedDelta | None = None
    """How its staged delta is looked for products, if those above it can make use of one."""
    products: tuple[ProductDelta, ...] = ()
    """Its delta where that of a view below it comes as a product."""
    over_time: TimeClass | None = None
    """What a refresh looks at because of windows, frames or sequences of time, if it has any."""

    @property
    def name(self) -> str:
        """The relation of its state, by which other views scan it."""
        return self.state.relation

    @property
    def is_bag(self) -> bool:
        """Whether its state has rows, which come and go, and not payloads, which are added up."""
        return self.rows is not None and not self.is_payload

    @cached_property
    def as_input(self) -> PlanInput:
        """The view as an input of those above it: a maintained model that is shown by its presentation."""
        relation = Relation(self.name, self.columns, kind="fivm", presentation=self.presentation)
        return PlanInput(relation, self.columns, is_static=False)


@dataclass(frozen=True)
class TreeView:
    """A view of a view tree: how deep it stands, what it is of, and its relation where it is kept."""

    depth: int
    variable: str
    keys: tuple[str, ...]
    relations: tuple[str, ...]
    payload: tuple[str, ...]
    kept: str | None
    reason: str


@dataclass(frozen=True)
class ViewTree:
    """The views of a block of the query, for people: everything in it is in the views of the plan.

    ``order`` is its variable order, None where it has recursive maps instead. ``implied`` is what the class of the
    query says about costs, ``costs`` what a changed row of each relation meets in this tree.
    """

    block: str
    variables: tuple[tuple[str, tuple[str, ...]], ...]
    order: str | None
    chosen: str
    query_class: str
    views: tuple[TreeView, ...]
    implied: str = ""
    costs: tuple[str, ...] = ()
    branches: tuple[tuple[str, int], ...] = ()
    """The order's variables, parents first, each with how deep it stands."""
    static: tuple[str, ...] = ()
    """The relations of the block that never change."""


@dataclass(frozen=True)
class InequalityHelper:
    """What is kept of an aggregate that is correlated by an inequality, for people: all of it is in the views.

    ``way`` is one of ``fivm_inequality``, ``views`` are the relations kept for it; ``costs`` are rows per refresh by
    way, as they were estimated, and ``without_ranges`` says why ranges were none of them.
    """

    comparison: str
    way: str
    reason: str
    views: tuple[str, ...]
    costs: tuple[tuple[str, int], ...]
    without_ranges: str | None = None


@dataclass(frozen=True)
class InputReach:
    """The rows of ``relation`` that a row of the result has a part of: ``low ≤ column − its time ≤ high``.

    In microseconds; None for an end that nothing is known of.
    """

    relation: str
    column: str
    type: SparkType
    low: int | None
    high: int | None


@dataclass(frozen=True)
class RecomputedParts:
    """How a result is recomputed where it can have changed: by the time in its state's ``column``.

    A change of an input that is not among ``inputs`` can be anywhere.
    """

    column: str
    type: SparkType
    inputs: tuple[InputReach, ...]

    def reach(self, relation: str) -> InputReach | None:
        return next((i for i in self.inputs if i.relation == relation), None)


@dataclass(frozen=True)
class Recompute:
    """Why a model is recomputed instead of maintained, and what is known of its text.

    ``changes_by_itself``: every run recomputes, also when no input has moved. ``not_repeatable``: why a second
    evaluation over the same rows may differ, so that there is nothing to compare with. ``clock``: the columns of the
    clock in whose places the text gets literals, so that it is evaluated at the time of the refresh. ``parts``: how
    the rows that a change cannot reach are left as they are; None where all are written anew.
    """

    reason: str
    changes_by_itself: bool
    clock: tuple[str, ...]
    not_repeatable: str | None
    parts: RecomputedParts | None = None


@dataclass(frozen=True)
class Plan:
    """How the model ``relation`` is built and refreshed: its ``views`` in this order, the root last.

    ``query`` is what was read, before inner views were taken out of it. ``completions`` are the edits of the user's
    text after which it does not depend on ties: ``completed_sql`` is what is maintained and recomputed. ``matches`` are
    the patterns in that, which Spark cannot run as they stand.
    """

    relation: str
    sql: str
    config: Config
    session: tuple[tuple[str, str], ...]
    inputs: tuple[PlanInput, ...]
    query: Node
    views: tuple[View, ...]
    output: tuple[Column, ...]
    recompute: Recompute | None = None
    completions: tuple[Edit, ...] = ()
    matches: tuple[WrittenMatch, ...] = ()
    view_trees: tuple[ViewTree, ...] = ()
    project: str = ""
    """The dbt project of the model, where there is one."""
    is_read: bool = False
    """Whether other fivm models read this one, by its change feed."""
    measured: TableStatistics | None = None
    """The sizes by which ``fivm_strategy: auto`` has chosen, recorded with the state."""
    measurable: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """What it chooses by: by input, the columns of which it would know the distinct values. Empty for no choice."""
    inequalities: tuple[InequalityHelper, ...] = ()
    """What is kept of aggregates that are correlated by an inequality, and why."""
    part_maps: tuple[PartMap, ...] = ()
    """Which parts of the inputs parts of the model and of its inner views are computed from, for people."""
    is_factorized: bool = False
    """Whether the result is no table but the join of inner views, which is evaluated when the model is read."""
    partition_length: Length | None = None
    """How long the time partitions are that the model shows as PART_TIMESTAMP; None where it does not."""
    parts: PartPlan | None = None
    """How its time parts are computed, of a viewdf model."""

    @cached_property
    def completed_sql(self) -> str:
        """The user's text with its completions, which a full recompute runs."""
        return edited(self.sql, self.completions)

    @property
    def shown(self) -> tuple[Column, ...]:
        """The columns of the model's view: those of the query, and PART_TIMESTAMP where that was asked for."""
        if self.partition_length is None:
            return self.output
        return (*self.output, Column(PART_TIMESTAMP, TIMESTAMP))

    @property
    def model(self) -> str:
        """The model's own name, for messages."""
        return self.relation.split(".")[-1].strip("`")

    @property
    def helpers(self) -> tuple[View, ...]:
        """The inner views."""
        return self.views[:-1]

    @property
    def stored(self) -> tuple[View, ...]:
        """The views that are tables."""
        return self.helpers if self.is_factorized else self.views

    @property
    def top(self) -> View:
        """The view that the model shows."""
        return self.views[-1]

    @property
    def root(self) -> StateTable:
        """The state of the topmost view."""
        return self.top.state

    @cached_property
    def layout(self) -> StateLayout:
        """The table of the states of a model."""
        return lay_out_states(sibling(self.relation, "state"), self.stored)

    @property
    def is_maintained(self) -> bool:
        """Whether its states are kept by their deltas, in one table."""
        return self.recompute is None and self.parts is None

    @property
    def state_relation(self) -> str:
        """The table that a refresh writes: all states of a model."""
        return self.layout.relation

    @property
    def presentation(self) -> Presentation:
        """How the model shows its root."""
        return self.top.presentation

    def input(self, name: str) -> PlanInput:
        """An input or, by its state's relation, an inner view."""
        candidates = (*self.inputs, *(v.as_input for v in self.helpers))
        return next(i for i in candidates if i.name == name)

    def helper(self, name: str) -> View | None:
        """The inner view whose state is ``name``."""
        return next((v for v in self.helpers if v.name == name), None)

    @cached_property
    def clock_kinds(self) -> frozenset[str]:
        """What the plan reads of the clock: date, timestamp, timestamp_ntz, or nothing."""
        if self.recompute is not None:
            return frozenset(self.recompute.clock)
        return kinds_below(self.query)

    @cached_property
    def times_read(self) -> tuple[tuple[str, str, SparkType], ...]:
        """Relation, staged column and its type, of the changes by whose times a read is bounded."""
        near = (n for view in self.views for n in times_read(view.terms, view.key_sets))
        return tuple(sorted({(n.relation, n.column, n.type) for n in near}, key=lambda t: t[:2]))

    def times_of(self, relation: str) -> tuple[tuple[str, SparkType], ...]:
        """The staged columns of a relation's change whose times are asked for."""
        return tuple((column, type_) for name, column, type_ in self.times_read if name == relation)

    @cached_property
    def signature(self) -> dict[str, str]:
        """What a state depends on, part by part: when it differs from the recorded one, the difference is the reason.

        It covers meaning, state layout and session semantics, not cost decisions.
        """
        parts = {
            STATE: str(STATE_VERSION),
            "SQL": without_comments(self.sql),
            "root layout": _layout(self.root),
            "presentation": self.presentation.sql,
            "partitioning": f"{self.root.partitioning.kind} {_partition_text(self.root)}",
            "fivm_static": ", ".join(i.name for i in self.inputs if i.is_static),
        }
        if self.parts is not None:
            update, initialize = split_initialize(self.sql)
            parts["SQL"] = without_comments(update)
            if initialize is not None:
                parts["INITIALIZE"] = without_comments(initialize)
            return parts | self.parts.signature | {f"session {k}": v for k, v in self.session}
        if self.recompute is not None:
            # Whatever changes in an input moves its version, and then everything is computed anew.
            return parts | {"maintenance": "recompute"} | {f"session {k}": v for k, v in self.session}
        if self.completions:
            parts["completed SQL"] = without_comments(self.completed_sql)
        for view in self.helpers:
            partitioned = f"{view.state.partitioning.kind} {_partition_text(view.state)}"
            parts[f"{_INNER_VIEW}{view.name}"] = f"{_layout(view.state)} {partitioned} {render(view.core)}"
        for item in self.inputs:
            columns = sorted(f"{c.name} {c.type}" for c in item.columns)
            parts[f"columns of {item.name}"] = ", ".join(columns)
            if item.relation.presentation is not None:
                parts[f"definition of {item.name}"] = item.relation.presentation.sql
        parts.update({f"session {key}": value for key, value in self.session})
        return parts

    @property
    def promises(self) -> dict[str, list[str]]:
        """What is declared of the inputs' rows, by input, where anything is."""
        return {i.name: list(i.relation.promises) for i in self.inputs if i.relation.promises}

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
        from fivm_dbt.plan.model.encode import encode

        return json.dumps(encode(self), indent=2, sort_keys=True)


def shortened(signature: Mapping[str, str]) -> dict[str, str]:
    """A signature with hashes for what is long: enough to see what differs, and what it was where that is short."""
    return {
        part: text if len(text) <= _LONG else _HASHED + hashlib.sha256(text.encode()).hexdigest()[:16]
        for part, text in signature.items()
    }


def is_hashed(text: str) -> bool:
    """Whether a part of a shortened signature is a hash."""
    return text.startswith(_HASHED)


def inner_views(signature: Mapping[str, str]) -> set[str]:
    """The inner views of a plan by its signature, as it is recorded with a build."""
    return {part.removeprefix(_INNER_VIEW) for part in signature if part.startswith(_INNER_VIEW)}


def _layout(state: StateTable) -> str:
    keys = [[k.name, k.value.sql, k.type.text] for k in state.keys]
    rows = [] if state.rows is None else [["rows", state.rows.sql]]
    rows += [["each row once"]] if state.is_set else []
    return json.dumps(keys + rows + [[p.name, p.lift_sql, p.type.text] for p in state.payload])


def _partition_text(state: StateTable) -> str:
    by = state.partitioning
    return by.expression.sql if by.expression is not None else str(by.buckets or "by size")
