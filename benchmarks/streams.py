"""Rows come into tables by files, on either engine: a statement of many literals takes minutes."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import duckdb

from fivm_dbt.refresh.engine import Row
from fivm_dbt.testing.workbench import TableSpec, Workbench


def as_file(table: TableSpec, rows: Sequence[Row], file: Path) -> Path:
    """The rows of a table as a Parquet file; a timestamp is one in UTC."""
    text = file.with_suffix(".csv")
    with text.open("w", newline="", encoding="utf-8") as out:
        csv.writer(out).writerows(rows)
    read = ", ".join(f"'{c.name}': 'VARCHAR'" for c in table.columns)
    instant = "CAST({0} AS TIMESTAMP) AT TIME ZONE 'UTC' AS {0}"
    shown = (
        instant.format(f'"{c.name}"')
        if c.type.text == "timestamp"
        else f'CAST("{c.name}" AS {c.type}) AS "{c.name}"'
        for c in table.columns
    )
    source = f"read_csv('{text}', header = false, columns = {{{read}}})"
    duckdb.sql(f"SELECT {', '.join(shown)} FROM {source}").write_parquet(str(file))
    return file


def arrive(workbench: Workbench, table: TableSpec, query: str, file: Path) -> None:
    """Add the rows of a query for DuckDB, in one commit; ``file`` is for them to travel in."""
    rows = duckdb.sql(query)
    if workbench.engine.name != "spark":
        workbench.change(table, rows.fetchall(), ())
        return
    from fivm_dbt.testing.spark_workbench import rows_of_file

    rows.write_parquet(str(file))
    workbench.engine.run(f"INSERT INTO {table.name} {rows_of_file(table, file)}")
