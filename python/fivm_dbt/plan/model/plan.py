"""The Plan of one model decides everything: a refresh only binds versions and literals to it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property

from fivm_dbt.catalog import Column, DatabaseView, Presentation, SparkType, TableStatistics
from fivm_dbt.catalog.types import TIMESTAMP
from fivm_dbt.config import Config
from fivm_dbt.delta.near_changes import times_read
from fivm_dbt.ir.clock import kinds_below
from fivm_dbt.ir.node import Node
from fivm_dbt.ir.written import WrittenClause
from fivm_dbt.naming import digest, kept_under, sibling, split_name
from fivm_dbt.parts.length import Length
from fivm_dbt.parts.parted import PART_TIMESTAMP
from fivm_dbt.plan.model.encode import encode
from fivm_dbt.plan.model.inputs import PlanInput
from fivm_dbt.plan.model.part_map import PartMap
from fivm_dbt.plan.model.recompute import Recompute
from fivm_dbt.plan.model.shown import InequalityHelper, ViewTree
from fivm_dbt.plan.model.signature import STATE, STATE_VERSION, inner_view, layout_text, partition_text
from fivm_dbt.plan.model.state import StateTable
from fivm_dbt.plan.model.state_layout import StateLayout, lay_out_states
from fivm_dbt.plan.model.view import View
from fivm_dbt.sql.edits import Edit, edited, without_comments
from fivm_dbt.sql.unfold import Unfolded, definition, unfold


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How the model ``relation`` is built and refreshed: one of the kinds below, or one of a feature.

    ``query`` is what was read, before inner views were taken out of it, and ``views`` are what is kept, in this order,
    the root last. ``sql`` is the user's text, and ``database_views`` are the views that it reads, directly or through
    others: ``text`` has their queries in their places. ``completions`` are the edits of that after which it does not
    depend on ties: ``completed_sql`` is what is maintained and recomputed. ``matches`` are the patterns in that, which
    Spark cannot run as they stand.
    """

    relation: str
    sql: str
    config: Config
    session: tuple[tuple[str, str], ...]
    inputs: tuple[PlanInput, ...]
    query: Node
    views: tuple[View, ...]
    output: tuple[Column, ...]
    completions: tuple[Edit, ...] = ()
    matches: tuple[WrittenClause, ...] = ()
    database_views: tuple[DatabaseView, ...] = ()
    project: str = ""
    """The dbt project of the model, where there is one."""
    is_read: bool = False
    """Whether other fivm models read this one, by its change feed."""

    @cached_property
    def unfolded(self) -> Unfolded:
        """The user's text with the queries of views in the places of their names."""
        return unfold(self.sql, self.database_views)

    @property
    def text(self) -> str:
        """What is planned, before it is completed."""
        return self.unfolded.sql

    @cached_property
    def completed_sql(self) -> str:
        """The text with its completions, which a full recompute runs."""
        return edited(self.text, self.completions)

    @property
    def shown(self) -> tuple[Column, ...]:
        """The columns of the model's view."""
        return self.output

    @property
    def part_length(self) -> Length | None:
        """How long its time parts are, of a model that is computed by them; None of any other."""
        return None

    @property
    def model(self) -> str:
        """The model's own name, for messages."""
        return self.relation.split(".")[-1].strip("`")

    @property
    def kept_under(self) -> str:
        """The relation beside which all that is kept of the model lies."""
        return kept_under(self.relation, self.config.fivm_helper_schema)

    @property
    def helpers(self) -> tuple[View, ...]:
        """The inner views."""
        return self.views[:-1]

    @property
    def stored(self) -> tuple[View, ...]:
        """The views that are tables."""
        return self.views

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
        return lay_out_states(sibling(self.kept_under, "state"), self.stored)

    @property
    def state_relation(self) -> str:
        """The table that a refresh writes: all states of a model."""
        return self.layout.relation

    @property
    def presentation(self) -> Presentation:
        """How the model shows its root."""
        return self.top.presentation

    @property
    def is_exposed(self) -> bool:
        """Whether the model is a table that follows its states, and not a view over them (``fivm_expose``)."""
        return self.config.fivm_expose == "table"

    @property
    def read_by(self) -> Presentation | None:
        """What other models read it by: None of a table like any other."""
        return None if self.is_exposed else self.presentation

    def input(self, name: str) -> PlanInput:
        """An input or, by its state's relation, an inner view."""
        candidates = (*self.inputs, *(v.as_input for v in self.helpers))
        return next(i for i in candidates if i.name == name)

    def helper(self, name: str) -> View | None:
        """The inner view whose state is ``name``."""
        return next((v for v in self.helpers if v.name == name), None)

    @property
    def is_rebuilt(self) -> bool:
        """Whether it has no inner views because builds have stood in the place of refreshes."""
        return False

    @property
    def why_recomputed(self) -> str | None:
        """Why the model is recomputed; None where it is not."""
        return None

    @property
    def why_no_tree(self) -> str:
        """Why there is no view tree, where there is none."""
        return "no inner join needs one"

    @property
    def not_repeatable(self) -> str | None:
        """Why a second evaluation of the text may differ, so that there is nothing to compare; None if it cannot."""
        return None

    @cached_property
    def clock_kinds(self) -> frozenset[str]:
        """What the plan reads of the clock: date, timestamp, timestamp_ntz, or nothing."""
        return kinds_below(self.query)

    @cached_property
    def times_read(self) -> tuple[tuple[str, str, SparkType], ...]:
        """Relation, staged column and its type, of the changes by whose times a read is bounded."""
        near = (n for view in self.views for n in times_read(view.terms, view.key_sets))
        return tuple(sorted({(n.relation, n.column, n.type) for n in near}, key=lambda t: t[:2]))

    @cached_property
    def changes_read(self) -> frozenset[str]:
        """The relations of which a statement looks at what has changed, and not only whether something has."""
        return frozenset().union(*(view.changes_read for view in self.views))

    def times_of(self, relation: str) -> tuple[tuple[str, SparkType], ...]:
        """The staged columns of a relation's change whose times are asked for."""
        return tuple((column, type_) for name, column, type_ in self.times_read if name == relation)

    @cached_property
    def signature(self) -> dict[str, str]:
        """What a state depends on, part by part: when it differs from the recorded one, the difference is the reason.

        It covers meaning, state layout and session semantics, not cost decisions.
        """
        return {
            STATE: str(STATE_VERSION),
            "SQL": without_comments(self.sql),
            "root layout": layout_text(self.root),
            "presentation": self.presentation.sql,
            "partitioning": f"{self.root.partitioning.kind} {partition_text(self.root)}",
            "fivm_static": ", ".join(i.name for i in self.inputs if i.is_static),
            **{f"definition of view {v.name}": definition(v) for v in self.database_views},
            **self._own_signature,
            **{f"session {key}": value for key, value in self.session},
        }

    @property
    def _own_signature(self) -> dict[str, str]:
        """What the states of this kind of plan depend on besides."""
        raise NotImplementedError

    @property
    def promises(self) -> dict[str, list[str]]:
        """What is declared of the inputs' rows, by input, where anything is."""
        return {i.name: list(i.relation.promises) for i in self.inputs if i.relation.promises}

    @cached_property
    def plan_hash(self) -> str:
        """The signature in sixteen characters."""
        return hashlib.sha256(json.dumps(self.signature, sort_keys=True).encode()).hexdigest()[:16]

    def snapshot_table(self, input_name: str) -> str:
        """The own snapshot of an input."""
        last = split_name(input_name)[-1]
        same = [i.name for i in self.inputs if split_name(i.name)[-1] == last]
        suffix = f"snapshot_{last}" if len(same) < 2 else f"snapshot_{last}_{digest(input_name)}"
        return sibling(self.kept_under, suffix)

    def to_json(self) -> str:
        """The whole plan as JSON, stable across processes."""
        return json.dumps(encode(self), indent=2, sort_keys=True)


@dataclass(frozen=True, kw_only=True)
class MaintainedPlan(Plan):
    """States are kept by their deltas, in one table, and the model shows the last of them."""

    view_trees: tuple[ViewTree, ...] = ()
    measured: TableStatistics | None = None
    """The sizes by which ``fivm_strategy: auto`` has chosen, recorded with the state."""
    measurable: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """What it chooses by: by input, the columns of which it would know the distinct values. Empty for no choice."""
    orderable: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """By which columns it would partition and read, where an input's rows lie in their order: by input."""
    inequalities: tuple[InequalityHelper, ...] = ()
    """What is kept of aggregates that are correlated by an inequality, and why."""
    part_maps: tuple[PartMap, ...] = ()
    """Which parts of the inputs parts of the model and of its inner views are computed from, for people."""
    partition_length: Length | None = None
    """How long the time partitions are that the model shows as PART_TIMESTAMP; None where it does not."""

    @property
    def is_rebuilt(self) -> bool:
        return self.measured is not None and self.measured.is_rebuilt

    @property
    def shown(self) -> tuple[Column, ...]:
        """The columns of the query, and PART_TIMESTAMP where that was asked for."""
        if self.partition_length is None:
            return self.output
        return (*self.output, Column(PART_TIMESTAMP, TIMESTAMP))

    @property
    def _own_signature(self) -> dict[str, str]:
        parts = {}
        if self.completions:
            parts["completed SQL"] = without_comments(self.completed_sql)
        parts.update(map(inner_view, self.helpers))
        for item in self.inputs:
            columns = sorted(f"{c.name} {c.type}" for c in item.columns)
            parts[f"columns of {item.name}"] = ", ".join(columns)
            if item.relation.presentation is not None:
                parts[f"definition of {item.name}"] = item.relation.presentation.sql
        return parts


@dataclass(frozen=True, kw_only=True)
class FactorisedPlan(MaintainedPlan):
    """The result is no table but the join of inner views, which is evaluated when the model is read."""

    @property
    def stored(self) -> tuple[View, ...]:
        """The inner views: the topmost one is a join of them."""
        return self.helpers


@dataclass(frozen=True, kw_only=True)
class RecomputedPlan(Plan):
    """The model's text is run again when an input has changed: ``recompute`` says why, and what is known of it."""

    recompute: Recompute

    @property
    def why_recomputed(self) -> str | None:
        return self.recompute.reason

    @property
    def why_no_tree(self) -> str:
        return f"the model is recomputed: {self.recompute.reason}"

    @property
    def not_repeatable(self) -> str | None:
        return self.recompute.not_repeatable

    @cached_property
    def clock_kinds(self) -> frozenset[str]:
        """The columns of the clock in whose places the text gets literals."""
        return frozenset(self.recompute.clock)

    @property
    def _own_signature(self) -> dict[str, str]:
        # Whatever changes in an input moves its version, and then everything is computed anew.
        return {"maintenance": "recompute"}
