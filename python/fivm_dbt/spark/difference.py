"""Two relations are compared as bags, by one query."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from sqlglot import exp

from fivm_dbt.catalog import Column, SparkType
from fivm_dbt.ir.scalar import column_ast
from fivm_dbt.naming import PREFIX, quote
from fivm_dbt.spark.part_time import instant
from fivm_dbt.spark.pieces import Condition
from fivm_dbt.spark.tolerance import close_values, has_doubles

SIDE = "fivm_side"
"""Column that tells on which side a differing row is."""

_MODEL, _RECOMPUTE = "only in the model", "only in the recompute"
_SIGN, _COPIES, _COPY, _PLACE = (f"{PREFIX}{what}" for what in ("sign", "copies", "copy", "place"))


def since(bounds: Iterable[tuple[Column, datetime, str]]) -> Condition:
    """That no column is before its time, on the clocks of a zone."""
    tests = (
        exp.GTE(this=column_ast("", column.name), expression=instant(time, column.type, zone))
        for column, time, zone in bounds
    )
    return exp.and_(*tests, copy=False)


def difference(relation: str, recompute: str, columns: Sequence[Column]) -> str:
    """``relation - recompute`` as a Z-set, each row as often as it is there too often or too rarely.

    Rows that are equal in all columns but doubles are matched up in the order of their doubles; of a pair whose doubles
    are close (:mod:`fivm_dbt.spark.tolerance`) neither is told.
    """
    shown = [quote(c.name) for c in columns]
    listed = ", ".join(shown)
    compared = ", ".join(f"{_comparable(c)} AS {quote(c.name)}" for c in columns)
    # The user's text may end in a comment: the bracket goes on a line of its own.
    both = (
        f"SELECT {compared}, 1 AS {_SIGN} FROM {relation}\n"
        f"UNION ALL\nSELECT {compared}, -1 AS {_SIGN} FROM (\n{recompute}\n) AS recompute({listed})"
    )
    rows = (
        f"SELECT CASE WHEN {_COPIES} > 0 THEN '{_MODEL}' ELSE '{_RECOMPUTE}' END AS {SIDE}, {listed}\n"
        f"FROM (SELECT {listed}, SUM({_SIGN}) AS {_COPIES} FROM (\n{both}\n) AS signed_rows "
        f"GROUP BY {listed} HAVING SUM({_SIGN}) <> 0) AS differing\n"
        f"LATERAL VIEW EXPLODE(SEQUENCE(1, ABS({_COPIES}))) copies AS {_COPY}"
    )
    doubles = {quote(c.name): c.type for c in columns if has_doubles(c.type)}
    return rows if not doubles else _without_pairs(rows, shown, doubles)


def _without_pairs(rows: str, shown: list[str], doubles: Mapping[str, SparkType]) -> str:
    """The differing ``rows`` without pairs that differ in the last digits of doubles alone, in structs too."""
    same = "".join(f", {name}" for name in shown if name not in doubles)
    # By the value in few digits first: where two doubles are close, the next column decides on both sides.
    rounded = (f"TRY_CAST({name} AS FLOAT)" for name, type_ in doubles.items() if type_.is_floating)
    order = ", ".join([*rounded, *doubles])
    place = f"ROW_NUMBER() OVER (PARTITION BY {SIDE}{same} ORDER BY {order}) AS {_PLACE}"
    placed = f"SELECT *, {place} FROM (\n{rows}\n) AS differing_rows"
    pair = f"OVER (PARTITION BY {_PLACE}{same})"
    partners, conditions = [], []
    for number, (name, type_) in enumerate(doubles.items()):
        sides = [f"{PREFIX}{side}_{number}" for side in ("model", "recompute")]
        for alias, side in zip(sides, (_MODEL, _RECOMPUTE), strict=True):
            partners.append(f"MAX(CASE WHEN {SIDE} = '{side}' THEN {name} END) {pair} AS {alias}")
        one, other = (exp.column(alias) for alias in sides)
        conditions.append(close_values(one, other, type_).sql(dialect="spark"))
    listed = ", ".join([SIDE, *shown])
    paired = (
        f"SELECT {listed}, COUNT(*) {pair} AS {_COPIES}, {', '.join(partners)} FROM (\n{placed}\n) AS placed"
    )
    return f"SELECT {listed} FROM (\n{paired}\n) AS paired WHERE {_COPIES} < 2 OR NOT ({' AND '.join(conditions)})"


def _comparable(column: Column) -> str:
    """A column as something that can be grouped: maps by their sorted entries, variants and the like by their text.

    >>> _comparable(Column.of("m", "map<string,int>")), _comparable(Column.of("a", "int"))
    ('ARRAY_SORT(MAP_ENTRIES(m))', 'a')
    """
    name = quote(column.name)
    if column.type.is_groupable:
        return name
    values = column.type.element_columns() or []
    is_map = column.type.text.startswith("map<") and all(type_.is_groupable for _, type_ in values)
    return f"ARRAY_SORT(MAP_ENTRIES({name}))" if is_map else f"TO_JSON({name})"
