"""Subqueries and windows inside other ones, where fuzzed texts once crashed: the rows are those of the recompute."""

from __future__ import annotations

import random

import pytest

from fivm_dbt.sql.edits import edited
from fixtures.models import Bench, plan_of, relation

TABLES = {
    "r": ("id int, k int, x int", [(i, i % 3, i % 5) for i in range(12)]),
    "s": ("id int, k int, x int", [(i, i % 4, i % 3) for i in range(10)]),
}
COUNTED = "select t.k, (select count(*) from s where s.k = t.k and s.x > 0) as n from (select distinct k from s) as t"
TEXTS = {
    "a total in a condition on both sides": "select k, x from r where exists "
    "(select 1 from s where s.k = if(r.x > (select avg(x) from s), 1, 2))",
    "the same, negated": "select k, x from r where not exists "
    "(select 1 from s where s.k = case when r.x >= (select max(x) from s) then r.k else s.x end)",
    "IN": "select k, x from r where x in (select s.x from s "
    "where s.k + r.k > (select count(*) from s i where i.x = s.x))",
    "the same rows joined with themselves": f"select a.k, a.n, b.n as m from ({COUNTED}) a "
    f"join ({COUNTED}) b on a.k = b.k",
}


@pytest.mark.parametrize("strategy", ["auto", "factorized"])
@pytest.mark.parametrize("name", TEXTS)
def test_exact(name: str, strategy: str) -> None:
    bench = Bench.of(TEXTS[name], TABLES, {"fivm_strategy": strategy})
    bench.refresh()
    bench.check()
    rng = random.Random(name)
    for number in range(100, 130, 5):
        for table in TABLES:
            gone = rng.sample(bench.engine.query(f"SELECT * FROM {table}"), 3)
            come = [
                (number + i, rng.choice([None, 0, 1, 2]), rng.choice([None, *range(4)])) for i in range(3)
            ]
            bench.engine.change(table, insert=[*come, come[0]], delete=gone)
        bench.refresh()
        bench.check()


def test_a_window_in_the_definition_of_a_window_is_completed_where_it_stands_and_where_it_is_written_out() -> (
    None
):
    """DuckDB has no such windows; Spark has. RANK needs no more than what stands in the definition."""
    sql = (
        "select id, row_number() over v as a, rank() over w as b from r "
        "window w as (partition by row_number() over (partition by k order by x) order by x), v as w"
    )
    declared = relation("r", "id int, k int, x int", keys=(("id",),))
    inner = "row_number() over (partition by k order by x, r.id)"
    assert edited(sql, plan_of(sql, [declared]).completions) == (
        f"select id, row_number() over (partition by {inner} order by x, r.id) as a, rank() over w as b from r "
        f"window w as (partition by {inner} order by x), v as w"
    )
