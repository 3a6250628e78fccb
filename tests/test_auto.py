"""``fivm_strategy: auto``: what it keeps of view trees by the sizes of the inputs, and that this is exact too."""

from __future__ import annotations

import random
from datetime import date, datetime

import pytest

import fivm_dbt.plan.keep.trees.factorise as factorise
from fivm_dbt.catalog import Catalog, TableStatistics
from fivm_dbt.config import load_config
from fivm_dbt.explain.text import explain
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.plan.planner import plan_model
from fivm_dbt.plan.request import ModelRequest
from fivm_dbt.viewtree.statistics import Upkeep
from fixtures.models import Bench, relation
from fixtures.random_joins import random_join, random_row

TABLES = {
    "l": "ok int, day date, price decimal(12,2), disc decimal(4,2)",
    "o": "ok int, ck int",
    "c": "ck int, nk int, seg string",
    "n": "nk int, name string",
}
FOUR = """select n.name, c.seg, count(*) as lines, sum(l.price * (1 - l.disc)) as revenue
from l join o on l.ok = o.ok join c on o.ck = c.ck join n on c.nk = n.nk group by 1, 2"""
SIZES = {"l": 60_000_000, "o": 5_000, "c": 500, "n": 25}


def _plan(
    sql: str, tables: dict[str, str], sizes: dict[str, int] | None, *, appends: bool = False, **meta: object
) -> Plan:
    catalog = Catalog.of([relation(name, columns) for name, columns in tables.items()])
    measured = TableStatistics.of(sizes, appends=appends) if sizes is not None else None
    return plan_model(ModelRequest("analytics.m", sql, catalog, load_config(meta), measured=measured))


def test_a_large_fact_is_added_up_by_what_joins_it() -> None:
    plan = _plan(FOUR, TABLES, SIZES)
    (view,) = plan.helpers
    assert view.reason.startswith("view of l by ok")
    text = explain(plan)
    assert "5,000 rows for 60,000,000 that deltas of o would read" in text
    assert "not kept, a copy of o: 5,000 of its 5,000 rows" in text


def test_a_join_as_large_as_its_inputs_is_not_kept() -> None:
    by_day = FOUR.replace("select ", "select l.day, ").replace("by 1, 2", "by 1, 2, 3")
    plan = _plan(by_day, TABLES, {"l": 6_000_000, "o": 1_500_000, "c": 150_000, "n": 25})
    assert not plan.helpers
    assert "1,500,000 rows for 1,650,025 that deltas of l would read: fewer than" in explain(plan)


@pytest.mark.parametrize("sizes", [None, {n: rows // 1000 + 1 for n, rows in SIZES.items()}, {}])
def test_nothing_is_kept_of_small_tables_or_unmeasured_ones(sizes: dict[str, int] | None) -> None:
    """Then a plan is the one that it would be without any view tree; explain says why, where sizes are known."""
    sizes = sizes if sizes != {} else dict.fromkeys(SIZES, 1)
    plan = _plan(FOUR, TABLES, sizes)
    assert not plan.helpers and bool(plan.view_trees) is (sizes is not None)
    assert ("fewer than its upkeep is worth" in explain(plan)) is (sizes is not None)
    assert plan.signature == _plan(FOUR, TABLES, None).signature


def test_another_strategy_is_not_chosen_for() -> None:
    assert not _plan(FOUR, TABLES, SIZES, fivm_strategy="first_order").helpers
    every = _plan(FOUR, TABLES, SIZES, fivm_strategy="factorized").helpers
    assert len(every) == len(_plan(FOUR, TABLES, None, fivm_strategy="factorized").helpers) > 1


def test_the_same_sizes_give_the_same_plan() -> None:
    assert _plan(FOUR, TABLES, SIZES).to_json() == _plan(FOUR, TABLES, SIZES).to_json()


def _choosing(seed: int) -> dict[str, int]:
    """Sizes that have some views kept and others not."""
    rng = random.Random(seed)
    return {f"t{i}": rng.choice([10, 10_000, 10_000_000]) for i in range(4)}


@pytest.mark.more
def test_random_joins_are_exact_whatever_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(factorise, "APPENDED", Upkeep(0, 0))
    kept = refreshed = 0
    for seed in range(20):
        sql, tables = random_join(seed)
        plan = _plan(sql, {n: c for n, (c, _) in tables.items()}, _choosing(seed), appends=True)
        kept += bool(plan.view_trees)
        bench = Bench(plan)
        for item in plan.inputs:
            bench.engine.create_table(
                item.name, item.relation.columns, tables[item.name][1], change_feed=True
            )
        bench.refresh()
        bench.check()
        rng = random.Random(seed)
        for _ in range(2):
            for item in plan.inputs:
                bench.engine.change(
                    item.name, insert=[random_row(rng, len(item.relation.columns) - 1) for _ in range(3)]
                )
            refreshed += bench.refresh().action == "refreshed"
            bench.check()
    assert kept >= 5 and refreshed >= 20


COPYING = {
    "ranks": ("select k, v, row_number() over (partition by k order by v) as n from f", 0),
    "all ranks": ("select k, v, row_number() over (order by v, k) as n from f", 0),
    "largest": ("select k, max(v) as v, count(distinct v) as n from f group by k", 0),
    "outer": ("select f.k, f.v, d.w from f left join d on f.k = d.k", 0),
    "without": ("select f.k, f.v from f where not exists (select 1 from d where d.k = f.k and d.w < f.v)", 0),
    # The sums by key, of which those above a bound choose rows of d; d itself is not kept.
    "chosen": ("select d.k, d.w from d where d.k in (select k from f group by k having sum(v) > 5)", 1),
    # Both are joined with sums, which are kept.
    "beside sums": (
        "select f.k, f.v, s.n from f join (select k, count(*) as n from d group by k) s on s.k = f.k",
        1,
    ),
}
"""Queries of which inputs were copied, and how many views are kept where they are not."""


@pytest.mark.parametrize("name", COPYING)
def test_what_is_an_input_once_more_is_not_kept(name: str) -> None:
    """A change of some keys meets all few partitions of a copy. Of a large input it meets some of many."""
    sql, views = COPYING[name]
    tables = {"f": "k int, v int", "d": "k int, w int"}
    small = _plan(sql, tables, {"f": 20_000_000, "d": 1_000})
    assert len(small.helpers) == views
    large = _plan(sql, tables, {"f": 20_000_001, "d": 20_000_001})
    assert len(large.helpers) > views and large.signature == _plan(sql, tables, None).signature
    rng = random.Random(name)
    bench = Bench.built(small, {n: [_of_few(rng) for _ in range(30)] for n in tables})
    for _ in range(4):
        for each in (item.name for item in small.inputs):
            gone = rng.sample(bench.engine.query(f"SELECT * FROM {each}"), 3)
            bench.engine.change(each, insert=[_of_few(rng) for _ in range(3)], delete=gone)
        bench.refresh()
        bench.check()


def test_who_wants_buckets_has_copies_in_them() -> None:
    sql, _ = COPYING["ranks"]
    tables, sizes = {"f": "k int, v int"}, {"f": 1_000_000}
    assert not _plan(sql, tables, sizes).helpers and _plan(sql, tables, sizes, fivm_buckets=64).helpers


def _of_few(rng: random.Random) -> tuple[int | None, int | None]:
    return rng.choice([None, 1, 2, 3, 4]), rng.choice([None, 1, 2, 3])


OF_USE = {
    "by day": "select day, v, row_number() over (partition by day order by v) as n from f",
    "chosen": "select k, v, row_number() over (partition by k order by v) as n from f where v > 3",
    "days of a key": "select k, at, lead(at) over (partition by k order by at, v) as n from f",
}
"""Changes lie in few days of a view, a filter may leave few rows: an input is read instead where that is no work."""


@pytest.mark.parametrize("name", OF_USE)
def test_a_small_input_is_read_whatever_is_wanted_of_it(name: str) -> None:
    sql, tables = OF_USE[name], {"f": "day date, at timestamp, k int, v int"}
    kept = _plan(sql, tables, {"f": 2_000_001})
    assert kept.helpers and kept.signature == _plan(sql, tables, None).signature
    small = _plan(sql, tables, {"f": 2_000_000})
    assert not small.helpers
    rng = random.Random(name)
    bench = Bench.built(small, {"f": [_of_a_day(rng) for _ in range(30)]})
    for _ in range(4):
        gone = rng.sample(bench.engine.query("SELECT * FROM f"), 3)
        bench.engine.change("f", insert=[_of_a_day(rng) for _ in range(3)], delete=gone)
        bench.refresh()
        bench.check()


def _of_a_day(rng: random.Random) -> tuple[date | None, datetime | None, int | None, int | None]:
    day = rng.choice([None, *(date(2024, month, 3) for month in (1, 2, 3))])
    at = None if day is None else datetime(day.year, day.month, day.day, rng.randrange(24))
    return day, at, rng.choice([None, 1, 2, 3, 4]), rng.choice([None, 1, 4, 5])


def test_one_look_at_all_rows_needs_no_second_copy_of_them() -> None:
    """The best groups are found among the sums, which are kept already."""
    sql = "select k, sum(v) as v from f group by k order by v desc, k limit 3"
    (view,) = _plan(sql, {"f": "k int, v int"}, None).helpers
    assert view.reason == "an aggregate below other operators, by addition"


@pytest.mark.parametrize(("facts", "unit"), [(40_000, "year"), (40_000_000, "month")])
def test_few_rows_a_month_are_kept_by_year(facts: int, unit: str) -> None:
    """A file for some hundred rows takes as long as one for some thousand."""
    sql = "select l.day, l.ok, o.ck, sum(l.price) as price from l join o on l.ok = o.ok group by 1, 2, 3"
    sizes = {("l", "day"): 2_000, ("l", "ok"): facts, ("o", "ok"): facts, ("o", "ck"): 10}
    measured = TableStatistics.of({"l": facts, "o": facts}, sizes)
    catalog = Catalog.of([relation(name, columns) for name, columns in TABLES.items()])
    for meta, expected in (({}, unit), ({"batch_size": "day"}, "day")):
        request = ModelRequest("analytics.m", sql, catalog, load_config(meta), measured=measured)
        assert plan_model(request).root.partitioning.reason.startswith(f"{expected} of key day")
