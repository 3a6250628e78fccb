"""All ways of ``python -m benchmarks.compare`` on Spark, over little data: what must be equal to the recompute is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from benchmarks.compare.cases import DATA, cases
from benchmarks.compare.run import Comparison, differing_rows
from benchmarks.compare.way import MODELS
from benchmarks.compare.ways import BESIDE, FIVM

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.long]

CHANGES = ("none", "recent 10 %", "deletes 1 %", "customers 1 %", "planes 1 %", "one airport")


@pytest.fixture
def comparison(spark: SparkSession) -> Iterator[Comparison]:
    made = Comparison(spark, cases(), (*BESIDE, FIVM), lambda _: None)
    try:
        made.build(0.001)
        yield made
    finally:
        for schema in (MODELS, *(data.schema for data in DATA)):
            spark.sql(f"DROP SCHEMA IF EXISTS {schema} CASCADE")


def test_ways_follow_changes(comparison: Comparison) -> None:
    found = [
        measured
        for data in DATA
        for change in data.changes
        if change.name in CHANGES
        for measured in comparison.after(data, change, 1)
    ]
    assert comparison.failures == []
    assert [(m.query, m.change, m.way) for m in found if m.differing] == []
    ways = {(m.query, m.way) for m in found}
    assert {query for query, way in ways if way == FIVM} == {compared.name for compared in cases()}
    assert {query for query, way in ways if way == "by_hand"} == {c.name for c in cases() if c.by_hand}
    assert {m.change for m in found if m.wrong and m.way == "microbatch"} >= {"customers 1 %", "one airport"}
    assert not any(m.wrong for m in found if m.change == "none")


def test_rows_that_differ_are_counted_as_bags(spark: SparkSession) -> None:
    wanted = "SELECT * FROM VALUES (1, NULL), (1, NULL), (2, 3.5) AS t (a, `b c`)"
    others = [
        wanted,
        "SELECT * FROM VALUES (1, NULL), (2, 3.5) AS t (a, `b c`)",
        "SELECT * FROM VALUES (1, NULL), (1, NULL), (2, 4.5), (1, NULL) AS t (x, y)",
        "SELECT * FROM VALUES (1, 2.5) AS t (a, `b c`) WHERE a > 1",
    ]
    both_ways = [
        spark.sql(f"({wanted} EXCEPT ALL {other}) UNION ALL ({other} EXCEPT ALL {wanted})").count()
        for other in others
    ]
    assert differing_rows(spark, wanted, others) == both_ways == [0, 1, 3, 3]
