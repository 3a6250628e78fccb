"""Each file has the delta rule of a kind of operator, with the equation in its docstring."""

from fivm_dbt.delta.rules import (
    by_key,
    clock,
    higher_order,
    join,
    one_sided,
    projection,
    row_by_row,
    scan,
    union_all,
)

__all__ = [
    "by_key",
    "clock",
    "higher_order",
    "join",
    "one_sided",
    "projection",
    "row_by_row",
    "scan",
    "union_all",
]
