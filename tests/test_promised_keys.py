"""What promised keys spare a state: multiplicities, and keys that a MERGE need not compare."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from itertools import product

import pytest

from fivm_dbt.catalog import Catalog, Dependency
from fivm_dbt.config import load_config
from fivm_dbt.errors import FivmError
from fivm_dbt.explain.text import explain
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.plan.planner import plan_model
from fivm_dbt.plan.request import ModelRequest
from fivm_dbt.refresh.engine import Row
from fivm_dbt.sql.script import read_script
from fixtures.models import Bench
from fixtures.runs import fast_only

TABLES = """
create table c (ck int primary key, seg string);
create table o (ok int primary key, ck int references c (ck), day date);
create table l (lk int primary key, ok int references o (ok), x decimal(10,2));
"""
JOINED = "from l join o on l.ok = o.ok join c on o.ck = c.ck"
LISTING = f"select l.lk, o.day, c.seg, l.x {JOINED}"
GROUPS = f"select o.ok, o.day, c.seg, count(*) as n, sum(l.x) as s, avg(l.x) as a {JOINED} group by o.ok, o.day, c.seg"
QUERIES = {
    "listing": LISTING,
    "one table": "select ok, ck, day from o",
    "filtered": f"select l.lk, o.ok, c.ck, c.seg, l.x {JOINED} where c.seg <> 'a'",
    "groups": GROUPS,
    "a month": f"select o.ok, date_trunc('month', o.day) as month, c.seg, count(*) as n {JOINED} group by 1, 2, 3",
    "the month alone": f"select date_trunc('month', o.day) as m, c.ck, c.seg, sum(l.x) as s {JOINED} group by 1, 2, 3",
    "many to one": f"select o.day, c.seg, l.x {JOINED}",
}


def _plan(sql: str, tables: str = TABLES, *, trusts: bool = True, **meta: object) -> Plan:
    script = read_script(f"{tables}{sql};")
    config = load_config({"fivm_trust_keys": trusts, **meta})
    return plan_model(ModelRequest("m", script.sql, script.catalog, config))


class Keyed:
    """Rows with unique keys and parents that are there, of which anything but the key may change."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.rows: dict[str, dict[int, Row]] = {"c": {}, "o": {}, "l": {}}
        self.number = 0
        for name in "ccoolll":
            self.put(name)

    def put(self, name: str, key: int | None = None) -> None:
        if key is None:
            self.number += 1
        row = key or self.number
        self.rows[name][row] = self.row(name, row)

    def row(self, name: str, key: int) -> Row:
        rng = self.rng
        if name == "c":
            return (key, rng.choice(["a", "b", None]))
        if name == "o":
            return (
                key,
                rng.choice([None, *self.rows["c"]]),
                rng.choice([None, "2024-01-05", "2024-01-31", "2024-02-01"]),
            )
        return (key, rng.choice([None, *self.rows["o"]]), rng.choice([None, "1.50", "2.00"]))

    def change(self, bench: Bench) -> None:
        before = {name: Counter(rows.values()) for name, rows in self.rows.items()}
        for _ in range(self.rng.randrange(1, 7)):
            name = self.rng.choice("colol")
            if self.rng.random() < 0.4:
                self.put(name)
            else:
                self.put(name, self.rng.choice(list(self.rows[name])))
            if self.rng.random() < 0.3 and len(self.rows["l"]) > 2:
                del self.rows["l"][self.rng.choice(list(self.rows["l"]))]
        for name in {item.name for item in bench.plan.inputs}:
            now = Counter(self.rows[name].values())
            come, gone = (now - before[name]).elements(), (before[name] - now).elements()
            bench.engine.change(name, insert=list(come), delete=list(gone))

    @property
    def all(self) -> dict[str, list[Row]]:
        return {name: list(rows.values()) for name, rows in self.rows.items()}


WAYS = ("merge", "replace", "merge-per_partition")
FAST = {(WAYS[number % 3], name) for number, name in enumerate(QUERIES)}


@pytest.mark.parametrize(
    ("way", "name"),
    [
        *fast_only(FAST, product((*WAYS, "merge-recursive"), QUERIES)),
        *(
            pytest.param(*each, marks=pytest.mark.long)
            for each in product(("merge-factorized", "merge-first_order"), QUERIES)
        ),
    ],
)
def test_exact_while_the_promise_holds(way: str, name: str) -> None:
    apply, _, how = way.partition("-")
    meta = {"fivm_apply": apply}
    if how:
        meta["fivm_merge" if how == "per_partition" else "fivm_strategy"] = how
    sql = QUERIES[name]
    for seed in range(3):
        keyed = Keyed(seed)
        bench = Bench.built(_plan(sql, **meta), keyed.all)
        for _ in range(6):
            keyed.change(bench)
            bench.refresh()
            bench.check()


@pytest.mark.parametrize(
    ("sql", "compared", "is_set"),
    [
        (LISTING, ("lk",), True),
        (QUERIES["one table"], ("ok",), True),
        (QUERIES["filtered"], ("lk",), True),
        (GROUPS, ("ok",), False),
        (QUERIES["a month"], ("ok",), False),
        (QUERIES["the month alone"], ("m", "ck"), False),
        (QUERIES["many to one"], ("day", "seg", "x"), False),
        ("select a.ok, a.day, b.day as other from o a join o b on a.ck = b.ck", ("ok", "other"), False),
        ("select ok, day from o union all select ok, day from o", ("ok", "day"), False),
        ("select c.ck, c.seg, o.ok from c left join o on o.ck = c.ck", ("ck", "seg", "ok"), False),
    ],
)
def test_what_is_compared(sql: str, compared: tuple[str, ...], is_set: bool) -> None:
    plan = _plan(sql)
    assert (plan.root.merge_keys, plan.root.is_set) == (compared, is_set)
    promised = _plan(sql, trusts=False).root
    assert promised.merge_keys == tuple(k.name for k in promised.keys) and not promised.is_set


def test_declared_dependencies_are_promised_too() -> None:
    """The customer follows from the day, which no key says."""
    script = read_script(f"{TABLES}select l.x, o.day, o.ck {JOINED};")
    relations = (
        replace(r, dependencies=(Dependency(("day",), ("ck",)),)) if r.name == "o" else r
        for r in script.catalog.relations
    )
    config = load_config({"fivm_trust_keys": True})
    plan = plan_model(ModelRequest("m", script.sql, Catalog.of(relations), config))
    assert plan.root.merge_keys == ("x", "day")


def test_explain_shows_it() -> None:
    text = explain(_plan(LISTING))
    assert "no multiplicity: by the promised keys each row is there once" in text
    assert "key seg string = c.seg  -- follows from the other keys: MERGE does not compare it" in text
    assert "EXPLODE" not in text and "target.lk IS NOT DISTINCT FROM delta.lk" in text
    assert "target.seg" not in text


def test_types_that_differ_determine_nothing() -> None:
    """Of '1' and '01' both are 1."""
    tables = "create table p (k int primary key, v int); create table f (k string, w int);"
    plan = _plan("select f.k, p.v from f join p on f.k = p.k", tables)
    assert plan.root.determined == ()


def test_a_row_that_is_there_twice_is_an_error() -> None:
    rows: dict[str, list[Row]] = {"o": [(1, 1, "2024-01-05")]}
    bench = Bench.built(_plan("select ok, ck, day from o", fivm_apply="merge"), rows)
    shown = bench.shown()
    bench.engine.change("o", insert=[(1, 1, "2024-01-05")])
    with pytest.raises(FivmError, match=r"FIVM405 .* fivm_trust_keys"):
        bench.refresh()
    assert bench.shown() == shown


def test_a_promise_that_is_given_or_taken_back_rebuilds() -> None:
    keyed = Keyed(1)
    bench = Bench.built(_plan(LISTING), keyed.all)
    for trusts in (False, True):
        bench.plan = _plan(LISTING, trusts=trusts)
        keyed.change(bench)
        assert bench.refresh().action == "rebuilt"
        bench.check()
