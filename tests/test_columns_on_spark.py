"""Columns that are others under the same name: a change feed does not tell, and so two versions are compared."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from spark_bench import SparkBench

pytestmark = pytest.mark.spark

SUMS = "SELECT '{name}' AS name, g, count(*) AS n, sum({x}) AS x FROM columns.{name} GROUP BY g"
FLAT = "g INT, x INT, y INT"
NESTED = "g INT, s STRUCT<x: INT, y: INT, z: INT>"
CASES = {
    # name: (column mapping, columns, what is done to them)
    "readded_by_id": ("id", FLAT, "DROP COLUMN x; ADD COLUMN x INT; INSERT INTO t (g, x) VALUES (2, 1)"),
    "exchanged": ("name", FLAT, "RENAME COLUMN x TO z; RENAME COLUMN y TO x; RENAME COLUMN z TO y"),
    "readded_inside": (
        "name",
        NESTED,
        "DROP COLUMN s.x; ADD COLUMN s.x INT FIRST; UPDATE t SET s.y = 4, s.x = 3 WHERE g = 2",
    ),
}


def _statements(name: str, change: str) -> str:
    """``ADD COLUMN ...`` and what does not begin with a table as statements on the table ``name``."""
    words = (part.strip() for part in change.split(";"))
    altered = (w if w.startswith(("UPDATE", "INSERT")) else f"ALTER TABLE t {w}" for w in words)
    return "; ".join(altered).replace(" t ", f" {name} ")


@pytest.mark.long
def test_another_column_of_the_same_name(spark: SparkSession) -> None:
    created, sums = "", []
    for name, (mode, columns, _) in CASES.items():
        mapped = f"('delta.enableChangeDataFeed' = 'true', 'delta.columnMapping.mode' = '{mode}')"
        created += f"CREATE TABLE {name} ({columns}) USING DELTA TBLPROPERTIES {mapped};"
        rows = ("1, 10, 100", "1, 20, 200", "2, 5, 50")
        if columns == NESTED:
            rows = tuple(
                row.replace("1, ", "1, struct(").replace("2, 5", "2, struct(5") + ", 0)" for row in rows
            )
        created += f"INSERT INTO {name} VALUES {', '.join(f'({row})' for row in rows)};"
        sums.append(SUMS.format(name=name, x="s.x" if columns == NESTED else "x"))
    bench = SparkBench.create(spark, "columns", created, " UNION ALL ".join(sums))
    assert bench.refresh().action == "built"
    before = bench.check()
    for name, (_, _, change) in CASES.items():
        bench.run(_statements(name, change))
    report = bench.refresh()
    after = bench.check()
    assert report.action == "refreshed", report.reason
    assert {c.relation: c.capture for c in report.inputs} == {
        f"columns.{name}": "version difference" for name in CASES
    }
    assert {row[0] for row in set(after) ^ set(before)} == set(CASES)
    # From here on the columns are the same ones, and the feed tells.
    bench.run("DELETE FROM readded_by_id WHERE g = 1; UPDATE readded_inside SET g = 1 WHERE g = 2")
    report = bench.refresh()
    bench.check()
    assert {c.relation: c.capture for c in report.inputs} == {
        "columns.readded_by_id": "change feed",
        "columns.readded_inside": "change feed",
    }


@pytest.mark.long
def test_replaced_with_another_partitioning(spark: SparkSession) -> None:
    """The feed has NULL for the partition column of rows that have gone, and rows that did not change."""
    sql = (
        "SELECT t, g, count(*) AS n, sum(x) AS x FROM (SELECT 'r' AS t, g, x FROM partitioning.r "
        "UNION ALL SELECT 'w' AS t, g, x FROM partitioning.w) z GROUP BY t, g"
    )
    create = "CREATE OR REPLACE TABLE {name} FEED PARTITIONED BY ({by}) AS SELECT {values}"
    values = "{columns} FROM VALUES (1, 10), (1, 20), (2, 5) AS v(g, x)"
    by_x = create.replace("{values}", values.replace("{columns}", "g, x"))
    created = "; ".join(by_x.format(name=name, by="x") for name in ("r", "w"))
    bench = SparkBench.create(spark, "partitioning", created, sql)
    bench.refresh()
    bench.run("DELETE FROM r WHERE x = 20; INSERT INTO r VALUES (3, 250)")
    # A partition column that is not the last one confuses Spark's own catalog.
    bench.run(create.format(name="r", by="g", values="x, g FROM r"))
    bench.run("DELETE FROM w WHERE x = 5")
    frame = bench.session.sql("SELECT x, g FROM w").localCheckpoint()
    location = bench.rows("DESCRIBE DETAIL w")[0][4]
    options = {"overwriteSchema": "true", "delta.enableChangeDataFeed": "true"}
    frame.write.format("delta").mode("overwrite").options(**options).partitionBy("g").save(location)
    assert bench.engine.commits("w", None)[0].operation == "WRITE"
    report = bench.refresh()
    assert report.action == "refreshed", report.reason
    assert {(c.relation, c.capture, c.inserted, c.deleted) for c in report.inputs} == {
        ("partitioning.r", "version difference", 1, 1),
        ("partitioning.w", "version difference", 0, 1),
    }
    bench.check()
