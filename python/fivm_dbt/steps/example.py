"""An example binding serves statements that are only checked or shown."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from fivm_dbt.delta.prune import prune_terms
from fivm_dbt.ir.clock import Clock
from fivm_dbt.parts.intervals import Intervals
from fivm_dbt.parts.shift import SECOND
from fivm_dbt.plan.model.head import HeadId, NextHead
from fivm_dbt.plan.model.inputs import Capture
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.steps.binding import Binding, BoundClock, BoundInput, Span, is_own_change

EXAMPLE_TIMES = BoundClock(Clock.at(datetime(2024, 5, 1, 12)), Clock.at(datetime(2024, 5, 2, 12)))
"""The times of statements that are only checked or shown."""

EXAMPLE_SPAN = Intervals.of((1_714_564_800 * SECOND, 1_714_651_200 * SECOND))
"""The same as when all changed rows were."""


EXAMPLE_HEAD = NextHead(HeadId(1, "the id of head 1"), 2, "the id of head 2", "what is covered")
"""The head of statements that are only checked or shown."""


def example(plan: Plan, old: int = 1, new: int = 2) -> Binding:
    """The binding of a refresh in which every input changed, with versions ``old`` and ``new`` everywhere.

    Every inner view counts as changed that can be, and every key set as not empty.
    """
    changed = frozenset(i.name for i in plan.inputs if not i.is_static)
    inputs = tuple(
        BoundInput(i.name, "snapshot" if i.starts_with_snapshot else "change feed", old, new, old)
        for i in plan.inputs
    )
    buckets = plan.root.partitioning.buckets or 8
    times = EXAMPLE_TIMES if plan.clock_kinds else None
    binding = Binding(inputs, changed, buckets, old, clock=times, losing=changed, head=EXAMPLE_HEAD)
    spans = (Span(name, column, EXAMPLE_SPAN) for name, column, _ in plan.times_read)
    binding = binding.with_spans(spans)
    for view in plan.helpers:
        key_sets = frozenset(k.name for k in view.key_sets)
        binding = replace(binding, changed=binding.changed | key_sets)
        is_changed = bool(prune_terms(view.terms, binding.moved))
        capture: Capture = "staged" if is_own_change(view) else "state"
        binding = binding.with_view(BoundInput(view.name, capture, old, old), is_changed=is_changed)
    return replace(binding, changed=binding.changed | {k.name for k in plan.top.key_sets})
