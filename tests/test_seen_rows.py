"""Changes of rows that no filter of a model lets through are not staged, and the rest is as exact as before."""

from __future__ import annotations

import random
from typing import Any

import pytest

from fivm_dbt.refresh.engine import Row
from fixtures.models import Bench, plan_of, relation

F, D = "k int, v int, day date, note string", "k int, w int"
RELATIONS = [relation("f", F), relation("d", D)]

FOUND = {
    "select k from f where v > 1 and note = 'a'": ("v > 1", "note = 'a'"),
    "select f.k from f join d on f.k = d.k where f.v > 1 and d.w < f.v": ("v > 1",),
    "select f.k from f left join d on f.k = d.k where f.v in (1, 2)": ("v IN (1, 2)",),
    "with big as (select * from f where v > 1) select b.k, count(*) as n from big b join d on b.k = d.k group by 1": (
        "v > 1",
    ),
    # Of two reads what both have.
    "select k from f where v > 1 and k = 2 union all select k from f where k = 2 and v > 3": ("k = 2",),
    "select a.k from f a join f b on a.k = b.k where a.v > 1 and b.v > 1 and b.k < 9": ("v > 1",),
    "select k from f where v > 1 union all select k from f": (),
    # What is asked of the rows of an aggregate, or beside a row that is missing, is not asked of the input.
    "select k, sum(v) as v from f group by k having sum(v) > 1": (),
    "select d.k from d left join f on f.k = d.k where f.v is null": (),
    # What may stop the statement is asked of nothing that a recompute does not meet.
    "select k from f where 10 / v > 1 and v < 5": ("v < 5",),
    "select k from f where note > 3 or v = 1": (),
    "select k from f where day > current_date() and day < date'2030-01-01'": (
        "day < CAST('2030-01-01' AS DATE)",
    ),
}
"""Queries, and the conditions that hold of each row of ``f`` that they see."""


@pytest.mark.parametrize("strategy", ["auto", "first_order"])
@pytest.mark.parametrize("sql", FOUND)
def test_conditions_of_all_reads(sql: str, strategy: str) -> None:
    """Whether inputs are read, or kept as views without a condition that stands above a join."""
    meta: dict[str, object] = {"fivm_strategy": strategy}
    plan = plan_of(sql, RELATIONS, meta)
    assert tuple(c.sql for c in plan.input("f").conditions) == FOUND[sql]
    without = plan_of(sql, RELATIONS, {**meta, "fivm_without": ["relevant_changes"]})
    assert not without.input("f").conditions and plan.plan_hash == without.plan_hash


def test_of_a_static_input_every_change_is_told() -> None:
    plan = plan_of("select k from f where v > 1", RELATIONS, {"fivm_static": ["f"]})
    assert not plan.input("f").conditions


def _rows(rng: random.Random, count: int) -> list[Row]:
    days = ("2024-01-01", "2024-01-02", None)
    return [
        (rng.choice([1, 2, None]), rng.choice([0, 1, 2, 3, None]), rng.choice(days), rng.choice("ab"))
        for _ in range(count)
    ]


QUERIES = (
    "select k, note, sum(v) as v, count(*) as n from f where v > 1 group by 1, 2",
    "select f.k, d.w, f.note from f join d on f.k = d.k where f.v > 1 and d.w > 0",
    "select f.k, f.v, d.w from f left join d on f.k = d.k and d.w > 1 where f.v > 1 and f.note = 'a'",
    "select k, max(v) as v from f where note <> 'b' and v is not null group by k",
    "select k, v, row_number() over (partition by k order by v) as n from f where v between 1 and 2",
    "select k from f where v > 1 and k not in (select k from d where w > 1)",
)


@pytest.mark.parametrize("options", [{}, {"feed": False}, {"recreated": ["f", "d"]}])
@pytest.mark.parametrize("sql", QUERIES)
def test_rows_that_pass_from_one_side_to_the_other(sql: str, options: dict[str, Any]) -> None:
    rng = random.Random(sql)
    tables = {
        "f": (F, _rows(rng, 20)),
        "d": (D, [(rng.choice([1, 2]), rng.choice([0, 1, 2, None])) for _ in range(6)]),
    }
    bench = Bench.of(sql, tables, **options)
    assert bench.plan.input("f").conditions
    bench.refresh()
    for _ in range(4):
        gone = rng.sample(bench.engine.query("SELECT * FROM f"), 4)
        bench.engine.change("f", delete=gone, insert=_rows(rng, 4))
        if rng.random() < 0.5:
            gone = rng.sample(bench.engine.query("SELECT * FROM d"), 1)
            bench.engine.change("d", delete=gone, insert=[(rng.choice([1, 2]), rng.choice([0, 1, 2]))])
        bench.refresh()
        bench.check()


def test_what_the_model_never_sees_is_no_change() -> None:
    """The report counts what it sees, and a refresh that sees nothing writes no rows."""
    bench = Bench.of("select k, sum(v) as v from f where v > 1 group by k", {"f": (F, [(1, 2, None, "a")])})
    bench.refresh()
    bench.engine.change("f", insert=[(1, 1, None, "a"), (2, 0, None, "b")])
    assert bench.refresh().action == "no change"
    bench.engine.change("f", insert=[(1, 1, None, "a"), (2, 7, None, "b")], delete=[(2, 0, None, "b")])
    report = bench.refresh()
    assert report.action == "refreshed"
    assert [(i.inserted, i.deleted) for i in report.inputs] == [(1, 0)]
    bench.check()
