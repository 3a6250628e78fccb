"""One picture for everybody: the inputs, the inner views that are kept of them, and the model on top."""

from __future__ import annotations

from textwrap import wrap

from fivm_dbt.delta.term import scans
from fivm_dbt.explain.drawing import Box, Drawing, Measured, Shape, laid_out
from fivm_dbt.explain.words import content, descriptions, label, short, sources_of
from fivm_dbt.plan.model.plan import MaintainedPlan, Plan

_WIDEST = 34
"""Characters in a line of a box."""


def flow_drawing(plan: Plan, measured: Measured | None = None) -> Drawing:
    """What the model is computed from, and what is computed on the way."""
    boxes: dict[str, Box] = {}
    edges: dict[tuple[str, str], None] = {}
    for item in plan.inputs:
        shape: Shape = "static" if item.is_static else "updatable"
        boxes[item.name] = Box(
            item.name, (short(item.name), "input"), shape, relations=(item.name,), own=item.name
        )
    told = descriptions(plan)
    for view in plan.views if isinstance(plan, MaintainedPlan) else ():
        if view is plan.top:
            continue
        sources = sources_of(plan, view.core)
        lines = (*wrap(content(plan, view), _WIDEST), *_rows(view.name, measured))
        notes = (("", told[view.name]), ("table", label(view)))
        boxes[view.name] = Box(view.name, lines, "view", relations=sources, is_kept=True, notes=notes)
        edges.update(dict.fromkeys((view.name, scan.relation) for scan in scans(view.core)))
    maintained = isinstance(plan, MaintainedPlan)
    below = [scan.relation for scan in scans(plan.top.core)] if maintained else [i.name for i in plan.inputs]
    boxes["model"] = Box(
        "model",
        (short(plan.relation), "the model", *_rows(plan.root.relation, measured)),
        "view",
        relations=tuple(item.name for item in plan.inputs),
        is_kept=plan.top in plan.stored,
    )
    edges.update(dict.fromkeys(("model", name) for name in below if name in boxes))
    return laid_out(tuple(boxes.values()), tuple(edge for edge in edges if edge[1] in boxes))


def _rows(state: str, measured: Measured | None) -> tuple[str, ...]:
    if measured is None or state not in measured.rows:
        return ()
    return (f"{measured.rows[state]:,} rows when built",)
