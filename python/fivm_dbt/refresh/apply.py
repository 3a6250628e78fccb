"""Writing: build the states, merge deltas into them, renew own snapshots, show the model."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import sqlglot
from sqlglot import exp

from fivm_dbt.delta.key_sets import KeySet, lookups
from fivm_dbt.delta.prune import prune_terms
from fivm_dbt.delta.term import Term
from fivm_dbt.ir.dialect import SparkText
from fivm_dbt.ir.nodes import Lookup
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.naming import FACTORS_PROPERTY, PART_PROPERTY, PARTITION, ROOT_PROPERTY
from fivm_dbt.plan.binding import Binding, BoundInput, Span, Touched, staged_input, staged_state
from fivm_dbt.plan.plan import Plan, StateTable, View
from fivm_dbt.refresh.engine import Commit, Row
from fivm_dbt.refresh.factorise import Found, factorised
from fivm_dbt.refresh.recorder import Recorder
from fivm_dbt.refresh.writes import MAX_LITERALS, literal, may_be_several, writes
from fivm_dbt.spark.capture import change_query, snapshot_query
from fivm_dbt.spark.check import check_statements
from fivm_dbt.spark.merge import write_delta
from fivm_dbt.spark.near_changes import times_of
from fivm_dbt.spark.reads import table as relation_table
from fivm_dbt.spark.state import (
    build_query,
    column_mapping,
    create_table,
    create_view,
    delta_query,
    joined_on_read,
    key_set_query,
    part_query,
    partitions_query,
    touched_query,
)

MODEL_PROPERTY, PROJECT_PROPERTY = "fivm.model", "fivm.project"
"""Properties of every table that is kept: the model and the dbt project that it belongs to."""


@dataclass(frozen=True)
class Merged:
    """What came to a view's state: keys that changed, and the partitions that they lie in."""

    view: str
    rows: int
    partitions: int
    touched: tuple[object, ...] = ()
    """These partitions, as the database gives them."""
    spans: tuple[Span, ...] = ()
    """When its changed rows were."""
    product: Found | None = None
    """What its staged change was found to be the product of."""
    anew: int = 0
    """How many partitions the last statement has written anew as a whole."""
    commit: Commit | None = None
    """Of an inner view, what that statement has left."""


def build_states(plan: Plan, engine: Recorder, binding: Binding) -> dict[str, int]:
    """Create the state of every view with everything in it, its change feed on from the first version.

    Returns the versions of the inner views' states.
    """
    check_statements(plan)
    versions = {}
    for view in plan.stored:
        if view is not plan.top:
            engine.progress(f"building {view.name}: {view.reason}")
        engine.run(
            create_table(
                view.name, build_query(plan, view, binding), _properties(plan, view.state), PARTITION
            )
        )
        if view is not plan.top:
            versions[view.name] = engine.commits(view.name, None)[0].version
            bound = BoundInput(view.name, "static", None, versions[view.name])
            binding = binding.with_view(bound, is_changed=False)
    return versions


def is_unchanged(plan: Plan, engine: Recorder, binding: Binding) -> bool:
    """Whether no view is changed by what moved: nothing is merged, and nothing stays staged."""
    for view in plan.stored:
        bound = _with_key_sets(plan, view, engine, binding)
        if bound.is_changed_by(view):
            engine.stage(staged_state(plan, view), delta_query(plan, view, bound))
            touched = engine.query(touched_query(plan, view))
            engine.unstage(staged_state(plan, view))
            for key_set in view.key_sets:
                if key_set.name in bound.changed and not key_set.is_inlined:
                    engine.unstage(staged_input(plan, key_set.name))
            if touched:
                return False
        if view is not plan.top:
            before = binding.version_before(view.name)
            binding = binding.with_view(BoundInput(view.name, "static", before, before), is_changed=False)
    return True


def apply_deltas(
    plan: Plan, engine: Recorder, binding: Binding, already: Mapping[str, int]
) -> tuple[tuple[Merged, ...], dict[str, int]]:
    """Bring every view up to date, inner views first. ``already`` MERGEs of this refresh into a state are not repeated.

    Returns what came to the views that changed, and the versions of the inner views' states.
    """
    merged: list[Merged] = []
    versions: dict[str, int] = {}
    for view in plan.stored:
        done = already.get(view.name, 0)
        if done and not may_be_several(plan, view) and view.step is None:
            change = None
        else:
            change = _apply_delta(plan, view, engine, binding, already=done)
        if change is not None:
            merged.append(change)
        if view is not plan.top:
            moved = binding
            is_merged = bool(done) or change is not None
            commit = engine.commits(view.name, None)[0] if is_merged else None
            binding = _with_view(plan, view, engine, binding, change, commit)
            versions[view.name] = binding.input(view.name).new
            if change is not None:
                binding = binding.with_spans(change.spans)
                binding, found = _with_factors(plan, view, engine, binding, moved, change)
                merged[-1] = replace(change, product=found, commit=commit)
    return tuple(merged), versions


def _apply_delta(
    plan: Plan, view: View, engine: Recorder, binding: Binding, *, already: int
) -> Merged | None:
    """Stage the delta of a view and merge it; None where it is empty."""
    binding = _with_key_sets(plan, view, engine, binding)
    if not binding.is_changed_by(view):
        return None
    for product in binding.products(view):
        for part in product.parts:
            engine.stage(staged_input(plan, part.factor.name), part_query(plan, view, part, binding))
    engine.stage(staged_state(plan, view), delta_query(plan, view, binding))
    touched = engine.query(touched_query(plan, view))
    if not touched:
        return None
    rows = sum(int(str(row[1])) for row in touched)
    before = binding.version_before(view.name)
    planned = writes(plan, view, touched, is_replaced=view.name in binding.replaced)
    anew = 0
    for number, write in enumerate(planned, start=1):
        if number <= already:
            continue
        what = f"merging {write.rows:,} rows into {len(write.partitions)} partitions of {view.name}"
        engine.progress(f"{plan.model}: {what}" + (f" ({number}/{len(planned)})" if len(planned) > 1 else ""))
        statement = write_delta(
            plan,
            view,
            write.known,
            before,
            is_replaced=write.is_replaced,
            only_these=len(planned) > 1,
            bounds=write.bounds,
        )
        engine.run(statement)
        anew = len(write.partitions) if write.is_replaced and write.bounds is None else 0
    found = tuple(row[0] for row in touched)
    return Merged(view.name, rows, len(touched), found, _spans(plan, view, touched), anew=anew)


def _spans(plan: Plan, view: View, touched: Sequence[Row]) -> tuple[Span, ...]:
    """The times of a view's staged delta, from the first and the last one in each touched partition."""
    times = enumerate(plan.times_of(view.name))
    found = ((c, times_of((row[2 + 2 * n : 4 + 2 * n] for row in touched), type_)) for n, (c, type_) in times)
    return tuple(Span(view.name, column, spans) for column, spans in found if spans is not None)


def _with_key_sets(plan: Plan, view: View, engine: Recorder, binding: Binding) -> Binding:
    """The key sets of a view staged, and where they lie in the states that the view's delta looks up."""
    inlined: dict[str, exp.Query] = {}
    products = binding.products(view)
    for key_set in (*view.key_sets, *(k for p in products for k in p.key_sets)):
        # What a set is looked up in, by sets that are staged before it.
        own = lookups(prune_terms((Term(key_set.node, Scalar.number(1)),), binding.met(view)))
        binding = _with_touched(plan, own, engine, binding, inlined)
        query = key_set_query(plan, view, key_set, binding)
        if query is not None:
            if key_set.is_inlined:
                inlined[key_set.name] = query
            elif not _is_staged(plan, key_set, query, engine):
                continue
            binding = replace(binding, changed=binding.changed | {key_set.name})
    parts = tuple(Term(part.node, Scalar.number(1)) for p in products for part in p.parts)
    return _with_touched(plan, lookups((*binding.terms(view), *parts)), engine, binding, inlined)


def _with_touched(
    plan: Plan,
    looked_up: Sequence[Lookup],
    engine: Recorder,
    binding: Binding,
    inlined: Mapping[str, exp.Query],
) -> Binding:
    """The binding with the partitions in which staged or ``inlined`` keys lie, as far as these are not known."""
    known = {(t.key_set, t.state) for t in binding.touched}
    states = {v.name: v.state for v in plan.views}
    new = [lookup for lookup in looked_up if (lookup.key_set, lookup.scan.relation) not in known]
    if not new:
        return binding
    pairs = [(lookup, states[lookup.scan.relation]) for lookup in new]
    found: list[list[str | None]] = [[] for _ in pairs]
    for number, value in engine.query(partitions_query(plan, pairs, binding.buckets, inlined)):
        found[int(str(number))].append(None if value is None else str(value))
    touched = tuple(
        Touched(lookup.key_set, state.relation, _literals(values, state))
        for (lookup, state), values in zip(pairs, found, strict=True)
    )
    return replace(binding, touched=(*binding.touched, *touched))


def _is_staged(plan: Plan, key_set: KeySet, query: exp.Query, engine: Recorder) -> bool:
    """Stage a key set; whether it has any keys, as far as that is asked."""
    name = staged_input(plan, key_set.name)
    engine.stage(name, query)
    if not key_set.may_be_empty or engine.query(exp.select("1").from_(relation_table(name)).limit(1)):
        return True
    engine.unstage(name)
    return False


def _literals(values: list[str | None], state: StateTable) -> tuple[Scalar, ...] | None:
    if len(values) > MAX_LITERALS:
        return None
    order = sorted(values, key=lambda v: (v is not None, v or ""))
    return tuple(Scalar(literal(value, state.partitioning.type)) for value in order)


def _with_view(
    plan: Plan, view: View, engine: Recorder, binding: Binding, change: Merged | None, commit: Commit | None
) -> Binding:
    """The binding for the views above one that is up to date now, its change staged if it has any.

    ``commit`` is its newest one if there was anything to merge.
    """
    before = binding.version_before(view.name)
    version = commit.version if commit is not None else before
    if change is not None and view.step is not None:
        # What it was between the steps is asked for, also where they have undone each other.
        return binding.with_view(BoundInput(view.name, "staged", before, version), is_changed=True)
    if version == before:
        # Nothing to merge, or nothing but the rest of doubles, of which no row came.
        return binding.with_view(BoundInput(view.name, "static", before, before), is_changed=False)
    if change is not None and view.rows is not None:
        return binding.with_view(BoundInput(view.name, "staged", before, version), is_changed=True)
    bound = BoundInput(view.name, "change feed", before, version)
    engine.stage(staged_input(plan, view.name), change_query(plan, bound))
    return binding.with_view(bound, is_changed=True)


def _with_factors(
    plan: Plan, view: View, engine: Recorder, binding: Binding, moved: Binding, change: Merged
) -> tuple[Binding, Found | None]:
    """The binding for the views above one whose ``change`` lies staged as factors too, or is found to be a product.

    ``moved`` is what there was when the change was computed.
    """
    products = moved.products(view)
    if len(products) == 1 and products[0].gives is not None and not moved.terms(view):
        return binding.with_factors(products[0].gives), None
    if view.split is None or change.rows < plan.config.fivm_product_rows:
        return binding, None
    found = factorised(plan, view, engine)
    if found is None:
        return binding, None
    engine.progress(f"{plan.model}: the change of {view.name} is {found.text}")
    return binding.with_factors(view.split), found


def drop_states(engine: Recorder, names: Collection[str]) -> None:
    """Drop states that nothing reads any more."""
    for name in sorted(names):
        engine.run(exp.Drop(tables=[relation_table(name)], kind="TABLE", exists=True))


def write_snapshots(
    plan: Plan, engine: Recorder, binding: Binding, names: frozenset[str] | set[str]
) -> dict[str, int | None]:
    """Replace the own snapshots of ``names`` by the inputs' pinned versions; the snapshots' new versions by input.

    Repeating it gives the same rows, so an interrupted refresh may do it twice.
    """
    versions: dict[str, int | None] = {}
    for name in sorted(names):
        table = plan.snapshot_table(name)
        properties = {**_owner(plan), "fivm.snapshot_of": name}
        properties |= column_mapping(c.name for c in plan.input(name).columns)
        engine.run(create_table(table, snapshot_query(plan, binding.input(name)), properties, None))
        versions[name] = engine.commits(table, None)[0].version
    return versions


def publish(plan: Plan, engine: Recorder, versions: Mapping[str, int]) -> None:
    """Show the model: a view over the root state with the user's columns.

    A result that is no table is joined from the inner views at these ``versions``: while these are written one after
    the other, readers see what was there before.
    """
    query = _shown(plan, versions)
    if plan.is_factorized:
        engine.run(create_view(plan.relation, query, {FACTORS_PROPERTY: "true"}))
        return
    properties = {ROOT_PROPERTY: plan.root.relation}
    if plan.parts is not None:
        properties[PART_PROPERTY] = plan.parts.length.text
    engine.run(create_view(plan.relation, query, properties))


def show_again(plan: Plan, engine: Recorder, versions: Mapping[str, int]) -> bool:
    """Put the model's view back where it is gone, or shows something else; whether that was so."""
    if engine.is_view_of(plan.relation, _shown(plan, versions).sql(dialect="spark")):
        return False
    publish(plan, engine, versions)
    return True


def _shown(plan: Plan, versions: Mapping[str, int]) -> exp.Query:
    """The query of the model's view."""
    if plan.is_factorized:
        return joined_on_read(plan, versions)
    query = sqlglot.parse_one(plan.presentation.sql, dialect=SparkText)
    assert isinstance(query, exp.Query)
    return query


def _properties(plan: Plan, state: StateTable) -> dict[str, str]:
    """Those of a state. Where a part of many in a partition adds a file, Delta puts them together from fifty on."""
    small = {"delta.autoOptimize.autoCompact": "true"} if state.bounded_by is not None else {}
    return {**state_properties(plan), **small}


def state_properties(plan: Plan) -> dict[str, str]:
    return {"delta.enableChangeDataFeed": "true", **_owner(plan)}


def _owner(plan: Plan) -> dict[str, str]:
    """Whose a table is, so that it can be told when its model is gone."""
    project = {PROJECT_PROPERTY: plan.project} if plan.project else {}
    return {MODEL_PROPERTY: plan.relation, **project}
