"""Aggregates that are correlated by an inequality: each way to keep them is exact, and ``auto`` takes the cheapest."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from datetime import date, datetime, timezone
from decimal import Decimal
from itertools import product

import pytest

from cached_statements import cache_statements
from fivm_dbt.catalog import Catalog, TableStatistics
from fivm_dbt.config import load_config
from fivm_dbt.delta.term import scans
from fivm_dbt.engines.duckdb.engine import DuckDbEngine
from fivm_dbt.errors import FivmError
from fivm_dbt.explain.operators import reads_in_full
from fivm_dbt.explain.text import explain
from fivm_dbt.ir.clock import Clock
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.plan.planner import plan_model
from fivm_dbt.plan.request import ModelRequest
from fivm_dbt.refresh.engine import Row
from fivm_dbt.testing.scenario_plans import Forced
from fivm_dbt.viewtree.inequality_costs import Sizes, costs
from fixtures.models import Bench, Interrupted, Interrupting, relation
from fixtures.runs import by_run, fast_only
from generator.cases import random_case
from generator.constructs import Menu
from generator.differential import plan_case, run_random, tiny_workbench

WAYS = ("reevaluate", "parameterised", "ranges")
VWAP = """select sum(b1.price * b1.volume) as vwap from bids b1
where 0.25 * (select sum(b3.volume) from bids b3) > (select sum(b2.volume) from bids b2 where b2.price > b1.price)"""
BIDS = {"bids": "broker int, price bigint, volume bigint"}
TWO = {"l": "k int, c bigint, v int", "r": "k int, x bigint, v int"}

QUERIES: dict[str, tuple[dict[str, str], str]] = {
    "vwap": (BIDS, VWAP),
    "vwap by broker": (
        BIDS,
        """select b1.broker, sum(b1.price * b1.volume) as vwap, count(*) as n from bids b1
        where 0.25 * (select sum(b3.volume) from bids b3 where b3.broker = b1.broker)
            > (select sum(b2.volume) from bids b2 where b2.broker = b1.broker and b2.price > b1.price)
        group by b1.broker having count(*) > 1""",
    ),
    "at or above": (
        BIDS,
        "select b1.*, (select sum(volume) from bids b2 where b2.price >= b1.price) as s from bids b1",
    ),
    "below": (TWO, "select l.k, l.c, (select count(*) from r where r.x < l.c) as n from l"),
    "at or below": (TWO, "select l.k, (select avg(r.v) from r where l.c >= r.x) as a, l.v from l"),
    "outer first": (TWO, "select l.c from l where (select sum(r.v) from r where l.c < r.x) > 2"),
    "count of a column": (TWO, "select l.c, (select count(r.v) + 1 from r where r.x > l.c) as n from l"),
    "beside an equality": (TWO, "select l.k, (select sum(r.v) from r where r.k = l.k and r.x > l.c) as s from l"),
    "beside an equality that knows NULL": (
        TWO,
        "select l.k, (select sum(r.v) from r where r.k <=> l.k and r.x <= l.c) as s from l",
    ),
    "beside conditions of one side": (
        TWO,
        "select l.k, (select sum(r.v) from r where r.v > 0 and l.v < 3 and r.x > l.c) as s from l",
    ),
    "both ways": (
        TWO,
        """select l.c, (select sum(r.v) from r where r.x > l.c) as above,
            (select sum(r.v) from r where r.x < l.c) as below
        from l where (select count(*) from r where r.x <= l.c) > 1""",
    ),
    "over a group": (
        TWO,
        """select l.k, sum(l.v) as v, max((select sum(r.v) from r where r.x > l.c)) as s
        from l group by l.k having sum(l.v) > (select min(x) from r)""",
    ),
    "compared after grouping": (
        TWO,
        """select g.k, g.c, (select sum(r.v) from r where r.x > g.c) as s
        from (select k, sum(c) as c from l group by k) g""",
    ),
    "inner join": (
        {**TWO, "t": "k int, f bigint"},
        "select l.c, (select sum(r.v * t.f) from r join t on r.k = t.k where r.x > l.c and t.f > 0) as s from l",
    ),
    "of a join": (
        {**TWO, "t": "k int, f bigint"},
        "select l.c, (select sum(r.v * t.f) from r join t on r.k = t.k where t.f > l.c) as s from l",
    ),
    "in a union": (
        TWO,
        "select k, (select sum(r.v) from r where r.x > l.c) as s from l union all select k, v from r",
    ),
    "under a semi join": (
        TWO,
        """select l.k from l where (select sum(r.v) from r where r.x > l.c) > 0
        and exists (select 1 from r where r.k = l.k)""",
    ),
    "a sum over another outer join": (
        TWO,
        """select l.k, sum(l.v) as s from l left join r t on l.k = t.k
        where (select sum(r.v) from r where r.x < l.c) > coalesce(t.v, 0) group by l.k""",
    ),
    "ranked": (
        TWO,
        """select l.k, l.c, rank() over (partition by l.k order by (select count(*) from r where r.x > l.c)) as n
        from l""",
    ),
    "an expression": (TWO, "select l.c, (select sum(r.v) from r where r.x + 1 > l.c * 2) as s from l"),
    "narrower": (
        {"l": "c smallint, v int", "r": "x bigint, v bigint"},
        "select l.v, (select sum(r.v) from r where r.x > l.c) as s from l",
    ),
}  # fmt: skip

TYPED: dict[str, tuple[str, str, list[object]]] = {
    "decimals": (
        "decimal(9,2)",
        "decimal(10,3)",
        [Decimal(n) for n in ("-3.25", "-3.26", "0.00", "0.01", "2.56", "99999.99")],
    ),
    "decimal and int": ("decimal(9,2)", "int", [-257, -256, -1, 0, 1, 255, 256]),
    "dates": (
        "date",
        "date",
        [date(1969, 12, 31), date(1970, 1, 1), date(1, 1, 1), date(2024, 2, 29), date(9999, 1, 1)],
    ),
    "timestamps": (
        "timestamp",
        "timestamp",
        [datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(1970, 1, 1), datetime(2024, 2, 29, 12)],
    ),
    "strings": ("string", "string", ["", "a", "B", "ab", "é"]),
    "doubles": ("double", "double", [-1.5, 0.0, 2.25, float("inf")]),
    "wide decimals": ("decimal(30,2)", "decimal(30,2)", [Decimal("-1.00"), Decimal("123456789012345678901.25")]),
}  # fmt: skip

_CONSTRUCTS = (
    "scalar in where,scalar in select,scalar in having,correlated inequality,sum,count,avg,where,group by,having,"
    "inner join,case,cte,subquery,union all,exists,left join,window,rank,max,distinct,full join,theta,rollup,under or"
)
INEQUALITIES = Menu(
    {
        **Menu.only(*_CONSTRUCTS.split(",")).weights,
        "correlated inequality": 60,
        "scalar in where": 15,
        "scalar in select": 20,
    }
)

SEEDS = range(200, 208)

NUMBERS = (-70_000, -257, -256, -255, -3, -2, -1, 0, 1, 2, 3, 255, 256, 257, 65_536)


def _row(rng: random.Random, columns: str) -> Row:
    def value(name: str) -> object:
        if rng.random() < 0.1:
            return None
        return rng.choice([0, 1, 2]) if name in ("k", "broker") else rng.choice(_few(rng, name))

    return tuple(value(column.strip().split(" ")[0]) for column in columns.split(","))


def _few(rng: random.Random, name: str) -> tuple[int, ...]:
    """Keys in neighbouring and in distant buckets; small numbers to be added up."""
    return NUMBERS if name in ("c", "x", "price") and rng.random() < 0.6 else (-2, -1, 0, 1, 2, 3)


def _steps(rng: random.Random, bench: Bench, tables: dict[str, str]) -> Iterator[None]:
    """Inserts, deletes and updates of single tables and of several, copies, and everything gone and back."""
    there: dict[str, list[Row]] = {name: [] for name in tables}

    def change(name: str, come: list[Row], go: list[Row]) -> None:
        for row in go:
            there[name].remove(row)
        there[name] += come
        bench.engine.change(name, insert=come, delete=go)

    for number in range(8):
        for name in tables if number % 3 == 0 else [rng.choice([*tables])]:
            come = [_row(rng, tables[name]) for _ in range(rng.randint(0, 5))]
            come += rng.sample(there[name], min(len(there[name]), rng.choice([0, 1])))
            change(name, come, rng.sample(there[name], rng.randint(0, len(there[name]) // 2)))
        yield
    gone = {name: list(rows) for name, rows in there.items()}
    for name, rows in gone.items():
        change(name, [], rows)
        yield
    for name, rows in gone.items():
        change(name, rows, [])
    yield


def _exact(sql: str, tables: dict[str, str], way: str, seed: int, **meta: object) -> Bench:
    rng = random.Random(seed)
    first = {n: (c, [_row(rng, c) for _ in range(rng.choice([0, 6]))]) for n, c in tables.items()}
    empty = {n: (c, []) for n, (c, _) in first.items()}
    bench = Bench.of(sql, empty, {"fivm_inequality": way, **meta})
    for name, (_, rows) in first.items():
        bench.engine.change(name, insert=rows)
    bench.refresh()
    bench.check()
    steps = _steps(rng, bench, tables)
    # The steps know of the rows that they have brought themselves; the first ones stay.
    for _ in steps:
        assert bench.refresh().action in ("refreshed", "no change", "unchanged")
        bench.check()
    return bench


FAST = {
    "vwap": "ranges",
    "vwap by broker": "parameterised",
    "in a union": "ranges",
    "over a group": "reevaluate",
}
OTHERS = [name for name in QUERIES if name not in FAST]
EACH = [
    *fast_only(FAST.items(), product((*FAST, *OTHERS[::2]), WAYS)),
    *(pytest.param(*each, marks=pytest.mark.long) for each in product(OTHERS[1::2], WAYS)),
]


@pytest.fixture
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    cache_statements(monkeypatch)


@pytest.mark.usefixtures("_quick")
@pytest.mark.parametrize(("name", "way"), EACH)
def test_each_way_is_exact(name: str, way: str) -> None:
    tables, sql = QUERIES[name]
    if name == "an expression" and way == "ranges":
        return  # which is refused, as the next test says
    _exact(sql, tables, way, seed=len(name))


def test_sums_of_outer_rows_are_joined_with_nothing_that_is_kept() -> None:
    """A join with them would be a bag of payloads, of which a part can be taken away that was never there."""
    sql = QUERIES["a sum over another outer join"][1]
    plan = _plan(sql, TWO, fivm_inequality="reevaluate")
    sums = next(view.name for view in plan.helpers if view.is_payload)
    assert not any(sums in {s.relation for s in scans(view.core)} for view in plan.helpers)
    _exact(sql, TWO, "reevaluate", 5, fivm_strategy="factorized")


FAST_TYPES = {
    *((name, "ranges") for name in ("decimal and int", "strings", "wide decimals")),
    *(("dates", "parameterised"), ("timestamps", "reevaluate"), ("doubles", "reevaluate")),
}


@pytest.mark.usefixtures("_quick")
@pytest.mark.parametrize(("name", "way"), fast_only(FAST_TYPES, product(TYPED, WAYS)))
def test_types(name: str, way: str) -> None:
    c, x, values = TYPED[name]
    sql = """select l.c, (select sum(r.v) from r where r.x > l.c) as above,
        (select count(*) from r where r.x <= l.c) as n from l"""
    tables = {"l": (f"c {c}, v int", []), "r": (f"x {x}, v int", [])}
    if way == "ranges" and name in ("strings", "doubles", "wide decimals"):
        with pytest.raises(FivmError, match="ranges do not apply: "):
            Bench.of(sql, tables, {"fivm_inequality": way})
        return
    rng = random.Random(7)
    bench = Bench.of(sql, tables, {"fivm_inequality": way})
    bench.refresh()
    there: dict[str, list[Row]] = {"l": [], "r": []}
    for _ in range(6):
        for table, rows in there.items():
            come: list[Row] = [(rng.choice([*values, None]), rng.choice([1, 2, None])) for _ in range(4)]
            go = [rows.pop(rng.randrange(len(rows))) for _ in range(len(rows) // 2)]
            rows += come
            bench.engine.change(table, insert=come, delete=go)
        bench.refresh()
        bench.check()


@pytest.mark.parametrize("way", fast_only(["ranges"], WAYS))
def test_sums_of_doubles_that_are_maintained_by_addition(way: str) -> None:
    """Halves and quarters add up exactly in any order, NaN and infinities come and go by their counts."""
    sql = """select l.c, (select sum(r.w) from r where r.x > l.c) as s,
        (select avg(r.w) from r where r.x <= l.c) as a from l"""
    tables = {"l": ("c int", [(1,), (2,)]), "r": ("x int, w double", [(0, 0.5), (2, 0.25), (3, None)])}
    bench = Bench.of(sql, tables, {"fivm_inequality": way, "fivm_float": "approximate"})
    bench.refresh()
    bench.check()
    bench.engine.change("r", insert=[(3, -1.5), (1, float("inf"))])
    bench.refresh()
    bench.check()
    bench.engine.change("r", delete=[(1, float("inf")), (0, 0.5)])
    bench.engine.change("l", insert=[(0,), (None,)], delete=[(1,)])
    bench.refresh()
    bench.check()


@pytest.mark.parametrize("way", fast_only(["parameterised"], WAYS))
def test_the_clock_moves_alone(way: str) -> None:
    sql = """select l.d, (select sum(r.v) from r where r.x > l.c) as s, (select count(*) from r where r.x > l.c) as n
        from l where l.d >= current_date() or (select sum(r.v) from r where r.x > l.c) > 7"""
    tables = {
        "l": ("d date, c int", [(date(2024, 1, 1), 1), (date(2024, 1, 3), 2), (None, 0)]),
        "r": ("x int, v int", [(2, 3), (3, 4)]),
    }
    bench = Bench.of(sql, tables, {"fivm_inequality": way})
    for day in (1, 2, 4, 3):
        bench.engine.fixed_clock = Clock.at(datetime(2024, 1, day, 12, tzinfo=timezone.utc))
        bench.refresh()
        bench.check()
    bench.engine.change("r", insert=[(1, 1)])
    bench.engine.fixed_clock = Clock.at(datetime(2024, 1, 1, 12, tzinfo=timezone.utc))
    bench.refresh()
    bench.check()


@pytest.mark.parametrize("way", WAYS)
def test_what_is_added_up_never_changes(way: str) -> None:
    sql = "select l.k, l.c, (select sum(r.v) from r where r.x > l.c) as s from l join t on l.k = t.k"
    rows: list[Row] = [(1, n, n % 3) for n in range(5)]
    tables = {"l": (TWO["l"], [(1, 2, 0), (2, 3, 0)]), "r": (TWO["r"], rows), "t": ("k int", [(1,), (1,)])}
    bench = Bench.of(sql, tables, {"fivm_inequality": way}, static=["r", "t"])
    bench.refresh()
    bench.check()
    bench.engine.change("l", insert=[(1, 0, 0), (1, None, 0)], delete=[(1, 2, 0)])
    assert bench.refresh().action == "refreshed"
    bench.check()
    assert not {"r", "t"} & {r for view in bench.plan.stored for r, _ in reads_in_full(view)} - {"t"}
    assert bench.refresh().action == "no change"


@pytest.mark.usefixtures("_quick")
@pytest.mark.parametrize("way", fast_only(["ranges"], WAYS))
def test_a_refresh_that_is_cut_off_is_finished(way: str) -> None:
    tables = {"bids": (BIDS["bids"], [(1, 100, 5), (2, 101, 7), (2, 102, 1)])}
    whole = Bench.of(VWAP, tables, {"fivm_inequality": way, "fivm_merge": "per_partition", "fivm_buckets": 4})
    whole.refresh()
    whole.engine.change("bids", insert=[(3, 99, 4)], delete=[(2, 101, 7)])
    seen = Interrupting(whole.engine, 0, after=False)
    whole.refresh(seen)
    for number in range(1, len(seen.statements) + 1, 3):
        bench = Bench.of(
            VWAP, tables, {"fivm_inequality": way, "fivm_merge": "per_partition", "fivm_buckets": 4}
        )
        bench.refresh()
        bench.engine.change("bids", insert=[(3, 99, 4)], delete=[(2, 101, 7)])
        with pytest.raises(Interrupted):
            bench.refresh(Interrupting(bench.engine, number, after=True))
        bench.refresh()
        bench.check()


@pytest.mark.usefixtures("_quick")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", by_run(more=SEEDS[:3], long=SEEDS[3:]))
def test_random_queries(seed: int, way: str) -> None:
    verdict = run_random(seed, menu=INEQUALITIES, models=5, steps=4, forced=Forced(inequality=way))
    assert verdict.failure is None, verdict.failure


@pytest.mark.more
def test_random_queries_have_what_is_tested() -> None:
    kept = 0
    for seed in SEEDS:
        with closing(tiny_workbench()) as workbench:
            case = random_case(seed, 5, 4, INEQUALITIES)
            planned = plan_case(case, workbench, forced=Forced(inequality="ranges"))
        kept += sum(c.way == "ranges" for plan in planned.plans for c in plan.inequalities)
    assert kept >= 4


# What is kept


def _plan(sql: str, tables: dict[str, str], sizes: dict[str, int] | None = None, **meta: object) -> Plan:
    catalog = Catalog.of([relation(name, columns) for name, columns in tables.items()])
    measured = TableStatistics.of(sizes) if sizes is not None else None
    return plan_model(ModelRequest("analytics.m", sql, catalog, load_config(meta), measured=measured))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", QUERIES)
def test_no_input_is_read_again(name: str, way: str) -> None:
    """What is evaluated anew is evaluated over helper views; inner joins read each other, as without any of this."""
    tables, sql = QUERIES[name]
    if name in ("an expression", "inner join", "of a join") and way != "parameterised":
        return
    if name in ("vwap by broker", "a sum over another outer join") and way != "reevaluate":
        return  # of two outer joins in a row each reads the left rows, which are not kept
    read = {r for view in _plan(sql, tables, fivm_inequality=way).stored for r, _ in reads_in_full(view)}
    joined = {"r", "t"} if "join t" in sql else set[str]()
    assert read & set(tables) <= joined


def test_vwap_keeps_the_volume_by_price() -> None:
    outer, inner, _total = _plan(VWAP, BIDS, fivm_inequality="reevaluate").helpers
    assert inner.state.payload_names == ("__fivm_count", "__fivm_sum_volume", "__fivm_count_volume")
    assert [k.name for k in inner.state.keys] == ["price"]
    assert [k.name for k in outer.state.keys] == ["price"], (
        "the outer bids by price, which are the domain too"
    )


def test_outer_rows_that_are_not_all_of_them_are_no_domain() -> None:
    sql = VWAP.replace("where 0.25", "where b1.broker > 1 and 0.25")
    reasons = [view.reason for view in _plan(sql, BIDS, fivm_inequality="reevaluate").helpers]
    assert sum("sums of" in reason for reason in reasons) == 2 and len(reasons) == 4
    _exact(sql, BIDS, "reevaluate", 1)


def test_a_range_is_looked_up_by_its_buckets() -> None:
    text = explain(
        _plan("select c, (select sum(v) from r where x > c) as s from l", TWO, fivm_inequality="ranges")
    )
    assert (
        "looks up new analytics.m__fivm_view_2_r_by_level_parent in the partitions of the affected level"
        in text
    )
    assert "Buckets kept_2 [__fivm_outer_1] of CAST(domain_2.__fivm_outer_1 AS BIGINT) on 8 levels" in text
    narrow = {"l": "c smallint", "r": "x smallint, v int"}
    assert "on 2 levels" in explain(
        _plan("select c, (select sum(v) from r where x > c) as s from l", narrow, fivm_inequality="ranges")
    )


@pytest.mark.parametrize("beside", fast_only([50], [0, 1, 50]))
def test_what_is_read_of_ranges_does_not_grow_with_them(beside: int) -> None:
    """A new outer value reads as many partitions as there are levels, however many keys there are."""
    sql = "select l.k, l.c, (select sum(r.v) from r where r.x > l.c) as s from l"
    rows: dict[str, list[Row]] = {"l": [(1, 7, 1)], "r": [(1, n, 1) for n in range(200 * (1 + beside))]}
    read = {}
    for way in ("parameterised", "ranges"):
        bench = Bench(_plan(sql, TWO, fivm_inequality=way, fivm_buckets=512), DuckDbEngine())
        for item in bench.plan.inputs:
            bench.engine.create_table(item.name, item.relation.columns, rows[item.name], change_feed=True)
        bench.refresh()
        bench.engine.change("l", insert=[(2, 150, 1)])
        report = bench.refresh()
        bench.check()
        read[way] = sum(n for name, n in report.scans if "view_2_r" in name)
    assert read["parameterised"] == 200 * (1 + beside)
    assert read["ranges"] <= 1100


@pytest.mark.parametrize(
    "sql",
    [
        "select l.c, (select max(r.v) from r where r.x > l.c) as s from l",
        "select l.c, (select sum(r.v * l.v) from r where r.x > l.c) as s from l",
        "select l.c, (select sum(r.v) from r where r.x > l.c and r.v < l.v) as s from l",
        "select l.c, (select sum(r.v) from r where r.x <> l.c) as s from l",
        "select l.c, (select sum(r.v) from r where r.x > l.c or r.k = l.k) as s from l",
        "select l.c, (select sum(r.v) from r where r.k = l.k) as s from l",
    ],
)
def test_what_is_something_else_stays_as_it_is(sql: str) -> None:
    assert not _plan(sql, TWO).inequalities
    for way in WAYS:
        with pytest.raises(
            FivmError, match="no aggregate that adds up is correlated by one inequality"
        ) as caught:
            _plan(sql, TWO, fivm_inequality=way)
        assert caught.value.code.number == "FIVM201"


def test_ways_that_cannot_be_are_refused() -> None:
    sql = "select l.c, (select sum(r.v) from r where r.x + 1 > l.c) as s from l"
    with pytest.raises(FivmError, match="ranges do not apply: an expression is compared"):
        _plan(sql, TWO, fivm_inequality="ranges")
    with pytest.raises(FivmError, match="fivm_strategy: first_order keeps no inner views"):
        _plan(sql, TWO, fivm_inequality="parameterised", fivm_strategy="first_order")
    with pytest.raises(FivmError, match="outer values that change"):
        _plan(sql, TWO, fivm_inequality="parameterised", fivm_static=["l"])
    with pytest.raises(FivmError, match="'range' is not allowed"):
        _plan(sql, TWO, fivm_inequality="range")


# The choice


def _sizes(**other: float | None) -> Sizes:
    known: dict[str, float | None] = {
        "rows": 1e6, "keys": 1e5, "groups": 1, "outer_rows": 50, "outer_kept": 50, "outer_values": 50,
        "domain_kept": 50, "rate": 1.0, "outer_rate": 0.1, "levels": 8, "buckets": 64,
    }  # fmt: skip
    return Sizes(**{**known, **other})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("sizes", "least"),
    [
        # VWAP: both are the same relation, and nearly every value changes.
        (
            _sizes(outer_rows=1e6, outer_kept=1e5, outer_values=1e5, domain_kept=0, outer_rate=1.0),
            "reevaluate",
        ),
        # Few outer values, which stay, beside a large relation.
        (_sizes(outer_rate=0.0), "parameterised"),
        # Few outer values, which come and go: a range of many buckets is cheaper than all sums.
        (_sizes(rate=0.0, outer_rate=1.0), "ranges"),
        (_sizes(rate=0.0, outer_rate=1.0, levels=None), "parameterised"),
        # In one bucket nothing is looked up.
        (_sizes(rate=0.0, outer_rate=1.0, buckets=1), "parameterised"),
    ],
)
def test_the_least_rows(sizes: Sizes, least: str) -> None:
    found = costs(sizes)
    assert min(found, key=lambda way: found[way]) == least


def test_auto_takes_what_reads_least_of_vwap() -> None:
    """By what a refresh of each way has read of an order book, not by the estimate."""
    rng = random.Random(5)
    rows: list[Row] = [(n % 10, 1000 + rng.randint(-100, 100), rng.randint(1, 50)) for n in range(400)]
    read: dict[str, int] = {}
    for way in WAYS:
        bench = Bench(_plan(VWAP, BIDS, {"bids": 400}, fivm_inequality=way), DuckDbEngine())
        bench.engine.create_table("bids", relation("bids", BIDS["bids"]).columns, rows, change_feed=True)
        bench.refresh()
        read[way] = 0
        for number in range(3):
            bench.engine.change("bids", insert=[(1, 950 + number, 7)], delete=[rows[number]])
            read[way] += bench.refresh().rows_read or 0
            bench.check()
    auto = _plan(VWAP, BIDS, {"bids": 400})
    assert auto.inequalities[0].way == min(read, key=lambda way: read[way]) == "reevaluate"
    assert auto.inequalities[0].reason == "the fewest rows per refresh, by the sizes that were measured"
    assert 3 * read["reevaluate"] < read["parameterised"]


def test_auto_is_told_what_to_measure() -> None:
    assert _plan(VWAP, BIDS).measurable == (("bids", ("price",)),)
    # For the inequality nothing has to be known then, but for what else is kept of the bids their number.
    assert _plan(VWAP, BIDS, fivm_inequality="ranges").measurable == (("bids", ()),)
    assert _plan(VWAP, BIDS, fivm_strategy="factorized").measurable == ()
    only_rows = (("l", ()), ("r", ()))
    assert _plan("select l.c, (select max(v) from r where x > c) as s from l", TWO).measurable == only_rows
