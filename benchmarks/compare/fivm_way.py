"""Models of this package, as dbt keeps them, with some configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from benchmarks.compare.cases import Compared, Model
from benchmarks.compare.way import Ran, Way
from fivm_dbt.catalog import Catalog, Relation, TableStatistics
from fivm_dbt.config import load_config
from fivm_dbt.engines.spark.engine import SparkEngine
from fivm_dbt.engines.spark.own_session import own_session
from fivm_dbt.naming import state_of
from fivm_dbt.plan.model.inputs import Reader
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.plan.planner import plan_model
from fivm_dbt.plan.request import ModelRequest
from fivm_dbt.refresh.executor import refresh
from fivm_dbt.refresh.heads import read_state
from fivm_dbt.refresh.layout import Promises, settled_plan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Fivm(Way):
    """A way of this package."""

    def __init__(
        self, session: SparkSession, compared: Compared, name: str, meta: Mapping[str, object]
    ) -> None:
        super().__init__(session, compared)
        self.name = name
        self.meta = dict(meta)

    def keep(self, model: Model) -> Ran:
        engine = SparkEngine.of_session(own_session(self.session))
        state = read_state(engine, state_of(self.relation(model)))
        request = self._request(model, engine)

        def planner(measured: TableStatistics | None, promises: Promises | None = None) -> Plan:
            return plan_model(replace(request, measured=measured), engine.describe)

        plan = settled_plan(planner, engine, state)
        report = refresh(plan, engine, state=state)
        views = f"{len(plan.views) - 1} inner views"
        return Ran(report.action, report.expected, views, len(report.statements), report.rows_read)

    def _request(self, model: Model, engine: SparkEngine) -> ModelRequest:
        relations = [_relation(engine, self.names[name]) for name in model.reads]
        readers = tuple(Reader.of(m.name) for m in self.compared.models if model.name in m.reads)
        config = load_config(self.meta, model=model.name)
        return ModelRequest(
            self.relation(model),
            self.sql(model),
            Catalog.of(relations),
            config,
            is_read=bool(readers),
            readers=readers,
        )


def _relation(engine: SparkEngine, name: str) -> Relation:
    """A table, or a model of this package."""
    described = engine.described(name)
    if described is None:
        raise ValueError(f"there is no {name}")
    shown = described.presentation
    return Relation(name, described.columns, kind="table" if shown is None else "fivm", presentation=shown)
