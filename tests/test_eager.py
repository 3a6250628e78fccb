"""Rows of a large input are grouped before they meet the change of one dimension."""

from __future__ import annotations

import random
from typing import Any

import pytest

from fivm_dbt.catalog import TableStatistics
from fivm_dbt.explain.text import explain
from fivm_dbt.plan.keep.trees import factorise
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.viewtree.statistics import Upkeep
from fixtures.models import Bench, plan_of, relation
from fixtures.random_joins import random_join, random_row

FACT = "day date, a int, c int, delay int, cost decimal(9,2)"
TABLES = {
    "f": FACT,
    "airports": "code int, name string, fee decimal(5,2)",
    "carriers": "code int, name string",
}
SIZES = {"f": 3_300_000, "airports": 108, "carriers": 16}
VALUES = {("f", "day"): 3650, ("f", "a"): 3, ("f", "c"): 16}
DAILY = """
    select f.day, p.name as airport, l.name as carrier, count(*) as flights, count(f.delay) as departed,
        sum(f.delay) as delay, avg(f.cost) as cost, sum(f.cost * p.fee) as fees, sum(p.fee) as fee,
        sum(case when f.delay > 2 then 1 else 0 end) as late
    from f join airports p on f.a = p.code join carriers l on f.c = l.code
    group by f.day, p.name, l.name
"""


def _plan(
    sql: str = DAILY,
    tables: dict[str, str] = TABLES,
    sizes: dict[str, int] = SIZES,
    values: dict[tuple[str, str], int] = VALUES,
    **meta: object,
) -> Plan:
    measured = TableStatistics.of(sizes, values, appends=True)
    return plan_of(sql, [relation(n, c) for n, c in tables.items()], meta, measured)


def _eager(plan: Plan) -> set[str]:
    return {eager.relation for view in plan.views for eager in view.eager}


def _flight(rng: random.Random) -> tuple[object, ...]:
    day = rng.choice(["2024-01-01", "2024-01-02", None])
    return (
        day,
        rng.choice([1, 2, None]),
        rng.choice([1, 2, 9]),
        rng.choice([None, 0, 3, 7]),
        rng.choice(["1.50", None]),
    )


def _of_dimension(rng: random.Random, name: str) -> tuple[object, ...]:
    named = (rng.choice([1, 1, 2, None]), rng.choice(["x", "y", None]))
    return (*named, rng.choice(["0.25", None])) if name == "airports" else named


@pytest.mark.parametrize("seed", range(4))
def test_changes_of_one_input_and_of_several(seed: int) -> None:
    """Deletes, NULLs and duplicates; where the large input has changed too, the terms are those of the join."""
    rng, several = random.Random(seed), 0
    rows = {"f": [_flight(rng) for _ in range(30)]}
    rows |= {name: [_of_dimension(rng, name) for _ in range(3)] for name in ("airports", "carriers")}
    bench = Bench.built(_plan(), rows)
    assert _eager(bench.plan) == {"airports", "carriers"}
    both = ["airports", "carriers"]
    for changing in (["airports"], both, ["f"], ["carriers"], both, ["f", "airports"], both, both):
        for name in changing:
            come = [
                _flight(rng) if name == "f" else _of_dimension(rng, name) for _ in range(rng.randint(0, 2))
            ]
            gone = rng.sample(rows[name], min(len(rows[name]), rng.randint(0, 2)))
            bench.exchange(name, rows[name], come, gone)
        report = bench.refresh()
        bench.check()
        text = " ".join(report.statements)
        changed = {i.relation for i in report.inputs if i.inserted or i.deleted}
        if report.action == "refreshed":
            assert text.count("SEMI JOIN") == (len(changed) if "f" not in changed else 0)
            several += text.count("SEMI JOIN") == 2
    assert several


@pytest.mark.parametrize("seed", range(12))
def test_random_joins(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(factorise, "APPENDED", Upkeep(10**12, 0))  # so that no view is kept
    sql, tables = random_join(seed)
    large = random.Random(seed).choice(sorted(tables))
    sizes = {name: 10_000_000 if name == large else 10 for name in tables}
    plan = _plan(sql, {n: c for n, (c, _) in tables.items()}, sizes, {(large, c): 10 for c in "abcd"})
    bench = Bench.built(plan, {n: list(rows) for n, (_, rows) in tables.items()})
    rng = random.Random(seed)
    for item in [*plan.inputs, *plan.inputs]:
        new = [random_row(rng, len(item.relation.columns) - 1) for _ in range(3)]
        bench.engine.change(item.name, insert=new, delete=[])
        bench.refresh()
        bench.check()
    for _ in range(3):
        for item in rng.sample(plan.inputs, min(len(plan.inputs), 3)):
            new = [random_row(rng, len(item.relation.columns) - 1) for _ in range(2)]
            bench.engine.change(item.name, insert=new, delete=[])
        bench.refresh()
        bench.check()


def test_random_joins_have_some() -> None:
    """Else the test above would say nothing."""
    found = 0
    for seed in range(12):
        sql, tables = random_join(seed)
        large = random.Random(seed).choice(sorted(tables))
        sizes = {name: 10_000_000 if name == large else 10 for name in tables}
        found += bool(
            _eager(
                _plan(sql, {n: c for n, (c, _) in tables.items()}, sizes, {(large, c): 10 for c in "abcd"})
            )
        )
    assert found >= 2


WITHOUT: dict[str, tuple[str, dict[str, Any]]] = {
    "few rows": (DAILY, {"sizes": {**SIZES, "f": 50_000}}),
    "groups of few rows": (DAILY, {"values": {**VALUES, ("f", "c"): 1_000}}),
    "not measured": (DAILY, {"sizes": {}}),
    "not by one join": (
        "select f.day, count(*) as n from f join airports p on f.a > p.code group by f.day",
        {},
    ),
    "left out": (DAILY, {"fivm_without": "eager_aggregation"}),
    "static": (DAILY, {"fivm_static": ["airports", "carriers"]}),
    "another strategy": (DAILY, {"fivm_strategy": "first_order"}),
    "twice": (
        "select p.name, q.name as other, count(*) as n from f join airports p on f.a = p.code "
        "join airports q on f.c = q.code group by 1, 2",
        {},
    ),
}


@pytest.mark.parametrize("name", WITHOUT)
def test_what_is_not_grouped(name: str) -> None:
    sql, options = WITHOUT[name]
    assert not _eager(_plan(sql, **options))


def test_a_change_that_says_which_rows_it_meets_is_not_grouped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a relation by days the days of the change are read, which are few."""
    monkeypatch.setattr(factorise, "APPENDED", Upkeep(10**12, 0))
    sql = "select w.rain, f.a, sum(f.delay) as d from f join w on f.day = w.day and f.a = w.a group by w.rain, f.a"
    tables, sizes = {"f": FACT, "w": "day date, a int, rain int"}, {"f": 3_300_000, "w": 900_000}
    plan = _plan(sql, tables, sizes, {**VALUES, ("f", "c"): 1})
    assert not _eager(plan) and "reads new f where day" in explain(plan)


def test_explain_tells() -> None:
    text = explain(_plan())
    assert "term 1: (γ[f.a, f.c, f.day]((new f f ⋉ Δairports kept)) ⋈ Δairports p ⋈ new carriers l)" in text
    assert "== delta of m when f changes\nterm 1: (Δf f ⋈ old airports p ⋈ old carriers l)" in text
