"""Tables and views that are kept have table properties."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.plan.model.state import StateTable
from fivm_dbt.spark.formats import FORMAT, Need

MODEL_PROPERTY, PROJECT_PROPERTY = "fivm.model", "fivm.project"
"""Properties of every table that is kept: the model and the dbt project that it belongs to."""


def owner_properties(plan: Plan) -> dict[str, str]:
    """Whose a table is, so that it can be told when its model is gone."""
    project = {PROJECT_PROPERTY: plan.project} if plan.project else {}
    return {MODEL_PROPERTY: plan.relation, **project}


def state_properties(plan: Plan) -> dict[str, str]:
    """Those of the table of all states (ADR 0028).

    Whoever writes a file pays for its statistics row by row (ADR 0069). So they are of columns in whose order rows
    come or lie: of most others each file of a partition has nearly the least and the greatest value.
    """
    ordered = {plan.layout.stored_as(view)[name] for view in plan.stored for name in _ordered(view.state)}
    found = [c.name for c in plan.layout.columns if c.name in ordered and _has_statistics(c.type)]
    needs = (Need.CHANGES, Need.ONE_WRITER, Need.MANY_COMMITS, Need.LONG_PARTITIONS)
    is_bounded = any(view.state.bounded_by is not None for view in plan.stored)
    return {
        **FORMAT.properties(needs, found_by=found),
        **owner_properties(plan),
        **FORMAT.properties([Need.COMPACTION] if is_bounded else []),
    }


def snapshot_properties(plan: Plan, relation: str) -> dict[str, str]:
    """Those of a model's own snapshot of an input."""
    names = (c.name for c in plan.input(relation).columns)
    return {**owner_properties(plan), "fivm.snapshot_of": relation, **FORMAT.properties(named=names)}


def storage(properties: Mapping[str, str], partitioned_by: Sequence[str] = ()) -> exp.Properties:
    """``USING format PARTITIONED BY (...) TBLPROPERTIES (...)``."""
    parts: list[exp.Expr] = [exp.FileFormatProperty(this=exp.Identifier(this=FORMAT.name.upper()))]
    if partitioned_by:
        columns = [exp.to_identifier(name) for name in partitioned_by]
        parts.append(exp.PartitionedByProperty(this=exp.Tuple(expressions=columns)))
    return exp.Properties(expressions=[*parts, *table_properties(properties)])


def table_properties(properties: Mapping[str, str]) -> list[exp.Property]:
    """The entries of TBLPROPERTIES."""
    return [
        exp.Property(this=exp.Literal.string(k), value=exp.Literal.string(v)) for k, v in properties.items()
    ]


def _ordered(state: StateTable) -> set[str]:
    """The keys of a state that are times, by which it is partitioned, by which rows are sorted, or that bound them."""
    times = {k.name for k in state.keys if k.type.is_temporal}
    if state.partitioning.kind == "value":
        times |= {*state.placing}
    return times | {*state.sorted_by} | ({state.bounded_by} if state.bounded_by is not None else set())


def _has_statistics(type_: SparkType) -> bool:
    """Whether files can be told apart by the least and the greatest value of such columns."""
    return type_.is_string or type_.is_temporal or type_.is_numeric
