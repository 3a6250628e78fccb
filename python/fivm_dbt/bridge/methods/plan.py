"""``adapter.fivm_plan`` tells what the next run does with models, and runs nothing."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from fivm_dbt.bridge.connection import engine_of
from fivm_dbt.bridge.methods.refresh import is_in_the_way
from fivm_dbt.bridge.models import nodes_of, planner_of_node, state_of_node
from fivm_dbt.bridge.told import told
from fivm_dbt.engines.spark.engine import SparkEngine
from fivm_dbt.errors import FivmError
from fivm_dbt.operations.next_run import NextRun, after_what_is_written, has_work, of_plan, refused, text_of
from fivm_dbt.project.manifest import Nodes, without_catalog
from fivm_dbt.refresh.ahead import look_ahead
from fivm_dbt.refresh.heads import read_state
from fivm_dbt.refresh.layout import settled_plan


def fivm_plan(
    adapter: Any, selected: Sequence[str] | None, *, full_refresh: bool, propagate: bool, as_json: bool
) -> list[str]:
    """What the next run does with the ``selected`` nodes, unique ids or names; None is all of the project.

    Lines for people, or one of JSON.
    """
    nodes = nodes_of(adapter)
    with told("the project"):
        runs = list(_runs(adapter, nodes, selected, full_refresh=full_refresh, propagate=propagate))
    return [json.dumps([run.as_dict() for run in runs])] if as_json else list(text_of(runs))


def _runs(
    adapter: Any, nodes: Nodes, selected: Sequence[str] | None, *, full_refresh: bool, propagate: bool
) -> Iterator[NextRun]:
    """In the order in which dbt runs them, so that it is known what is written before a model is."""
    engine, written, made = engine_of(adapter), set[str](), set[str]()
    for node in nodes.in_order(selected):
        name = without_catalog(node.relation_name)
        declared = nodes.declared(name)
        if not declared.is_fivm:
            made.add(name)
            # `dbt run` loads no seed, and a view has no rows of its own.
            is_written = node.resource_type == "model" and declared.materialized != "view"
            written |= {name} if is_written else set()
            continue
        run = _run(adapter, engine, node, made, full_refresh=full_refresh, propagate=propagate)
        made.add(name)
        run = after_what_is_written(run, [without_catalog(i) for i in nodes.inputs_of(node)], written)
        if has_work(run):
            written.add(name)
        yield run


def _run(
    adapter: Any,
    engine: SparkEngine,
    node: Any,
    made: Collection[str],
    *,
    full_refresh: bool,
    propagate: bool,
) -> NextRun:
    inputs = [without_catalog(i) for i in nodes_of(adapter).inputs_of(node, with_views=True)]
    first = [name for name in inputs if name in made and engine.described(name) is None]
    if first:
        return NextRun(str(node.name), "build", f"its first build, after that of {', '.join(first)}")
    try:
        planner = planner_of_node(adapter, engine, node)
        name = adapter.Relation.create_from(adapter.config, node).render()
        state = read_state(engine, state_of_node(adapter, node))
        plan = settled_plan(planner, engine, state, full_refresh=full_refresh, may_measure=False)
        is_other = engine.exists(name) and is_in_the_way(engine, plan, name)
        ahead = look_ahead(
            plan, engine, state, full_refresh=full_refresh, propagate=propagate, is_in_the_way=is_other
        )
        return of_plan(plan, ahead)
    except FivmError as error:
        return refused(str(node.name), error)
