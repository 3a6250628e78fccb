"""Plans on DuckDB, in process: Spark's SQL in DuckDB's, and tables with versions."""
