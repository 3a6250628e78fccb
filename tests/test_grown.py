"""Groups to which rows only come are put together from the state and the change; the input is read where rows go."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from typing import Any

import pytest

from fivm_dbt.catalog import Catalog, TableStatistics
from fivm_dbt.config import load_config
from fivm_dbt.engines.duckdb.engine import DuckDbEngine
from fivm_dbt.explain.operators import maintenance
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.plan.planner import plan_model
from fivm_dbt.plan.request import ModelRequest
from fivm_dbt.refresh.engine import Row
from fixtures.models import Bench, relation
from fixtures.runs import by_run

ROWS = relation("raw.s", "k string, g int, ts timestamp, x int, y decimal(8,2), b boolean")
NAMES = relation("raw.d", "g int, name string")
CALLS = (
    "max(x)",
    "min(ts)",
    "max(y)",
    "min(k)",
    "count(*)",
    "count(y)",
    "sum(x)",
    "sum(y)",
    "bool_or(b)",
    "bool_and(b)",
    "bit_or(x)",
    "max(x) filter (where b)",
    "max(x + 1) - min(x)",
    "sum(x) filter (where b)",
    "sum(x * 2)",
)
NOT_OF_PARTS = ("bit_xor(x)", "avg(x)", "count(distinct x)", "sum(distinct x)", "median(x)")
START = datetime(2024, 1, 1)


def _plan(sql: str) -> Plan:
    """A plan that reads its inputs: no copy of a small one is kept."""
    measured = TableStatistics.of({"raw.s": 100_000, "raw.d": 10})
    request = ModelRequest("analytics.m", sql, Catalog.of([ROWS, NAMES]), load_config({}), measured=measured)
    return plan_model(request, DuckDbEngine().describe)


def _bench(sql: str, rows: list[Row]) -> Bench:
    bench = Bench(_plan(sql), DuckDbEngine())
    bench.engine.create_table(ROWS.name, ROWS.columns, rows, change_feed=True)
    bench.engine.create_table(
        NAMES.name, NAMES.columns, [(g, f"n{g % 2}") for g in range(4)], change_feed=True
    )
    bench.refresh()
    bench.check()
    return bench


def _row(rng: random.Random) -> Row:
    return (
        rng.choice(("a", "b", "c", None)),
        rng.choice((0, 1, 2, 3, None)),
        rng.choice((None, START + timedelta(hours=rng.randrange(100)))),
        rng.choice((None, -3, 0, 2, 7)),
        rng.choice((None, "-1.50", "2.25", "1000.00")),
        rng.choice((None, True, False)),
    )


def _model(rng: random.Random) -> str:
    calls = [*rng.sample(CALLS, rng.randint(1, 4)), rng.choice(("max(x)", "min(ts)", "bool_or(b)"))]
    calls += [rng.choice(NOT_OF_PARTS)] if rng.random() < 0.1 else []
    keys = rng.choice((["k"], ["g"], ["k", "g"], ["g % 2"], ["date_trunc('day', ts)"]))
    beside = "(select g as h, name from raw.d) as d on g = h"
    source = rng.choice(("raw.s", "raw.s", f"raw.s join {beside}", f"raw.s left join {beside}"))
    where = rng.choice(("", "", " where x > -1", " where ts is not null"))
    having = rng.choice(("", "", "", " having count(*) > 1"))
    calls += ["min(name)", "count(h)"] if " join " in source else []
    shown = [f"{key} as g{n}" for n, key in enumerate(keys)] + [
        f"{call} as c{n}" for n, call in enumerate(calls)
    ]
    query = f"select {', '.join(shown)} from {source}{where} group by {', '.join(keys)}{having}"
    if rng.random() < 0.2:
        return f"select c0, count(*) as n, max(g0) as m from ({query}) as q group by c0"
    return query


@pytest.mark.parametrize("seed", by_run(range(3), more=range(3, 30), long=range(30, 150)))
def test_random_groups(seed: int) -> None:
    """Rows only come in most steps; the last ones take all of them away."""
    rng = random.Random(seed)
    rows = [_row(rng) for _ in range(rng.choice((0, 5, 20)))]
    bench = _bench(_model(rng), rows)
    for _ in range(6):
        come = [_row(rng) for _ in range(rng.choice((1, 2, 5)))]
        gone = rng.sample(rows, min(len(rows), rng.choice((0, 0, 0, 2))))
        for row in gone:
            rows.remove(row)
        rows += come
        bench.engine.change("raw.s", insert=come, delete=gone)
        if rng.random() < 0.3:
            bench.engine.change("raw.d", insert=[(rng.randrange(5), "n2")], delete=[])
        bench.refresh()
        bench.check()
    bench.engine.change("raw.s", insert=[], delete=rows)
    bench.refresh()
    bench.check()


def _groups(keys: int) -> list[Row]:
    return [
        (f"k{n % keys}", n % 4, START + timedelta(minutes=n), n % 50, "1.00", n % 2 == 0) for n in range(600)
    ]


NEW: Row = ("k1", 1, START, 99, "2.00", True)


@pytest.mark.parametrize("call", CALLS)
def test_an_input_is_read_where_rows_go(call: str) -> None:
    """One of six hundred rows comes, and goes again: the input is read the second time."""
    bench = _bench(f"select k, {call} as c, max(ts) as t from raw.s group by k", _groups(20))
    read: list[Any] = []
    for change in ({"insert": [NEW], "delete": []}, {"insert": [], "delete": [NEW]}):
        bench.engine.change("raw.s", **change)
        read.append(dict(bench.refresh().scans))
        bench.check()
    assert read[0]["raw.s"] <= 1 < 600 <= read[1]["raw.s"]


def test_equal_rows_that_come_count_each() -> None:
    bench = _bench(
        "select k, max(x) as m, count(*) as n, count(y) as c, sum(x) as s from raw.s group by k", [NEW]
    )
    bench.engine.change("raw.s", insert=[NEW, NEW, NEW], delete=[])
    bench.refresh()
    bench.check()


def test_a_row_that_comes_may_take_one_away() -> None:
    """A customer without an order is one row with NULL until an order comes."""
    sql = (
        "select d.g as g, min(coalesce(s.x, -1)) as m, count(*) as n from raw.d as d "
        "left join raw.s as s on d.g = s.g group by d.g"
    )
    bench = _bench(sql, [])
    bench.engine.change("raw.s", insert=[NEW], delete=[])
    bench.refresh()
    bench.check()


@pytest.mark.parametrize("call", NOT_OF_PARTS)
def test_what_parts_do_not_tell_is_recomputed(call: str) -> None:
    lines = maintenance(_plan(f"select k, {call} as c, max(ts) as t from raw.s group by k"))
    assert "  ! reads raw.s in full when raw.s changes" in lines


def test_it_is_told() -> None:
    lines = maintenance(_plan("select k, max(ts) as t from raw.s group by k"))
    assert lines[-2:] == [
        "  unless raw.s (old rows) changes: groups are put together from the own state and the rows that come",
        "  ! reads raw.s in full when raw.s (old rows) changes",
    ]
