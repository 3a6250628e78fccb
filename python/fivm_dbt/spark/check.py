"""Validation of a new plan: every kind of statement that it can emit, with all inputs changed at once."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from sqlglot import exp

from fivm_dbt.delta.products import Factor
from fivm_dbt.delta.prune import prune_terms
from fivm_dbt.ir.clock import Clock
from fivm_dbt.parts.intervals import Intervals
from fivm_dbt.parts.shift import SECOND
from fivm_dbt.plan.binding import Binding, BoundClock, BoundInput, Span, staged_input, staged_state
from fivm_dbt.plan.plan import Capture, Plan, View
from fivm_dbt.spark.capture import change_query
from fivm_dbt.spark.merge import merge, replace_partitions
from fivm_dbt.spark.reads import Bounds
from fivm_dbt.spark.state import (
    build_query,
    delta_query,
    joined_on_read,
    key_set_query,
    part_query,
    touched_query,
)
from fivm_dbt.spark.validate import validate

EXAMPLE_TIMES = BoundClock(Clock.at(datetime(2024, 5, 1, 12)), Clock.at(datetime(2024, 5, 2, 12)))
"""The times of statements that are only checked or shown."""

EXAMPLE_SPAN = Intervals.of((1_714_564_800 * SECOND, 1_714_651_200 * SECOND))
"""The same as when all changed rows were."""


def check_statements(plan: Plan) -> None:
    """Raise FIVM901 where a statement of ``plan`` would be unsafe, before any has run."""
    staged = [staged_input(plan, i.name) for i in plan.inputs]
    updatable = frozenset(i.name for i in plan.inputs if not i.is_static)
    binding = example(plan, updatable)
    statements: list[exp.Expr] = [change_query(plan, b) for b in binding.inputs if b.capture != "staged"]
    for view in plan.stored:
        staged += [staged_state(plan, view), staged_input(plan, view.name)]
        key_sets = (*view.key_sets, *(k for p in view.products for k in p.key_sets))
        staged += [staged_input(plan, k.name) for k in key_sets]
        partition = [exp.Literal.number(1)]
        bounding = view.state.bounding
        for bounds in (None, *([Bounds(bounding.name, bounding.type, 1, 2)] if bounding is not None else [])):
            statements.append(merge(plan, view, partition, bounds=bounds))
            statements.append(replace_partitions(plan, view, partition, 1, bounds))
        statements.append(touched_query(plan, view))
        statements.append(build_query(plan, view, binding))
        # Whatever changes, a refresh runs some of these terms: a subset of safe reads is safe.
        queries = [key_set_query(plan, view, k, binding) for k in view.key_sets]
        statements += [q for q in queries if q is not None]
        if prune_terms(view.terms, binding.moved):
            statements.append(delta_query(plan, view, binding))
        staged += [staged_input(plan, f.name) for f in _factors(view)]
        for product in view.products:
            factored = binding.with_factors(product.of)
            queries = [key_set_query(plan, view, k, factored) for k in product.key_sets]
            statements += [part_query(plan, view, part, factored) for part in product.parts]
            statements += [q for q in queries if q is not None]
            statements.append(delta_query(plan, view, factored))
    if plan.is_factorized:
        statements.append(joined_on_read(plan, {view.name: 1 for view in plan.helpers}))
    for statement in statements:
        validate(statement.sql(dialect="spark"), staged)


def example(plan: Plan, changed: frozenset[str], old: int = 1, new: int = 2) -> Binding:
    """A binding with versions ``old`` and ``new`` everywhere, for statements when the inputs ``changed`` changed.

    Every inner view counts as changed that can be, and every key set as not empty.
    """
    inputs = tuple(
        BoundInput(i.name, "snapshot" if i.starts_with_snapshot else "change feed", old, new, old)
        for i in plan.inputs
    )
    buckets = plan.root.partitioning.buckets or 8
    times = EXAMPLE_TIMES if plan.clock_kinds else None
    before = tuple((v.name, old) for v in plan.stored)
    binding = Binding(inputs, changed, buckets, before, clock=times, losing=changed)
    spans = (Span(name, column, EXAMPLE_SPAN) for name, column, _ in plan.times_read)
    binding = binding.with_spans(spans)
    for view in plan.helpers:
        key_sets = frozenset(k.name for k in view.key_sets)
        binding = replace(binding, changed=binding.changed | key_sets)
        is_changed = bool(prune_terms(view.terms, binding.moved))
        capture: Capture = "staged" if view.rows is not None else "change feed"
        binding = binding.with_view(BoundInput(view.name, capture, old, new), is_changed=is_changed)
    return replace(binding, changed=binding.changed | {k.name for k in plan.top.key_sets})


def _factors(view: View) -> list[Factor]:
    """The factors that a view's delta may come as."""
    split = () if view.split is None else view.split.factors
    return [*split, *(part.factor for product in view.products for part in product.parts)]
