"""Writing: build the state, merge a delta into it, renew own snapshots, show the model."""

from __future__ import annotations

import datetime
from decimal import Decimal

import sqlglot
from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.ir.dialect import SparkText
from fivm_dbt.naming import PARTITION
from fivm_dbt.plan.binding import Binding, staged_root
from fivm_dbt.plan.plan import Plan
from fivm_dbt.refresh.recorder import Recorder
from fivm_dbt.spark.capture import snapshot_query
from fivm_dbt.spark.check import check_statements
from fivm_dbt.spark.state import (
    build_query,
    column_mapping,
    create_table,
    create_view,
    delta_query,
    merge,
    touched_query,
)

MAX_LITERALS = 1000
"""Above this many touched partitions a MERGE is not restricted to them: the list would cost more than it saves."""


def build_state(plan: Plan, engine: Recorder, binding: Binding) -> None:
    """Create the root state with everything in it, its change feed on from the first version."""
    check_statements(plan)
    engine.run(
        create_table(plan.root.relation, build_query(plan, binding), state_properties(plan), PARTITION)
    )


def apply_delta(plan: Plan, engine: Recorder, binding: Binding, *, already: int) -> tuple[int, int]:
    """Stage the root's delta and merge it. ``already`` MERGEs of this refresh are committed and are not repeated.

    Returns the number of touched partitions and of merged keys.
    """
    engine.stage(staged_root(plan), delta_query(plan, binding))
    touched = engine.query(touched_query(plan))
    if not touched:
        return 0, 0
    type_ = plan.root.partitioning.type
    literals = [literal(row[0], type_) for row in touched]
    rows = sum(int(str(row[1])) for row in touched)
    if plan.config.fivm_merge == "per_partition":
        for number, (value, row) in enumerate(zip(literals, touched, strict=True), start=1):
            if number > already:
                engine.progress(
                    f"{plan.model} partition {number}/{len(touched)} ({row[0]}) merged into {plan.root.relation}"
                )
                engine.run(merge(plan, [value], only_these=True))
    else:
        engine.progress(
            f"{plan.model}: merging {rows:,} rows into {len(touched)} partitions of {plan.root.relation}"
        )
        engine.run(merge(plan, literals if len(literals) <= MAX_LITERALS else None))
    return len(touched), rows


def write_snapshots(
    plan: Plan, engine: Recorder, binding: Binding, names: frozenset[str] | set[str]
) -> dict[str, int | None]:
    """Replace the own snapshots of ``names`` by the inputs' pinned versions; the snapshots' new versions by input.

    Repeating it gives the same rows, so an interrupted refresh may do it twice.
    """
    versions: dict[str, int | None] = {}
    for name in sorted(names):
        table = plan.snapshot_table(name)
        properties = {"fivm.model": plan.relation, "fivm.snapshot_of": name}
        properties |= column_mapping(c.name for c in plan.input(name).columns)
        engine.run(create_table(table, snapshot_query(plan, binding.input(name)), properties, None))
        versions[name] = engine.commits(table, None)[0].version
    return versions


def publish(plan: Plan, engine: Recorder) -> None:
    """Show the model: a view over the root state with the user's columns."""
    query = sqlglot.parse_one(plan.presentation.sql, dialect=SparkText)
    assert isinstance(query, exp.Query)
    engine.run(create_view(plan.relation, query, {"fivm.root": plan.root.relation}))


def literal(value: object, type_: SparkType) -> exp.Expr:
    """A partition value as a literal of its type."""
    if value is None:
        return exp.Null()
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if isinstance(value, (int, Decimal)) and type_.is_integral:
        return exp.Literal.number(int(value))
    if isinstance(value, datetime.datetime) and type_.text == "date":
        value = value.date()
    text = exp.Literal.string(str(value))
    return text if type_.is_string else exp.cast(text, type_.text, dialect="spark")


def state_properties(plan: Plan) -> dict[str, str]:
    return {"delta.enableChangeDataFeed": "true", "fivm.model": plan.relation}
