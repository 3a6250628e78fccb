"""Regular expressions of row patterns are Java's on Spark: its matches, its letters and its stack."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from pyspark.sql import SparkSession

from test_match_regular import (
    COUNTED,
    Streams,
    counting,
    drawn,
    eight_variables,
    expected,
    lowered,
    sql_of,
)

pytestmark = pytest.mark.spark

ROWS_OF_A_KEY = 100_000


def _matched(spark: SparkSession, sql: str, streams: Streams) -> Counter[tuple[Any, ...]]:
    rows = [(k, r["t"], r["x"], r["y"]) for k, stream in streams.items() for r in stream]
    spark.createDataFrame(rows, "k int, t int, x int, y int").createOrReplaceTempView("p")
    return Counter(map(tuple, spark.sql(sql).collect()))


@pytest.mark.parametrize("seed", [12, 25, 500, 501, 502, 503, 504])
def test_random_patterns(spark: SparkSession, seed: int) -> None:
    clause, node, streams = drawn(random.Random(seed))
    assert _matched(spark, sql_of(node), streams) == expected(clause, streams), clause.sql()


def test_letters_of_two_bytes(spark: SparkSession) -> None:
    clause, streams = eight_variables()
    assert _matched(spark, sql_of(lowered(clause)), streams) == expected(clause, streams)


@pytest.mark.parametrize("pattern", COUNTED)
def test_a_long_partition(spark: SparkSession, pattern: str) -> None:
    """One key of 100,000 rows, all in one match."""
    spark.range(ROWS_OF_A_KEY).selectExpr(
        "1 as k", "int(id) as t", "int(id % 2) as x", "0 as y"
    ).createOrReplaceTempView("p")
    found = spark.sql(counting(pattern)).collect()
    assert [tuple(row) for row in found] == [(1, ROWS_OF_A_KEY)]
