"""DuckDB runs plans in process: this package translates Spark's SQL and gives tables versions."""
