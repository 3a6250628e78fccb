"""The test ``fivm_exact``: bags, with a tolerance for doubles and none for anything else."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from fivm_dbt.catalog import Column
from fivm_dbt.engines.duckdb.engine import DuckDbEngine
from fivm_dbt.refresh.compare import difference_sql
from fivm_dbt.refresh.engine import Row
from fivm_dbt.spark.difference import difference
from fivm_dbt.spark.tolerance import RELATIVE
from fivm_dbt.testing.compare import compare_rows
from fixtures.models import Bench

MODEL, RECOMPUTE = "only in the model", "only in the recompute"
NAN, INF = math.nan, math.inf


def _differing(types: str, model: Sequence[Row], recompute: Sequence[Row]) -> list[Row]:
    columns = [Column.of(f"c{i}", t) for i, t in enumerate(types.split())]
    engine = DuckDbEngine(tiny=True)
    engine.create_table("m", tuple(columns), model)
    engine.create_table("r", tuple(columns), recompute)
    names = ", ".join(c.name for c in columns)
    rows = engine.query(difference("m", f"select {names} from r -- the text", columns))
    engine.close()
    found = sorted(rows, key=str)
    # The replayer judges in the same way.
    other = compare_rows(model, recompute, [c.type for c in columns])
    assert (len(other.only_left), len(other.only_right)) == tuple(
        sum(row[0] == side for row in found) for side in (MODEL, RECOMPUTE)
    )
    return found


@pytest.mark.parametrize(
    ("left", "right", "is_equal"),
    [
        (0.1 + 0.2, 0.3, True),
        (1e15, 1e15 + 0.125, True),
        (1.0, 1.0 + RELATIVE / 2, True),
        (1.0, 1.0 + 3 * RELATIVE, False),
        (-1e300, -1e300 * (1 + 1e-12), True),
        (0.0, -0.0, True),
        (0.0, 1e-13, True),
        (0.0, 1e-11, False),
        (NAN, NAN, True),
        (NAN, 1.0, False),
        (NAN, INF, False),
        (INF, INF, True),
        (INF, -INF, False),
        (INF, 1.7e308, False),
        (None, None, True),
        (None, 0.0, False),
        (None, NAN, False),
        (5e-324, 0.0, True),
    ],
)
def test_one_double(left: float | None, right: float | None, is_equal: bool) -> None:
    for a, b in ((left, right), (right, left)):
        found = _differing("int double", [(1, a)], [(1, b)])
        assert [row[0] for row in found] == ([] if is_equal else [MODEL, RECOMPUTE])


def test_other_columns_have_no_tolerance() -> None:
    found = _differing("string double", [("a", 1.0)], [("b", 1.0)])
    assert found == [(MODEL, "a", 1.0), (RECOMPUTE, "b", 1.0)]
    assert len(_differing("decimal(20,12) double", [("1.000000000001", 0.5)], [("1.000000000002", 0.5)])) == 2


MOMENTS = "struct<n:bigint,names:array<string>,sums:array<double>>"


@pytest.mark.parametrize(
    ("left", "right", "is_equal"),
    [
        ([0.1 + 0.2, 2.0], [0.3, 2.0], True),
        ([0.1 + 0.2, 2.0], [0.3, 2.1], False),
        ([0.3], [0.3, 2.0], False),
        ([], [], True),
        ([0.3, None], [0.1 + 0.2, None], True),
        ([None], [0.0], False),
        (None, [], False),
        (None, None, True),
        ([NAN, INF], [NAN, INF], True),
    ],
)
def test_doubles_in_structs_and_lists(
    left: list[float | None] | None, right: list[float | None] | None, is_equal: bool
) -> None:
    """The moments of doubles stand in such a struct."""
    engine = DuckDbEngine(tiny=True)
    columns = [Column.of("g", "int"), Column.of("m", MOMENTS)]
    for a, b in ((left, right), (right, left)):
        for n, found in ((1, [] if is_equal else [MODEL, RECOMPUTE]), (2, [MODEL, RECOMPUTE])):
            rows = engine.query(difference(f"({_moments(1, a)}) AS t", _moments(n, b), columns))
            assert sorted(row[0] for row in rows) == found
    engine.close()


def _moments(n: int, sums: list[float | None] | None) -> str:
    """One row with a count and sums, as Spark SQL."""
    listed = [f"CAST({'NULL' if value is None else repr(str(value))} AS DOUBLE)" for value in sums or []]
    of_type = (
        "CAST(NULL AS ARRAY<DOUBLE>)"
        if sums is None
        else f"CAST(ARRAY({', '.join(listed)}) AS ARRAY<DOUBLE>)"
    )
    names = f"'n', CAST({n} AS BIGINT), 'names', ARRAY('x'), 'sums', {of_type}"
    return f"SELECT 1 AS g, NAMED_STRUCT({names}) AS m"


def test_copies_count() -> None:
    x = 0.1 + 0.2
    assert _differing("int double", [(1, x), (1, x)], [(1, 0.3), (1, 0.3)]) == []
    assert _differing("int double", [(1, x), (1, x)], [(1, 0.3)]) == [(MODEL, 1, x)]
    assert _differing("int", [(1,), (1,), (2,)], [(1,), (2,), (2,)]) == [(MODEL, 1), (RECOMPUTE, 2)]


def test_rows_of_one_key_are_matched_in_the_order_of_their_doubles() -> None:
    model = [(None, 3.0), (None, 0.1 + 0.2), (None, NAN), (None, None), (None, -INF)]
    recompute = [(None, 0.3), (None, -INF), (None, None), (None, 3.0), (None, NAN)]
    assert _differing("int double", model, recompute) == []
    assert _differing("int double", model, [*recompute[1:], (None, 0.4)]) == [
        (MODEL, None, 0.1 + 0.2),
        (RECOMPUTE, None, 0.4),
    ]


def test_close_doubles_leave_the_order_to_the_next_column() -> None:
    """Sorted by the bits of the first column alone, 5 would be paired with 7."""
    x = 0.1 + 0.2
    assert _differing("int double double", [(1, 0.3, 5.0), (1, 0.3, 7.0)], [(1, x, 5.0), (1, 0.3, 7.0)]) == []


def test_floats_are_doubles_too() -> None:
    assert _differing("float", [(1.5,)], [(1.5,)]) == []
    assert len(_differing("float", [(1.5,)], [(1.25,)])) == 2


def test_a_damaged_state_of_doubles() -> None:
    bench = Bench.of(
        "select k, sum(x) as s, count(*) as n from raw.r group by k",
        {"raw.r": ("k int, x double", [(1, 0.1), (1, 0.2), (2, 5.0), (None, math.inf)])},
    )
    bench.refresh()
    check = difference_sql(bench.plan, bench.engine)
    assert bench.engine.query(check) == []
    bench.engine.run(f"UPDATE {bench.plan.state_relation} SET sum = sum * 1.00000000000001 WHERE k = 2")
    assert bench.engine.query(check) == []
    bench.engine.run(f"UPDATE {bench.plan.state_relation} SET sum = sum * 1.0001 WHERE k = 2")
    assert [row[:2] for row in bench.engine.query(check)] in (
        [(MODEL, 2), (RECOMPUTE, 2)],
        [(RECOMPUTE, 2), (MODEL, 2)],
    )
