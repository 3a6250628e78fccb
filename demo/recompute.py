"""The oracle: every model's own SQL run from scratch, timed, and compared with what fivm maintained."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from demo.dbt_runs import ModelRun
from demo.metrics import rows_read

SCHEMA = "recomputed"


@dataclass(frozen=True)
class Recompute:
    """A full recompute; `missing` and `surplus` count rows, as bags, that the model lacks or has too many of."""

    model: str
    seconds: float
    rows: int
    rows_read: int
    missing: int
    surplus: int
    schema_differs: bool

    @property
    def is_equal(self) -> bool:
        return not (self.missing or self.surplus or self.schema_differs)


def recompute(spark: SparkSession, run: ModelRun) -> Recompute:
    """Build the model as a table would be built: one statement, over the same inputs, into a Delta table."""
    spark.sql(f"create schema if not exists {SCHEMA}")
    target = f"{SCHEMA}.{run.model}"
    started = time.perf_counter()
    with rows_read(spark, f"recompute {run.model}") as read:
        spark.sql(f"create or replace table {target} using delta as {run.compiled_sql}")
        seconds = time.perf_counter() - started
    return compare(spark, Recompute(run.model, seconds, 0, read.total, 0, 0, False))


def compare(spark: SparkSession, recomputed: Recompute) -> Recompute:
    """The recompute with what it finds in the model as it is now."""
    target, maintained = f"{SCHEMA}.{recomputed.model}", f"analytics.{recomputed.model}"
    same_columns = _columns(spark, target) == _columns(spark, maintained)
    rows, missing, surplus = _compare(spark, target, maintained) if same_columns else (0, 0, 0)
    return replace(recomputed, rows=rows, missing=missing, surplus=surplus, schema_differs=not same_columns)


def _compare(spark: SparkSession, recomputed: str, maintained: str) -> tuple[int, int, int]:
    """Rows of the recompute, and how many EXCEPT ALL leaves either way: both counts in one pass over the two.

    Spark itself runs EXCEPT ALL as this sum of signs per distinct row, once for each direction.
    """
    columns = ", ".join(f"`{name}`" for name, _ in _columns(spark, recomputed))
    counts = spark.sql(f"""
        select sum(recomputed),
            sum(greatest(recomputed - maintained, 0)), sum(greatest(maintained - recomputed, 0))
        from (
            select {columns}, sum(here) as recomputed, sum(1 - here) as maintained
            from (
                select {columns}, 1 as here from {recomputed} union all
                select {columns}, 0 as here from {maintained}
            )
            group by {columns}
        )
    """).collect()[0]
    rows, missing, surplus = (int(each or 0) for each in counts)
    return rows, missing, surplus


def _columns(spark: SparkSession, relation: str) -> list[tuple[str, str]]:
    return [(field.name, field.dataType.simpleString()) for field in spark.table(relation).schema.fields]
