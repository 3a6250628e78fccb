"""The table properties of what is kept."""

from __future__ import annotations

from fivm_dbt.plan.plan import Plan, StateTable

MODEL_PROPERTY, PROJECT_PROPERTY = "fivm.model", "fivm.project"
"""Properties of every table that is kept: the model and the dbt project that it belongs to."""


def owner_properties(plan: Plan) -> dict[str, str]:
    """Whose a table is, so that it can be told when its model is gone."""
    project = {PROJECT_PROPERTY: plan.project} if plan.project else {}
    return {MODEL_PROPERTY: plan.relation, **project}


def state_properties(plan: Plan, state: StateTable | None = None) -> dict[str, str]:
    """Those of a state, of the model's own where none is given.

    Other models read the change feed of the model's own state alone. Where a part of many in a partition adds a file,
    Delta puts them together from fifty on.
    """
    is_inner = state is not None and state is not plan.root
    feed = {} if is_inner else {"delta.enableChangeDataFeed": "true"}
    is_bounded = state is not None and state.bounded_by is not None
    small = {"delta.autoOptimize.autoCompact": "true"} if is_bounded else {}
    return {**feed, **owner_properties(plan), **small}
