"""Queries over little run interpreted, and the session is left as it was."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from fivm_dbt.engines import own_session
from fivm_dbt.engines.own_session import INTERPRETED, SMALL, query_in_copy
from fivm_dbt.engines.spark import SparkEngine
from fivm_dbt.refresh.engine import VersionUnavailable

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def engine(spark: SparkSession) -> Iterator[SparkEngine]:
    engine = SparkEngine.of_session(spark)
    engine.run("CREATE SCHEMA own")
    engine.run(
        "CREATE TABLE own.t USING DELTA TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true') "
        "AS SELECT id AS k, id % 7 AS g FROM range(1000)"
    )
    yield engine
    engine.run("DROP SCHEMA own CASCADE")


def _settings(session: SparkSession) -> dict[str, str | None]:
    return {key: session.conf.get(key) for key in INTERPRETED}


@pytest.mark.parametrize(
    "query",
    [
        "SELECT g, count(*) AS n FROM own.t VERSION AS OF 0 GROUP BY g",
        "WITH c AS (SELECT g FROM own.t) SELECT a.g FROM c AS a JOIN c AS b ON a.g = b.g",
        "SELECT 1 AS one",
    ],
)
def test_little_is_interpreted(engine: SparkEngine, spark: SparkSession, query: str) -> None:
    frame, is_interpreted = query_in_copy(spark, query)
    assert is_interpreted
    assert _settings(frame.sparkSession) == INTERPRETED
    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert "WholeStageCodegen" not in plan and "AdaptiveSparkPlan" not in plan


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k FROM table_changes('own.t', 0, 0)",
        "SELECT id FROM range(10000000)",
        "SELECT g FROM own.t WHERE k IN (SELECT id FROM range(10000000))",
        "SELECT g FROM own.t WHERE k = (SELECT max(a.id) FROM range(10000000) AS a WHERE a.id < own.t.k)",
        "WITH c AS (SELECT id FROM range(10000000)) SELECT a.id FROM c AS a JOIN c AS b ON a.id = b.id",
    ],
)
def test_much_and_what_is_not_known_is_compiled(engine: SparkEngine, spark: SparkSession, query: str) -> None:
    frame, is_interpreted = query_in_copy(spark, query)
    assert not is_interpreted
    assert _settings(frame.sparkSession) == _settings(spark)


def test_the_bound_is_the_size_of_the_tables(
    engine: SparkEngine, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = engine.size("own.t")
    assert size is not None and size < SMALL
    for bound, expected in ((size, True), (size - 1, False)):
        monkeypatch.setattr(own_session, "SMALL", bound)
        assert query_in_copy(spark, "SELECT k FROM own.t WHERE g = 1")[1] is expected


def test_the_session_stays_as_it_was(engine: SparkEngine, spark: SparkSession) -> None:
    before = _settings(spark)
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    spark.udf.register("fivm_own", lambda k: f"<{k}>")
    try:
        engine.run("CREATE OR REPLACE TEMPORARY VIEW passing AS SELECT 5 AS k")
        engine.stage(
            "fivm_copied", "SELECT fivm_own(k) AS s, CAST(TIMESTAMP_MICROS(0) AS STRING) AS t FROM passing"
        )
        assert engine.query("SELECT * FROM fivm_copied") == (("<5>", "1970-01-01 09:00:00"),)
        assert engine.interpreted == {"fivm_copied"}
        for wrong in ("SELECT k FROM own.t VERSION AS OF 99", "SELECT raise_error('no') AS k FROM own.t"):
            with pytest.raises(Exception, match=r"99|no"):
                engine.stage("fivm_wrong", wrong)
        with pytest.raises(VersionUnavailable):
            engine.stage("fivm_wrong", "SELECT k FROM own.t VERSION AS OF 99")
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        engine.unstage("fivm_copied")
        engine.unstage("passing")
    assert _settings(spark) == before
    assert SparkSession.getActiveSession() is not None
    assert SparkSession.builder.getOrCreate()._jsparkSession.equals(spark._jsparkSession)


def test_much_is_staged_for_the_session(engine: SparkEngine, spark: SparkSession) -> None:
    """And what is staged over it knows that it is much."""
    engine.stage("fivm_much", "SELECT id FROM range(1000000)")
    assert spark.catalog.isCached("fivm_much")
    assert engine.query("SELECT count(*), sum(id) FROM fivm_much") == ((1000000, 499999500000),)
    engine.stage("fivm_over_it", "SELECT count(*) AS n FROM fivm_much")
    assert engine.query("SELECT n FROM fivm_over_it") == ((1000000,),)
    assert not engine.interpreted & {"fivm_much", "fivm_over_it"}
    engine.unstage("fivm_over_it")
    engine.unstage("fivm_much")
