"""Keys that are counted up follow the time: a change reads and writes what lies near its numbers."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from fivm_dbt.catalog import KeyRange, TableStatistics
from fivm_dbt.engines.duckdb.engine import DuckDbEngine
from fivm_dbt.plan.model.plan import MaintainedPlan
from fivm_dbt.refresh import measure
from fixtures.models import Bench, plan_of, relation

TABLES = {
    "raw.orders": "id bigint, customer int, price decimal(10,2)",
    "raw.steps": "order_id int, step string, at bigint",
}
RELATIONS = [relation(name, columns) for name, columns in TABLES.items()]
ROWS = 400
RANGES = {
    ("raw.orders", "id"): KeyRange(0, ROWS - 1, 20 * 2**16),
    ("raw.steps", "order_id"): KeyRange(0, ROWS - 1, 20 * 2**16),
}
"""As if each row were some thousand: ranges of 32 numbers."""

SIZES = TableStatistics.of({name: 1_000_000 for name in TABLES}, appends=False, ranges=RANGES)

QUERIES = {
    "grouped": "select order_id, min(at) as first, max(at) as last, count(*) as n from raw.steps group by order_id",
    "joined": "select o.id, o.customer, s.step, s.at from raw.orders o join raw.steps s on o.id = s.order_id",
    "a sum of a join": """
        select o.customer, s.step, count(*) as n, sum(o.price) as price
        from raw.orders o join raw.steps s on o.id = s.order_id group by o.customer, s.step
    """,
    "a left join": "select o.id, o.price, s.step from raw.orders o left join raw.steps s on o.id = s.order_id",
    "an anti join": """
        select o.id, o.price from raw.orders o
        where not exists (select 1 from raw.steps s where s.order_id = o.id and s.step = 'shipped')
    """,
    "a semi join": "select o.customer, o.price from raw.orders o where o.id in (select order_id from raw.steps)",
    "null-safe": "select o.customer, s.at from raw.orders o join raw.steps s on o.id <=> s.order_id",
    "steps of steps": """
        select step, count(*) as n, sum(next_at - at) as waited from (
            select order_id, step, at, lead(at) over (partition by order_id order by at, step) as next_at from raw.steps
        ) group by step
    """,
    "two links": """
        select a.order_id, count(*) as n from raw.orders o
        join raw.steps a on o.id = a.order_id join raw.steps b on a.order_id = b.order_id
        group by a.order_id
    """,
    "a group of a group": """
        select o.customer, max(s.n) as most from raw.orders o
        join (select order_id, count(*) as n from raw.steps group by order_id) s on o.id = s.order_id
        group by o.customer
    """,
    "both of a union": """
        select k, count(*) as n
        from (select id as k from raw.orders union all select order_id from raw.steps) group by k
    """,
}


def order(number: int | None) -> tuple[object, ...]:
    return (number, 0 if number is None else number % 7, None if number == 5 else f"{(number or 0) % 50}.00")


def steps(number: int | None) -> list[tuple[object, ...]]:
    base = 10 * (number or 0)
    return [(number, "placed", base), (number, "shipped", None if number == 9 else base + (number or 0) % 9)]


def built(name: str, *, is_counted: bool = False, **meta: object) -> Bench:
    plan = plan_of(QUERIES[name], RELATIONS, meta, SIZES)
    rows = {
        "raw.orders": [order(n) for n in range(ROWS)],
        "raw.steps": [row for n in range(ROWS) if n % 11 for row in steps(n)],
    }
    return Bench.built(plan, {i.name: rows[i.name] for i in plan.inputs}, is_counted=is_counted)


@pytest.mark.parametrize("name", QUERIES)
def test_streams(name: str) -> None:
    """New orders, late and corrected ones, numbers that are NULL, twice there or far away: as a recompute each time."""
    rng = random.Random(name)
    bench = built(name)
    inputs = {item.name for item in bench.plan.inputs}
    rows = {
        "raw.orders": [order(n) for n in range(ROWS)],
        "raw.steps": [row for n in range(ROWS) if n % 11 for row in steps(n)],
    }
    for number in range(12):
        new = [ROWS + 3 * number + n for n in range(3)]
        far = [None, -4, None, 2**31 - 1, None, 0, None, ROWS // 2]
        some = [*new[:2], rng.randrange(ROWS), far[number % len(far)]]
        for table in sorted(inputs):
            come = [
                r for n in rng.sample(some, 3) for r in ([order(n)] if table == "raw.orders" else steps(n))
            ]
            gone = rng.sample(rows[table], rng.choice([0, 0, 2, 5]))
            bench.exchange(table, rows[table], come, gone)
            if rng.random() < 0.6:
                bench.refresh()
                bench.check()
        bench.refresh()
        bench.check()


def test_a_change_reads_the_rows_near_its_numbers() -> None:
    """New orders and their steps meet a few of each other, however many there are."""
    for name, most in (("joined", 70), ("a left join", 70), ("an anti join", 70), ("a sum of a join", 70)):
        bench = built(name, is_counted=True)
        bench.engine.change("raw.orders", insert=[order(ROWS + n) for n in range(3)])
        bench.engine.change("raw.steps", insert=[row for n in range(3) for row in steps(ROWS + n)])
        read = dict(bench.refresh().scans)
        bench.check()
        assert sum(read.get(table, 0) for table in TABLES) <= most, (name, read)
        without = built(name, is_counted=True, fivm_without=["key_ranges"])
        without.engine.change("raw.orders", insert=[order(ROWS)])
        without.engine.change("raw.steps", insert=steps(ROWS))
        whole = dict(without.refresh().scans)
        assert sum(whole.get(table, 0) for table in TABLES) >= ROWS, (name, whole)


def test_numbers_far_apart_are_read_in_several_ranges() -> None:
    bench = built("joined", is_counted=True)
    bench.engine.change("raw.orders", insert=[order(1), order(ROWS - 1), order(2**40), order(None)])
    assert dict(bench.refresh().scans)["raw.steps"] <= 8
    bench.check()


def test_a_state_lies_by_ranges_of_the_key() -> None:
    """A change of new orders touches the last range alone, and one of all customers touches all."""
    bench = built("grouped")
    partitioning = bench.plan.root.partitioning
    assert partitioning.kind == "value"
    assert partitioning.reason == "ranges of 32 numbers of key order_id, which is counted up"
    bench.engine.change("raw.steps", insert=[row for n in range(5) for row in steps(ROWS + n)])
    bench.refresh()
    bench.check()
    (touched,) = bench.finished.detail["touched"]
    assert touched.endswith(str(ROWS // 32))


def test_not_of_what_nobody_has_measured() -> None:
    """Nor of what was given buckets, or has a date."""
    plan = plan_of(QUERIES["grouped"], RELATIONS, {})
    assert isinstance(plan, MaintainedPlan)
    assert plan.root.partitioning.kind == "bucket"
    assert plan.orderable == (("raw.steps", ("order_id",)),), "but it is asked for"
    for meta in ({"fivm_buckets": 4}, {"fivm_without": ["key_ranges"]}, {"fivm_strategy": "first_order"}):
        assert plan_of(QUERIES["grouped"], RELATIONS, meta, SIZES).root.partitioning.kind == "bucket"
    of_expression = "select order_id % 10 as k, count(*) as n from raw.steps group by order_id % 10"
    assert plan_of(of_expression, RELATIONS, {}, SIZES).root.partitioning.kind == "bucket"


def test_a_build_measures_in_whose_order_rows_lie(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "ORDERED_FROM", 100)
    monkeypatch.setattr(measure, "ORDERED_BYTES", 100)
    plan = plan_of(QUERIES["joined"], RELATIONS, {})
    assert isinstance(plan, MaintainedPlan)
    engine = DuckDbEngine()
    shuffled = [row for n in range(ROWS) for row in steps(n)]
    random.Random(1).shuffle(shuffled)
    for table, rows in (("raw.orders", [order(n) for n in range(ROWS)]), ("raw.steps", shuffled)):
        engine.create_table(table, relation(table, TABLES[table]).columns, rows, change_feed=True)
    found = measure.measure(plan, engine)
    assert dict(found.ranges) == {("raw.orders", "id"): KeyRange(0, ROWS - 1, ROWS)}


def test_few_rows_are_in_no_order() -> None:
    files = [KeyRange(n * 10, n * 10 + 9, 10) for n in range(20)]
    assert measure.ordered(files) is None
    assert measure.ordered([]) is None
    assert Counter(type(measure.ordered([KeyRange(f.low, f.high, 2**16) for f in files])) for _ in "a") == {
        KeyRange: 1
    }


def test_no_copy_is_kept_of_rows_that_are_read_by_their_numbers() -> None:
    """However many there are: what a change meets lies at the end of them."""
    large = TableStatistics.of({name: 500_000_000 for name in TABLES}, ranges=RANGES)
    plan = plan_of(QUERIES["steps of steps"], RELATIONS, {}, large)
    assert [v.reason for v in plan.helpers] == ["window functions below other operators"]
    without = plan_of(QUERIES["steps of steps"], RELATIONS, {"fivm_without": ["key_ranges"]}, large)
    assert len(without.helpers) > len(plan.helpers)
