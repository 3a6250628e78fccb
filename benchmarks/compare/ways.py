"""The ways by which a query is kept up to date: each builds its table, and brings it up to date when asked."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from benchmarks.compare.queries import Compared, lookback
from benchmarks.compare.tables import SCHEMA
from benchmarks.queries.tpch_data import TABLES
from fivm_dbt.catalog import Catalog, Relation, TableStatistics
from fivm_dbt.config import load_config
from fivm_dbt.engines.spark.engine import SparkEngine
from fivm_dbt.engines.spark.own_session import own_session
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.plan.planner import plan_model
from fivm_dbt.plan.request import ModelRequest
from fivm_dbt.refresh.executor import refresh
from fivm_dbt.refresh.heads import read_state
from fivm_dbt.refresh.layout import Promises, settled_plan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MODELS = "models"
"""The schema of what is kept."""


@dataclass(frozen=True)
class Ran:
    """What a run did, and what it was expected to take, in seconds: a refresh, a build. None is not known."""

    action: str
    expected: tuple[float, float] | None = None


class Way(ABC):
    """A query that is kept by one way."""

    name: str

    def __init__(self, session: SparkSession, compared: Compared) -> None:
        self.session = session
        self.compared = compared

    @property
    def relation(self) -> str:
        """What shows the rows."""
        return f"{MODELS}.{self.compared.name}_{self.name}"

    @abstractmethod
    def run(self) -> Ran:
        """Build it, or bring it up to date."""


class Recompute(Way):
    """dbt's ``table``: all of it, each time."""

    name = "table"

    def run(self) -> Ran:
        self.session.sql(f"CREATE OR REPLACE TABLE {self.relation} USING DELTA AS {self.compared.sql}")
        return Ran("recomputed")


class Incremental(Recompute):
    """dbt's ``incremental`` with ``merge``, as an expert writes it: the last days, merged by their keys."""

    name = "incremental"
    is_built = False

    def run(self) -> Ran:
        if not self.is_built:
            self.is_built = True
            return super().run()
        self.session.sql(lookback(self.compared, self.relation))
        return Ran("merged")


class Fivm(Way):
    """The model of this package, with some configuration."""

    def __init__(self, session: SparkSession, compared: Compared, name: str, **meta: object) -> None:
        super().__init__(session, compared)
        self.name = name
        self.meta = meta

    def run(self) -> Ran:
        engine = SparkEngine.of_session(own_session(self.session))
        state = read_state(engine, self.relation)
        relations = [
            Relation(f"{SCHEMA}.{t.name}", engine.describe(f"SELECT * FROM {SCHEMA}.{t.name}"))
            for t in TABLES
            if f"{SCHEMA}.{t.name}" in self.compared.sql
        ]
        config = load_config(self.meta, model=self.compared.name)
        request = ModelRequest(self.relation, self.compared.sql, Catalog.of(relations), config)

        def planner(measured: TableStatistics | None, promises: Promises | None = None) -> Plan:
            return plan_model(replace(request, measured=measured), engine.describe)

        report = refresh(settled_plan(planner, engine, state), engine, state=state)
        return Ran(report.action, report.expected)


CONFIGURED: dict[str, dict[str, object]] = {
    "fivm": {},
    "first_order": {"fivm_strategy": "first_order"},
    "factorized": {"fivm_strategy": "factorized"},
    "recursive": {"fivm_strategy": "recursive"},
    "merge": {"fivm_apply": "merge"},
    "replace": {"fivm_apply": "replace"},
    "append": {"fivm_apply": "append"},
    "never_built": {"fivm_rebuild": "never"},
}
"""Ways of this package by name, and their configuration."""

WAYS = ("table", "incremental", *CONFIGURED)


def way(session: SparkSession, compared: Compared, name: str) -> Way | None:
    """A query by a way; None where it cannot be kept so."""
    if name == "table":
        return Recompute(session, compared)
    if name == "incremental":
        return None if compared.by_hand is None else Incremental(session, compared)
    return Fivm(session, compared, name, **CONFIGURED[name])
