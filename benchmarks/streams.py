"""A table into which more and more rows come, on either engine, as a benchmark needs it."""

from __future__ import annotations

from pathlib import Path

import duckdb

from fivm_dbt.testing.workbench import TableSpec, Workbench


def arrive(workbench: Workbench, table: TableSpec, query: str, file: Path) -> None:
    """Add the rows of a query for DuckDB, in one commit; ``file`` is for them to travel in."""
    rows = duckdb.sql(query)
    if workbench.engine.name != "spark":
        workbench.change(table, rows.fetchall(), ())
        return
    from fivm_dbt.testing.spark_workbench import rows_of_file

    rows.write_parquet(str(file))
    workbench.engine.run(f"INSERT INTO {table.name} {rows_of_file(table, file)}")
