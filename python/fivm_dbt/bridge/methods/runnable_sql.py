"""``adapter.fivm_runnable_sql`` gives a model's SQL as Spark can run it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fivm_dbt.bridge.connection import engine_of
from fivm_dbt.bridge.models import config_of, planner_of
from fivm_dbt.bridge.told import told
from fivm_dbt.catalog import Relation
from fivm_dbt.refresh.oracle import runnable_sql
from fivm_dbt.rings.declared import load_rings
from fivm_dbt.sql.parse import is_beyond_spark
from fivm_dbt.sql.splice import over_no_rows


def fivm_runnable_sql(adapter: Any, request: Mapping[str, Any]) -> str:
    """The model's SQL as Spark can run it: itself, but for MATCH_RECOGNIZE, which is written out.

    Of a viewdf model, which may read itself, it is a query without rows that has its columns.
    """
    sql = str(request["sql"])
    if request["materialized"] == "viewdf":
        with told(request["relation"]):
            engine = engine_of(adapter)
            planner = planner_of(
                adapter,
                engine,
                relation=request["relation"],
                sql=sql,
                config=config_of(request),
                materialized="viewdf",
            )
            return over_no_rows("select * from model", [Relation("model", planner(None).output)])
    with told(request["relation"]):
        config = config_of(request)
        load_rings(config.fivm_rings)
        if not is_beyond_spark(sql):
            return sql
        planner = planner_of(adapter, engine_of(adapter), request["relation"], sql, config)
        return runnable_sql(planner(None))
