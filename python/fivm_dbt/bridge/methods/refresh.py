"""``adapter.fivm_refresh`` refreshes a model for the materializations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any

from dbt.adapters.contracts.connection import AdapterResponse

from fivm_dbt.bridge.connection import engine_of
from fivm_dbt.bridge.models import config_of, planner_of
from fivm_dbt.bridge.nodes import remember_helpers
from fivm_dbt.bridge.told import progress, tell_once, told
from fivm_dbt.engines.spark.engine import SparkEngine
from fivm_dbt.naming import FACTORS_PROPERTY, ROOT_PROPERTY, canonical, split_name, state_of
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.refresh.executor import refresh
from fivm_dbt.refresh.heads import read_state
from fivm_dbt.refresh.layout import settled_plan
from fivm_dbt.refresh.report import Report
from fivm_dbt.refresh.run import TimeRange


@dataclass
class FivmResponse(AdapterResponse):  # type: ignore[misc]
    """dbt's answer of a statement with the figures of a refresh, for ``run_results.json``."""

    fivm: dict[str, Any] = field(default_factory=dict)


def fivm_refresh(adapter: Any, request: Mapping[str, Any]) -> dict[str, Any]:
    """Build or refresh a model; what dbt has to know about it."""
    relation, existing = request["relation"], request["existing"]
    engine = engine_of(adapter, tell_once)
    try:
        with told(relation):
            config = config_of(request)
            state = read_state(engine, state_of(relation.render(), config.fivm_helper_schema))
            if config.fivm_helper_schema is not None and state.version < 0:
                place = relation.incorporate(path={"schema": config.fivm_helper_schema, "identifier": None})
                adapter.create_schema(place)
            planner = planner_of(
                adapter,
                engine,
                relation=relation,
                sql=request["sql"],
                config=config,
                materialized=request["materialized"],
            )
            is_full, tell = bool(request["full_refresh"]), progress()
            plan = settled_plan(planner, engine, state, full_refresh=is_full, progress=tell)
            is_other = existing is not None and is_in_the_way(engine, plan, existing.render())
            make_way = partial(adapter.drop_relation, existing) if is_other else None
            report = refresh(
                plan,
                engine,
                full_refresh=is_full,
                state=state,
                progress=tell,
                propagate=bool(request["propagate"]),
                within=_event_times(adapter),
                make_way=make_way,
            )
    finally:
        engine.stop_measuring()
    remember_helpers(Path(adapter.config.project_target_path), plan)
    figures = report.as_dict()
    path = {"identifier": split_name(plan.state_relation)[-1]}
    if config.fivm_helper_schema is not None:
        path["schema"] = config.fivm_helper_schema
    return {
        "response": FivmResponse(_message=_summary(report), rows_affected=report.rows_merged, fivm=figures),
        "sql": ";\n\n".join(report.statements) or f"-- {report.line()}",
        "line": f"fivm: {report.line()}",
        "tables": [path],
        "type": "table" if plan.is_exposed else "view",
    }


def is_in_the_way(engine: SparkEngine, plan: Plan, name: str) -> bool:
    """Whether what has the model's name is not its view, or its table: as another materialization has left it.

    The view may show states that were kept in another schema.
    """
    if plan.is_exposed:
        described = engine.described(name)
        return described is None or not described.is_exposed
    root = engine.view_property(name, ROOT_PROPERTY)
    if root is None:
        return engine.view_property(name, FACTORS_PROPERTY) is None
    schemas = split_name(root)[-2:-1]
    return canonical(root) not in {state_of(plan.relation, schema) for schema in (None, *schemas)}


def _event_times(adapter: Any) -> TimeRange:
    """The range of time that the command line restricts parts to: ``--event-time-start`` and ``--event-time-end``."""
    args = adapter.config.args
    found = (getattr(args, name, None) for name in ("EVENT_TIME_START", "EVENT_TIME_END"))
    start, end = (_instant(value) for value in found)
    return start, end


def _instant(value: Any) -> datetime | None:
    """A time of the command line, which to dbt is in UTC where it says nothing else: as for dbt's own microbatches."""
    if not value:
        return None
    moment = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=timezone.utc)


def _summary(report: Report) -> str:
    if report.action == "refreshed":
        return f"{report.action}, {report.rows_merged} rows, {report.partitions} partitions"
    return report.action
