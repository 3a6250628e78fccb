"""What Spark knows: the names of its functions, and the types of calls over typed columns; recorded, and asked again.

``FIVM_UPDATE=1 make test-spark ARGS='-k functions'`` records both anew; a new call is a line without a type.
"""

from __future__ import annotations

from pathlib import Path

import sqlglot
from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.ir.dialect import SparkText
from fivm_dbt.ir.scalar import ColumnId

RECORDED = Path(__file__).parent / "fixtures" / "functions"
NAMES, TYPES = RECORDED / "names.txt", RECORDED / "types.tsv"

COLUMNS = {
    "t": "tinyint", "h": "smallint", "i": "int", "l": "bigint", "f": "float", "d": "double", "c": "decimal(10,2)",
    "s": "string", "b": "boolean", "y": "binary", "dt": "date", "ts": "timestamp", "n": "timestamp_ntz",
    "a": "array<int>", "sa": "array<string>", "m": "map<string,int>", "am": "array<map<string,bigint>>",
    "st": "struct<x:int,y:string>", "dd": "interval day",
}  # fmt: skip

FIELDS: dict[ColumnId, SparkType] = {("r", name): SparkType.of(type_) for name, type_ in COLUMNS.items()}


def recorded() -> list[tuple[str, str]]:
    """The calls and their types."""
    lines = TYPES.read_text(encoding="utf-8").splitlines()
    return [(call, type_) for call, _, type_ in (line.partition("\t") for line in lines)]


def read(call: str) -> exp.Expr:
    """A call as lowering has it: every column with its relation."""
    node: exp.Expr = sqlglot.parse_one(f"select {call}", dialect=SparkText).selects[0]
    for column in node.find_all(exp.Column):
        if not column.table:
            column.set("table", exp.to_identifier("r"))
    return node
