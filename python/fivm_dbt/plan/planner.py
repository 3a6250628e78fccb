"""The planner goes from SQL to a Plan, and decides everything: lower, rewrite, find the root, derive the delta."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from fivm_dbt.catalog import Column, EventTime
from fivm_dbt.config import Config, Strategy
from fivm_dbt.delta.foreign_keys import Reference, references
from fivm_dbt.delta.orphans import Orphans
from fivm_dbt.errors import FivmError
from fivm_dbt.ir.moments import is_utc, may_be_utc
from fivm_dbt.ir.node import Node
from fivm_dbt.naming import ROOT, canonical, sibling, split_name
from fivm_dbt.plan.collected_later import collected_later
from fivm_dbt.plan.given import Given, Topmost
from fivm_dbt.plan.inputs import inputs_read, static_inputs
from fivm_dbt.plan.keep.helper_views import Wanted
from fivm_dbt.plan.keep.inner_views import Kept, keep_inner_views
from fivm_dbt.plan.keep.time.time_class import with_time_classes
from fivm_dbt.plan.keep.trees.factorise import GivenOrder
from fivm_dbt.plan.keep.trees.orphans import worthwhile_orphans
from fivm_dbt.plan.layout.clustering import clustered
from fivm_dbt.plan.layout.part_timestamp import with_part_timestamp
from fivm_dbt.plan.model.inputs import PlanInput
from fivm_dbt.plan.model.part_map import PartMap, part_map
from fivm_dbt.plan.model.plan import FactorisedPlan, MaintainedPlan, Plan
from fivm_dbt.plan.model.state_layout import shown_from_table
from fivm_dbt.plan.model.view import View
from fivm_dbt.plan.recompute import in_words, recompute_plan
from fivm_dbt.plan.request import ModelRequest
from fivm_dbt.plan.retention import Retained, retained
from fivm_dbt.plan.seen_rows import with_conditions
from fivm_dbt.plan.views import PlannedViews, plan_views
from fivm_dbt.rewrite.nested_extremes import nest_extremes
from fivm_dbt.rewrite.pipeline import rewrite
from fivm_dbt.rewrite.shared_aggregates import share_aggregates
from fivm_dbt.rings.declared import load_rings
from fivm_dbt.sql.depth import within_the_stack
from fivm_dbt.sql.lower import lower
from fivm_dbt.sql.lowered import Lowered
from fivm_dbt.sql.parse import is_beyond_spark
from fivm_dbt.sql.typing import Describe, Typer
from fivm_dbt.sql.view_types import check_types
from fivm_dbt.viewtree.nested import nested_order

logger = logging.getLogger(__name__)


def plan_model(
    request: ModelRequest, describe: Describe | None = None, columns_of: Describe | None = None
) -> Plan:
    """The plan of a model. ``describe`` asks Spark for types and names; without it Spark's rules are applied here.

    ``columns_of`` asks whoever runs it for the columns of a model that is recomputed (``fivm_policy``).
    Raises FivmError with the model's name and, for FIVM1xx, the position in its SQL.
    """
    relation = canonical(request.relation)
    try:
        request.config.check_maintained()
        load_rings(request.config.fivm_rings)
        with collected_later():
            plan = _placed(request, relation, describe, columns_of or describe)
        _check_own_rows(plan)
        if describe is not None:
            check_types(request.unfolded.views, describe)
        return replace(plan, project=request.project, is_read=request.has_readers)
    except FivmError as error:
        raise error.located(sql=request.sql, model=split_name(relation)[-1]) from None


def _check_own_rows(plan: Plan) -> None:
    """FIVM105 where a model reads itself, by its name or through a view of somebody else: dbt knows of neither."""
    if plan.relation in (item.name for item in plan.inputs):
        ways = [name for name in plan.unfolded.through.get(plan.relation, ()) if name != plan.relation]
        through = f" through view {', '.join(ways)}" if ways else ""
        what = f"the model reads itself{through}"
        raise FivmError("FIVM105", what, remedy="read what it is computed from, or write a viewdf model")


def _placed(
    request: ModelRequest, relation: str, describe: Describe | None, columns_of: Describe | None
) -> Plan:
    """The plan, or an error that points at what somebody has written: the model's text, or that of a view."""
    unfolded = request.unfolded
    try:
        return _by_policy(relation, request, describe, columns_of)
    except FivmError as error:
        raise unfolded.placed(error) from None


def _by_policy(
    relation: str, request: ModelRequest, describe: Describe | None, columns_of: Describe | None
) -> Plan:
    """``fivm_policy``: refuse what cannot be maintained, recompute it, or recompute everything.

    ``fivm_strategy: reevaluate`` keeps no view at all, which is to recompute everything too.
    """
    policy, reason = request.config.fivm_policy, None
    if policy != "full" and request.config.fivm_strategy != "reevaluate":
        try:
            with within_the_stack(request.text):
                return _Planning(relation, request, describe).plan()
        except FivmError as error:
            if policy != "auto" or error.code.fault != "query" or is_beyond_spark(request.text):
                raise
            reason = error
    with within_the_stack(request.text):
        plan = recompute_plan(relation, request, columns_of or _columns_offline(request, reason), reason)
    logger.info("%s is recomputed: %s", relation, plan.recompute.reason)
    return plan


def _columns_offline(request: ModelRequest, reason: FivmError | None) -> Describe:
    """The columns of a model that nobody can be asked for, where its text can be read as if it were maintained."""
    if reason is not None:
        raise FivmError(
            "FIVM109",
            f"fivm_policy: auto recomputes this model ({in_words(reason)}), but its columns are not known "
            "without a connection",
            remedy="dbt run-operation fivm_explain --args '{model: NAME}'",
        )

    return lambda question: columns_as_read(request)


def columns_as_read(request: ModelRequest) -> tuple[Column, ...]:
    """The columns of a model by its text alone. Raises FivmError where this cannot be read, or maintained."""
    return lower(request.text, request.catalog, part_length=request.config.part_length).columns


@dataclass(frozen=True)
class _Planning:
    """The plan of one model that is maintained: each property is a step, and reads those before it."""

    relation: str
    request: ModelRequest
    describe: Describe | None

    @property
    def _config(self) -> Config:
        return self.request.config

    @property
    def _is_factorized(self) -> bool:
        return self._config.fivm_result == "factorized"

    @cached_property
    def lowered(self) -> Lowered:
        """The text as nodes."""
        return lower(
            self.request.text,
            self.request.catalog,
            self.describe,
            approximate=self._config.fivm_float == "approximate",
            part_length=self._config.part_length,
            is_utc=may_be_utc(self.request.session),
        )

    @cached_property
    def query(self) -> Node:
        """The nodes with joins flattened, columns pruned, and one aggregate where one view can be kept of several."""
        left_out = self._config.fivm_without
        by_size = self._config.fivm_strategy == "auto" and "magic_sets" not in left_out and not self.dropped
        measured = self.request.measured if by_size else None
        node = rewrite(self.lowered.node, measured, is_pruned="column_pruning" not in left_out)
        if self._nests_extremes:
            node = nest_extremes(node, self.request.catalog, self.request.session)
        keeps_views = self._config.fivm_strategy != "first_order" and "shared_aggregates" not in left_out
        return share_aggregates(node) if keeps_views else node

    @property
    def _nests_extremes(self) -> bool:
        """A given order names the relations of one tree, and has no place for groups of some."""
        config = self._config
        is_free = config.fivm_variable_order is None and self.request.order is None
        return (
            config.fivm_strategy == "factorized" and is_free and "nested_extremes" not in config.fivm_without
        )

    @cached_property
    def static(self) -> frozenset[str]:
        """The inputs that never change."""
        return static_inputs(self._config, self.request.catalog)

    @cached_property
    def kept(self) -> Kept:
        """The inner views, and the query over them."""
        query, static = self.query, self.static
        order = _given_order(self.request)
        strategy, depth = _strategy(self._config, order)
        if strategy == "auto" and self.request.measured is not None and self.request.measured.is_rebuilt:
            strategy = "first_order"
        wanted = Wanted(
            strategy,
            order,
            depth=depth,
            measured=self.request.measured,
            splits_sums="split_sums" not in self._config.fivm_without,
            inequality=self._config.fivm_inequality,
            buckets=self._config.fivm_buckets,
            is_factorized=self._is_factorized,
            part_length=None if "marks" in self._config.fivm_without else self._config.part_length,
            chooses_length=self._config.fivm_part_length is None,
            separates="separators" not in self._config.fivm_without,
            by_time="time_ranges" not in self._config.fivm_without,
            by_ranges=self._has_ranges,
            is_utc=is_utc(self.request.session),
            may_append=self._config.fivm_apply in ("auto", "append") and self._config.fivm_merge == "grouped",
            groups_first="eager_aggregation" not in self._config.fivm_without,
            dropped=frozenset(self.dropped),
            event_times=self._event_times,
        )
        determines = {r.name: r.determines for r in self.request.catalog.relations}
        return keep_inner_views(query, self.request.kept_under, static, determines, wanted)

    @property
    def _event_times(self) -> dict[str, EventTime]:
        return {r.name: r.event_time for r in self.request.catalog.relations if r.event_time is not None}

    @cached_property
    def dropped(self) -> Retained:
        """The inputs whose dropped parts do not count as deleted."""
        found = retained(self.request.catalog, self._config)
        return {name: retention for name, retention in found.items() if name not in self.static}

    @cached_property
    def views(self) -> PlannedViews:
        """How the inner views and the query over them are kept."""
        kept = self.kept
        promised, orphans = self._foreign_keys()
        trusted = self.request.catalog.relations if self._config.fivm_trust_keys else ()
        given = Given(
            self._config,
            Typer(self.describe),
            static=self.static,
            references=promised,
            promised={r.name: r for r in trusted},
            orphans=orphans,
            is_utc=is_utc(self.request.session),
            dropped=self.dropped,
            measured=self.request.measured,
            seeks_first="sought" not in self._config.fivm_without,
            meets_first="met_first" not in self._config.fivm_without,
            by_ranges=self._has_ranges,
            lengthens=self._config.fivm_strategy == "auto" and not self._has_given_length,
        )
        top = Topmost(
            sibling(self.request.kept_under, ROOT),
            kept.over,
            self.lowered.names,
            part_length=kept.part_length,
            rows_a_day=None if self._config.fivm_part_timestamp else kept.rows_a_day,
            is_joined_on_read=self._is_factorized,
            is_grouped=kept.is_grouped,
            eager=kept.eager,
        )
        return plan_views(given, kept.views, top)

    def plan(self) -> MaintainedPlan:
        """The plan. Raises FivmError for what cannot be maintained."""
        views, length = with_time_classes(self.views.views), None
        if not self._is_factorized:
            views = (*views[:-1], shown_from_table(views[-1], sibling(self.request.kept_under, "state")))
        if self._config.fivm_part_timestamp:
            views, length = with_part_timestamp(views, self._config, dict(self.request.session))
        fields = zip(self.lowered.names, self.query.fields, strict=True)
        kind = FactorisedPlan if self._is_factorized else MaintainedPlan
        return kind(
            relation=self.relation,
            sql=self.request.sql,
            database_views=self.request.unfolded.views,
            config=self._config,
            session=tuple(sorted(self.request.session)),
            inputs=self._inputs(views),
            query=self.query,
            views=clustered(views) if self._is_factorized else views,
            output=tuple(Column(name, field.type) for name, field in fields),
            completions=self.lowered.completions,
            matches=self.lowered.matches,
            view_trees=self.kept.trees,
            measured=self.request.measured if self._is_by_size else None,
            measurable=self._measurable,
            orderable=self._orderable,
            inequalities=self.kept.inequalities,
            part_maps=self._part_maps(),
            partition_length=length,
        )

    @property
    def _has_ranges(self) -> bool:
        return self._config.fivm_strategy == "auto" and "key_ranges" not in self._config.fivm_without

    @property
    def _has_given_length(self) -> bool:
        """Whether somebody counts on the length of the state's partitions."""
        config = self._config
        return bool(config.batch_size or config.fivm_part_timestamp or config.fivm_partition_by)

    @property
    def _measurable(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """What ``auto`` would choose by: by input, columns."""
        found = {name: set(columns) for name, columns in self.kept.measurable}
        for name, columns in self.views.measurable.items():
            found.setdefault(name, set()).update(columns)
        return tuple((name, tuple(sorted(columns))) for name, columns in sorted(found.items()))

    @property
    def _is_by_size(self) -> bool:
        """Whether another plan might have been made of other inputs."""
        measured = self.request.measured
        return bool(self._measurable) or (
            measured is not None and (measured.is_rebuilt or bool(measured.ranges))
        )

    @property
    def _orderable(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """The columns that matter where an input's rows lie in their order: by input."""
        if not self._has_ranges:
            return ()
        found = {name: set(columns) for name, columns in self.kept.orderable.items()}
        for name, columns in self.views.orderable.items():
            found.setdefault(name, set()).update(columns)
        return tuple((name, tuple(sorted(columns))) for name, columns in sorted(found.items()))

    def _inputs(self, views: Sequence[View]) -> tuple[PlanInput, ...]:
        inputs = inputs_read(self.query, self.request.catalog, self.static, self.dropped)
        return inputs if "relevant_changes" in self._config.fivm_without else with_conditions(inputs, views)

    def _part_maps(self) -> tuple[PartMap, ...]:
        """The map of the model over its inputs, and those of its inner views that are partitioned by time."""
        times = self._event_times
        named = [(self.relation, self.query, self.lowered.names, self._config.batch_size)]
        by_time = (view for view in self.kept.views if view.name in self.views.by_time)
        named += [(v.name, v.node, tuple(f.name for f in v.node.fields), None) for v in by_time]
        in_utc = is_utc(self.request.session)
        maps = (
            part_map(name, node, shown, times, is_utc=in_utc, part=part) for name, node, shown, part in named
        )
        return tuple(found for found in maps if found is not None)

    def _foreign_keys(self) -> tuple[tuple[Reference, ...], dict[Reference, Orphans]]:
        """The foreign keys that are promised, or else the orphans that ``auto`` would keep, by the tables' sizes."""
        declared = references(self.request.catalog.relations)
        if self._config.fivm_trust_keys:
            return declared, {}
        if self._config.fivm_strategy != "auto" or self.request.measured is None:
            return (), {}
        return (), worthwhile_orphans(
            self.request.kept_under, declared, self.query, self.static, self.request.measured
        )


def _strategy(config: Config, order: GivenOrder | None) -> tuple[Strategy, int | None]:
    """The strategy and, of recursive maps, the depth. FIVM201 where an order is given that it has no use for."""
    strategy = config.fivm_strategy
    if order is not None and strategy in ("recursive", "first_order"):
        raise FivmError(
            "FIVM201",
            f"a variable order is given, but fivm_strategy: {strategy} has no view tree",
            remedy="leave the order out, or use fivm_strategy: factorized",
        )
    if config.fivm_result == "factorized":
        _check_factorized(config)
        strategy = "factorized"
    depth = config.fivm_depth
    if depth != "full" and strategy != "recursive":
        raise FivmError(
            "FIVM201",
            f"fivm_depth: {depth} is given, but fivm_strategy: {strategy} has no deltas of deltas",
            remedy="leave it out, or use fivm_strategy: recursive",
        )
    return "factorized" if order is not None else strategy, depth if isinstance(depth, int) else None


def _check_factorized(config: Config) -> None:
    """FIVM201 for what contradicts ``fivm_result: factorized``."""
    if config.fivm_strategy not in ("auto", "factorized"):
        other = f"fivm_strategy: {config.fivm_strategy} has no view tree"
    elif config.fivm_partition_by is not None:
        other = "fivm_partition_by is for the table of a result, of which there is none"
    else:
        return
    raise FivmError(
        "FIVM201", f"fivm_result: factorized is given, but {other}", remedy="leave one of them out"
    )


def _given_order(request: ModelRequest) -> GivenOrder | None:
    """The user's variable order. Of the inputs it may name also columns that the query does not need."""
    order = request.order
    if order is None and request.config.fivm_variable_order is not None:
        order = nested_order(request.config.fivm_variable_order)
    columns = frozenset(c.name.lower() for r in request.catalog.relations for c in r.columns)
    return GivenOrder(order, columns) if order is not None else None
