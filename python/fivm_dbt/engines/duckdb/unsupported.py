"""The engine says what it cannot run."""

from fivm_dbt.errors import FivmError

CODE = "FIVM602"


class UnsupportedStatement(FivmError):
    """The engine does not know this kind of statement, or cannot evaluate a call in it as Spark does."""

    def __init__(self, what: str) -> None:
        super().__init__(CODE, f"{what} on DuckDB", remedy="fivm replay --engine spark")
