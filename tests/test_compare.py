"""Comparison of bags: copies and NULLs count, doubles have a tolerance, decimals have none."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import pytest

from fivm_dbt.catalog import Column, SparkType
from fivm_dbt.engines.duckdb.engine import DuckDbEngine
from fivm_dbt.testing.compare import Difference, Shown, compare_rows, difference_sql

INT, DOUBLE, DECIMAL = (SparkType.of(t) for t in ("int", "double", "decimal(10,2)"))


def test_copies_count() -> None:
    left, right = [(1,), (1,), (2,)], [(1,), (2,), (2,)]
    assert compare_rows(left, right, [INT]) == Difference(((1,),), ((2,),))
    assert not compare_rows(left, list(reversed(left)), [INT])


def test_null_is_a_value_of_its_own() -> None:
    assert not compare_rows([(None, 1)], [(None, 1)], [INT, INT])
    assert compare_rows([(None,)], [(0,)], [INT]) == Difference(((None,),), ((0,),))


@pytest.mark.parametrize(
    ("left", "right", "is_equal"),
    [
        (0.1 + 0.2, 0.3, True),
        (1e15, 1e15 + 0.125, True),
        (1.0, 1.000001, False),
        (0.0, -0.0, True),
        (float("nan"), float("nan"), True),
        (float("inf"), float("inf"), True),
        (float("inf"), float("-inf"), False),
        (2, 2.0, True),
    ],
)
def test_doubles(left: object, right: object, is_equal: bool) -> None:
    assert bool(compare_rows([(left,)], [(right,)], [DOUBLE])) is not is_equal


@pytest.mark.parametrize(
    ("left", "right", "is_equal"),
    [
        (Decimal("1.50"), Decimal("1.5"), True),
        (Decimal("1.50"), Decimal("1.51"), False),
        (Decimal("0.33"), 1 / 3, True),
        (Decimal("0.34"), 1 / 3, False),
        (3, Decimal("3.00"), True),
    ],
)
def test_decimals(left: object, right: object, is_equal: bool) -> None:
    assert bool(compare_rows([(left,)], [(right,)], [DECIMAL])) is not is_equal


def test_every_close_row_is_used_once() -> None:
    left, right = [(1, 0.1), (1, 0.1)], [(1, 0.1 + 1e-15), (1, 0.2)]
    found = compare_rows(left, right, [INT, DOUBLE])
    assert found == Difference(((1, 0.1),), ((1, 0.2),))


def test_dates_and_large_sums() -> None:
    types = [SparkType.of("date"), SparkType.of("bigint")]
    assert not compare_rows([(datetime(2024, 1, 1), Decimal(5))], [(date(2024, 1, 1), 5)], types)


def test_no_more_than_twenty_rows_are_shown() -> None:
    lines = Difference(tuple((n,) for n in range(30)), ((None,),)).lines("maintained", "recomputed")
    assert len(lines) == 22
    assert lines[20:] == ["  only maintained: ... and 10 more rows", "  only recomputed: (NULL)"]


def test_queries() -> None:
    engine = DuckDbEngine()
    columns = (Column.of("a", "int"), Column.of("m", "decimal(14,6)"))
    left = "SELECT 1 AS a, CAST('0.333333' AS DECIMAL(14,6)) AS m UNION ALL SELECT NULL, NULL -- a comment"
    right = "SELECT CAST(NULL AS INT) AS x, NULL AS y UNION ALL SELECT 1, 1 / 3"
    shown = Shown(engine, left, columns)
    assert not shown.against(right)
    twice = f"{right} UNION ALL SELECT 1, 1 / 3"
    assert shown.against(twice).only_right == ((1, Decimal("0.333333")),)
    assert shown.against_rows([(1, Decimal("0.333333"))]).only_left == ((None, None),)


def test_difference_on_the_engine() -> None:
    left = "SELECT * FROM VALUES (1, 'a'), (1, 'a'), (NULL, NULL) AS v(x, y) -- a comment"
    right = "SELECT * FROM VALUES (1, 'a'), (NULL, NULL), (2, 'b') AS v(x, y)"
    rows = DuckDbEngine().query(difference_sql(left, right, 2))
    assert sorted(rows, key=str) == [(1, "a", 1), (2, "b", -1)]
