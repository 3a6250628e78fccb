"""VALUES has rows that stand in the query itself and never change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.errors import FivmError
from fivm_dbt.ir.nodes import Values
from fivm_dbt.ir.scalar import Scalar, cast_ast
from fivm_dbt.sql.expressions import to_scalar
from fivm_dbt.sql.lowered import Lowered
from fivm_dbt.sql.parse import span_of
from fivm_dbt.sql.scope import Scope
from fivm_dbt.sql.typing import known_type

if TYPE_CHECKING:
    from fivm_dbt.sql.lower import Lowering


def values(lowering: Lowering, node: exp.Values, wanted: str) -> Lowered:
    """The rows of VALUES, every column in the common type of its expressions."""

    rows = [_row(row) for row in node.expressions]
    width = len(rows[0])
    if any(len(row) != width for row in rows):
        raise FivmError(
            "FIVM113", "rows of different length in VALUES", span=span_of(node), remedy="correct the rows"
        )
    scalars = [[to_scalar(value, Scope()) for value in row] for row in rows]
    typed = [lowering.typer.types(row, {}) for row in scalars]
    types: list[SparkType] = []
    for position in range(width):
        types.append(_common(lowering, [row[position] for row in typed], rows[0][position]))
    cast_rows = tuple(
        tuple(Scalar(cast_ast(scalar.ast(), type_)) for scalar, type_ in zip(row, types, strict=True))
        for row in scalars
    )
    names = tuple(f"col{i + 1}" for i in range(width))
    return Lowered(Values(lowering.alias(wanted), tuple(zip(names, types, strict=True)), cast_rows), names)


def _common(lowering: Lowering, types: list[SparkType | None], shown: exp.Expr) -> SparkType:
    """Spark's type of a column of VALUES: a string and a number have none in common."""
    found = lowering.typer.common(types, to_string=False)
    if found is None and None not in types:
        raise FivmError(
            "FIVM113",
            f"a column of VALUES is {' and '.join(dict.fromkeys(str(t) for t in types))}",
            span=span_of(shown),
            remedy="CAST its values to one type",
        )
    return known_type(found, shown)


def _row(node: exp.Expr) -> list[exp.Expr]:
    return list(node.expressions) if isinstance(node, exp.Tuple) else [node.unnest()]


def one_row(lowering: Lowering) -> Values:
    """What a SELECT without FROM reads: one row without columns."""
    return Values(lowering.alias("one_row"), (), ((),))
