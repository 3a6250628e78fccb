"""Building a viewdf model anew beside what is shown, so that readers never see some of its parts.

Its parts are many statements. They go into a table of their own, and in one commit the state becomes what this has.
Where nothing is shown yet, the state itself is filled, and shown in the end.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from fivm_dbt.naming import PARTITION, sibling
from fivm_dbt.plan.plan import Plan
from fivm_dbt.refresh.publish import drop_states
from fivm_dbt.refresh.recorder import Recorder
from fivm_dbt.spark.part_queries import empty_root_query
from fivm_dbt.spark.pieces import pinned
from fivm_dbt.spark.properties import root_properties
from fivm_dbt.spark.state import create_table


def begin(plan: Plan, engine: Recorder) -> Plan:
    """The plan by which the parts are written: into an empty table, another one where there are readers."""
    is_shown = engine.exists(plan.relation) and engine.exists(plan.root.relation)
    building = _beside(plan) if is_shown else plan
    properties = root_properties(plan)
    engine.run(create_table(building.root.relation, empty_root_query(building), properties, [PARTITION]))
    return building


def show(plan: Plan, building: Plan, engine: Recorder) -> None:
    """Make what has been built the state. Nothing to do where it has been filled itself."""
    new = building.root.relation
    if new == plan.root.relation:
        return
    rows = exp.select("*").from_(pinned(new, engine.commits(new, None)[0].version))
    engine.run(create_table(plan.root.relation, rows, root_properties(plan), [PARTITION]))
    drop_states(engine, [new])


def _beside(plan: Plan) -> Plan:
    state = replace(plan.root, relation=sibling(plan.relation, "next"))
    return replace(plan, views=(*plan.views[:-1], replace(plan.top, state=state)))
