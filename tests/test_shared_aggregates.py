"""One view is kept of aggregates that differ in conditions and sums, and each is shown from it exactly."""

from __future__ import annotations

import random

import pytest

from fivm_dbt.rewrite.flatten_joins import parts_of_join
from fixtures.models import Bench, plan_of, relation
from fixtures.runs import by_run

TABLES = {
    "f": ("k int, g int, x decimal(6,2), s string", [(i % 4, i % 3, i % 7, "ab"[i % 2]) for i in range(24)]),
    "d": ("k int, t string", [(i, "uv"[i % 2]) for i in range(4)]),
}
CONDITIONS = (
    "f.x > 2",
    "f.s = 'a'",
    "f.x is null or f.g = 1",
    "f.s in ('a', 'b') and f.x < 5",
    "true",
    "f.g <> f.k",
)
CALLS = ("count(*)", "count(f.x)", "sum(f.x)", "avg(f.x)", "sum(f.g)", "sum(f.x * f.g)")


def _stacked(*parts: tuple[str, str], source: str = "f join d on f.k = d.k", key: str = "d.t") -> str:
    branches = (
        f"select {key} as key, cast({call} as decimal(20,6)) as n from {source} where {condition} group by {key}"
        for call, condition in parts
    )
    return f"select key, sum(n) as n, count(*) as many from ({' union all '.join(branches)}) u group by key"


def _views(sql: str, **meta: object) -> int:
    return len(plan_of(sql, [relation(name, columns) for name, (columns, _) in TABLES.items()], meta).helpers)


def test_one_view_is_kept_of_many() -> None:
    sql = _stacked(*(("count(*)", condition) for condition in CONDITIONS))
    assert _views(sql) == 1
    assert _views(sql, fivm_without=["shared_aggregates"]) == len(CONDITIONS)


@pytest.mark.parametrize(
    "sql",
    [
        _stacked(("max(f.x)", "f.s = 'a'"), ("max(f.x)", "f.s = 'b'")),
        _stacked(("count(distinct f.x)", "f.s = 'a'"), ("count(*)", "f.s = 'b'")),
        _stacked(("sum(f.x)", "d.t = 'u'"), ("sum(f.x)", "d.t = 'v'")),
    ],
    ids=["no sum", "distinct", "of two relations"],
)
def test_what_is_not_shared(sql: str) -> None:
    assert _views(sql) == _views(sql, fivm_without=["shared_aggregates"]) > 1


def test_what_may_stop_a_statement_is_asked_of_no_other_row() -> None:
    """As in ANSI mode: DuckDB stops where an int overflows. Conditions of two relations do not choose the rows."""
    source, largest = "f join d on f.k = d.k", 2**31 - 1
    parts = (("count(*)", "f.g < 9"), ("count(*)", "d.t = 'u'"))
    sql = _stacked(*parts, source=source, key="f.g + 1")
    bench = Bench.of(sql, TABLES)
    bench.refresh()
    bench.engine.change("f", insert=[(1, largest, None, "a"), (2, 7, None, "b")])
    bench.refresh()
    bench.check()
    assert _views(sql) == 2
    assert _views(_stacked(*parts, source=source, key="f.g")) == 1
    assert _views(_stacked(parts[0], ("count(*)", "f.g = 1"), source=source, key="f.g + 1")) == 1


GUARDED = {
    ("f.g < 5 and f.g + 1 > 1", "f.s = 'a' and f.g + 1 > 1"): [],
    ("f.g < 5 and f.g + 1 > 1", "f.g + 1 > 1 and f.s = 'a'"): [],
    ("f.g < 5 and f.s = 'a'", "f.g + 1 > 1 and f.s = 'a'"): ["f.s = 'a'"],
    ("f.g + 1 > 1 and f.g < 5", "f.g + 1 > 1 and f.s = 'a'"): ["f.g + 1 > 1"],
}
"""Conditions of two aggregates, and those that are asked of all rows before."""


@pytest.mark.parametrize("conditions", GUARDED)
def test_conditions_stay_behind_those_that_may_guard_them(conditions: tuple[str, str]) -> None:
    """What both ask is asked first if it cannot stop a statement, or if nothing else stands before it."""
    sql = _stacked(("count(*)", conditions[0]), ("sum(f.x)", conditions[1]), source="f", key="f.k")
    (view,) = plan_of(sql, [relation("f", TABLES["f"][0])]).helpers
    assert [p.sql for p in parts_of_join(view.core)[1][:-1]] == GUARDED[conditions]


@pytest.mark.parametrize("seed", by_run(range(3), more=range(3, 12), long=range(12, 40)))
def test_random_aggregates(seed: int) -> None:
    """Of rows that come, go and are doubled, with NULLs, through all of a group's going."""
    rng = random.Random(seed)
    parts = [(rng.choice(CALLS), rng.choice(CONDITIONS)) for _ in range(rng.randint(2, 5))]
    source, key = rng.choice((("f join d on f.k = d.k", "d.t"), ("f", "f.k"), ("f", "f.s")))
    bench = Bench.of(_stacked(*parts, source=source, key=key), TABLES)
    bench.refresh()
    bench.check()
    rows = list(TABLES["f"][1])
    for _ in range(5):
        gone = rng.sample(rows, min(len(rows), rng.randint(0, 12)))
        come = [
            (
                rng.choice((0, 1, None)),
                rng.choice((1, 2, None)),
                rng.choice(("1.50", "7.00", None)),
                rng.choice("ab"),
            )
            for _ in range(rng.randint(0, 4))
        ]
        bench.exchange("f", rows, come * 2, gone)
        bench.refresh()
        bench.check()
