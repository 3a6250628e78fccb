"""What a change looks for in a large relation is found by its keys first."""

from __future__ import annotations

import random
from datetime import datetime, timedelta

import pytest

from fivm_dbt.catalog import TableStatistics
from fivm_dbt.ir.clock import Clock
from fixtures.models import Bench, plan_of, relation

TABLES = {
    "raw.l": "k int, g string, x int",
    "raw.m": "k int, h int",
    "raw.r": "k int, g string, y int",
    "raw.t": "n string",
    "raw.u": "n string",
}
RELATIONS = [relation(name, columns) for name, columns in TABLES.items()]
LARGE = TableStatistics.of({name: 5_000_000 for name in TABLES})

QUERIES = {
    "anti": "select l.k, l.x from raw.l l where not exists (select 1 from raw.r r where r.k = l.k and r.g = l.g)",
    "semi": "select l.k, l.x from raw.l l where l.k in (select k from raw.r where y > 2)",
    "left": "select l.k, l.x, r.y from raw.l l left join raw.r r on l.k = r.k and l.x < r.y",
    "null-safe": "select l.k, l.x, r.y from raw.l l left join raw.r r on l.k <=> r.k",
    "not in": "select l.x from raw.l l where l.k not in (select k from raw.r where k is not null) and l.k is not null",
    "full": "select l.k, l.x, r.k as rk, r.y from raw.l l full join raw.r r on l.k = r.k and l.g = r.g",
    "of a join": """
        select l.x, m.h, r.y from raw.l l join raw.m m on l.k = m.k left join raw.r r on m.h = r.k
    """,
    "of an expression": """
        select k, x, y from (select k + 1 as k, x from raw.l) l left join (select k as rk, y from raw.r) r on l.k = r.rk
    """,
    "two in a row": """
        select l.k, m.h, r.y from raw.l l left join raw.m m on l.k = m.k left join raw.r r on l.g = r.g and l.k = r.k
    """,
    "of a group": """
        select l.k, count(*) as n, count(r.y) as found from raw.l l left join raw.r r on l.k = r.k group by l.k
    """,
    "of an anti join": """
        select l.k from raw.l l
        where not exists (select 1 from raw.m m where m.k = l.k) and not exists (select 1 from raw.r r where r.k = l.k)
    """,
    "of no partner": """
        select l.x, r.y from raw.l l left join (values (1), (2)) as v(k) on l.k = v.k left join raw.r r on v.k <=> r.k
    """,
    "of texts and numbers": """
        select t.n, l.x from raw.t t join raw.l l on t.n = l.k left join raw.t s on s.n = t.n
        where exists (select 1 from raw.u u where u.n = l.k)
    """,
    "of a union": """
        select a.k, r.y from (select k from raw.l union all select h from raw.m) a left join raw.r r on a.k = r.k
    """,
}


def row(rng: random.Random, table: str) -> tuple[object, ...]:
    key, group = rng.choice([*range(6), None]), rng.choice(["a", "b", None])
    number = rng.choice([*range(5), None])
    if table in ("raw.t", "raw.u"):
        return (rng.choice(["1", "01", "2", "02", "4", None]),)
    return (key, number) if table == "raw.m" else (key, group, number)


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("strategy", ["auto", pytest.param("first_order", marks=pytest.mark.more)])
def test_streams(name: str, strategy: str) -> None:
    """Rows that come and go on both sides at once, NULLs, and rows that are there twice."""
    rng = random.Random(f"{name} {strategy}")
    plan = plan_of(QUERIES[name], RELATIONS, {"fivm_strategy": strategy}, LARGE)
    rows = {item.name: [row(rng, item.name) for _ in range(12)] for item in plan.inputs}
    bench = Bench.built(plan, rows)
    for _ in range(20):
        for table in rng.sample(sorted(rows), rng.randint(1, len(rows))):
            gone = rng.sample(rows[table], min(len(rows[table]), rng.choice([0, 1, 3])))
            bench.exchange(table, rows[table], [row(rng, table) for _ in range(rng.choice([0, 1, 3]))], gone)
        bench.refresh()
        bench.check()


@pytest.mark.parametrize("name", ["anti", "semi", "left", "of a join", "two in a row", "of a union"])
def test_every_large_right_side_is_reduced(name: str) -> None:
    formulas = [
        t.node.formula for view in plan_of(QUERIES[name], RELATIONS, {}, LARGE).views for t in view.terms
    ]
    sides = [f for f in formulas if "⟕" in f or "▷" in f]
    assert all("⋉ Δ" in formula for formula in sides), sides


def test_small_ones_are_not() -> None:
    """Nor what nobody has measured, or what is to be left out."""
    small = TableStatistics.of({name: 50 for name in TABLES})
    for measured, meta in ((small, {}), (None, {}), (LARGE, {"fivm_without": ["sought"]})):
        terms = plan_of(QUERIES["anti"], RELATIONS, meta, measured).top.terms
        assert all("▷ (" not in term.node.formula for term in terms)
    assert any("▷ (" in t.node.formula for t in plan_of(QUERIES["anti"], RELATIONS, {}, LARGE).top.terms)


@pytest.mark.parametrize("is_anti", [True, False])
def test_where_rows_only_come_one_side_is_read(is_anti: bool) -> None:
    """Facts that are only inserted take rows from an anti join, and give some to a semi join."""
    found = "exists (select 1 from raw.r r where r.k = l.k)"
    sql = f"select l.k, l.x from raw.l l where {'not' if is_anti else ''} {found}"
    rng = random.Random(3)
    plan = plan_of(sql, RELATIONS, {}, LARGE)
    rows = {item.name: [row(rng, item.name) for _ in range(40)] for item in plan.inputs}
    bench = Bench.built(plan, rows, is_counted=True)
    bench.exchange("raw.r", rows["raw.r"], [row(rng, "raw.r") for _ in range(5)], [])
    came = dict(bench.refresh().scans)
    bench.check()
    bench.exchange(
        "raw.r", rows["raw.r"], [row(rng, "raw.r") for _ in range(5)], rng.sample(rows["raw.r"], 5)
    )
    both = dict(bench.refresh().scans)
    bench.check()
    assert came["raw.l"] < both["raw.l"] and came["raw.r"] < both["raw.r"]


def test_what_comes_with_time_is_no_change_of_an_input() -> None:
    """Of a table that never changes rows come into sight and go."""
    sql = (
        "select l.k from raw.l l where not exists (select 1 from r where r.k = l.k and r.d >= current_date())"
    )
    days = [(k, f"2024-05-{day:02}") for k, day in ((1, 1), (1, 4), (2, 2), (3, 9), (None, 3))]
    tables = {
        "raw.l": (TABLES["raw.l"], [(k, "a", 0) for k in (1, 2, 2, 3, None)]),
        "r": ("k int, d date", days),
    }
    bench = Bench.of(sql, tables, static=["r"])
    start = datetime(2024, 5, 1, 12)
    bench.engine.fixed_clock = Clock.at(start)
    bench.refresh()
    bench.check()
    for later in range(1, 12):
        bench.engine.fixed_clock = Clock.at(start + timedelta(days=later))
        if later % 3 == 0:
            bench.engine.change("raw.l", insert=[(later % 4, "b", later)])
        bench.refresh()
        assert bench.shown() == bench.newest()


def test_a_text_does_not_tell_what_a_number_is_equal_to() -> None:
    """'1' and '01' are both 1, and not each other."""
    sql = "select l.x from raw.l l where exists (select 1 from raw.u u where u.n = l.k)"
    plan = plan_of(sql, RELATIONS, {}, LARGE)
    bench = Bench.built(plan, {"raw.l": [(1, "a", 7), (2, "a", 8)], "raw.u": [("1",), ("01",), ("02",)]})
    bench.changed("raw.u", delete=[("01",)])
    bench.changed("raw.u", insert=[("2",)], delete=[("1",)])
    bench.changed("raw.u", insert=[("001",)], delete=[("02",)])
    plan = plan_of(QUERIES["of texts and numbers"], RELATIONS, {}, LARGE)
    bench = Bench.built(plan, {"raw.l": [(1, "a", 7)], "raw.t": [("2",)], "raw.u": [("01",)]})
    bench.changed("raw.t", insert=[("1",)])
