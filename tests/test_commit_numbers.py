"""A commit to a table of states has a number, which one commit of the table gets: on Spark, by Delta's transactions."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from pyspark.sql import SparkSession

from fivm_dbt.engines.duckdb import DuckDbEngine
from fivm_dbt.engines.spark import SparkEngine, on_session
from fivm_dbt.plan.head import Note
from fivm_dbt.refresh.decide import is_conflict
from fivm_dbt.refresh.engine import Engine

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


def _one_of_each_number(engine: Engine, table: str) -> None:
    for number, (kind, write) in enumerate(WRITES.items(), start=5):
        engine.commit(write.format(t=table), Note(table, number, kind))
        made = engine.commits(table, None)
        assert [c.note for c in made] == [kind]
        for late, other in enumerate(WRITES.values(), start=number - 3):
            engine.commit(other.format(t=table), Note(table, late, "late"))
        assert engine.commits(table, None) == made


def test_on_duckdb() -> None:
    engine = DuckDbEngine()
    _one_of_each_number(engine, _created(engine, "numbers.t"))


@pytest.mark.spark
@pytest.mark.parametrize("kind", ["in this process", "over a network"])
def test_on_spark(kind: str, spark: SparkSession) -> None:
    spark.sql("CREATE SCHEMA IF NOT EXISTS numbers")
    own = SparkEngine.of_session(spark)
    engine = own if kind == "in this process" else SparkEngine(on_session(spark.newSession()))
    table = _created(engine, f"numbers.{kind.replace(' ', '_')}")
    _one_of_each_number(engine, table)
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
                if not is_conflict(error):
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
