"""Of views whose partitions are closed by a promised lateness it is known which are open (ADR 0082).

The first open one of each is in the head. A row that comes before it has come later than was promised, and what it
would have to be computed with may be gone: then the model is built anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fivm_dbt.errors import FivmError
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.refresh.writes import TouchedPartition
from fivm_dbt.spark.partition_text import number_text, partition_number
from fivm_dbt.spark.places import Closed

FirstOpen = Mapping[str, int]
"""By view the first partition that may change yet."""
Touched = Mapping[str, Sequence[TouchedPartition]]


def came_too_late(plan: Plan, first_open: FirstOpen, touched: Touched) -> str | None:
    """Why the model has to be built anew: rows came to partitions that are closed, or went there; None if none did.

    Raises FIVM307 where ``fivm_on_change`` is ``fail``.
    """
    for view in (v for v in plan.stored if v.name in first_open):
        first = number_text(first_open[view.name])
        if all(first <= t.value for t in touched.get(view.name, ())):
            continue
        of = view.closing
        what = "rows came or went later than fivm_lateness promised"
        if of is not None:
            what = f"rows of {of.relation} came or went later than its fivm_lateness, {of.lateness}"
        if plan.config.fivm_on_change == "fail":
            remedy = "run with --full-refresh; declare a fivm_lateness that rows keep to"
            raise FivmError("FIVM307", what, remedy=remedy, model=plan.model)
        return what
    return None


def first_open_after(plan: Plan, first_open: FirstOpen, touched: Touched) -> dict[str, int]:
    """What is open once the rows in ``touched`` partitions have come."""
    found = dict(first_open)
    for view in plan.stored:
        values = [t.value for t in touched.get(view.name, ())]
        if view.closing is not None and values:
            now = view.closing.first_open(partition_number(max(values)))
            found[view.name] = max(now, found.get(view.name, now))
    return found


def closed(plan: Plan, first_open: FirstOpen) -> tuple[Closed, ...]:
    """The partitions that need not be kept any more."""
    return tuple(
        Closed(view, first_open[view.name])
        for view in plan.stored
        if view.closing and view.name in first_open
    )
