"""Few staged rows are a part of the plans that read them, and the same rows as those of the query."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from fivm_dbt.engines.spark.engine import SparkEngine, on_session
from fivm_dbt.engines.spark.local_rows import FEW
from fivm_dbt.plan.model.head import Note

pytestmark = pytest.mark.spark

COMPARABLE = (
    "1Y", "2S", "3", "4L", "1.5F", "double('NaN')", "-0.0D", "double('-Infinity')", "1e-310D",
    "CAST(99999999999999999999999999999999999999 AS DECIMAL(38, 0))",
    "CAST(-0.0000000000000000000000000000000000001 AS DECIMAL(38, 37))",
    "1.50BD", "'text'", "''", "'ä𝄞\\u0000'", "'Abc' COLLATE UTF8_LCASE", "'é' COLLATE de_CI_AI", "X'00FF'", "X''",
    "true",
    "DATE'0001-01-01'", "DATE'1500-02-28'", "DATE'1582-10-10'", "DATE'9999-12-31'",
    "TIMESTAMP'0001-01-01 00:00:00'", "TIMESTAMP'1500-01-01 12:00:00.000001'", "TIMESTAMP'2024-03-31 02:30:00'",
    "TIMESTAMP_MICROS(1729989000000000)", "TIMESTAMP_MICROS(1729992600000001)",
    "TIMESTAMP_NTZ'2024-10-27 02:30:00.123456'", "TIMESTAMP_NTZ'0001-01-01 00:00:00'",
    "INTERVAL '1-2' YEAR TO MONTH", "INTERVAL '5' MONTH", "INTERVAL '-3 04:05:06.789' DAY TO SECOND",
    "NULL", "ARRAY(1, NULL, 3)", "ARRAY(DATE'1500-01-01')", "CAST(ARRAY() AS ARRAY<INT>)",
    "NAMED_STRUCT('x', CAST(1.5 AS DECIMAL(38, 2)), 'y', ARRAY(NAMED_STRUCT('z', DATE'0001-01-01')))",
    "NAMED_STRUCT('x', CAST(NULL AS STRING))",
)  # fmt: skip
NOT_COMPARABLE = (
    "MAKE_INTERVAL(1, 2, 3, 4, 5, 6, 7.5)",
    "MAP('a', TIMESTAMP_MICROS(1729992600000000), 'b', NULL)",
    "ARRAY(MAP(1, X'01'))",
    """PARSE_JSON('{"a": [1, "x"]}')""",
)


@pytest.fixture(scope="module")
def engine(spark: SparkSession) -> Iterator[SparkEngine]:
    """In a zone whose clocks change."""
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    engine = SparkEngine(on_session(spark), spark)
    engine.run("CREATE SCHEMA local")
    engine.run("CREATE TABLE local.one (k INT, c CHAR(5)) USING DELTA")
    engine.run("INSERT INTO local.one VALUES (1, 'abc')")
    yield engine
    engine.unstage("fivm_local")
    engine.run("DROP SCHEMA local CASCADE")
    spark.conf.set("spark.sql.session.timeZone", str(zone))


def test_rows_of_all_types(engine: SparkEngine, spark: SparkSession) -> None:
    values = ", ".join(f"{value} AS c{n}" for n, value in enumerate(COMPARABLE))
    nulls = ", ".join("NULL" for _ in COMPARABLE)
    query = f"SELECT k, {values} FROM local.one UNION ALL SELECT 2, {nulls} FROM local.one"
    engine.stage("fivm_local", query)
    assert _is_local(spark)
    assert spark.table("fivm_local").schema == spark.sql(query).schema
    for one, other in (("TABLE fivm_local", query), (query, "TABLE fivm_local")):
        assert not engine.query(f"({one}) EXCEPT ALL ({other})")
    assert len(engine.query("SELECT k FROM fivm_local")) == 2


@pytest.mark.parametrize("value", NOT_COMPARABLE)
def test_values_that_cannot_be_compared(engine: SparkEngine, spark: SparkSession, value: str) -> None:
    query = f"SELECT {value} AS c FROM local.one"
    engine.stage("fivm_local", query)
    assert _is_local(spark)
    assert spark.table("fivm_local").schema == spark.sql(query).schema
    staged, computed = (
        engine.query(f"SELECT CAST(c AS STRING), TYPEOF(c) FROM ({rows})")
        for rows in ("TABLE fivm_local", query)
    )
    assert staged == computed


def test_columns_of_fixed_length(engine: SparkEngine, spark: SparkSession) -> None:
    engine.stage("fivm_local", "SELECT c, c || '.' AS d FROM local.one")
    assert _is_local(spark)
    assert engine.query("SELECT * FROM fivm_local WHERE c = 'abc'") == (("abc  ", "abc  ."),)


def test_no_rows(engine: SparkEngine, spark: SparkSession) -> None:
    engine.stage("fivm_local", "SELECT k FROM local.one WHERE k > 5")
    assert _is_local(spark)
    assert engine.query("SELECT count(*) FROM fivm_local") == ((0,),)


def test_a_staged_result_reads_another_and_itself(engine: SparkEngine, spark: SparkSession) -> None:
    engine.stage("fivm_local", "SELECT k, 'x' AS s FROM local.one")
    engine.stage(
        "fivm_local_2", "SELECT a.k, b.s FROM fivm_local a JOIN fivm_local b ON a.k = b.k ORDER BY a.s"
    )
    engine.unstage("fivm_local")
    assert engine.query("SELECT a.k, b.s FROM fivm_local_2 a JOIN fivm_local_2 b USING (k)") == ((1, "x"),)
    engine.unstage("fivm_local_2")


def test_many_rows_are_stored_once_with_their_size(engine: SparkEngine, spark: SparkSession) -> None:
    """Spark takes the query for far larger: it knows nothing of what a filter leaves."""
    engine.stage("fivm_local", "SELECT id, repeat('x', 100) AS s FROM range(20000000) WHERE id % 1000 = 7")
    assert not _is_local(spark) and not spark.catalog.isCached("fivm_local")
    assert engine.query("SELECT count(*), sum(id) FROM fivm_local") == ((20000, 199990140000),)
    assert 20_000 * 30 < _size(spark) < 20_000 * 300
    engine.unstage("fivm_local")
    assert not spark.catalog.tableExists("fivm_local")


def test_few_large_rows_are_as_large_as_they_are(engine: SparkEngine, spark: SparkSession) -> None:
    engine.stage("fivm_local", "SELECT repeat('x', 1000000) AS s FROM range(5)")
    assert not _is_local(spark) and _size(spark) > 1_000_000


def _size(spark: SparkSession) -> int:
    return int(spark.table("fivm_local")._jdf.queryExecution().optimizedPlan().stats().sizeInBytes())


def test_nothing_is_kept_of_few_rows(engine: SparkEngine, spark: SparkSession) -> None:
    context = spark.sparkContext._jsc
    before = set(context.getPersistentRDDs())
    engine.stage("fivm_local", "SELECT k FROM local.one")
    assert _is_local(spark)
    assert set(context.getPersistentRDDs()) <= before


def _is_local(spark: SparkSession) -> bool:
    plan = spark.table("fivm_local")._jdf.queryExecution().optimizedPlan()
    return str(plan.nodeName()) == "LocalRelation"


def test_queries_that_are_staged_at_once(engine: SparkEngine, spark: SparkSession) -> None:
    """Each has the rows that it has alone, of every type, with any names; none may be empty, or all."""
    values = ", ".join(f"{value} AS c{n}" for n, value in enumerate(COMPARABLE))
    queries = {
        "fivm_types": f"SELECT k, {values} FROM local.one",
        "fivm_names": "SELECT k AS `a b.c``d`, NAMED_STRUCT('x', k) AS s FROM local.one UNION ALL SELECT 7, NULL",
        "fivm_none": "SELECT k, 'x' AS x FROM local.one WHERE k > 5",
    }
    engine.stage_all(list(queries.items()))
    for name, query in queries.items():
        assert spark.table(name).dtypes == spark.sql(query).dtypes
        for one, other in ((f"TABLE {name}", query), (query, f"TABLE {name}")):
            assert not engine.query(f"({one}) EXCEPT ALL ({other})")
        assert "LocalTableScan" in _plan_text(spark, name)
    assert engine.staged_rows("fivm_names", "SELECT s.x FROM fivm_names") == [(1,), (None,)]
    for name in queries:
        engine.unstage(name)
    assert engine.staged_rows("fivm_names", "SELECT 1") is None


def test_many_rows_that_are_staged_at_once(engine: SparkEngine, spark: SparkSession) -> None:
    engine.stage_all(
        [("fivm_many", "SELECT id, REPEAT('x', 100) AS t FROM range(100000)"), ("fivm_few", "SELECT 1")]
    )
    assert engine.staged_rows("fivm_many", "SELECT id FROM fivm_many") is None
    assert engine.query("SELECT COUNT(*), SUM(id) FROM fivm_many") == ((100000, 4999950000),)
    assert engine.query("TABLE fivm_few") == ((1,),)
    for name in ("fivm_many", "fivm_few"):
        engine.unstage(name)


def test_a_note_goes_with_its_commit_alone(engine: SparkEngine, spark: SparkSession) -> None:
    engine.stage("fivm_row", "SELECT 2 AS k, 'x' AS c")
    engine.commit(
        "INSERT INTO local.one SELECT * FROM fivm_row WHERE k > 5 OR k = 2", Note("local.one", 1, 'a "note"')
    )
    assert [c.note for c in engine.commits("local.one", None)] == ['a "note"']
    engine.run("DELETE FROM local.one WHERE k = 2")
    assert [c.note for c in engine.commits("local.one", None)] == [None]
    engine.unstage("fivm_row")


def _plan_text(spark: SparkSession, name: str) -> str:
    return str(spark.table(name)._jdf.queryExecution().executedPlan())


@pytest.mark.parametrize(("rows", "is_fetched"), [(0, True), (FEW, True), (FEW + 1, False)])
def test_few_rows_are_looked_at_one_by_one(engine: SparkEngine, rows: int, *, is_fetched: bool) -> None:
    engine.stage("fivm_local", f"SELECT id FROM range({rows})")
    found = engine.staged_rows("fivm_local", "SELECT 1 AS n, id FROM fivm_local")
    assert found == ([(1, number) for number in range(rows)] if is_fetched else None)
    both = [("fivm_local_1", f"SELECT id FROM range({rows})"), ("fivm_local_2", "SELECT 'x' AS s")]
    engine.stage_all(both)
    assert engine.staged_rows("fivm_local_2", "SELECT s FROM fivm_local_2") == [("x",)]
    assert (engine.staged_rows("fivm_local_1", "SELECT id FROM fivm_local_1") is None) is not is_fetched
    for name in ("fivm_local", "fivm_local_1", "fivm_local_2"):
        engine.unstage(name)
    assert engine.staged_rows("fivm_local", "SELECT 1") is None
