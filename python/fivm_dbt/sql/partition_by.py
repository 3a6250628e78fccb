"""The expression of ``fivm_partition_by`` is over output columns, and means the keys that these show."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from fivm_dbt.errors import FivmError, expected_one_of
from fivm_dbt.ir.scalar import Scalar, column_ast
from fivm_dbt.sql.expressions import check_row_level
from fivm_dbt.sql.parse import parse


def over_keys(text: str, outputs: Mapping[str, str | None]) -> Scalar:
    """The expression over the keys of a state. Raises FIVM202 where it is none, or a column of it shows no key.

    ``outputs`` maps each output column (lower case) to the key that it shows, or None where it shows something else.

    >>> over_keys("year(Sold)", {"sold": "day", "total": None}).sql
    'YEAR(day)'
    """
    try:
        ast = parse(f"select {text}").selects[0].unalias()
        check_row_level(ast)
    except FivmError as error:
        raise FivmError(
            "FIVM202", f"fivm_partition_by: {text}: {error.message}", remedy="name an output column"
        ) from None
    for column in list(ast.find_all(exp.Column)):
        replacement = column_ast("", _key(column.name, outputs))
        if column is ast:
            ast = replacement
        else:
            column.replace(replacement)
    return Scalar(ast)


def _key(column: str, outputs: Mapping[str, str | None]) -> str:
    key = outputs.get(column.lower())
    if key is not None:
        return key
    is_output = column.lower() in outputs
    why = "is not a key of the result: its value changes" if is_output else "is not in the output"
    shown = [name for name, key in outputs.items() if key is not None]
    raise FivmError(
        "FIVM202",
        f"fivm_partition_by: {column} {why} ({expected_one_of(shown) if shown else 'there is no key'})",
        remedy="name an output column that is grouped by",
    )
