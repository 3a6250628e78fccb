"""A model over tables of Spark and Delta, without dbt: what a test does to its tables, Delta does."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fivm_dbt.bridge.connection import session_settings
from fivm_dbt.catalog import Catalog, Relation
from fivm_dbt.config import load_config
from fivm_dbt.engines.spark.engine import SparkEngine, on_session
from fivm_dbt.engines.spark.introspect import describe_relation
from fivm_dbt.naming import canonical
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.plan.planner import plan_model
from fivm_dbt.plan.request import ModelRequest
from fivm_dbt.refresh.engine import Engine, Row
from fivm_dbt.refresh.executor import refresh
from fivm_dbt.refresh.report import Report
from fivm_dbt.sql.relations import relations_read
from fivm_dbt.testing.spark_workbench import TINY

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass
class SparkBench:
    """The model ``m`` of a schema of its own, which is the current one of a session of its own."""

    session: SparkSession
    schema: str
    sql: str
    meta: dict[str, object] = field(default_factory=dict)
    is_told_session: bool = False
    """Whether plans know how the session computes, as those of dbt do."""

    @staticmethod
    def create(
        spark: SparkSession, schema: str, statements: str, sql: str, meta: dict[str, object] | None = None
    ) -> SparkBench:
        """``statements`` are separated by ``;``, and FEED in them stands for Delta with a change feed."""
        session = spark.newSession()
        for key, value in TINY.items():
            session.conf.set(key, value)
        session.sql(f"CREATE SCHEMA {schema}")
        session.sql(f"USE {schema}")
        bench = SparkBench(session, schema, sql, dict(meta or {}))
        bench.run(statements)
        return bench

    def __post_init__(self) -> None:
        self.engine = SparkEngine.of_session(self.session)

    def run(self, statements: str) -> None:
        for statement in statements.split(";"):
            if statement.strip():
                self.session.sql(statement.replace("FEED", _FEED))

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self.session.sql(query).collect()]

    def plan(self) -> Plan:
        """By the tables as they are now, as in each ``dbt run``."""
        execute, relations = on_session(self.session), []
        for named in relations_read(self.sql):
            found = describe_relation(execute, named.name)
            assert found is not None, named.name
            name = canonical(named.name)
            relations.append(Relation(name, found.columns, presentation=found.presentation))
        config, relation = load_config(self.meta), f"{self.schema}.m"
        session = session_settings(self.engine) if self.is_told_session else ()
        request = ModelRequest(relation, self.sql, Catalog.of(relations), config, session, project="bench")
        return plan_model(request, self.engine.describe)

    def refresh(self, engine: Engine | None = None, **options: Any) -> Report:
        return refresh(self.plan(), engine or self.engine, **options)

    def check(self) -> list[Row]:
        """The model's rows, which are those of its text."""
        shown, right = self.rows(f"SELECT * FROM {self.schema}.m"), self.rows(self.sql)
        assert Counter(map(repr, shown)) == Counter(map(repr, right)), (sorted(map(repr, shown)), right)
        return sorted(shown, key=repr)


_FEED = "USING DELTA TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
