"""Groups are kept for the keys that a small relation with a filter looks up: fewer of them, and the same rows."""

from __future__ import annotations

import random

import pytest

from fivm_dbt.catalog import Catalog, TableStatistics
from fivm_dbt.config import load_config
from fivm_dbt.ir.one_sided import SemiJoin
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.plan.planner import plan_model
from fivm_dbt.plan.request import ModelRequest
from fixtures.models import Bench, relation

TABLES = {"f": "k int, v int, w int", "d": "k int, kind string", "e": "k int, n int"}
SIZES = {"f": 20_000_000, "d": 2_000_000, "e": 5_000_000}

CHOSEN = {
    "correlated": "select sum(f.v) as v from f join d on f.k = d.k "
    "where d.kind = 'a' and f.v < (select avg(i.v) from f i where i.k = d.k)",
    "counted": "select d.k, (select count(*) from f where f.k = d.k) as n from d where d.kind = 'a'",
    "outer": "select d.k, s.v from d left join (select k, sum(v) as v from f group by k) s on d.k = s.k "
    "where d.kind in ('a', 'c')",
    "in the condition": "select d.k, s.v from d left join (select k, sum(v) as v from f group by k) s "
    "on d.k = s.k and d.kind = 'a'",
    "null-safe": "select d.k, s.v from d left join (select k, sum(v) as v from f group by k) s "
    "on d.k <=> s.k where d.kind = 'a'",
    "inner": "select d.kind, sum(s.v) as v, max(s.w) as w from d join (select k, sum(v) as v, max(w) as w "
    "from f group by k having count(*) > 1) s on d.k = s.k where d.kind = 'a' group by d.kind",
    "of a join": "select d.k, s.v from d join (select f.k, sum(f.v * e.n) as v from f join e on f.v = e.k "
    "group by f.k) s on d.k = s.k where d.kind = 'a'",
    "of an expression": "select d.k, s.v from d join (select k + 1 as l, sum(v) as v from f group by k + 1) s "
    "on d.k = s.l where d.kind = 'a'",
    "a window": "select d.k, s.n, s.v from d join (select k, v, row_number() over (partition by k order by v, w) as n "
    "from f) s on d.k = s.k where d.kind = 'a'",
    "below another join": "select d.k, t.n, s.v from d left join (select k, count(*) as n from e group by k) t "
    "on t.k = d.k left join (select k, sum(v) as v from f group by k) s on d.k = s.k where d.kind = 'a'",
}
"""Models over groups of which a filter on a small relation looks up some."""


def _plan(sql: str, sizes: dict[str, int] | None, **meta: object) -> Plan:
    catalog = Catalog.of([relation(name, columns) for name, columns in TABLES.items()])
    measured = None if sizes is None else TableStatistics.of(sizes, appends=True)
    return plan_model(ModelRequest("analytics.m", sql, catalog, load_config(meta), measured=measured))


def _magic(plan: Plan) -> int:
    """How many times keys that are looked up choose rows."""
    found = [n for n in plan.query.walk() if isinstance(n, SemiJoin)]
    return sum(any("_chosen" in f.table for f in n.right.fields) for n in found)


@pytest.mark.parametrize("name", CHOSEN)
def test_groups_are_kept_for_the_keys_that_are_looked_up(name: str) -> None:
    sql = CHOSEN[name]
    plan = _plan(sql, SIZES)
    assert (
        _magic(plan)
        and not _magic(_plan(sql, None))
        and not _magic(_plan(sql, SIZES, fivm_without="magic_sets"))
    )
    rng = random.Random(name)
    bench = Bench.built(plan, {t: [_row(rng, t) for _ in range(40)] for t in TABLES})
    for _ in range(5):
        for each in (item.name for item in plan.inputs):
            if rng.random() < 0.7:
                gone = rng.sample(bench.engine.query(f"SELECT * FROM {each}"), 4)
                bench.engine.change(each, insert=[_row(rng, each) for _ in range(4)], delete=gone)
        bench.refresh()
        bench.check()


def _row(rng: random.Random, table: str) -> tuple[int | str | None, ...]:
    key = rng.choice([None, *range(8)])
    if table == "d":
        return key, rng.choice([None, "a", "b", "c"])
    number = rng.choice([None, 0, 1, 2, 3])
    return (key, number) if table == "e" else (key, number, rng.randrange(4))


LEFT_ALONE = {
    "no filter": (CHOSEN["outer"].split(" where ")[0], SIZES),
    "a filter that a row passes if it has a value": (
        CHOSEN["outer"].split(" where ")[0] + " where d.kind is not null",
        SIZES,
    ),
    "a filter on what is added up": (
        "select d.k, s.v from d left join (select k, sum(v) as v from f where w = 1 group by k) s on d.k = s.k",
        SIZES,
    ),
    "a large relation that chooses": (CHOSEN["outer"], {**SIZES, "d": 2_000_001}),
    "too few rows to choose from": (CHOSEN["outer"], {**SIZES, "f": 19_999_999}),
    "too many rows to read": (CHOSEN["outer"], {**SIZES, "f": 20_000_001}),
    "unknown sizes": (CHOSEN["outer"], {"d": 10}),
    "a key that is no group": (
        "select d.k, s.k as l from d left join (select k, sum(v) as v from f group by k) s on d.k = s.v "
        "where d.kind = 'a'",
        SIZES,
    ),
    "a window without the key": (
        "select d.k, s.n from d join (select row_number() over (partition by v order by k, w) as k, v as n "
        "from f) s on d.k = s.k where d.kind = 'a'",
        SIZES,
    ),
    "a key that a generator makes": (
        "select d.k, s.v from d left join (select k, sum(v) as v from f group by rollup (k)) s on d.k = s.k "
        "where d.kind = 'a'",
        SIZES,
    ),
    "rows that a filter chooses": (
        "select d.k, s.v from d left join (select k, sum(v) as v from f where w > 0 group by k) s on d.k = s.k "
        "where d.kind = 'a'",
        SIZES,
    ),
    "rows of a filtered join": (
        "select d.k, s.v from d left join (select f.k, sum(f.v) as v from f join e on f.v = e.k where e.n = 1 "
        "group by f.k) s on d.k = s.k where d.kind = 'a'",
        SIZES,
    ),
    "rows of several relations": (
        "select d.k, s.v from d left join (select k, sum(v) as v from (select k, v from f union all "
        "select k, n from e) group by k) s on d.k = s.k where d.kind = 'a'",
        SIZES,
    ),
    "keys in an order": (
        "select d.k, s.k as l from d left join (select k, sum(v) as v from f group by k) s on d.k < s.k "
        "where d.kind = 'a'",
        SIZES,
    ),
}


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_other_groups_are_kept_as_they_are(name: str) -> None:
    sql, sizes = LEFT_ALONE[name]
    assert _plan(sql, sizes).signature == _plan(sql, sizes, fivm_without="magic_sets").signature


def test_few_rows_that_a_filter_chooses_are_read() -> None:
    sql, _ = LEFT_ALONE["rows that a filter chooses"]
    assert _magic(_plan(sql, {"f": 2_000_000, "d": 200_000})) == 1
    assert not _magic(_plan(sql, {"f": 2_000_001, "d": 200_000}))


CHOOSING = "select d.k, s.v from d left join"
OVER_GENERATED = (
    "select k, sum(v) as v from f group by rollup (k)",
    "select k, sum(v) as v from f group by grouping sets ((k), (k, w), ())",
    "select t.c as k, sum(w) as v from f lateral view explode(array(k, v)) t as c group by t.c",
)


@pytest.mark.parametrize("grouped", OVER_GENERATED)
def test_groups_by_what_a_generator_makes(grouped: str) -> None:
    """The keys of grouping sets, and a column of a LATERAL VIEW."""
    rows = {"f": [(1, 2, 1), (2, None, 3), (None, 1, 1)], "d": [(1, "a"), (2, "a"), (3, "b")]}
    bench = Bench.built(_plan(f"{CHOOSING} ({grouped}) s on d.k = s.k where d.kind = 'a'", SIZES), rows)
    bench.engine.change("f", insert=[(3, 1, 5)], delete=[(1, 2, 1)])
    bench.engine.change("d", insert=[(3, "a")], delete=[(1, "a")])
    bench.refresh()
    bench.check()


def test_other_strategies_do_not_look_at_sizes() -> None:
    assert not _magic(_plan(CHOSEN["outer"], SIZES, fivm_strategy="factorized"))


def test_groups_of_other_keys_are_not_kept() -> None:
    sql = CHOSEN["correlated"]
    rows = {"f": [(i % 10, i, 1) for i in range(50)], "d": [(i, "a" if i == 3 else "b") for i in range(10)]}
    kept = {}
    for left_out in ("magic_sets", "time_ranges"):
        bench = Bench.built(_plan(sql, SIZES, fivm_without=left_out), rows)
        (groups,) = (v for v in bench.plan.helpers if v.reason.startswith("an aggregate"))
        view = groups.name.split("__fivm_")[-1]
        kept[left_out] = len(
            bench.engine.query(f"SELECT * FROM {bench.plan.state_relation} WHERE __fivm_view = '{view}'")
        )
    assert kept == {"magic_sets": 10, "time_ranges": 1}
