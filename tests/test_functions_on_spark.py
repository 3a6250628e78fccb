"""What was recorded of Spark's functions is what Spark says."""

from __future__ import annotations

import os

import pytest
from pyspark.sql import SparkSession
from tests.function_types import COLUMNS, NAMES, TYPES, recorded

from fivm_dbt.catalog import Catalog, Column, Relation
from fivm_dbt.errors import FivmError
from fivm_dbt.sql.lower import lower

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


def test_a_function_that_the_session_does_not_have(spark: SparkSession) -> None:
    def describe(sql: str) -> tuple[Column, ...]:
        found = spark.sql(f"describe query {sql}").collect()
        return tuple(Column.of(row[0], row[1]) for row in found)

    spark.udf.register("fivm_own", lambda text: text)
    relation = Relation("raw.r", (Column.of("s", "string"),))
    catalog = Catalog.of([relation])
    lowered = lower("select fivm_own(upper(s)) as u from raw.r", catalog, describe)
    assert [c.type.text for c in lowered.columns] == ["string"]
    with pytest.raises(FivmError) as caught:
        lower("select fivm_own(uper(s)) as u from raw.r", catalog, describe)
    assert caught.value.code.number == "FIVM105"
    assert caught.value.remedy == "did you mean upper?"
