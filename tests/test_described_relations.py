"""What the objects of Spark's catalog and of Delta's log say about a relation is what DESCRIBE says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from fivm_dbt.engines.spark.delta_lake.log import DeltaLogs
from fivm_dbt.engines.spark.engine import SparkEngine, on_session
from fivm_dbt.engines.spark.introspect import Described, describe_relation

pytestmark = pytest.mark.spark

WIDE = ", ".join(f"F{i}: INT" for i in range(40))
MAPPED = "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
TABLES = (
    "CREATE TABLE told.numbers (b BOOLEAN, i8 TINYINT, i16 SMALLINT, i INT, i64 BIGINT, f FLOAT, d DOUBLE, "
    "small DECIMAL(5,2), large DECIMAL(38,18)) USING DELTA",
    "CREATE TABLE told.others (s STRING, c CHAR(3), v VARCHAR(9), x BINARY, d DATE, "
    "t TIMESTAMP, n TIMESTAMP_NTZ, any VARIANT) USING DELTA",
    "CREATE TABLE told.nested (s STRUCT<Ab: INT, c: CHAR(4)>, o STRUCT<`odd, name`: INT>, a ARRAY<VARCHAR(3)>, "
    f"m MAP<STRING, STRUCT<x: DECIMAL(9,3)>>, w STRUCT<{WIDE}>) USING DELTA {MAPPED}",
    "CREATE TABLE told.`select` (`A b` INT, `c,d` STRING, `E.f` INT, `#` INT, `x``y` INT, Mixed INT) USING DELTA "
    f"{MAPPED}",
    "CREATE TABLE told.parted (v INT, p INT, Q STRING) USING DELTA PARTITIONED BY (Q, p)",
    "CREATE TABLE told.clustered (v INT, p INT) USING DELTA CLUSTER BY (p)",
    "CREATE TABLE told.made (k INT NOT NULL COMMENT 'the Key', g INT GENERATED ALWAYS AS (k + 1), "
    "e INT DEFAULT 7, i BIGINT GENERATED ALWAYS AS IDENTITY) USING DELTA COMMENT 'a table' "
    "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported', 'fivm.model' = 'a.b')",
    "CREATE TABLE told.fed (k INT, Old INT) USING DELTA TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')",
)
VIEWS = (
    "CREATE VIEW told.plain AS SELECT * FROM told.fed",
    "CREATE VIEW told.typed AS SELECT * FROM told.others",
    "CREATE VIEW told.deep AS SELECT * FROM told.nested",
    "CREATE VIEW told.collated AS SELECT s COLLATE UTF8_LCASE AS u, array(s COLLATE UNICODE) AS a FROM told.others",
    "CREATE VIEW told.bound WITH SCHEMA BINDING AS SELECT k FROM told.fed",
    "CREATE VIEW told.evolving WITH SCHEMA EVOLUTION AS SELECT * FROM told.fed",
    "CREATE VIEW told.shown (`A b` COMMENT 'the key', n) COMMENT 'a view' TBLPROPERTIES ('fivm.root' = "
    "'told.shown__fivm_state', 'fivm.tail' = 'true') AS SELECT k, Old\n  FROM told.fed WHERE 'a  b' <> 'c' ",
    "CREATE VIEW told.joined TBLPROPERTIES ('fivm.factors' = 'true') AS SELECT 1 AS one",
    "CREATE VIEW told.parts TBLPROPERTIES ('fivm.root' = 'told.parts__fivm_state', 'fivm.part_length' = '1 hour') "
    "AS SELECT 1 AS one",
)
NAMES = (
    *("numbers", "others", "nested", "`select`", "parted", "made", "fed"),
    *("plain", "typed", "deep", "collated", "bound", "evolving", "shown", "joined", "parts"),
)


@pytest.fixture(scope="module")
def told(spark: SparkSession) -> Iterator[DeltaLogs]:
    spark.sql("CREATE SCHEMA told")
    for statement in (*TABLES, *VIEWS):
        spark.sql(statement)
    yield DeltaLogs.of(spark)
    spark.sql("DROP SCHEMA told CASCADE")


def shown(spark: SparkSession, relation: str) -> Described | None:
    return describe_relation(on_session(spark), relation)


@pytest.mark.parametrize("name", NAMES)
def test_as_the_statement_says(name: str, told: DeltaLogs, spark: SparkSession) -> None:
    described = told.described(f"told.{name}")
    assert described is not None
    assert described == shown(spark, f"told.{name}")
    assert described == told.described(f"TOLD.{name.upper()}")


def test_columns_that_a_table_is_clustered_by(told: DeltaLogs, spark: SparkSession) -> None:
    """DESCRIBE lists them among the properties, and they are none."""
    described, by_statement = told.described("told.clustered"), shown(spark, "told.clustered")
    assert described is not None and by_statement is not None
    others = tuple(item for item in by_statement.properties if item[0] != "clusteringColumns")
    assert described == replace(by_statement, properties=others)


def test_what_changes_is_seen(told: DeltaLogs, spark: SparkSession) -> None:
    changes = (
        "ALTER TABLE told.fed ADD COLUMNS (added STRING COMMENT 'new')",
        "ALTER TABLE told.fed SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
        "ALTER TABLE told.fed RENAME COLUMN Old TO newer",
        "COMMENT ON TABLE told.fed IS 'fed'",
        "ALTER VIEW told.plain SET TBLPROPERTIES ('fivm.root' = 'told.fed')",
        "DROP TABLE told.fed",
        "CREATE TABLE told.fed (k STRING) USING DELTA",
        "CREATE OR REPLACE VIEW told.plain AS SELECT k AS other FROM told.fed",
    )
    for change in changes:
        spark.sql(change)
        for name in ("told.fed", "told.plain", "told.evolving"):
            assert SparkEngine(on_session(spark), spark).described(name) == shown(spark, name), change


def test_what_looks_like_a_secret_is_told(told: DeltaLogs, spark: SparkSession) -> None:
    """Spark redacts each value with "url" in it, and hourly has it. The statement's way guesses from the text."""
    root = "told.hourly__fivm_state"
    spark.sql(f"CREATE TABLE {root} USING DELTA AS SELECT 1 AS n")
    spark.sql(
        f"CREATE VIEW told.hourly TBLPROPERTIES ('fivm.root' = '{root}', 'a.list' = 'x, y]') AS SELECT n FROM {root}"
    )
    described = told.described("told.hourly")
    assert described is not None
    assert dict(described.properties) == {"fivm.root": root, "a.list": "x, y]"}
    by_statement = shown(spark, "told.hourly")
    assert by_statement is not None
    assert described.presentation == by_statement.presentation


def test_what_the_statement_has_to_tell(told: DeltaLogs, spark: SparkSession) -> None:
    spark.sql("CREATE TABLE told.parquet USING PARQUET AS SELECT 1 AS a")
    spark.sql("CREATE TEMPORARY VIEW passing AS SELECT 1 AS a")
    spark.sql("CREATE GLOBAL TEMPORARY VIEW passing AS SELECT 1 AS a")
    others = (
        *("told.parquet", "passing", "global_temp.passing", "told.none", "nowhere.none"),
        *("spark_catalog.told.numbers", "no name"),
    )
    for other in others:
        assert told.described(other) is None
    engine = SparkEngine(on_session(spark), spark)
    for other in others[:-1]:
        assert engine.described(other) == shown(spark, other)
    for missing in ("told.none", "nowhere.none"):
        assert engine.described(missing) is None
    spark.sql("DROP VIEW passing")
    spark.sql("DROP VIEW global_temp.passing")


def test_columns_of_queries(told: DeltaLogs, spark: SparkSession) -> None:
    objects, statements = SparkEngine(on_session(spark), spark), SparkEngine(on_session(spark))
    queries = [f"SELECT * FROM told.{name}" for name in ("numbers", "others", "typed", "collated", "joined")]
    queries += [
        "SELECT 1, 1 + 1 AS `a b`, NULL AS n, make_interval(1) AS i, DATE'2024-01-01' - DATE'2024-01-02' AS d",
        "WITH t AS (SELECT k AS Mixed FROM told.made) SELECT Mixed, count(*) FROM t GROUP BY 1",
        "SELECT c AS x, array(v) AS y, named_struct('A', c) AS z FROM told.others",
    ]
    for query in queries:
        assert objects.describe(query) == statements.describe(query)
    [wide] = objects.describe("SELECT w FROM told.nested")
    assert wide.type.text.count("int") == 40
    for wrong in (
        "SELECT nothing",
        "SELECT * FROM told.none",
        "SELECT 1 +",
        "SELECT sum(k), k FROM told.made",
    ):
        with pytest.raises(Exception) as one:
            objects.describe(wrong)
        with pytest.raises(Exception) as other:
            statements.describe(wrong)
        texts = [re.sub(r"#\d+", "", str(error)) for error in (one.value, other.value)]
        assert type(one.value) is type(other.value)
        assert texts[0] == texts[1]
