"""What stands around the states: own snapshots, the view that shows the model, tables that nothing reads any more."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import sqlglot
from sqlglot import exp

from fivm_dbt.ir.dialect import SparkText
from fivm_dbt.naming import FACTORS_PROPERTY, PART_PROPERTY, ROOT_PROPERTY
from fivm_dbt.plan.binding import Binding
from fivm_dbt.plan.plan import Plan
from fivm_dbt.refresh.recorder import Recorder
from fivm_dbt.spark.capture import snapshot_query
from fivm_dbt.spark.properties import owner_properties
from fivm_dbt.spark.reads import table as relation_table
from fivm_dbt.spark.state import column_mapping, create_table, create_view, joined_on_read


def drop_states(engine: Recorder, names: Collection[str]) -> None:
    """Drop states that nothing reads any more."""
    for name in sorted(names):
        engine.run(exp.Drop(tables=[relation_table(name)], kind="TABLE", exists=True))


def write_snapshots(
    plan: Plan, engine: Recorder, binding: Binding, names: frozenset[str] | set[str]
) -> dict[str, int | None]:
    """Replace the own snapshots of ``names`` by the inputs' pinned versions; the snapshots' new versions by input.

    Repeating it gives the same rows, so an interrupted refresh may do it twice.
    """
    versions: dict[str, int | None] = {}
    for name in sorted(names):
        table = plan.snapshot_table(name)
        properties = {**owner_properties(plan), "fivm.snapshot_of": name}
        properties |= column_mapping(c.name for c in plan.input(name).columns)
        engine.run(create_table(table, snapshot_query(plan, binding.input(name)), properties, None))
        versions[name] = engine.commits(table, None)[0].version
    return versions


def publish(plan: Plan, engine: Recorder, versions: Mapping[str, int]) -> None:
    """Show the model: a view over the root state with the user's columns.

    A result that is no table is joined from the inner views at these ``versions``: while these are written one after
    the other, readers see what was there before.
    """
    query = _shown(plan, versions)
    if plan.is_factorized:
        engine.run(create_view(plan.relation, query, {FACTORS_PROPERTY: "true"}))
        return
    properties = {ROOT_PROPERTY: plan.root.relation}
    if plan.parts is not None:
        properties[PART_PROPERTY] = plan.parts.length.text
    engine.run(create_view(plan.relation, query, properties))


def show_again(plan: Plan, engine: Recorder, versions: Mapping[str, int]) -> bool:
    """Put the model's view back where it is gone, or shows something else; whether that was so."""
    if engine.is_view_of(plan.relation, _shown(plan, versions).sql(dialect="spark")):
        return False
    publish(plan, engine, versions)
    return True


def _shown(plan: Plan, versions: Mapping[str, int]) -> exp.Query:
    """The query of the model's view."""
    if plan.is_factorized:
        return joined_on_read(plan, versions)
    query = sqlglot.parse_one(plan.presentation.sql, dialect=SparkText)
    assert isinstance(query, exp.Query)
    return query
