"""A connection of dbt gives statements, the session and its settings."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from fivm_dbt.engines.spark.engine import Answer, Execute, SparkEngine, on_session
from fivm_dbt.engines.spark.introspect import Described
from fivm_dbt.engines.spark.own_session import own_session
from fivm_dbt.engines.spark.session import silence_query_contexts
from fivm_dbt.engines.spark.stored_view import SESSION_SETTINGS

logger = logging.getLogger(__name__)


def engine_of(adapter: Any, tell: Callable[[str], None] | None = None) -> SparkEngine:
    """Spark behind dbt's connection; ``tell`` hears of settings of its own."""
    session = _spark_session(adapter)
    own = None if session is None else own_session(session, tell)
    return SparkEngine(execute_of(adapter) if own is session else _execute_in(adapter, own), own)


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


def execute_of(adapter: Any) -> Execute:
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


def description_of(adapter: Any, relation: Any) -> Described | None:
    return SparkEngine(execute_of(adapter), _spark_session(adapter)).described(relation.render())


def session_settings(engine: SparkEngine) -> tuple[tuple[str, str], ...]:
    return tuple((name, setting(engine, key)) for name, key in SESSION_SETTINGS.items())


def setting(engine: SparkEngine, key: str) -> str:
    """What a setting is; ``unknown`` where the session hides it."""
    try:
        return engine.setting(key)
    except Exception as error:
        # Some warehouses hide settings that their users cannot change. Anything else must not be taken for a
        # changed setting, which would rebuild the state.
        if "CONFIG_NOT_AVAILABLE" not in str(error):
            raise
        logger.debug("%s cannot be read: %s", key, error)
        return "unknown"
