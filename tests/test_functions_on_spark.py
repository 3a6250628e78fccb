"""What was recorded of Spark's functions is what Spark says."""

from __future__ import annotations

import os

import pytest
from pyspark.sql import SparkSession
from tests.function_types import COLUMNS, NAMES, TYPES, recorded

pytestmark = pytest.mark.spark


def test_names(spark: SparkSession) -> None:
    # The functions of Delta are there or not with the session.
    names = sorted(row[0] for row in spark.sql("show system functions").collect())
    if os.environ.get("FIVM_UPDATE"):
        NAMES.write_text("\n".join(names) + "\n", encoding="utf-8")
    assert set(names) ^ set(NAMES.read_text(encoding="utf-8").split()) <= {
        "table_changes",
        "table_changes_by_path",
    }


def test_types(spark: SparkSession) -> None:
    columns = ", ".join(f"cast(null as {type_}) as {name}" for name, type_ in COLUMNS.items())
    found = []
    for call, _ in recorded():
        query = f"select {call} as q from (select {columns}) as r"
        found.append((call, spark.sql(query).schema[0].dataType.simpleString()))
    if os.environ.get("FIVM_UPDATE"):
        TYPES.write_text("".join(f"{call}\t{type_}\n" for call, type_ in found), encoding="utf-8")
    assert found == recorded()
