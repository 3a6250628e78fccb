"""The Spark engine on local Spark + Delta, statement by statement."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from fivm_dbt.engines.spark.delta_lake import sample
from fivm_dbt.engines.spark.engine import SparkEngine, on_session
from fivm_dbt.engines.spark.introspect import describe_relation
from fivm_dbt.refresh.engine import Metrics
from fivm_dbt.spark.formats import ChangeFeedUnavailable, MissingRelation, NotVersioned, VersionUnavailable
from fivm_dbt.spark.sizes import of_pieces, pieces_query, sample_query, sampled

pytestmark = pytest.mark.spark

FEED = "USING DELTA TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"


@pytest.fixture(scope="module")
def engine(spark: SparkSession) -> SparkEngine:
    """With a table of four versions, whose change feed was switched on in the third, and what is no such table."""
    engine = SparkEngine.of_session(spark)
    for statement in (
        "CREATE SCHEMA engine",
        "CREATE TABLE engine.t (k INT, v DECIMAL(9,2)) USING DELTA",
        "INSERT INTO engine.t VALUES (1, 1.5), (2, 2.5)",
        "ALTER TABLE engine.t SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')",
        "INSERT INTO engine.t VALUES (3, 3.5)",
        f"CREATE TABLE engine.fed {FEED} AS SELECT * FROM engine.t",
        "CREATE TABLE engine.parquet USING PARQUET AS SELECT 1 AS a",
        "CREATE VIEW engine.seen AS SELECT k FROM engine.t",
    ):
        engine.run(statement)
    return engine


def test_commits(engine: SparkEngine) -> None:
    [newest] = engine.commits("engine.t", None)
    assert (newest.version, newest.operation) == (3, "WRITE")
    assert newest.timestamp.endswith("+00:00")
    assert [c.version for c in engine.commits("engine.t", 1)] == [3, 2, 1]
    assert engine.commits("engine.t", 3) == engine.commits("engine.t", None)
    assert [c.version for c in engine.commits("engine.t", 7)] == [3]


def test_growth_is_what_the_commit_added(engine: SparkEngine) -> None:
    engine.run(
        f"CREATE TABLE engine.grown {FEED} PARTITIONED BY (p) AS SELECT id, id % 3 AS p FROM range(90)"
    )
    for statement in (
        "MERGE INTO engine.grown AS t USING (SELECT 4 AS id, 9 AS p) AS s ON t.id = s.id "
        "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *",
        "MERGE INTO engine.grown AS t USING (SELECT -1 AS id, 9 AS p) AS s ON t.id = s.id "
        "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *",
        "OPTIMIZE engine.grown",
        "DELETE FROM engine.grown WHERE id = 5",
        "INSERT INTO engine.grown REPLACE WHERE p IN (1, 9) SELECT id, 1 AS p FROM range(7)",
        "INSERT INTO engine.grown REPLACE WHERE (p IN (1) OR p IS NULL) SELECT 3L AS id, CAST(NULL AS BIGINT) AS p",
        "INSERT INTO engine.grown VALUES (99, 1)",
        "INSERT OVERWRITE engine.grown VALUES (99, 1), (100, 1)",
    ):
        before = engine.size("engine.grown")
        engine.run(statement)
        after = engine.size("engine.grown")
        assert before is not None and after is not None
        [commit] = engine.commits("engine.grown", None)
        assert commit.growth == after - before, statement
    engine.run("ALTER TABLE engine.grown ADD COLUMNS (q INT)")
    assert engine.commits("engine.grown", None)[0].growth is None


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO engine.still SELECT id FROM range(0)",
        "INSERT INTO engine.still REPLACE WHERE id = 9 SELECT id FROM range(3) WHERE id > 5",
        "DELETE FROM engine.still WHERE id = 9",
        "MERGE INTO engine.still AS t USING (SELECT 9 AS id) AS s ON t.id = s.id WHEN MATCHED THEN DELETE",
    ],
)
def test_what_changes_nothing_is_no_commit(engine: SparkEngine, statement: str) -> None:
    """Who counts rows by the newest commit must not take another one for its own."""
    engine.run(f"CREATE OR REPLACE TABLE engine.still {FEED} AS SELECT id FROM range(3)")
    before = engine.commits("engine.still", None)
    engine.run(statement)
    assert engine.commits("engine.still", None) == before


def test_commits_of_what_has_none(engine: SparkEngine) -> None:
    for missing in ("engine.none", "nowhere.none"):
        with pytest.raises(MissingRelation):
            engine.commits(missing, None)
    for other in ("engine.parquet", "engine.seen"):
        with pytest.raises(NotVersioned):
            engine.commits(other, None)


def test_facts_about_tables(engine: SparkEngine) -> None:
    assert engine.has_change_feed("engine.t")
    engine.run("CREATE OR REPLACE TABLE engine.silent (a INT) USING DELTA")
    assert not engine.has_change_feed("engine.silent")
    assert (engine.size("engine.t") or 0) > 500
    assert [str(c.type) for c in engine.describe("SELECT k, sum(v) AS s FROM engine.t GROUP BY k")] == [
        "int",
        "decimal(19,2)",
    ]


def test_existence(engine: SparkEngine) -> None:
    engine.run("CREATE OR REPLACE TEMPORARY VIEW passing AS SELECT 1 AS a")
    assert engine.exists("engine.T")
    assert engine.exists("engine.seen")
    assert not engine.exists("engine.passing")
    assert not engine.exists("engine.none")
    assert not engine.exists("nowhere.none")


def test_a_missing_table_in_a_query_is_told_apart(engine: SparkEngine) -> None:
    with pytest.raises(MissingRelation):
        engine.query("SELECT * FROM engine.none")


def test_staged_rows_stay_as_they_were(engine: SparkEngine) -> None:
    engine.stage("fivm_staged", "SELECT k FROM engine.fed VERSION AS OF 0")
    engine.stage("fivm_staged", "SELECT k, v FROM engine.fed VERSION AS OF 0 WHERE k < 3")
    engine.run("INSERT INTO engine.fed VALUES (0, 0)")
    assert len(engine.query("SELECT * FROM fivm_staged")) == 2
    engine.unstage("fivm_staged")
    engine.unstage("fivm_staged")
    with pytest.raises(MissingRelation):
        engine.query("SELECT * FROM fivm_staged")


def test_why_something_cannot_be_staged(engine: SparkEngine, spark: SparkSession) -> None:
    with pytest.raises(ChangeFeedUnavailable):
        engine.stage("fivm_no", "SELECT k FROM table_changes('engine.t', 1, 3)")
    with pytest.raises(VersionUnavailable):
        engine.stage("fivm_no", "SELECT k FROM engine.t VERSION AS OF 99")
    engine.run("CREATE TABLE engine.cleaned USING DELTA AS SELECT 1 AS k")
    engine.run("INSERT OVERWRITE engine.cleaned SELECT 2 AS k")
    old = spark.sql("SELECT input_file_name() AS f FROM engine.cleaned VERSION AS OF 0").collect()[0].f
    Path(old.removeprefix("file:")).unlink()
    with pytest.raises(VersionUnavailable) as caught:
        engine.stage("fivm_no", "SELECT k FROM engine.cleaned VERSION AS OF 0")
    # The reason of a rebuild: what is gone, and not what Python was calling.
    assert str(caught.value).startswith("[") and old.rpartition("/")[2] in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_metrics_name_the_tables_and_count_each_row_once(engine: SparkEngine) -> None:
    """A cached change is read by several statements, from its table once."""
    engine.start_measuring("metrics 1")
    engine.stage("fivm_measured", "SELECT k, v FROM engine.t VERSION AS OF 1")
    engine.query("SELECT count(*) FROM fivm_measured JOIN engine.t VERSION AS OF 3 AS t USING (k)")
    engine.run(
        "MERGE INTO engine.fed AS target USING fivm_measured AS delta ON target.k <=> delta.k "
        "WHEN MATCHED THEN UPDATE SET v = target.v + delta.v"
    )
    measured = engine.measured("metrics 1")
    rows = dict(measured.scans)
    assert set(rows) == {"engine.t", "engine.fed"}
    assert rows["engine.t"] == 2 + 3
    assert rows["engine.fed"] > 0
    assert measured.rows_read == sum(rows.values())
    assert (measured.bytes_read or 0) > 0
    engine.unstage("fivm_measured")
    engine.query("SELECT count(k) FROM engine.t VERSION AS OF 3")
    engine.start_measuring("metrics 2")
    assert engine.measured("metrics 2") == Metrics(0, 0, (), 0)


def test_threads_are_measured_apart(spark: SparkSession, engine: SparkEngine) -> None:
    def read(number: int) -> Metrics:
        mine = SparkEngine.of_session(spark)
        mine.start_measuring(f"thread {number}")
        for _ in range(number):
            mine.query("SELECT sum(v) FROM engine.t VERSION AS OF 3")
        return mine.measured(f"thread {number}")

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(read, range(1, 5)))
    assert [m.rows_read for m in found] == [3, 6, 9, 12]


def test_without_a_session_nothing_is_known(spark: SparkSession, engine: SparkEngine) -> None:
    blind = SparkEngine(on_session(spark))
    blind.start_measuring("blind")
    blind.query("SELECT sum(v) FROM engine.t")
    assert blind.measured("blind") == Metrics()


def test_types_that_spark_abbreviates(engine: SparkEngine, spark: SparkSession) -> None:
    fields = ", ".join(f"'f{i}', {i}" for i in range(40))
    engine.run(
        f"CREATE OR REPLACE TABLE engine.wide USING DELTA AS SELECT 1 AS k, named_struct({fields}) AS s"
    )
    described = describe_relation(on_session(spark), "engine.wide")
    assert described is not None
    assert described.columns[1].type.text.count("int") == 40
    assert describe_relation(on_session(spark), "engine.none") is None


def test_rows_of_a_parquet_file(spark: SparkSession, tmp_path: Path) -> None:
    """The bulk path of the workbench: types are the table's, whatever the file's are."""
    from fivm_dbt.catalog import Column
    from fivm_dbt.testing.spark_workbench import SparkWorkbench
    from fivm_dbt.testing.workbench import TableSpec

    file = tmp_path / "rows.parquet"
    spark.sql("SELECT 'y' AS s, CAST(3 AS BIGINT) AS a, 7.5 AS b").write.parquet(str(file))
    columns = (Column.of("a", "int"), Column.of("b", "decimal(10,2)"), Column.of("s", "string"))
    workbench = SparkWorkbench(spark, "fivm_load")
    try:
        workbench.load(TableSpec("r", columns), file)
        assert workbench.engine.describe("SELECT * FROM r") == columns
        assert [tuple(map(str, row)) for row in workbench.engine.query("SELECT * FROM r")] == [
            ("3", "7.50", "y")
        ]
        assert workbench.engine.has_change_feed("r")
    finally:
        workbench.close()


def test_pieces_of_a_table_tell_rows_and_values(engine: SparkEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a key, of days, of orders that lie on two days, of customers who may be anywhere, of few that may be NULL."""
    monkeypatch.setattr(sample, "PIECE_BYTES", 2**16)
    engine.run(
        "CREATE TABLE engine.pieces USING DELTA PARTITIONED BY (part) AS SELECT id, id DIV 2500 AS day, "
        "id DIV 2 + IF(id % 2 = 1, 1250, 0) AS order, pmod(xxhash64(id), 30000) AS customer, "
        "IF(id % 9 = 0, NULL, CAST(id % 5 AS STRING)) AS few, id DIV 25000 AS part FROM range(1000000)"
    )
    columns = ("id", "day", "order", "customer", "few")
    times = engine.sample("fivm_pieces", "engine.pieces")
    assert times is not None and times > 4
    (found,) = engine.query(pieces_query("fivm_pieces", columns).sql("spark"))
    engine.unstage("fivm_pieces")
    rows, *values = of_pieces([int(str(n)) for n in found], times)
    expected = [1_000_000, 1_000_000, 400, 501_250, 30_000, 5]
    assert all(0.8 * e <= n <= 1.2 * e for n, e in zip((rows, *values), expected, strict=True)), values
    assert engine.sample("fivm_pieces", "engine.t") is None
    assert engine.sample("fivm_pieces", "engine.parquet") is None


def test_a_sample_tells_rows_and_values(engine: SparkEngine) -> None:
    """Of a key, of a column with some thousand values, some of them rare, and of one with few, which may be NULL."""
    engine.run(
        "CREATE TABLE engine.sampled USING DELTA AS SELECT id, CAST(id % 3000 AS STRING) AS some, "
        "IF(id % 9 = 0, NULL, DATE'2024-01-01' + CAST(id % 5 AS INT)) AS few FROM range(1000000)"
    )
    (found,) = engine.query(sample_query("engine.sampled", ["id", "some", "few"]).sql("spark"))
    rows, *values = sampled([int(str(n)) for n in found])
    expected = [1_000_000, 1_000_000, 3_000, 5]
    assert all(0.85 * e <= n <= 1.15 * e for n, e in zip((rows, *values), expected, strict=True))
