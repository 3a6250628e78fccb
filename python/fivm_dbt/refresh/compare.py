"""One query compares a model with its full recompute, for the generic test ``fivm_exact``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fivm_dbt.errors import FivmError
from fivm_dbt.ir.clock import Clock
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.plan.retention import computed_after
from fivm_dbt.refresh.dropped import Dropped, recorded_drops
from fivm_dbt.refresh.engine import Readable
from fivm_dbt.refresh.heads import read_state
from fivm_dbt.refresh.observe import Coverage, Finished
from fivm_dbt.refresh.oracle import recompute_sql
from fivm_dbt.registry import Registry
from fivm_dbt.spark.difference import difference, since
from fivm_dbt.spark.pieces import Condition

DIFFERENCES: Registry[Callable[[Any, Coverage, Mapping[str, int]], str]] = Registry()
"""By kind of plan :func:`difference_sql`, of what is covered, at the versions of inputs and of the own states.

Where there is none, the model is compared with its text over its inputs."""


def difference_sql(plan: Plan, engine: Readable) -> str:
    """Rows that only the model or only its recompute has, as bags, at the last refresh's own versions.

    Raises FIVM404 where no refresh has finished, or one was interrupted, FIVM106 where the SQL has no one answer.
    """
    if plan.not_repeatable is not None:
        raise FivmError(
            "FIVM106",
            f"this model is recomputed, and there is nothing to compare it with: {plan.not_repeatable}",
            remedy="take the test fivm_exact off this model, or rewrite the SQL so that it has one answer",
        )
    state = read_state(engine, plan.state_relation)
    if not isinstance(state, Finished) or state.unfinished is not None:
        what = "was interrupted in a refresh" if isinstance(state, Finished) else "has never been built"
        raise FivmError("FIVM404", f"{plan.relation} {what}", remedy=f"dbt run --select {plan.model}")
    versions = {name: record.commit.version for name, record in state.inputs.items()}
    compared = DIFFERENCES.of(plan) or _from_recompute
    return compared(plan, state.finished, {**versions, plan.state_relation: state.version})


def _from_recompute(plan: Plan, finished: Coverage, versions: Mapping[str, int]) -> str:
    """The difference from the model's text over its inputs, without the rows of dropped parts."""
    times = finished.detail.get("clock")
    clock = Clock(**times) if times is not None else None
    recompute = recompute_sql(plan, versions, clock)
    later = _after_dropped(plan, recorded_drops(finished))
    if later is None:
        return difference(plan.relation, recompute, plan.output)
    where = later.sql(dialect="spark")
    return difference(
        f"(SELECT * FROM {plan.relation} WHERE {where}) AS compared",
        f"SELECT * FROM (\n{recompute}\n) AS recompute WHERE {where}",
        plan.output,
    )


def _after_dropped(plan: Plan, dropped: Dropped) -> Condition | None:
    """The rows of a model that are computed from none of the dropped parts: only these can be computed again.

    None where no parts have been dropped. Raises FIVM206 where a row does not tell what it is computed from.
    """
    bounds = []
    for name, parts in sorted(dropped.items()):
        relation = plan.input(name).relation
        found = computed_after(plan, relation)
        if relation.retention is None or found is None:
            raise FivmError(
                "FIVM206",
                f"{plan.model} has results of parts of {name} that were dropped ({parts}), and cannot be compared with "
                "a recompute: no column tells from which parts a row is computed",
                remedy="take the test fivm_exact off this model",
            )
        column, before = found
        length = relation.retention.length
        bounds.append((column, length.end_of(parts.last) + before, length.zone))
    return since(bounds) if bounds else None
