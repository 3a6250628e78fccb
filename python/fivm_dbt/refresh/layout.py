"""A build decides by measured sizes which inner views a model keeps; later refreshes use the same layout."""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from fivm_dbt.catalog import TableStatistics
from fivm_dbt.naming import PARTITION, VIEW
from fivm_dbt.plan.model.plan import MaintainedPlan, Plan
from fivm_dbt.refresh.costs import NOTHING, Costs
from fivm_dbt.refresh.engine import Engine, WrittenFile
from fivm_dbt.refresh.measure import measure
from fivm_dbt.refresh.observe import State
from fivm_dbt.refresh.recorder import Recorder
from fivm_dbt.spark.sizes import sizes_query
from fivm_dbt.steps.applying import StateSize

logger = logging.getLogger(__name__)

GIVEN_UP = 2
"""After so many builds in a row, each in the place of a refresh, no inner view is kept: one large change may be the
only one."""

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
    may_measure: bool = True,
) -> Plan:
    """The plan by what was measured when the state was built; by sizes of now, where it is to be built.

    A state is built where there is none, with ``full_refresh``, where it is of another plan, and where inputs change
    again that had not changed when the views were chosen, if that pays (ADR 0051). Where builds have stood in the place
    of the last refreshes it is built without inner views (ADR 0074). Sizes of now are asked for where one
    ``may_measure``; without them it is the plan by what is known.
    """
    finished = state.finished
    plan = planner(recorded_statistics(state)) if full_refresh else recorded_plan(planner, state)
    if not isinstance(plan, MaintainedPlan) or not (plan.measurable or plan.orderable):
        return plan
    measured = recorded_statistics(state)
    costs = Costs.of(finished.detail.get("costs")) if finished is not None else NOTHING
    changed = dict(measured.changed) if measured is not None else {}
    other = None
    if finished is not None and finished.plan_hash == plan.plan_hash and not full_refresh:
        if measured is not None and plan.helpers and _is_hopeless(plan, costs):
            progress(f"{plan.model} is built again and again: no inner view is kept of it")
            return planner(replace(measured, is_rebuilt=True))
        again = _change_again(plan, costs)
        if measured is None or not again:
            return plan
        changed = costs.shares
        other = planner(replace(measured, changed=tuple(changed.items())))
        if other.plan_hash == plan.plan_hash:
            return plan
        progress(f"{', '.join(again)} changes again: inner views are chosen anew")
    elif costs.is_long:
        changed = costs.shares
    if not may_measure:
        return plan if other is None else other
    if plan.measurable:
        progress(f"measuring {', '.join(name for name, _ in plan.measurable)}")
    new = planner(measure(plan, engine, changed))
    # By what is measured now the views may be those that are there: they are what has cost too much.
    return other if other is not None and new.plan_hash == plan.plan_hash else new


def _is_hopeless(plan: MaintainedPlan, costs: Costs) -> bool:
    """Whether builds have stood in the place of the last refreshes, so that inner views cost and do not help."""
    config = plan.config
    may_choose = config.fivm_strategy == "auto" and config.fivm_result != "factorized"
    may_build = config.fivm_rebuild == "auto" and config.fivm_on_change != "fail"
    return may_choose and may_build and costs.given_up >= GIVEN_UP


def _change_again(plan: MaintainedPlan, costs: Costs) -> list[str]:
    """The inputs for which no view was kept, as they did not change, and whose changes cost more than a build since.

    Whoever waits for so long, and builds then, spends at most twice what he would have spent had he known.
    """
    known = plan.measured.changed if plan.measured is not None else ()
    config = plan.config
    may_build = config.fivm_rebuild != "never" and config.fivm_on_change != "fail"
    may_build = may_build and all(i.retention is None for i in plan.inputs)
    if not known or not may_build or costs.build is None:
        return []
    still = [i.name for i in plan.inputs if not dict(known).get(i.name)]
    again = [name for name in still if any(name in s.changed for s in costs.spent)]
    return again if costs.lost(again) > costs.build else []


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


def state_sizes(plan: Plan, engine: Recorder, *, is_built: bool = False) -> dict[str, StateSize]:
    """The sizes of all states, counted in one query; nothing where nothing depends on them.

    ``is_built``: the newest commit has written all of them, so that its own figures tell where they are at hand.
    """
    if plan.config.fivm_apply != "auto":
        return {}
    files = engine.written(plan.state_relation) if is_built else None
    found = _counted(plan, engine) if files is None else _added(files)
    return {view.name: found.get(plan.layout.label(view), StateSize(0, 0)) for view in plan.stored}


def _counted(plan: Plan, engine: Recorder) -> dict[str, StateSize]:
    rows = engine.query(sizes_query(plan.state_relation))
    return {str(label): StateSize(int(str(n)), int(str(p))) for label, n, p in rows}


def _added(files: Sequence[WrittenFile]) -> dict[str, StateSize]:
    """The same of the files that a build has written."""
    rows: Counter[str] = Counter()
    partitions: dict[str, set[str]] = defaultdict(set)
    for file in files:
        label, partition = str(file.place[VIEW]), file.place[PARTITION]
        rows[label] += file.rows
        partitions[label] |= set() if partition is None else {partition}
    return {label: StateSize(rows[label], len(partitions[label])) for label in rows}
