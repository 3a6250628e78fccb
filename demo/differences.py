"""A relation compared with its recompute, as bags."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Differences:
    """`missing` and `surplus` count the rows that a relation lacks or has too many of; `rows` are those it should have.

    Rows are not compared if the columns or their types are not the same.
    """

    rows: int
    missing: int
    surplus: int
    schema_differs: bool = False

    @property
    def number(self) -> int:
        """How many rows differ; other columns count as one."""
        return self.missing + self.surplus + self.schema_differs

    @property
    def is_equal(self) -> bool:
        return self.number == 0


def differences(spark: SparkSession, recomputed: str, maintained: str) -> Differences:
    """What EXCEPT ALL leaves either way: both counts in one pass over the two.

    Spark itself runs EXCEPT ALL as this sum of signs per distinct row, once for each direction.
    """
    columns = _columns(spark, recomputed)
    if columns != _columns(spark, maintained):
        return Differences(0, 0, 0, schema_differs=True)
    listed = ", ".join(f"`{name}`" for name, _ in columns)
    counts = spark.sql(f"""
        select sum(recomputed),
            sum(greatest(recomputed - maintained, 0)), sum(greatest(maintained - recomputed, 0))
        from (
            select {listed}, sum(here) as recomputed, sum(1 - here) as maintained
            from (
                select {listed}, 1 as here from {recomputed} union all
                select {listed}, 0 as here from {maintained}
            )
            group by {listed}
        )
    """).collect()[0]
    rows, missing, surplus = (int(each or 0) for each in counts)
    return Differences(rows, missing, surplus)


def _columns(spark: SparkSession, relation: str) -> list[tuple[str, str]]:
    return [(field.name, field.dataType.simpleString()) for field in spark.table(relation).schema.fields]
