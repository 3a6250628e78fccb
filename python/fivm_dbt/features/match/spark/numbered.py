"""The rows of a pattern's partitions are numbered, and the ranges between rows that separate."""

from __future__ import annotations

from sqlglot import exp

from fivm_dbt.features.match.ir.match import POSITION, ROW_PART, Match
from fivm_dbt.ir.scalar import identifier
from fivm_dbt.naming import PREFIX

SEPARATES, RANGE = f"{PREFIX}separates", f"{PREFIX}range"
"""Whether a row separates, and how many rows of its partition have separated before it."""


def key_names(node: Match) -> list[str]:
    """What the columns of PARTITION BY are called among numbered rows."""
    return [f"key_{number}" for number in range(1, len(node.partition) + 1)]


def numbered_columns(node: Match, keys: list[str]) -> list[exp.Expr]:
    """The columns of a row, with its number in the partition and what PREV and NEXT ask for."""
    values = {i.name: i.value for i in node.columns}

    def window(call: exp.Expr) -> exp.Window:
        order = [
            exp.Ordered(this=values[o.column].ast(), desc=o.desc, nulls_first=o.nulls_first)
            for o in node.order
        ]
        by = [i.value.ast() for i in node.partition]
        return exp.Window(this=call, partition_by=by, order=exp.Order(expressions=order))

    columns = [aliased(i.value.ast(), key) for i, key in zip(node.partition, keys, strict=True)]
    columns.append(aliased(window(exp.RowNumber()), POSITION))
    columns += [aliased(i.value.ast(), i.name) for i in node.columns]
    if node.separates is not None:
        so_far = window(exp.Sum(this=node.separates.ast()))
        rows = {"kind": "ROWS", "start": "UNBOUNDED", "start_side": "PRECEDING", "end": "CURRENT ROW"}
        so_far.set("spec", exp.WindowSpec(**rows))
        columns += [aliased(node.separates.ast(), SEPARATES), aliased(so_far, RANGE)]
    if node.part is not None:
        of_row = node.part.substitute(lambda c: values.get(c[1]))
        columns.append(aliased(of_row.ast(), ROW_PART))
    for shift in node.shifts:
        call = exp.func(
            "LEAD" if shift.offset > 0 else "LAG",
            values[shift.column].ast(),
            exp.Literal.number(abs(shift.offset)),
            dialect="spark",
        )
        columns.append(aliased(window(call), shift.name))
    return columns


def aliased(value: exp.Expr, name: str) -> exp.Expr:
    """``value AS name``."""
    return exp.alias_(value, identifier(name), copy=False)
