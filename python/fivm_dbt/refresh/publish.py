"""Other relations stand around the states: own snapshots, the model's view, tables that nothing reads any more."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from fivm_dbt.naming import FACTORS_PROPERTY, PART_PROPERTY, PARTITION, ROOT_PROPERTY, TAIL_PROPERTY
from fivm_dbt.plan.model.plan import FactorisedPlan, Plan
from fivm_dbt.refresh.exposed import bring_up_to_date
from fivm_dbt.refresh.recorder import Recorder
from fivm_dbt.spark.added import read_summed
from fivm_dbt.spark.formats import MissingRelation, NotVersioned
from fivm_dbt.spark.pieces import Query, drop, everything, table, whole
from fivm_dbt.spark.properties import owner_properties
from fivm_dbt.spark.reads import presented, shown_summed
from fivm_dbt.spark.state import create_view, joined_on_read
from fivm_dbt.spark.statements import statement
from fivm_dbt.steps.binding import Binding
from fivm_dbt.steps.order import snapshots


def drop_states(engine: Recorder, names: Sequence[str]) -> None:
    """Drop states that nothing reads any more, where there are tables of these names that are states."""
    for name in names:
        try:
            engine.commits(name, None)
        except (MissingRelation, NotVersioned):
            continue
        columns = engine.describe(whole(name).sql(dialect="spark"))
        if PARTITION not in {c.name for c in columns}:
            continue
        engine.run(drop(name, "TABLE"))


def show_helpers(plan: Plan, engine: Recorder, before: Collection[str]) -> None:
    """Show each inner view as a view of the database, for people; those of ``before`` that are none any more go."""
    names = {view.name for view in plan.helpers}
    for name in sorted(set(before) - names):
        engine.run(drop(name, "VIEW"))
    for view in plan.helpers:
        query = everything(read_summed(plan, view, None, None, "state", has_tail=True))
        engine.run(create_view(view.name, query, owner_properties(plan)))


def write_snapshots(
    plan: Plan, engine: Recorder, binding: Binding, names: frozenset[str] | set[str]
) -> dict[str, int | None]:
    """Replace the own snapshots of ``names`` by the inputs' pinned versions; the snapshots' new versions by input."""
    versions: dict[str, int | None] = {}
    for step in snapshots(names):
        kept = statement(plan, step, binding)
        assert kept is not None
        engine.run(kept)
        versions[step.relation] = engine.commits(plan.snapshot_table(step.relation), None)[0].version
    return versions


def publish(plan: Plan, engine: Recorder, *, is_summed: bool = False) -> None:
    """Show the model: a view over the states with the user's columns.

    Where deltas are appended, the rows of each key have to be added up in it. One that is exposed as a table is brought
    up to date.
    """
    if plan.is_exposed:
        bring_up_to_date(plan, engine)
        return
    properties = {ROOT_PROPERTY: plan.state_relation}
    if is_summed:
        properties[TAIL_PROPERTY] = "true"
    if isinstance(plan, FactorisedPlan):
        properties = {FACTORS_PROPERTY: "true"}
    elif plan.part_length is not None:
        properties[PART_PROPERTY] = plan.part_length.text
    engine.clear_the_way()
    engine.run(create_view(plan.relation, _shown(plan, is_summed), properties))


def show_again(plan: Plan, engine: Recorder, *, is_summed: bool = False) -> bool:
    """Put the model's view back where it is gone, or shows something else; whether that was so.

    A model that is exposed as a table follows its states.
    """
    if plan.is_exposed:
        bring_up_to_date(plan, engine)
        return False
    if engine.is_view_of(plan.relation, _shown(plan, is_summed).sql(dialect="spark")):
        return False
    publish(plan, engine, is_summed=is_summed)
    return True


def _shown(plan: Plan, is_summed: bool) -> Query:
    """The query of the model's view."""
    if isinstance(plan, FactorisedPlan):
        return joined_on_read(plan)
    return shown_summed(plan) if is_summed else presented(plan.presentation, table(plan.presentation.root))
