"""A commit to a table of states has a number, which one commit of the table gets: on Spark, by Delta's transactions."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from pyspark.sql import SparkSession

from fivm_dbt.engines.duckdb.engine import DuckDbEngine
from fivm_dbt.engines.spark.delta_lake.log import DeltaLogs, OpenedTable
from fivm_dbt.engines.spark.delta_lake.write import write
from fivm_dbt.engines.spark.engine import SparkEngine, on_session
from fivm_dbt.plan.model.head import Note, Written
from fivm_dbt.refresh.engine import Engine
from fivm_dbt.spark.formats import FORMAT
from fixtures.runs import by_run

INSERT = "INSERT INTO {t} SELECT 2 AS k, 20 AS x"
REPLACE = "INSERT INTO {t} REPLACE WHERE k = 1 SELECT 1 AS k, 11 AS x"
MERGE = (
    "MERGE INTO {t} AS t USING (SELECT 1 AS k, 12 AS x) AS s ON t.k = s.k "
    "WHEN MATCHED THEN UPDATE SET x = s.x WHEN NOT MATCHED THEN INSERT (k, x) VALUES (s.k, s.x)"
)
REBUILD = "CREATE OR REPLACE TABLE {t} USING DELTA AS SELECT 1 AS k, 13 AS x"
WRITES = {"append": INSERT, "replace": REPLACE, "merge": MERGE, "rebuild": REBUILD}


def _created(engine: Engine, name: str) -> str:
    engine.run(f"CREATE TABLE {name} USING DELTA AS SELECT 1 AS k, 10 AS x")
    return name


def _one_of_each_number(engine: Engine, table: str, late_writes: int) -> None:
    """Each way of writing, and after it ``late_writes`` with numbers that are taken: the next ways, in turn."""
    ways = list(WRITES.values())
    for number, (kind, text) in enumerate(WRITES.items(), start=5):
        engine.commit(text.format(t=table), Note(table, number, kind))
        made = engine.commits(table, None)
        assert [c.note for c in made] == [kind]
        for late in range(late_writes):
            other = ways[(number + late) % len(ways)]
            engine.commit(other.format(t=table), Note(table, number - late, "late"))
        assert engine.commits(table, None) == made


def test_on_duckdb() -> None:
    engine = DuckDbEngine()
    _one_of_each_number(engine, _created(engine, "numbers.t"), late_writes=4)


@pytest.mark.spark
@pytest.mark.parametrize("kind", by_run(["in this process"], long=["over a network"]))
def test_on_spark(kind: str, spark: SparkSession) -> None:
    spark.sql("CREATE SCHEMA IF NOT EXISTS numbers")
    own = SparkEngine.of_session(spark)
    engine = own if kind == "in this process" else SparkEngine(on_session(spark.newSession()))
    table = _created(engine, f"numbers.{kind.replace(' ', '_')}")
    _one_of_each_number(engine, table, late_writes=1)
    [newest] = engine.commits(table, None)
    engine.commit(
        INSERT.format(t=table), Note(table, newest.version + 100, text := 'a "note" with `$`, \\u0024{x};\n')
    )
    assert [c.note for c in engine.commits(table, None)] == [text]
    engine.run(f"RESTORE TABLE {table} TO VERSION AS OF 1")
    engine.commit(INSERT.format(t=table), Note(table, 9, "from before it was restored"))
    assert [c.operation for c in engine.commits(table, None)] == ["RESTORE"]
    engine.run(INSERT.format(t=table))
    assert [c.note for c in engine.commits(table, None)] == [None], "settings are gone again"


@pytest.mark.spark
def test_of_two_at_once_one_commits(spark: SparkSession) -> None:
    """Appends alone too, which Delta would let pass side by side."""
    spark.sql("CREATE SCHEMA IF NOT EXISTS numbers")
    engines = [SparkEngine.of_session(spark), SparkEngine.of_session(spark)]
    table = _created(engines[0], "numbers.raced")

    def attempt(engine: SparkEngine, write: str, note: Note) -> Callable[[], None]:
        def run() -> None:
            try:
                engine.commit(write.format(t=table), note)
            except Exception as error:
                if not FORMAT.is_conflict(error):
                    raise

        return run

    with ThreadPoolExecutor(2) as pool:
        for number, pair in enumerate(
            [(INSERT, INSERT)] * 3 + [(INSERT, MERGE), (INSERT, REPLACE), (INSERT, REBUILD)], start=1
        ):
            before = engines[0].commits(table, None)[0].version
            runs = [
                attempt(engine, write, Note(table, number, f"{number} {side}"))
                for side, (engine, write) in enumerate(zip(engines, pair, strict=True))
            ]
            for done in [pool.submit(run) for run in runs]:
                done.result()
            since = [c for c in engines[0].commits(table, before) if c.version > before]
            assert len(since) == 1 and (since[0].note or "").startswith(f"{number} ")


@pytest.fixture
def own(spark: SparkSession) -> SparkEngine:
    spark.sql("CREATE SCHEMA IF NOT EXISTS numbers")
    return SparkEngine.of_session(spark)


def _adding(engine: Engine, table: str, number: int, query: str, text: str = "added") -> None:
    [newest] = engine.commits(table, None)
    engine.commit(f"INSERT INTO {table} {query}", Note(table, number, text, Written(query, newest.version)))


@pytest.mark.spark
def test_rows_are_added_without_a_statement(own: SparkEngine) -> None:
    """As by the statement: the same rows, types, note and history, and later ones go by its number."""
    own.run("CREATE TABLE numbers.added (k BIGINT, x DECIMAL(10,2), t STRING) USING DELTA")
    rows = "SELECT 1 AS k, 1.5BD AS x, 'a' AS t UNION ALL SELECT NULL, NULL, 'b'"
    assert own._session is not None
    assert write(own._session, own._logs, own._files, Note("numbers.added", 5, "`$`"), Written(rows, 0))
    [newest] = own.commits("numbers.added", None)
    assert (newest.version, newest.operation, newest.note) == (1, "WRITE", "`$`")
    assert (newest.written, newest.appended) == (2, 2)
    assert newest.growth
    _adding(own, "numbers.added", 6, "SELECT '2' AS k, '2.50' AS x, 3 AS t")
    shown = list(own.query("SELECT CAST(k AS STRING), CAST(x AS STRING), t FROM numbers.added ORDER BY t"))
    assert shown == [("2", "2.50", "3"), ("1", "1.50", "a"), (None, None, "b")]
    own.commit("INSERT INTO numbers.added SELECT 9, 9, 'late'", Note("numbers.added", 5, "late"))
    assert [c.note for c in own.commits("numbers.added", None)] == ["added"]


@pytest.mark.spark
@pytest.mark.parametrize(
    "other",
    [
        INSERT,
        REPLACE,
        "DELETE FROM {t}",
        "RESTORE TABLE {t} TO VERSION AS OF 0",
        "ALTER TABLE {t} SET TBLPROPERTIES ('a' = 'b')",
    ],
    ids=lambda sql: sql.split()[0],
)
def test_nothing_is_added_behind_another_commit(
    other: str, own: SparkEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"numbers.behind_{other.split()[0].lower()}{len(other)}"
    table = _created(own, name)
    own.run(f"INSERT INTO {table} SELECT 5 AS k, 50 AS x")
    opened = DeltaLogs.opened

    def other_first(logs: DeltaLogs, relation: str) -> OpenedTable | None:
        found = opened(logs, relation)
        own.run(other.format(t=table))
        return found

    monkeypatch.setattr(DeltaLogs, "opened", other_first)
    with pytest.raises(Exception) as raised:
        _adding(own, table, 5, "SELECT 7 AS k, 70 AS x")
    assert FORMAT.is_conflict(raised.value)
    assert not own.query(f"SELECT * FROM {table} WHERE k = 7")


@pytest.mark.spark
def test_a_statement_adds_to_another_version(own: SparkEngine) -> None:
    """Somebody has compacted the table since: the number says that no refresh has come in between."""
    table = _created(own, "numbers.moved")
    own.run(f"OPTIMIZE {table}")
    own.run(f"ALTER TABLE {table} SET TBLPROPERTIES ('a' = 'b')")
    query = "SELECT 7 AS k, 70 AS x"
    own.commit(f"INSERT INTO {table} {query}", Note(table, 5, "added", Written(query, 0)))
    assert [c.note for c in own.commits(table, None)] == ["added"]
    own.commit(f"INSERT INTO {table} {query}", Note(table, 5, "late", Written(query, 0)))
    assert [c.note for c in own.commits(table, None)] == ["added"], "and that one has, to whoever is late"
