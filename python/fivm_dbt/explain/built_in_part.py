"""The parts that a change reaches, where a build of them may stand in the place of a refresh, in words."""

from __future__ import annotations

from collections.abc import Iterator

from fivm_dbt.ir.within import Near
from fivm_dbt.plan.model.plan import MaintainedPlan
from fivm_dbt.plan.model.recompute import InputReach, RecomputedParts
from fivm_dbt.plan.recomputed_parts import inputs_in_part, parts_of_views, reach_in_part


def in_part_lines(plan: MaintainedPlan) -> Iterator[str]:
    """By view, the times of its rows that changes reach; nothing where no input tells them."""
    parts = parts_of_views(plan)
    inputs = sorted(inputs_in_part(plan, parts))
    if not inputs or plan.config.fivm_rebuild == "never":
        return
    yield f"after changes of {', '.join(inputs)} alone, where a refresh is expected to cost more"
    known = {*inputs, *(view.name for view in plan.helpers)}
    for view in plan.stored:
        own = parts.get(view.name)
        for reach in () if own is None else own.inputs:
            if reach.relation in known and reach_in_part(plan, parts, view.name, reach.relation) is not None:
                yield f"  {plan.layout.label(view)}: {reached(parts[view.name], reach)}"


def reached(parts: RecomputedParts, reach: InputReach) -> str:
    """The times of a result that the changes of a relation reach."""
    low, high = (None if end is None else -end for end in (reach.high, reach.low))
    return f"{parts.column} in {Near(reach.relation, reach.column, reach.type, low, high)}"
