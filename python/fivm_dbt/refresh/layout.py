"""A build measures sizes and decides which inner views a model keeps; later refreshes use the same layout."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from fivm_dbt.catalog import TableStatistics
from fivm_dbt.plan.model.plan import MaintainedPlan, Plan
from fivm_dbt.refresh.engine import Engine
from fivm_dbt.refresh.observe import State
from fivm_dbt.refresh.recorder import Recorder
from fivm_dbt.spark.formats import MissingRelation
from fivm_dbt.spark.sizes import sizes_query, statistics_query
from fivm_dbt.steps.applying import StateSize

logger = logging.getLogger(__name__)

Promises = Mapping[str, Collection[str]]
"""What is declared of the rows of a model's inputs: keys and the like, as text."""


class Planner(Protocol):
    """The plan of a model, given the sizes of its inputs, or None where nobody has measured them.

    With ``promises`` it makes use of those declared keys alone that are among these.
    """

    def __call__(self, measured: TableStatistics | None, promises: Promises | None = None) -> Plan: ...


def settled_plan(
    planner: Planner,
    engine: Engine,
    state: State,
    *,
    full_refresh: bool = False,
    progress: Callable[[str], None] = logger.info,
) -> Plan:
    """The plan by what was measured when the state was built; by sizes of now, where it is to be built.

    A state is built where there is none, with ``full_refresh``, and where it is of another plan.
    """
    finished = state.finished
    plan = planner(recorded_statistics(state)) if full_refresh else recorded_plan(planner, state)
    is_same = finished is not None and finished.plan_hash == plan.plan_hash and not full_refresh
    if is_same or not isinstance(plan, MaintainedPlan) or not plan.measurable:
        return plan
    progress(f"measuring {', '.join(name for name, _ in plan.measurable)}")
    return planner(measure(plan, engine))


def recorded_plan(planner: Planner, state: State) -> Plan:
    """The plan by which the state was built, where the model has still one.

    A key that has been declared since may lead to another plan: to another order among ties, of which each is right.
    It is made use of when the state is built the next time, and is no reason to build it. A key that is not declared
    any more is.
    """
    finished, measured = state.finished, recorded_statistics(state)
    plan = planner(measured)
    if finished is None or finished.plan_hash == plan.plan_hash:
        return plan
    promises = finished.detail.get("promises", {})
    if promises == plan.promises:
        return plan
    earlier = planner(measured, promises)
    return earlier if earlier.plan_hash == finished.plan_hash else plan


def recorded_statistics(state: State) -> TableStatistics | None:
    """What was measured when the state was built; every head repeats it."""
    data = state.finished.detail.get("measured") if state.finished is not None else None
    return TableStatistics.from_dict(data) if data is not None else None


def state_sizes(plan: Plan, engine: Recorder) -> dict[str, StateSize]:
    """The sizes of all states, counted in one query; nothing where nothing depends on them."""
    if plan.config.fivm_apply != "auto":
        return {}
    found = {
        str(label): StateSize(int(str(n)), int(str(p)))
        for label, n, p in engine.query(sizes_query(plan.layout.relation))
    }
    return {view.name: found.get(plan.layout.label(view), StateSize(0, 0)) for view in plan.stored}


def measure(plan: MaintainedPlan, engine: Engine) -> TableStatistics:
    """Rows of what ``plan`` would choose by, and about how many values their columns have: one scan of each.

    An input that is not there is left out: whoever builds says so.
    """
    rows: dict[str, int] = {}
    distinct: dict[tuple[str, str], int] = {}
    for name, columns in plan.measurable:
        try:
            (found,) = engine.query(statistics_query(name, columns).sql(dialect="spark"))
        except MissingRelation:
            continue
        rows[name], *values = (int(str(n)) for n in found)
        distinct |= {(name, column): n for column, n in zip(columns, values, strict=True)}
    return TableStatistics.of(rows, distinct, appends=not plan.is_read)
