"""DuckDB runs plans in process: this package translates Spark's SQL and gives tables versions."""

from fivm_dbt.errors import FivmError

try:
    import duckdb as duckdb
except ModuleNotFoundError:
    raise FivmError("FIVM505", "duckdb is missing", remedy='pip install "duckdb>=1.4"') from None
