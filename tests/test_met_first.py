"""What a change meets before it meets a large input is staged."""

from __future__ import annotations

import re
from collections.abc import Mapping
from random import Random

import pytest

import fivm_dbt.delta.met_first as met_first
from fivm_dbt.catalog import TableStatistics
from fivm_dbt.explain.text import explain
from fivm_dbt.refresh.engine import Row
from fixtures.models import Bench, plan_of, relation
from fixtures.random_joins import random_join, random_row
from fixtures.runs import fast_only

TABLES = {
    "n": "nk int, region string",
    "c": "ck int, nk int, segment string",
    "o": "ok int, ck int, day date",
    "l": "ok int, price decimal(12,2)",
}
MILLIONS = {"o": 1_500_000, "l": 6_000_000, "c": 150_000, "n": 25}
SEGMENTS = """
    select c.segment, o.day, sum(l.price) as revenue, count(*) as lines
    from c join o on c.ck = o.ck join l on l.ok = o.ok
    where c.segment <> 'z' and o.day < date '2024-02-01'
    group by c.segment, o.day
"""
REGIONS = """
    select n.region, sum(l.price) as revenue
    from n join c on n.nk = c.nk join o on c.ck = o.ck join l on l.ok = o.ok
    group by n.region
"""
LISTING = "select c.ck, o.ok, l.price from c join o on c.ck = o.ck join l on l.ok = o.ok"


def _bench(sql: str, rows: Mapping[str, int] | None = None, **meta: object) -> Bench:
    """A model that keeps no view of its join, over tables that are measured to have so many ``rows``."""
    measured = TableStatistics.of(MILLIONS if rows is None else rows)
    relations = [relation(name, columns) for name, columns in TABLES.items()]
    bench = Bench(plan_of(sql, relations, {"fivm_strategy": "first_order", **meta}, measured=measured))
    for item in relations:
        bench.engine.create_table(item.name, item.columns, [], change_feed=True)
    return bench


def _staged(bench: Bench) -> list[str]:
    """What is staged, by what it is over."""
    view = bench.plan.top
    formulas = (key_set.node.formula for key_set in view.key_sets)
    return [re.sub(r"\w+__fivm_root_met", "met", re.sub(r"(\w+) \w+(?= ⋈|\))", r"\1", f)) for f in formulas]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (SEGMENTS, ["(Δc ⋈ old o)"]),
        (REGIONS, ["(Δn ⋈ old c)", "(met_1 ⋈ old o)", "(Δc ⋈ old o ⋈ new n)"]),
    ],
    ids=["a dimension", "a dimension of a dimension"],
)
def test_what_is_staged(sql: str, expected: list[str]) -> None:
    assert _staged(_bench(sql)) == expected


def test_nothing_is_staged_for_small_inputs_or_where_that_is_left_out() -> None:
    small = dict.fromkeys(MILLIONS, 999_999)
    assert not _staged(_bench(SEGMENTS, small)) and not _staged(_bench(SEGMENTS, {}))
    assert not _staged(_bench(SEGMENTS, fivm_without="met_first"))


def test_lines_are_not_read_for_customers_without_orders() -> None:
    bench = _bench(SEGMENTS)
    bench.engine.change("c", insert=[(1, 1, "a"), (2, 1, "b")])
    bench.engine.change("o", insert=[(10, 1, "2024-01-01")])
    bench.engine.change("l", insert=[(10, "5.00")])
    bench.refresh()
    bench.engine.change("c", insert=[(2, 1, "c")], delete=[(2, 1, "b")])
    told = bench.refresh()
    bench.check()
    assert not any(" l VERSION" in text or "FROM l" in text for text in told.statements)
    bench.engine.change("c", insert=[(1, 1, "c")], delete=[(1, 1, "a")])
    assert bench.refresh().action == "refreshed"
    bench.check()


def test_it_is_explained() -> None:
    text = explain(_bench(SEGMENTS).plan)
    assert "-- what the change meets first, staged as" in text


def _random_rows(random: Random, name: str) -> list[Row]:
    """Some rows, a few of them alike, some keys NULL."""

    def key(most: int) -> int | None:
        return None if random.random() < 0.1 else random.randrange(most)

    day = f"2024-0{random.randrange(1, 3)}-01"
    made: dict[str, Row] = {
        "n": (key(3), random.choice("rs")),
        "c": (key(5), key(3), random.choice(["a", "b", "z", None])),
        "o": (key(8), key(5), day),
        "l": (key(8), f"{random.randrange(9)}.50"),
    }
    return [made[name]] * random.choice([1, 1, 2])


@pytest.mark.parametrize("seed", fast_only(range(2), range(10)))
@pytest.mark.parametrize("sql", [SEGMENTS, REGIONS, LISTING], ids=["segments", "regions", "a listing"])
def test_changes_of_one_input_and_of_several(sql: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(met_first, "SORTED_UP_TO", 1)
    bench, random = _bench(sql), Random(seed)
    there: dict[str, list[Row]] = {name: [] for name in TABLES}
    for name, rows in there.items():
        bench.exchange(name, rows, [row for _ in range(12) for row in _random_rows(random, name)], [])
    bench.refresh()
    for _ in range(6):
        for name in random.sample(sorted(there), random.randint(1, 3)):
            gone = random.sample(there[name], min(2, len(there[name])))
            bench.exchange(name, there[name], _random_rows(random, name), gone)
        bench.refresh()
        bench.check()


@pytest.mark.parametrize("seed", fast_only(range(3), range(30)))
def test_random_joins(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every input is large, so that all that can be is staged, one set over another."""
    monkeypatch.setattr(met_first, "SORTED_UP_TO", 1)
    sql, tables = random_join(seed)
    relations = [relation(name, columns) for name, (columns, _) in tables.items()]
    measured = TableStatistics.of(dict.fromkeys(tables, 1))
    bench = Bench(plan_of(sql, relations, {"fivm_strategy": "first_order"}, measured=measured))
    for item in relations:
        bench.engine.create_table(item.name, item.columns, tables[item.name][1], change_feed=True)
    bench.refresh()
    random = Random(seed)
    for item in relations:
        rows = [random_row(random, len(item.columns) - 1) for _ in range(3)]
        bench.engine.change(item.name, insert=rows)
        if random.random() < 0.5:
            bench.refresh()
            bench.check()
    bench.refresh()
    bench.check()
