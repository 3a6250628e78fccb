"""Two queries are compared as bags: exactly, then with a tolerance for doubles on what is left."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import cached_property

from fivm_dbt.catalog import Column, SparkType
from fivm_dbt.refresh.engine import Engine, Row
from fivm_dbt.spark.tolerance import ABSOLUTE, RELATIVE, is_close
from fivm_dbt.testing.values import quantized

_COUNT = "fivm_copies"


@dataclass(frozen=True)
class Difference:
    """Rows of one bag that the other does not have, each as often as it is missing; empty for equal bags."""

    only_left: tuple[Row, ...] = ()
    only_right: tuple[Row, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.only_left or self.only_right)

    def lines(self, left: str, right: str, limit: int = 20) -> list[str]:
        """For people: at most ``limit`` rows of each side.

        >>> Difference(((1, None),)).lines("maintained", "recomputed")
        ['  only maintained: (1, NULL)']
        """
        lines = []
        for label, rows in ((left, self.only_left), (right, self.only_right)):
            lines += [f"  only {label}: {_shown(row)}" for row in rows[:limit]]
            if len(rows) > limit:
                lines.append(f"  only {label}: ... and {len(rows) - limit} more rows")
        return lines


def difference_sql(left: str, right: str, width: int) -> str:
    """A query for the rows that are not equally often in ``left`` and ``right``: ``left - right`` as a Z-set.

    One pass instead of two EXCEPT ALLs, with the same meaning: NULLs are equal, copies count.
    """
    listed = ", ".join(f"c{i}" for i in range(width))

    def side(query: str, count: int) -> str:
        return f"SELECT {listed}, {count} AS {_COUNT} FROM (\n{query}\n) AS q({listed})"

    both = f"{side(left, 1)} UNION ALL {side(right, -1)}"
    return f"SELECT {listed}, SUM({_COUNT}) FROM ({both}) AS b GROUP BY {listed} HAVING SUM({_COUNT}) <> 0"


class Shown:
    """The rows that a query shows, to be compared with those of other queries.

    Spark looks for the difference itself; from DuckDB, which runs in this process, all rows are fetched once.
    """

    def __init__(self, engine: Engine, query: str, columns: Sequence[Column]) -> None:
        self._engine = engine
        self._query = query
        self._types = [column.type for column in columns]

    @cached_property
    def rows(self) -> Sequence[Row]:
        return self._engine.query(self._query)

    def against(self, reference: str) -> Difference:
        """What differs from the result of the query ``reference``, which has the same columns."""
        if self._engine.name == "duckdb":
            return compare_rows(self.rows, self._engine.query(reference), self._types)
        rows = self._engine.query(difference_sql(self._query, reference, len(self._types)))
        only_left = [row[:-1] for row in rows for _ in range(max(0, _copies(row)))]
        only_right = [row[:-1] for row in rows for _ in range(max(0, -_copies(row)))]
        return compare_rows(only_left, only_right, self._types)

    def against_rows(self, expected: Sequence[Row]) -> Difference:
        return compare_rows(self.rows, expected, self._types)


def _copies(row: Row) -> int:
    count = row[-1]
    assert isinstance(count, int)
    return count


def compare_rows(left: Sequence[Row], right: Sequence[Row], types: Sequence[SparkType]) -> Difference:
    """What differs between two bags of rows, read as values of these types."""
    lefts, rights = _by_value(left, types), _by_value(right, types)
    rest_left = [row for key, rows in lefts.items() for row in rows[len(rights.get(key, ())) :]]
    rest_right = [row for key, rows in rights.items() for row in rows[len(lefts.get(key, ())) :]]
    if any(_has_double(row) for row in (*rest_left, *rest_right)):
        rest_left, rest_right = _without_close(rest_left, rest_right)
    shown = [[_plain(row, types) for row in rows] for rows in (rest_left, rest_right)]
    return Difference(tuple(_sorted(shown[0])), tuple(_sorted(shown[1])))


def _by_value(rows: Sequence[Row], types: Sequence[SparkType]) -> dict[Row, list[Row]]:
    found: dict[Row, list[Row]] = {}
    for row in rows:
        found.setdefault(_plain(row, types), []).append(row)
    return found


def _without_close(left: list[Row], right: list[Row]) -> tuple[list[Row], list[Row]]:
    """Both lists without pairs of rows that only differ in the last digits of doubles."""
    by_rest: dict[Row, list[Row]] = {}
    for row in right:
        by_rest.setdefault(_without_numbers(row), []).append(row)
    alone = []
    for row in left:
        candidates = by_rest.get(_without_numbers(row), [])
        match = next((other for other in candidates if _is_close(row, other)), None)
        if match is None:
            alone.append(row)
        else:
            candidates.remove(match)
    return alone, [row for rows in by_rest.values() for row in rows]


def _without_numbers(row: Row) -> Row:
    return tuple(_without_number(v) for v in row)


def _without_number(value: object) -> object:
    value = _hashable(value)
    if isinstance(value, tuple):
        return _without_numbers(value)
    return None if isinstance(value, (float, Decimal)) else value


def _has_double(value: object) -> bool:
    if isinstance(value, dict):
        return any(map(_has_double, value.values()))
    return any(map(_has_double, value)) if isinstance(value, (list, tuple)) else isinstance(value, float)


def _hashable(value: object) -> object:
    """A value with its lists and structs as tuples, on every level."""
    if isinstance(value, dict):
        return tuple(_hashable(v) for v in value.values())
    return tuple(_hashable(v) for v in value) if isinstance(value, (list, tuple)) else value


def _is_close(left: Row, right: Row) -> bool:
    return all(_is_close_value(a, b) for a, b in zip(left, right, strict=True))


def _is_close_value(left: object, right: object) -> bool:
    left, right = _hashable(left), _hashable(right)
    if isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and _is_close(left, right)
    if isinstance(left, float) and isinstance(right, float):
        return is_close(left, right)
    if isinstance(left, Decimal) and isinstance(right, float):
        exponent = left.as_tuple().exponent
        digits = -exponent if isinstance(exponent, int) else 0
        # Half a unit of the decimal's last digit: where the double would have been rounded to it.
        return abs(float(left) - right) <= 0.5 * 10.0**-digits * (1 + RELATIVE) + ABSOLUTE
    if isinstance(left, float) and isinstance(right, Decimal):
        return _is_close_value(right, left)
    return left == right


def _plain(row: Row, types: Sequence[SparkType]) -> Row:
    return tuple(_plain_value(value, type_) for value, type_ in zip(row, types, strict=True))


def _plain_value(value: object, type_: SparkType) -> object:
    """One Python object per value: sums are int or Decimal, dates come as datetimes, NaN equals itself."""
    if isinstance(value, (list, dict, tuple)):
        return _hashable(value)
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if isinstance(value, Decimal) and type_.is_decimal:
        return quantized(value, type_.scale)
    if isinstance(value, Decimal) and type_.is_integral:
        return int(value)
    if isinstance(value, (int, Decimal)) and type_.is_floating and not isinstance(value, bool):
        return float(value)
    if isinstance(value, (int, float)) and type_.is_decimal and math.isfinite(value):
        return quantized(Decimal(value), type_.scale)  # DuckDB divides decimals as doubles
    if isinstance(value, datetime) and type_.text == "date":
        return value.date()
    return value


def _sorted(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: [(v is not None, type(v).__name__, str(v)) for v in row])


def _shown(row: Row) -> str:
    return "(" + ", ".join(_shown_value(v) for v in row) + ")"


def _shown_value(value: object) -> str:
    if value is None:
        return "NULL"
    return f"'{value}'" if isinstance(value, (str, date)) else str(value)


def with_lists_sorted(row: Row) -> Row:
    """A row whose lists, which have no order, are in a fixed one."""
    return tuple(sorted(v, key=repr) if isinstance(v, list) else v for v in row)
