"""A dbt project has models, with their configuration and their plans."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import Any

from fivm_dbt.bridge.connection import engine_of, session_settings, setting
from fivm_dbt.catalog import TableStatistics
from fivm_dbt.config import Config, load_config
from fivm_dbt.engines.spark.engine import SparkEngine
from fivm_dbt.errors import FivmError
from fivm_dbt.ir.moments import session_zone
from fivm_dbt.naming import canonical, state_of
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.plan.planner import plan_model
from fivm_dbt.plan.request import ModelRequest
from fivm_dbt.project.inputs import read_catalog, read_time_parts, with_sql_names
from fivm_dbt.project.manifest import MAINTAINED, Nodes, kept_in, reader_of
from fivm_dbt.refresh.heads import read_state
from fivm_dbt.refresh.layout import Planner, Promises, recorded_plan
from fivm_dbt.suggest import did_you_mean


def nodes_of(adapter: Any) -> Nodes:
    return Nodes(adapter.get_macro_resolver())


def model_node(adapter: Any, name: str) -> Any:
    node = nodes_of(adapter).node(name)
    if node is None or node.config.materialized not in MAINTAINED:
        known = [str(n.name) for n in nodes_of(adapter).fivm_models()]
        raise FivmError(
            "FIVM103",
            f"{name} is not a model with materialized='fivm' (there are: {', '.join(known) or 'none'})",
            remedy=did_you_mean(name, known) or "correct the name",
        )
    return node


def config_of(request: Mapping[str, Any]) -> Config:
    meta = {**request["meta"], "batch_size": _batch_size(request["batch_size"])}
    return load_config(meta, model=request["relation"].identifier)


def _batch_size(value: Any) -> str | None:
    return None if value is None else str(getattr(value, "value", value))


def planner_of(
    adapter: Any, engine: SparkEngine, relation: Any, sql: str, config: Config, materialized: str = "fivm"
) -> Planner:
    nodes, is_viewdf = nodes_of(adapter), materialized == "viewdf"
    names = None
    if is_viewdf:
        # Loaded only for such a model.
        from fivm_dbt.features.viewdf.plan.planner import plan_viewdf
        from fivm_dbt.features.viewdf.sql.references import relations_of_parts

        names = relations_of_parts(sql, relation.render())
    session = session_settings(engine)
    zone = config.fivm_time_zone or session_zone(session)
    catalog = read_catalog(sql, engine.described, nodes, names, zone, partial(setting, engine))
    readers = tuple(reader_of(m) for m in nodes.readers_of(relation.render()))
    request = ModelRequest(
        relation=relation.render(),
        sql=sql,
        catalog=catalog,
        config=with_sql_names(config, catalog, nodes),
        session=session,
        project=str(adapter.config.project_name),
        is_read=bool(readers),
        readers=readers,
    )
    time_parts = read_time_parts(catalog, engine.described, nodes, zone) if is_viewdf else {}

    def plan(measured: TableStatistics | None, promises: Promises | None = None) -> Plan:
        known = catalog if promises is None else catalog.promising(promises)
        asked = replace(request, catalog=known, measured=measured)
        if is_viewdf:
            return plan_viewdf(replace(asked, measured=None), time_parts, engine.describe)
        return plan_model(asked, engine.describe)

    return plan


def plan_of_node(adapter: Any, node: Any) -> Plan:
    """The plan of a model that is not being run, with the layout that its state has."""
    engine = engine_of(adapter)
    return recorded_plan(
        planner_of_node(adapter, engine, node), read_state(engine, state_of_node(adapter, node))
    )


def relation_of_node(adapter: Any, node: Any) -> str:
    """The name of a model's relation, as plans have it."""
    return canonical(adapter.Relation.create_from(adapter.config, node).render())


def state_of_node(adapter: Any, node: Any) -> str:
    """The table with the states of a fivm model."""
    return state_of(adapter.Relation.create_from(adapter.config, node).render(), kept_in(node))


def planner_of_node(adapter: Any, engine: SparkEngine, node: Any) -> Planner:
    """The planner of a model that is not being run."""
    meta = {**node.config.meta, "batch_size": _batch_size(node.config.batch_size)}
    config = load_config(meta, model=node.name)
    return planner_of(
        adapter,
        engine,
        relation=adapter.Relation.create_from(adapter.config, node),
        sql=_sql(adapter, node),
        config=config,
        materialized=str(node.config.materialized),
    )


def _sql(adapter: Any, node: Any) -> str:
    """A model's SQL as dbt compiles it; in `dbt build` it has been compiled before its tests run."""
    from dbt.compilation import Compiler

    if getattr(node, "compiled", False) and node.compiled_code:
        return str(node.compiled_code)
    compiler, manifest = Compiler(adapter.config), adapter.get_macro_resolver()
    return str(compiler.compile_node(deepcopy(node), manifest, {}, write=False).compiled_code)
