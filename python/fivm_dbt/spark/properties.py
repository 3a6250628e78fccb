"""Tables and views that are kept have table properties."""

from __future__ import annotations

from collections.abc import Iterable

from fivm_dbt.catalog import SparkType
from fivm_dbt.naming import quote
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.plan.model.state import StateTable

MODEL_PROPERTY, PROJECT_PROPERTY = "fivm.model", "fivm.project"
"""Properties of every table that is kept: the model and the dbt project that it belongs to."""


_UNSTORABLE = frozenset(" ,;{}()\n\t=")


def owner_properties(plan: Plan) -> dict[str, str]:
    """Whose a table is, so that it can be told when its model is gone."""
    project = {PROJECT_PROPERTY: plan.project} if plan.project else {}
    return {MODEL_PROPERTY: plan.relation, **project}


def state_properties(plan: Plan) -> dict[str, str]:
    """Those of the table of all states (ADR 0028). Partitions can be longer than the name of a folder may be.

    A checkpoint of its log, by default after each ten commits, takes longer than such a commit, and the next reader has
    a new kind of query to compile: two seconds of a refresh of four.
    """
    found = [c.name for c in plan.layout.columns if c.role == "key" and _has_statistics(c.type)]
    return {
        "delta.enableChangeDataFeed": "true",
        "delta.isolationLevel": "Serializable",
        "delta.checkpointInterval": "100",
        "delta.randomizeFilePrefixes": "true",
        **({"delta.dataSkippingStatsColumns": ",".join(map(quote, found))} if found else {}),
        **owner_properties(plan),
        **_compacting(v.state for v in plan.stored),
    }


def column_mapping(names: Iterable[str]) -> dict[str, str]:
    """The property without which Delta refuses a table with such column names, as it does those with a space."""
    return {"delta.columnMapping.mode": "name"} if any(c in _UNSTORABLE for n in names for c in n) else {}


def snapshot_properties(plan: Plan, relation: str) -> dict[str, str]:
    """Those of a model's own snapshot of an input."""
    mapping = column_mapping(c.name for c in plan.input(relation).columns)
    return {**owner_properties(plan), "fivm.snapshot_of": relation, **mapping}


def _has_statistics(type_: SparkType) -> bool:
    """Whether Delta keeps the least and the greatest value of such columns."""
    return type_.is_string or type_.is_temporal or type_.is_numeric


def _compacting(states: Iterable[StateTable]) -> dict[str, str]:
    is_bounded = any(state.bounded_by is not None for state in states)
    return {"delta.autoOptimize.autoCompact": "true"} if is_bounded else {}
