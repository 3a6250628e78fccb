"""dbt's side of the plug-in: what ``adapter.fivm_*`` does when Jinja calls it.

Each function gets the adapter first. Errors leave as dbt's own, so that dbt reports them like any model's.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbt.adapters.contracts.connection import AdapterResponse
from dbt_common.exceptions import CompilationError, DbtRuntimeError

from fivm_dbt.bridge.key_warnings import warn_of_unused_keys
from fivm_dbt.bridge.name_checks import check_names
from fivm_dbt.bridge.nodes import Compiled, add_helper_nodes, remember_helpers
from fivm_dbt.bridge.part_checks import check_reference, check_viewdf_models
from fivm_dbt.catalog import Relation, TableStatistics
from fivm_dbt.config import Config, load_config
from fivm_dbt.engines.spark.documentation import Documentation, document
from fivm_dbt.engines.spark.engine import Answer, Execute, SparkEngine, on_session
from fivm_dbt.engines.spark.environment import environment_error
from fivm_dbt.engines.spark.errors import first_line, has_stack
from fivm_dbt.engines.spark.introspect import Described
from fivm_dbt.engines.spark.own_session import own_session
from fivm_dbt.engines.spark.session import silence_query_contexts
from fivm_dbt.errors import FivmError
from fivm_dbt.explain.text import explain
from fivm_dbt.ir.moments import session_zone
from fivm_dbt.naming import FACTORS_PROPERTY, ROOT_PROPERTY, canonical, split_name
from fivm_dbt.operations.checks import Finding, check_inputs
from fivm_dbt.operations.clean import drop, leftovers
from fivm_dbt.operations.drop_parts import drop_old_parts, old_parts
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.plan.planner import plan_model
from fivm_dbt.plan.request import ModelRequest
from fivm_dbt.plan.viewdf.planner import plan_viewdf
from fivm_dbt.project.inputs import read_catalog, read_retained, read_time_parts, with_sql_names
from fivm_dbt.project.manifest import MAINTAINED, Nodes, without_catalog
from fivm_dbt.refresh.compare import difference_sql
from fivm_dbt.refresh.executor import refresh
from fivm_dbt.refresh.heads import read_state
from fivm_dbt.refresh.history import Refreshed, history, table_of
from fivm_dbt.refresh.layout import Planner, Promises, recorded_plan, settled_plan
from fivm_dbt.refresh.oracle import runnable_sql
from fivm_dbt.refresh.parts_wanted import EventTime
from fivm_dbt.refresh.report import Report
from fivm_dbt.sql.parse import has_match
from fivm_dbt.sql.part_references import relations_of_parts
from fivm_dbt.sql.splice import over_no_rows
from fivm_dbt.suggest import did_you_mean

if TYPE_CHECKING:
    from fivm_dbt.explain.drawing import Measured

logger = logging.getLogger(__name__)

_SESSION_SETTINGS: Mapping[str, str] = {
    "timezone": "spark.sql.session.timeZone",
    "ansi": "spark.sql.ansi.enabled",
    "case sensitive": "spark.sql.caseSensitive",
    "timestamp type": "spark.sql.timestampType",
}
"""What changes the meaning of SQL, and so belongs to the plan's signature."""

_PATIENCE = 5.0
"""Seconds after which the steps of a refresh are told while it goes on."""


@dataclass
class FivmResponse(AdapterResponse):  # type: ignore[misc]
    """dbt's answer of a statement with the figures of a refresh, for ``run_results.json``."""

    fivm: dict[str, Any] = field(default_factory=dict)


def fivm_validate(adapter: Any, request: Mapping[str, Any]) -> None:
    """Raise for a configuration that is wrong, before hooks run."""
    with _told(request["relation"]):
        _config(request)


def fivm_refresh(adapter: Any, request: Mapping[str, Any]) -> dict[str, Any]:
    """Build or refresh a model; what dbt has to know about it."""
    relation = request["relation"]
    engine = _engine(adapter, _tell_once)
    try:
        with _told(relation):
            state = read_state(engine, canonical(relation.render()))
            planner = _planner(
                adapter, engine, relation, request["sql"], _config(request), request["materialized"]
            )
            is_full, tell = bool(request["full_refresh"]), _progress()
            plan = settled_plan(planner, engine, state, full_refresh=is_full, progress=tell)
            _make_way(adapter, engine, plan, request["existing"])
            report = refresh(
                plan,
                engine,
                full_refresh=is_full,
                state=state,
                progress=tell,
                propagate=bool(request["propagate"]),
                within=_event_times(adapter),
            )
    finally:
        engine.stop_measuring()
    remember_helpers(Path(adapter.config.project_target_path), plan)
    figures = report.as_dict()
    return {
        "response": FivmResponse(_message=_summary(report), rows_affected=report.rows_merged, fivm=figures),
        "sql": ";\n\n".join(report.statements) or f"-- {report.line()}",
        "line": f"fivm: {report.line()}",
        "tables": [split_name(plan.state_relation)[-1]],
    }


def fivm_runnable_sql(adapter: Any, request: Mapping[str, Any]) -> str:
    """The model's SQL as Spark can run it: itself, but for MATCH_RECOGNIZE, which is written out.

    Of a viewdf model, which may read itself, it is a query without rows that has its columns.
    """
    sql = str(request["sql"])
    if request["materialized"] == "viewdf":
        with _told(request["relation"]):
            engine = _engine(adapter)
            planner = _planner(adapter, engine, request["relation"], sql, _config(request), "viewdf")
            return over_no_rows("select * from model", [Relation("model", planner(None).output)])
    if not has_match(sql):
        return sql
    with _told(request["relation"]):
        planner = _planner(adapter, _engine(adapter), request["relation"], sql, _config(request))
        return runnable_sql(planner(None))


def fivm_is_partial(adapter: Any) -> bool:
    """Whether this invocation shows models only a part of their inputs: ``--empty`` or ``--sample``."""
    args = adapter.config.args
    return bool(getattr(args, "EMPTY", False) or getattr(args, "SAMPLE", None))


def fivm_is_maintained(adapter: Any, relation: Any) -> bool:
    """Whether a relation is a fivm model's view over its state."""
    described = _described(adapter, relation)
    return described is not None and (described.presentation is not None or described.is_factorized)


def fivm_document(adapter: Any, relation: Any, comment: str | None, columns: Mapping[str, str]) -> None:
    """Put descriptions on a model's view, where they differ from those that it has."""
    wanted = Documentation(comment or None, {name.lower(): text for name, text in columns.items() if text})
    described = _described(adapter, relation)
    assert described is not None, "its model has just been refreshed"
    document(_execute(adapter), relation.render(), described, wanted)


def fivm_explain(adapter: Any, name: str, form: str = "text") -> str:
    """How a model is maintained, as text; as ``html`` or ``pdf`` the file in the target directory that has it."""
    with _told(name):
        plan = _plan_of_node(adapter, _model(adapter, name))
        if form == "text":
            return explain(plan)
        if form not in ("html", "pdf"):
            raise FivmError(
                "FIVM201",
                f"no format {form} (expected one of 'text', 'html', 'pdf')",
                remedy="choose another",
            )
        # Every dbt run imports this module, and few draw.
        from fivm_dbt.explain.page import page
        from fivm_dbt.explain.pdf import pdf

        measured = _measured(_engine(adapter), plan.relation)
        file = Path(adapter.config.project_target_path) / f"{plan.model}.{form}"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(page(plan, measured).encode() if form == "html" else pdf(plan, measured))
        return str(file)


def _measured(engine: SparkEngine, relation: str) -> Measured | None:
    """What the last finished refresh has left, None where there is none."""
    from fivm_dbt.explain.drawing import Measured

    finished = read_state(engine, relation).finished
    if finished is None:
        return None
    told = next(iter(history(engine, relation, 1)), None)
    rows = {state: int(size[0]) for state, size in finished.detail.get("sizes", {}).items()}
    return Measured(finished.refresh, None if told is None else told.seconds, rows)


def fivm_history(adapter: Any, model: str | None, limit: int) -> list[str]:
    """The last refreshes of a model, or of all of the project, newest first: a heading and a line for each."""
    nodes = list(_nodes(adapter).fivm_models()) if model is None else [_model(adapter, model)]
    engine, found = _engine(adapter), list[Refreshed]()
    for node in nodes:
        relation = canonical(adapter.Relation.create_from(adapter.config, node).render())
        found += history(engine, relation, limit)
    found.sort(key=lambda refreshed: refreshed.at, reverse=True)
    return table_of(found[:limit]) if found else ["no refresh is known"]


def fivm_exact_sql(adapter: Any, relation: str) -> str:
    """A query for the rows in which a model differs from its full recompute."""
    with _told(relation):
        plan = _plan_of_node(adapter, _model(adapter, relation))
        return difference_sql(plan, _engine(adapter))


def fivm_check(adapter: Any) -> list[dict[str, str]]:
    """What ``fivm doctor`` has to say about the inputs of the project's models."""
    findings: list[Finding] = check_inputs(_execute(adapter), _nodes(adapter))
    return [{"level": f.level, "text": f.text} for f in findings]


def fivm_clean(adapter: Any, dry_run: bool, schemas: Sequence[str]) -> list[str]:
    """Find, and unless ``dry_run`` drop, what models of this project that are gone have left; a line for each.

    Looked for in the schemas of its fivm models, in the target's own, and in ``schemas``.
    """
    nodes = _nodes(adapter)
    there = [*nodes.fivm_models(), *nodes.disabled_fivm_models()]
    models = [adapter.Relation.create_from(adapter.config, node) for node in there]
    own = str(adapter.config.credentials.schema)
    places = {own, *(str(m.schema) for m in models if m.schema), *schemas}
    execute = _execute(adapter)
    found = leftovers(execute, places, str(adapter.config.project_name), [m.render() for m in models])
    lines = [f"{'view ' if item.is_view else 'table'} {item.name}, of {item.model}" for item in found]
    if not found:
        return [f"nothing is left of models that are gone (looked in {', '.join(sorted(places))})"]
    if dry_run:
        return [*lines, "nothing was dropped; to drop these, add --args '{dry_run: false}'"]
    drop(execute, found)
    return [f"dropped {line}" for line in lines]


def fivm_drop_parts(adapter: Any, dry_run: bool) -> list[str]:
    """Find, and unless ``dry_run`` delete, parts of sources that are older than their retention; a line for each."""
    engine = _engine(adapter)
    zone = session_zone(_session_settings(engine))
    found = [
        old_parts(engine, relation, lateness, readers)
        for relation, lateness, readers in read_retained(engine.described, _nodes(adapter), zone)
    ]
    if not found:
        return ["nothing to drop: no source has meta fivm_retention"]
    if dry_run:
        listed = [str(item) for item in found]
        can_go = any(item.can_go for item in found)
        return [
            *listed,
            "nothing was deleted" + ("; to delete these, add --args '{dry_run: false}'" if can_go else ""),
        ]
    kept = [str(item) for item in found if not item.can_go]
    return [*(f"deleted {item}" for item in drop_old_parts(engine, found)), *kept]


def fivm_check_reference(adapter: Any, model: str, relation: str, low: Any, high: Any, is_own: bool) -> None:
    """Raise for a reference to parts that is wrong by itself."""
    check_reference(model, relation, low, high, is_own)


def fivm_add_nodes(adapter: Any, manifest: Any) -> None:
    """Add nodes for the inner views of fivm models to a finished manifest. What goes wrong costs these nodes alone.

    Refused here, in every command that reads the project: relations with names of fivm's own, and viewdf models whose
    parts do not fit together.
    """
    if not getattr(manifest, "flat_graph", None):
        return  # dbt is still reading macros
    check_names(Nodes(manifest))
    check_viewdf_models(Nodes(manifest), Compiled(manifest, adapter.config).compile)
    warn_of_unused_keys(adapter, Nodes(manifest))
    try:
        add_helper_nodes(manifest, adapter.config)
    except Exception as error:
        logger.warning("inner views of fivm models are not shown: %s", error)
        logger.debug("no nodes", exc_info=True)


def explained(error: Exception) -> Exception | None:
    """An adapter's error with what is wrong with Java, Spark or Delta, None where that is not its cause."""
    known = environment_error(str(error))
    if known is None or known.code.number in str(error):
        return None
    return DbtRuntimeError(f"{known}\nSpark says: {first_line(error)}")


def _planner(
    adapter: Any, engine: SparkEngine, relation: Any, sql: str, config: Config, materialized: str = "fivm"
) -> Planner:
    nodes, is_viewdf = _nodes(adapter), materialized == "viewdf"
    names = relations_of_parts(sql, relation.render()) if is_viewdf else None
    session = _session_settings(engine)
    zone = config.fivm_time_zone or session_zone(session)
    catalog = read_catalog(sql, engine.described, nodes, names, zone)
    readers = tuple(without_catalog(m.relation_name) for m in nodes.readers_of(relation.render()))
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


def _plan_of_node(adapter: Any, node: Any) -> Plan:
    """The plan of a model that is not being run, with the layout that its state has."""
    relation = adapter.Relation.create_from(adapter.config, node)
    name, engine = canonical(relation.render()), _engine(adapter)
    meta = {**node.config.meta, "batch_size": _batch_size(node.config.batch_size)}
    config = load_config(meta, model=node.name)
    state = read_state(engine, name)
    planner = _planner(adapter, engine, relation, _sql(adapter, node), config, str(node.config.materialized))
    return recorded_plan(planner, state)


def _sql(adapter: Any, node: Any) -> str:
    """A model's SQL as dbt compiles it; in `dbt build` it has been compiled before its tests run."""
    from dbt.compilation import Compiler

    if getattr(node, "compiled", False) and node.compiled_code:
        return str(node.compiled_code)
    compiler, manifest = Compiler(adapter.config), adapter.get_macro_resolver()
    return str(compiler.compile_node(deepcopy(node), manifest, {}, write=False).compiled_code)


def _model(adapter: Any, name: str) -> Any:
    node = _nodes(adapter).node(name)
    if node is None or node.config.materialized not in MAINTAINED:
        known = [str(n.name) for n in _nodes(adapter).fivm_models()]
        raise FivmError(
            "FIVM103",
            f"{name} is not a model with materialized='fivm' (there are: {', '.join(known) or 'none'})",
            remedy=did_you_mean(name, known) or "correct the name",
        )
    return node


def _make_way(adapter: Any, engine: SparkEngine, plan: Plan, existing: Any | None) -> None:
    """Drop what stands where the model's view goes: the same model as another materialization left it."""
    if existing is None:
        return
    name = existing.render()
    is_ours = engine.view_property(name, ROOT_PROPERTY) == plan.state_relation
    if not is_ours and engine.view_property(name, FACTORS_PROPERTY) is None:
        adapter.drop_relation(existing)


def _described(adapter: Any, relation: Any) -> Described | None:
    return SparkEngine(_execute(adapter), _spark_session(adapter)).described(relation.render())


def _engine(adapter: Any, tell: Callable[[str], None] | None = None) -> SparkEngine:
    """Spark behind dbt's connection; ``tell`` hears of settings of its own."""
    session = _spark_session(adapter)
    own = None if session is None else own_session(session, tell)
    return SparkEngine(_execute(adapter) if own is session else _execute_in(adapter, own), own)


def _execute_in(adapter: Any, session: Any) -> Execute:
    """Statements in a session that is not dbt's connection, in dbt's log and with its errors all the same."""
    from dbt.adapters.events.types import SQLQuery
    from dbt_common.events.contextvars import get_node_info
    from dbt_common.events.functions import fire_event

    connections, run = adapter.connections, on_session(session)

    def execute(sql: str, *, fetch: bool) -> Answer:
        name = str(connections.get_thread_connection().name)
        fire_event(SQLQuery(conn_name=name, sql=sql, node_info=get_node_info()))
        with connections.exception_handler(sql):
            return run(sql, fetch=fetch)

    return execute


def _execute(adapter: Any) -> Execute:
    if _is_session(adapter):
        silence_query_contexts()

    def execute(sql: str, *, fetch: bool) -> Answer:
        _, table = adapter.execute(sql, fetch=fetch)
        return Answer(tuple(table.column_names), tuple(tuple(row.values()) for row in table.rows))

    return execute


def _is_session(adapter: Any) -> bool:
    """Whether dbt's Spark is in this process."""
    return str(getattr(adapter.config.credentials, "method", "")) == "session"


def _spark_session(adapter: Any) -> Any | None:
    """The session in this process, for metrics; over a network there is none."""
    if not _is_session(adapter):
        return None
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    if SparkContext._active_spark_context is None:
        adapter.execute("select 1")
    return SparkSession.builder.getOrCreate()


def _session_settings(engine: SparkEngine) -> tuple[tuple[str, str], ...]:
    return tuple((name, _setting(engine, key)) for name, key in _SESSION_SETTINGS.items())


def _setting(engine: SparkEngine, key: str) -> str:
    try:
        return engine.setting(key)
    except Exception as error:
        # Some warehouses hide settings that their users cannot change. Anything else must not be taken for a
        # changed setting, which would rebuild the state.
        if "CONFIG_NOT_AVAILABLE" not in str(error):
            raise
        logger.debug("%s cannot be read: %s", key, error)
        return "unknown"


def _nodes(adapter: Any) -> Nodes:
    return Nodes(adapter.get_macro_resolver())


def _config(request: Mapping[str, Any]) -> Config:
    meta = {**request["meta"], "batch_size": _batch_size(request["batch_size"])}
    return load_config(meta, model=request["relation"].identifier)


def _event_times(adapter: Any) -> EventTime:
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


def _batch_size(value: Any) -> str | None:
    return None if value is None else str(getattr(value, "value", value))


def _summary(report: Report) -> str:
    if report.action == "refreshed":
        return f"{report.action}, {report.rows_merged} rows, {report.partitions} partitions"
    return report.action


@cache
def _tell_once(message: str) -> None:
    """What holds for all models of a run."""
    from dbt.adapters.events.logging import AdapterLogger

    AdapterLogger("fivm").info(f"fivm: {message}")


def _progress() -> Callable[[str], None]:
    """Steps go to the debug log; what takes long, or announces that it will, is told."""
    from dbt.events.types import JinjaLogDebug, JinjaLogInfo
    from dbt_common.events.contextvars import get_node_info
    from dbt_common.events.functions import fire_event

    started = time.monotonic()

    def tell(message: str) -> None:
        is_long = time.monotonic() - started > _PATIENCE or message.startswith(
            ("building", "finishing", "recomputing")
        )
        event = JinjaLogInfo if is_long else JinjaLogDebug
        fire_event(event(msg=f"fivm: {message}", node_info=get_node_info()))

    return tell


@contextmanager
def _told(model: Any) -> Iterator[None]:
    """Raise our errors as dbt's: the user sees the text, and no traceback."""
    try:
        yield
    except FivmError as error:
        name = getattr(model, "identifier", None) or str(model)
        kind = CompilationError if error.code.fault in ("query", "config") else DbtRuntimeError
        raise kind(str(error.located(model=name))) from error
    except Exception as error:
        # The rest of Java's hundred lines is the cause of this one, which dbt logs with --debug.
        if not has_stack(error):
            raise
        raise DbtRuntimeError(first_line(error)) from error
