"""Reads that are bounded by the times of the changes: exact for every kind of join, and no longer than they need be."""

from __future__ import annotations

import random
from contextlib import closing
from datetime import date, datetime, timedelta

import pytest

from cached_statements import skip_statement_checks
from fivm_dbt.catalog import Catalog
from fivm_dbt.config import load_config
from fivm_dbt.ir.within import Within
from fivm_dbt.plan.plan import Plan
from fivm_dbt.plan.planner import ModelRequest, plan_model
from fivm_dbt.refresh.engine import Row
from fixtures.models import Bench, relation

UTC = (("timezone", "UTC"),)
VIENNA = (("timezone", "Europe/Vienna"),)

A = {"a": "k int, ts timestamp, d date, v int"}
AB = {**A, "b": "k int, ts timestamp, d date, w int"}
C = {"c": "k int, ts timestamp_ntz, d date, x int"}
AC, ABC = {**A, **C}, {**AB, **C}

QUERIES: dict[str, tuple[dict[str, str], str]] = {
    "equal times": (AB, "select a.k, b.w, a.ts from a join b on a.ts = b.ts"),
    "equal times, also NULL": (AB, "select a.k, b.w from a join b on a.ts <=> b.ts and a.k = b.k"),
    "band": (
        AB,
        "select a.k, a.ts, b.w from a join b on b.ts between a.ts - interval '5' minutes and a.ts and a.k = b.k",
    ),
    "band by day": (
        AB,
        "select a.d, count(*) as n, sum(b.w) as w from a join b on b.d between a.d - 1 and a.d group by a.d",
    ),
    "days of times": (
        AB,
        "select date_trunc('day', a.ts) as day, sum(a.v * b.w) as s from a join b on cast(a.ts as date) = b.d "
        "group by date_trunc('day', a.ts)",
    ),
    "months": (AB, "select a.k, b.w from a join b on trunc(a.d, 'MM') = trunc(b.d, 'MM') and a.k = b.k"),
    "the month after": (AB, "select a.k, b.w from a join b on a.d = add_months(b.d, 1)"),
    "shifted": (AB, "select a.k, b.w from a join b on a.ts = b.ts + interval '1' hour"),
    "differences": (
        AB,
        "select a.k, b.w from a join b on a.ts - b.ts between interval '0' minutes and interval '10' minutes",
    ),
    "days between": (AB, "select a.k, b.w, a.d from a join b on datediff(a.d, b.d) between 0 and 1"),
    "all earlier": (AB, "select a.k, sum(b.w) as w from a join b on b.ts <= a.ts group by a.k"),
    "over a third": (
        ABC,
        "select a.k, b.w, c.x from a join b on b.ts > a.ts - interval '5' minutes and b.ts <= a.ts "
        "join c on c.d = b.d and c.k = a.k",
    ),
    "local times": (AC, "select a.k, c.x from a join c on c.ts between a.ts - interval '1' hour and a.ts"),
    "left": (
        AB,
        "select a.k, a.ts, b.w from a left join b on b.ts between a.ts - interval '5' minutes and a.ts and a.k = b.k",
    ),
    "left by time alone": (AB, "select a.k, b.w from a left join b on b.ts between a.ts - interval '1' hour and a.ts"),
    "full": (AB, "select a.k, b.w, a.d from a full join b on b.d = a.d and a.k = b.k"),
    "two left joins": (
        ABC,
        "select a.k, b.w, c.x from a left join b on b.ts = a.ts left join c on c.d between a.d - 1 and a.d",
    ),
    "left, then a condition on the right": (
        AB,
        "select a.k, b.w, a.ts from a left join b on b.k = a.k where b.ts > a.ts or b.ts is null",
    ),
    "exists": (
        AB,
        "select a.k, a.ts from a where exists "
        "(select 1 from b where b.ts between a.ts - interval '5' minutes and a.ts)",
    ),
    "not exists": (
        AB,
        "select a.k, a.ts from a where not exists "
        "(select 1 from b where b.ts between a.ts - interval '5' minutes and a.ts)",
    ),
    "not in": (AB, "select a.k, a.d from a where a.d not in (select b.d from b where b.w > 0)"),
    "maximum per day": (A, "select d, max(v) as m from a group by d"),
    "maximum of a band": (
        AB,
        "select a.d, max(b.w) as m from a join b on b.d between a.d - 1 and a.d group by a.d",
    ),
    "joined with a daily sum": (
        AB,
        "select a.k, s.n from a join (select d, sum(w) as n from b group by d) s on s.d = a.d - 1",
    ),
    "joined with a daily maximum": (
        AB,
        "select a.k, s.m from a join (select d, max(w) as m from b group by d) s on s.d between a.d - 1 and a.d",
    ),
    "ranked by day": (
        AB,
        "select b.k, r.n from b join (select d, rank() over (partition by d order by v) as n from a) r on r.d = b.d",
    ),
    "in a union": (
        ABC,
        "select a.k, u.w from a join (select d, w from b union all select d, x from c) u on u.d between a.d - 1 and a.d",
    ),
    "a scalar subquery over a band": (
        AB,
        "select a.k, (select sum(b.w) from b where b.ts between a.ts - interval '5' minutes and a.ts) as s from a",
    ),
    "itself": (A, "select x.k, y.v from a x join a y on y.ts between x.ts - interval '5' minutes and x.ts"),
    "a subquery of shifted days": (
        AB,
        "select s.day, sum(b.w) as w from (select date_add(d, 1) as day from a where v > 0) s join b on b.d = s.day "
        "group by s.day",
    ),
    "recent": (
        AB,
        "select a.k, b.w from a join b on a.d = b.d where a.ts >= timestamp '2024-03-30 00:00:00' and b.ts >= a.ts",
    ),
    "counted distinct": (AB, "select a.d, count(distinct b.k) as n from a join b on a.d = b.d group by a.d"),
}  # fmt: skip

_START = datetime(2024, 3, 29, 23, 50)


def _plan(
    sql: str, tables: dict[str, str], session: tuple[tuple[str, str], ...] = UTC, **meta: object
) -> Plan:
    catalog = Catalog.of([relation(name, columns) for name, columns in tables.items()])
    config = load_config({f"fivm_{key}": value for key, value in meta.items()})
    return plan_model(ModelRequest("analytics.m", sql, catalog, config, session))


def _row(rng: random.Random) -> Row:
    minutes = rng.choice([0, 5, 10, 60, 1440, 1445, 2900, 45_000]) + rng.choice([0, 0, 1, 5])
    time = None if rng.random() < 0.15 else _START + timedelta(minutes=minutes)
    day = rng.choice(
        [None, date(2024, 2, 29), date(2024, 3, 30), date(2024, 3, 31), date(2024, 4, 1), date(2024, 4, 30)]
    )
    return (rng.choice([None, 1, 2]), time, day, rng.randint(-2, 3))


@pytest.mark.parametrize("strategy", ["auto", "first_order"])
@pytest.mark.parametrize("name", QUERIES)
def test_is_exact(name: str, strategy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows come and go, late ones too, in one table or in several at once; NULL and equal rows among them."""
    skip_statement_checks(monkeypatch)
    tables, sql = QUERIES[name]
    rng = random.Random(f"{name} {strategy}")
    for session in (UTC, VIENNA):
        bench = Bench(_plan(sql, tables, session, strategy=strategy))
        with closing(bench.engine):
            rows: dict[str, list[Row]] = {t: [_row(rng) for _ in range(rng.choice([0, 8]))] for t in tables}
            for item in bench.plan.inputs:
                bench.engine.create_table(item.name, item.relation.columns, rows[item.name], change_feed=True)
            bench.refresh()
            bench.check()
            for _ in range(6):
                for table in rng.sample(sorted(tables), rng.randint(1, len(tables))):
                    gone = rng.sample(rows[table], min(len(rows[table]), rng.choice([0, 0, 1, 3])))
                    came = [_row(rng) for _ in range(rng.choice([0, 1, 4]))]
                    if rows[table] and rng.random() < 0.3:
                        came.append(rows[table][0])
                    for row in gone:
                        rows[table].remove(row)
                    rows[table] += came
                    if gone or came:
                        bench.engine.change(table, insert=came, delete=gone)
                report = bench.refresh()
                assert report.action in ("refreshed", "no change"), report.reason
                bench.check()


def bounds_of(plan: Plan) -> set[str]:
    nodes = [t.node for v in plan.views for t in v.terms] + [k.node for v in plan.views for k in v.key_sets]
    return {
        f"{n.scan.relation}.{b}"
        for node in nodes
        for n in node.walk()
        if isinstance(n, Within)
        for b in n.bounds
    }
