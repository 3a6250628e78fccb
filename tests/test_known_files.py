"""Small tables are read by files that were looked up ahead: the same rows, and only what the text means."""

from __future__ import annotations

import re
from concurrent.futures import Future
from typing import TYPE_CHECKING
from unittest.mock import Mock

import pytest

import fivm_dbt.engines.spark.delta_lake.known_files as known_files
import fivm_dbt.engines.spark.local_rows as local_rows
from fivm_dbt.engines.spark.delta_lake.known_files import HELD_READS, KnownFiles, _Known
from fivm_dbt.engines.spark.engine import SparkEngine
from fivm_dbt.refresh.bind import expected_reads
from fivm_dbt.refresh.engine import Expected
from fivm_dbt.refresh.observe import Observed
from fivm_dbt.spark.formats import Commit
from fixtures.models import plan_of, relation

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class _Told(KnownFiles):
    """Knows some tables, each at a version, without a session."""

    def __init__(self) -> None:
        tables = {("raw.r", "7"): False, ("m.state", "3"): True, ("raw.few", "2"): True}
        self._expected = {table: _looked_up(takes) for table, takes in tables.items()}
        self._views = {("raw.r", "7"): "r_7", ("m.state", "3"): "state_3", ("raw.few", "2"): "few_2"}


def _looked_up(takes_conditions: bool) -> Future[_Known | None]:
    found: Future[_Known | None] = Future()
    found.set_result(_Known(Mock(), takes_conditions))
    return found


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (
            "FROM raw.r VERSION AS OF 7 AS a JOIN raw.r VERSION AS OF 6 AS b",
            "FROM r_7 AS a JOIN raw.r VERSION AS OF 6 AS b",
        ),
        ("FROM raw.r VERSION AS OF 77 AS a", None),
        ("FROM raw.r VERSION AS OF 7", None),
        ("FROM raw.r VERSION AS OF 7 WHERE k = 1", None),
        ("FROM other.raw.r VERSION AS OF 7 AS a", None),
        ("FROM m.state VERSION AS OF 3 WHERE v = 'x'", "FROM state_3 AS state WHERE v = 'x'"),
        ("FROM m.state VERSION AS OF 3", "FROM state_3 AS state"),
        ("FROM raw.few VERSION AS OF 2 WHERE k = 1", "FROM few_2 AS few WHERE k = 1"),
        ("SELECT 'raw.r VERSION AS OF 7 AS a', 'it\\'s raw.r VERSION AS OF 7 AS a'", None),
        ('SELECT "raw.r VERSION AS OF 7 AS a"', None),
        ("SELECT `raw.r VERSION AS OF 7 AS a` FROM x", None),
        (
            "/* don't */ FROM raw.r VERSION AS OF 7 AS a -- isn't\n, raw.r VERSION AS OF 7 AS b",
            "/* don't */ FROM r_7 AS a -- isn't\n, r_7 AS b",
        ),
    ],
)
def test_only_what_is_read_is_replaced(sql: str, expected: str | None) -> None:
    assert _Told().placed(sql) == (expected or sql)


def _observed(name: str, version: int, *, moved: bool) -> Observed:
    return Observed(
        name, name, Commit(version, "2024-01-01", "WRITE"), moved, recreated=False, forgotten=False
    )


def test_what_is_expected() -> None:
    """Whatever a delta joins its changes with; nothing where there is only one table."""
    tables = [relation("raw.r", "k int, x int"), relation("raw.s", "k int, y int")]
    joined = plan_of(
        "select r.k, s.y, count(*) as n from raw.r join raw.s on r.k = s.k group by 1, 2", tables
    )
    both = {"raw.r": _observed("raw.r", 7, moved=True), "raw.s": _observed("raw.s", 4, moved=False)}
    assert expected_reads(joined, both, 3) == [Expected("raw.s", 4)]
    both["raw.s"] = _observed("raw.s", 5, moved=True)
    assert {(e.relation, e.version) for e in expected_reads(joined, both, 3)} == {("raw.r", 7), ("raw.s", 5)}
    times = [relation(f"raw.{name}", "k int, at timestamp") for name in "rs"]
    near = plan_of("select r.k, s.at from raw.r join raw.s on r.k = s.k and r.at = s.at", times)
    assert expected_reads(near, both | {"raw.s": _observed("raw.s", 4, moved=False)}, 3) == [
        Expected("raw.s", 4, is_near=True)
    ]
    alone = plan_of("select k, count(*) as n from raw.r group by k", tables)
    assert expected_reads(alone, {"raw.r": both["raw.r"]}, 3) == []
    nested = plan_of(
        "select n, count(*) as m from (select k, count(*) as n from raw.r group by k) group by n", tables
    )
    [state] = expected_reads(nested, {"raw.r": both["raw.r"]}, 3)
    assert state == Expected(nested.state_relation, 3, is_restricted=True)
    levels = " union all ".join(
        f"select k, count(*) as n from raw.r where x > {x} group by k" for x in range(4)
    )
    each = {"fivm_without": ["shared_aggregates"]}
    stacked = plan_of(f"select k, sum(n) as n from ({levels}) group by k", tables, each)
    # What their keys show changes.
    assert [(e.relation, e.reads) for e in expected_reads(stacked, {"raw.r": both["raw.r"]}, 3)] == [
        (stacked.state_relation, 4)
    ]


TABLES = {
    "plain": "CREATE TABLE {t} (k INT, c VARCHAR(4), d DECIMAL(10,2), at TIMESTAMP) USING DELTA",
    "partitioned": "CREATE TABLE {t} (k INT, c VARCHAR(4), d DECIMAL(10,2), at TIMESTAMP) USING DELTA "
    "PARTITIONED BY (k)",
    "renamed": "CREATE TABLE {t} (k INT, c VARCHAR(4), d DECIMAL(10,2), old TIMESTAMP) USING DELTA "
    "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
    "vectors": "CREATE TABLE {t} (k INT, c VARCHAR(4), d DECIMAL(10,2), at TIMESTAMP) USING DELTA "
    "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
}


@pytest.fixture(scope="module")
def filled(spark: SparkSession) -> dict[str, str]:
    """By its kind a table of five rows in several files, of which one row was deleted."""
    spark.sql("CREATE SCHEMA IF NOT EXISTS known")
    return {kind: _filled(spark, kind) for kind in TABLES}


def _filled(spark: SparkSession, kind: str) -> str:
    name = f"known.{kind}"
    spark.sql(TABLES[kind].format(t=name))
    spark.sql(
        f"INSERT INTO {name} VALUES (1, 'a', 1.5, TIMESTAMP '1500-01-01 00:00:00'), (NULL, NULL, NULL, NULL), "
        "(2, 'b', 2.5, TIMESTAMP '2024-03-31 01:30:00'), (2, 'b', 2.5, TIMESTAMP '2024-03-31 01:30:00')"
    )
    if kind == "renamed":
        spark.sql(f"ALTER TABLE {name} RENAME COLUMN old TO at")
    spark.sql(f"INSERT INTO {name} VALUES (3, 'c', 3.5, NULL), (4, 'd', 4.5, NULL)")
    spark.sql(f"DELETE FROM {name} WHERE k = 3")
    return name


@pytest.mark.spark
@pytest.mark.parametrize("way", ["from the checksum", "from the log", "held", "held by executors"])
@pytest.mark.parametrize("kind", TABLES)
def test_the_same_rows(
    kind: str, way: str, filled: dict[str, str], spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = filled[kind]
    engine = SparkEngine.of_session(spark)
    [newest] = engine.commits(name, None)
    if way == "from the log":
        monkeypatch.setattr(known_files, "_told", lambda _: None)
    if way == "held by executors":
        monkeypatch.setattr(local_rows, "MAX_BYTES", 0)
    engine.expect([Expected(name, newest.version, reads=HELD_READS if way.startswith("held") else 1)])
    sql = f"SELECT x.*, x.c = 'a' AS is_a, x.c || '.' AS long FROM {name} VERSION AS OF {newest.version} AS x"
    placed = engine._files.placed(sql)
    assert re.fullmatch(r"SELECT .* FROM fivm_files_\d+ AS x", placed)
    rows = engine.query(placed)
    assert len(rows) == 5
    assert sorted(rows, key=str) == sorted(engine.query(sql), key=str)
    assert engine.describe(placed) == engine.describe(sql)
    twice = f"SELECT x.k, y.c FROM {name} VERSION AS OF {newest.version} AS x JOIN {name} VERSION AS OF "
    twice += f"{newest.version} AS y ON x.k = y.k + 1"
    assert sorted(engine.query(engine._files.placed(twice))) == sorted(engine.query(twice))
    engine.expect(())
    assert engine._files.placed(sql) == sql


@pytest.mark.spark
def test_what_is_left_to_delta(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another version than the newest, a table that is large or no Delta table, and one that is not there."""
    spark.sql("CREATE SCHEMA IF NOT EXISTS known")
    spark.sql("CREATE TABLE known.left USING DELTA AS SELECT 1 AS k")
    spark.sql("INSERT INTO known.left SELECT 2 AS k")
    spark.sql("CREATE TABLE known.parquet USING PARQUET AS SELECT 1 AS k")
    engine = SparkEngine.of_session(spark)
    spark.sql("CREATE TABLE known.padded (k CHAR(3)) USING DELTA")
    engine.expect([Expected(f"known.{name}", 0) for name in ("left", "parquet", "gone", "padded")])
    for table in ("left", "parquet", "gone", "padded"):
        sql = f"SELECT x.k FROM known.{table} VERSION AS OF 0 AS x"
        assert engine._files.placed(sql) == sql
    monkeypatch.setattr(known_files, "MAX_FILES", 1)
    engine.expect([Expected("known.left", 1)])
    sql = "SELECT x.k FROM known.left VERSION AS OF 1 AS x"
    assert engine._files.placed(sql) == sql


@pytest.mark.spark
def test_a_table_that_is_held_is_read_by_any_condition(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of files, more than a few, Delta may know that the condition skips some; and of large tables nothing is held."""
    spark.sql("CREATE SCHEMA IF NOT EXISTS known")
    spark.sql("CREATE TABLE known.held USING DELTA AS SELECT /*+ REPARTITION(9) */ id AS k FROM range(99)")
    engine = SparkEngine.of_session(spark)
    sql = "SELECT k FROM known.held VERSION AS OF 0 WHERE k = 1"

    def is_placed(reads: int) -> bool:
        engine.expect([Expected("known.held", 0, reads=reads)])
        placed = engine._files.placed(sql)
        assert list(engine.query(placed)) == [(1,)]
        return placed != sql

    assert [is_placed(reads) for reads in (1, HELD_READS - 1, HELD_READS)] == [False, False, True]
    monkeypatch.setattr(known_files, "HELD_BYTES", 1)
    assert not is_placed(HELD_READS)
    engine.expect(())


@pytest.mark.spark
@pytest.mark.parametrize("reads", [1, HELD_READS])
def test_reads_are_counted_by_the_tables_name(reads: int, spark: SparkSession) -> None:
    """Once where the table is held, however often it is read. Each has a tag, for they may run in one second."""
    tag = f"counted {reads}"
    spark.sql("CREATE SCHEMA IF NOT EXISTS known")
    spark.sql("CREATE OR REPLACE TABLE known.counted USING DELTA AS SELECT id AS k FROM range(7)")
    engine = SparkEngine.of_session(spark)
    [newest] = engine.commits("known.counted", None)
    engine.start_measuring(tag)
    engine.expect([Expected("known.counted", newest.version, reads=reads)])
    table = f"known.counted VERSION AS OF {newest.version}"
    branches = " UNION ALL ".join(f"SELECT MAX(x.k) AS k FROM {table} AS x" for _ in range(reads))
    engine.stage("fivm_counted", branches)
    assert engine.measured(tag).scans == (("known.counted", 7),)
    engine.unstage("fivm_counted")
    engine.expect(())
