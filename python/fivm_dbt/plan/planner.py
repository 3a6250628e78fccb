"""From a model's SQL to its Plan: lower, rewrite, find the root, derive the delta. Every decision is made here."""

from __future__ import annotations

import logging
from dataclasses import replace

from fivm_dbt.catalog import Catalog, Column, Relation, check_records_changes
from fivm_dbt.config import Config, Strategy
from fivm_dbt.delta.foreign_keys import Reference, references
from fivm_dbt.delta.orphans import Orphans
from fivm_dbt.delta.term import scans
from fivm_dbt.errors import FivmError, expected_one_of
from fivm_dbt.ir.moments import is_utc
from fivm_dbt.ir.nodes import Node
from fivm_dbt.naming import PREFIX, canonical, sibling, split_name
from fivm_dbt.plan.keep.helper_views import Wanted
from fivm_dbt.plan.keep.inner_views import keep_inner_views
from fivm_dbt.plan.keep.kept_views import InnerView
from fivm_dbt.plan.keep.match_marks import part_length
from fivm_dbt.plan.keep.time.time_class import with_time_classes
from fivm_dbt.plan.keep.trees.factorise import GivenOrder
from fivm_dbt.plan.keep.trees.orphans import worthwhile_orphans
from fivm_dbt.plan.layout.clustering import clustered
from fivm_dbt.plan.layout.part_timestamp import with_part_timestamp
from fivm_dbt.plan.model.inputs import PlanInput
from fivm_dbt.plan.model.part_map import PartMap, part_map
from fivm_dbt.plan.model.plan import FactorisedPlan, MaintainedPlan, Plan
from fivm_dbt.plan.model.state_layout import shown_from_table
from fivm_dbt.plan.recompute import in_words, recompute_plan
from fivm_dbt.plan.request import ModelRequest
from fivm_dbt.plan.retention import Retained, retained
from fivm_dbt.plan.views import Views
from fivm_dbt.rewrite.pipeline import rewrite
from fivm_dbt.sql.depth import within_the_stack
from fivm_dbt.sql.lower import lower
from fivm_dbt.sql.parse import has_match
from fivm_dbt.sql.typing import Describe, Typer
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
        return replace(
            _by_policy(relation, request, describe, columns_of or describe),
            project=request.project,
            is_read=request.is_read,
        )
    except FivmError as error:
        raise error.located(sql=request.sql, model=split_name(relation)[-1]) from None


def _by_policy(
    relation: str, request: ModelRequest, describe: Describe | None, columns_of: Describe | None
) -> Plan:
    """``fivm_policy``: refuse what cannot be maintained, recompute it, or recompute everything.

    ``fivm_strategy: reevaluate`` keeps no view at all, which is to recompute everything too.
    """
    policy, reason = request.config.fivm_policy, None
    if policy != "full" and request.config.fivm_strategy != "reevaluate":
        try:
            with within_the_stack(request.sql):
                return _plan(relation, request, describe)
        except FivmError as error:
            if policy != "auto" or error.code.fault != "query" or has_match(request.sql):
                raise
            reason = error
    with within_the_stack(request.sql):
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
    return lower(request.sql, request.catalog, part_length=part_length(request.config)).columns


def _plan(relation: str, request: ModelRequest, describe: Describe | None) -> Plan:
    of_parts = part_length(request.config)
    lowered = lower(
        request.sql,
        request.catalog,
        describe,
        approximate=request.config.fivm_float == "approximate",
        part_length=of_parts,
    )
    without = request.config.fivm_without
    query = rewrite(lowered.node, is_pruned="column_pruning" not in without)
    static = _static(request.config, request.catalog)
    order = _given_order(request)
    strategy, depth = _strategy(request.config, order)
    is_factorized = request.config.fivm_result == "factorized"
    kept = keep_inner_views(
        query,
        relation,
        static,
        {r.name: r.determines for r in request.catalog.relations},
        Wanted(
            strategy,
            order,
            depth=depth,
            measured=request.measured,
            splits_sums="split_sums" not in without,
            inequality=request.config.fivm_inequality,
            buckets=request.config.fivm_buckets,
            is_factorized=is_factorized,
            part_length=of_parts,
            by_time="time_ranges" not in without,
            is_utc=is_utc(request.session),
        ),
    )
    promised, orphans = _foreign_keys(relation, request, query, static)
    kept_promises = request.catalog.relations if request.config.fivm_trust_keys else ()
    relations = {r.name: r for r in kept_promises}
    dropped = {n: r for n, r in retained(request.catalog, request.config).items() if n not in static}
    views = Views(
        request.config,
        Typer(describe),
        static=static,
        references=promised,
        promised=relations,
        orphans=orphans,
        is_utc=is_utc(request.session),
        dropped=dropped,
    )
    for view in kept.views:
        views.add(
            view.name,
            view.node,
            tuple(f.name for f in view.node.fields),
            view.reason,
            by=view.by,
            slot=view.slot,
            bounded_by=view.bounded_by,
        )
    root = sibling(relation, "root")
    if is_factorized:
        views.add_joined_on_read(root, kept.over, lowered.names, is_grouped=kept.is_grouped)
    else:
        has_marks = any(view.slot is not None for view in kept.views)
        views.add(
            root, kept.over, lowered.names, "the model itself", of_matches=of_parts if has_marks else None
        )
    planned, length = with_time_classes(views.planned()), None
    if not is_factorized:
        planned = (*planned[:-1], shown_from_table(planned[-1], sibling(relation, "state")))
    if request.config.fivm_part_timestamp:
        planned, length = with_part_timestamp(planned, request.config, dict(request.session))
    kind = FactorisedPlan if is_factorized else MaintainedPlan
    return kind(
        relation=relation,
        sql=request.sql,
        config=request.config,
        session=tuple(sorted(request.session)),
        inputs=_inputs(query, request.catalog, static, dropped),
        query=query,
        views=clustered(planned) if is_factorized else planned,
        output=tuple(Column(n, f.type) for n, f in zip(lowered.names, query.fields, strict=True)),
        completions=lowered.completions,
        matches=lowered.matches,
        view_trees=kept.trees,
        measured=request.measured if kept.measurable else None,
        measurable=kept.measurable,
        inequalities=kept.inequalities,
        part_maps=_part_maps(
            relation, request, query=query, names=lowered.names, views=kept.views, by_time=views.by_time
        ),
        partition_length=length,
    )


def _part_maps(
    relation: str,
    request: ModelRequest,
    query: Node,
    names: tuple[str, ...],
    views: tuple[InnerView, ...],
    by_time: frozenset[str],
) -> tuple[PartMap, ...]:
    """The map of the model over its inputs, and those of its inner views that are partitioned by time."""
    times = {r.name: r.event_time for r in request.catalog.relations if r.event_time is not None}
    named = [(relation, query, names, request.config.batch_size)]
    named += [
        (v.name, v.node, tuple(f.name for f in v.node.fields), None) for v in views if v.name in by_time
    ]
    in_utc = is_utc(request.session)
    maps = (part_map(name, node, shown, times, is_utc=in_utc, part=part) for name, node, shown, part in named)
    return tuple(m for m in maps if m is not None)


def _foreign_keys(
    relation: str, request: ModelRequest, query: Node, static: frozenset[str]
) -> tuple[tuple[Reference, ...], dict[Reference, Orphans]]:
    """The foreign keys that are promised, or else the orphans that ``auto`` would keep, by the sizes of the tables."""
    declared = references(request.catalog.relations)
    if request.config.fivm_trust_keys:
        return declared, {}
    if request.config.fivm_strategy != "auto" or request.measured is None:
        return (), {}
    return (), worthwhile_orphans(relation, declared, query, static, request.measured)


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


def _static(config: Config, catalog: Catalog) -> frozenset[str]:
    """The canonical names of the inputs promised not to change. FIVM201 for a name that is no input."""
    names = {r.name for r in catalog.relations if r.is_static}
    for written in config.fivm_static:
        found = [r.name for r in catalog.relations if _is_called(r, written)]
        if not found:
            known = expected_one_of([r.name for r in catalog.relations])
            raise FivmError(
                "FIVM201", f"fivm_static: {written} is not an input ({known})", remedy="correct the name"
            )
        names.update(found)
    return frozenset(names)


def _check_names(name: str, columns: tuple[Column, ...]) -> None:
    """FIVM112 where an input has columns of our own, as a state table has."""
    hidden = [c.name for c in columns if c.name.lower().startswith(PREFIX)]
    if hidden:
        raise FivmError(
            "FIVM112",
            f"{name} has columns {', '.join(hidden)}: names that begin with {PREFIX} are those of state tables",
            remedy="read the model and not its state, or rename the columns upstream",
        )


def _check_comparable(name: str, columns: tuple[Column, ...]) -> None:
    """FIVM111 where the net change of an input cannot be computed: its rows have to be told apart bit for bit."""
    for column in columns:
        if not column.type.is_groupable:
            raise FivmError(
                "FIVM111",
                f"{name}.{column.name} has type {column.type}: {column.type.why_ungroupable}",
                remedy="extract what the model needs in a table model upstream, or list the input in fivm_static",
            )


def _is_called(relation: Relation, written: str) -> bool:
    parts, wanted = split_name(relation.name), split_name(written)
    return parts[-len(wanted) :] == wanted


def _inputs(core: Node, catalog: Catalog, static: frozenset[str], dropped: Retained) -> tuple[PlanInput, ...]:
    """Each relation read, with the union of the columns that its scans keep, in the catalog's order.

    Of one whose dropped parts are told from deleted rows also the column that they are told by.
    """
    used: dict[str, set[str]] = {}
    for scan in scans(core):
        used.setdefault(scan.relation, set()).update(name for name, _ in scan.columns)
    result = []
    for name in sorted(used):
        relation = catalog.find(name)
        if relation is None:
            raise ValueError(f"{name} is scanned but not in the catalog")
        check_records_changes(relation)
        retention = dropped.get(name)
        told_by = None if retention is None else relation.column(retention.column)
        columns = tuple(c for c in relation.columns if c.name in used[name] or c == told_by)
        _check_names(name, columns)
        if name not in static:
            _check_comparable(name, columns)
        result.append(PlanInput(relation, columns, name in static, retention))
    return tuple(result)
