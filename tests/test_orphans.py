"""Orphans of declared foreign keys: new parents meet them instead of all children, and nothing is promised."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

import pytest

import fivm_dbt.plan.keep.trees.orphans as orphans
from fivm_dbt.catalog import TableStatistics
from fivm_dbt.config import load_config
from fivm_dbt.explain.operators import reads_in_full
from fivm_dbt.explain.text import explain
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.plan.planner import plan_model
from fivm_dbt.plan.request import ModelRequest
from fivm_dbt.refresh.engine import Row
from fivm_dbt.sql.script import read_script
from fixtures.models import Bench, Interrupted, Interrupting
from fixtures.runs import by_run, fast_only

TABLES = """
create table c (ck int primary key, seg string, active boolean);
create table o (ok int primary key, ck int references c (ck), day int);
create table l (ok int references o (ok), line int, x decimal(10,2));
"""
JOINED = "from l join o on l.ok = o.ok join c on o.ck = c.ck"
SUMS = f"select o.day, c.seg, count(*) as n, sum(l.x) as s {JOINED} group by o.day, c.seg"
LISTING = f"select l.ok, l.line, l.x, o.day, c.seg {JOINED}"
QUERIES = {
    "sums": SUMS,
    "rows": LISTING,
    "filtered": f"select o.day, sum(l.x) as s {JOINED} where c.active and o.day > 1 and l.line < 2 group by o.day",
    "affected groups": f"select c.seg, max(l.x) as m {JOINED} group by c.seg",
    "a union": f"select l.ok as k {JOINED} union all select c.ck from o join c on o.ck = c.ck",
    "left of an outer join": "select l.line, o.day, c.seg from l join o on l.ok = o.ok left join c on o.ck = c.ck",
}
ROWS = {"c": 10_000, "o": 1_000_000, "l": 100_000_000}


def _plan(sql: str, tables: str = TABLES, **meta: object) -> Plan:
    script = read_script(f"{tables}{sql};")
    sizes = {r.name: ROWS[r.name.split(".")[-1]] for r in script.catalog.relations}
    measured = TableStatistics.of(sizes)
    return plan_model(ModelRequest("m", script.sql, script.catalog, load_config(meta), measured=measured))


def _orphans(plan: Plan) -> list[str]:
    return [v.name for v in plan.helpers if v.reason.startswith("orphans of")]


def _reads(plan: Plan) -> set[tuple[str, str]]:
    return {(read, c) for view in plan.views for read, when in reads_in_full(view) for c in when}


class Disorder:
    """Rows of the three tables through changes that keep no promise: no keys, children first, parents that go."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.rows: dict[str, list[Row]] = {name: [self.row(name) for _ in range(8)] for name in "col"}

    def row(self, name: str) -> Row:
        rng = self.rng
        key, other = rng.choice([None, 1, 2, 3, 4, 5, 6]), rng.choice([None, 1, 2, 3, 4, 5, 6])
        if name == "c":
            return (key, rng.choice("ab"), rng.choice([True, False, None]))
        return (
            (key, other, rng.randrange(4))
            if name == "o"
            else (key, rng.randrange(3), f"{rng.randrange(9)}.50")
        )

    def change(self, bench: Bench, names: Sequence[str]) -> None:
        for name in names:
            before = Counter(self.rows[name])
            for _ in range(self.rng.randrange(1, 4)):
                if self.rows[name] and self.rng.random() < 0.5:
                    self.rows[name].pop(self.rng.randrange(len(self.rows[name])))
                if self.rng.random() < 0.7:
                    self.rows[name].append(self.row(name))
            now = Counter(self.rows[name])
            come, gone = (now - before).elements(), (before - now).elements()
            bench.engine.change(name, insert=list(come), delete=list(gone))


@pytest.mark.parametrize("sql", fast_only(["sums", "a union", "left of an outer join"], QUERIES))
@pytest.mark.parametrize(
    "seeds", by_run([range(2)], more=[range(2, 8)], long=[range(8, 20)]), ids=["few", "many", "the others"]
)
def test_exact_whatever_the_keys_are(sql: str, seeds: range, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orphans, "UPKEEP", 0)
    plan = _plan(sql)
    assert _orphans(plan)
    for seed in seeds:
        disorder = Disorder(seed)
        bench = Bench.built(plan, disorder.rows)
        for _ in range(5):
            disorder.change(bench, disorder.rng.sample("col", disorder.rng.randrange(1, 4)))
            bench.refresh()
            bench.check()


def test_new_parents_do_not_read_their_children() -> None:
    plan = _plan(LISTING)
    assert _orphans(plan) == ["m__fivm_orphans_l_by_ok"]
    rows: dict[str, list[Row]] = {
        "c": [(1, "a", True)],
        "o": [(1, 1, 1)],
        "l": [(1, 1, "1.00"), (7, 1, "5.00"), (None, 2, "9.00")],
    }
    bench = Bench.built(plan, rows)
    bench.engine.change("o", insert=[(7, 1, 1), (8, 1, 2)])
    statements = bench.refresh().statements
    assert not any("FROM l VERSION" in s or "JOIN l VERSION" in s for s in statements), statements
    bench.check()
    bench.engine.change("o", delete=[(7, 1, 1)])
    assert any("l VERSION AS OF" in s for s in bench.refresh().statements)
    bench.check()
    bench.engine.change("o", insert=[(7, 1, 3)])
    assert not any("l VERSION AS OF" in s for s in bench.refresh().statements)
    bench.check()


def test_explain_says_what_is_read_when() -> None:
    text = explain(_plan(LISTING))
    assert "orphans of l: rows without one in o, which new rows of o meet" in text


def test_a_relation_that_refers_to_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orphans, "UPKEEP", 0)
    monkeypatch.setattr(orphans, "_pays", lambda *_: True)
    monkeypatch.setitem(ROWS, "e", 100)
    tables = "create table e (id int primary key, boss int references e (id), pay decimal(9,2));"
    plan = _plan(
        "select b.id, count(*) as n, sum(e.pay) as pay from e join e b on e.boss = b.id group by b.id", tables
    )
    assert _orphans(plan)
    bench = Bench.built(plan, {"e": [(1, None, "9.00"), (2, 1, "5.00"), (3, 7, "4.00"), (4, 2, "3.00")]})
    for came, went in (
        ([(7, 7, "1.00"), (6, 5, "2.00")], []),
        ([(2, 3, "6.00"), (5, 9, "1.00")], [(2, 1, "5.00")]),
        ([(7, 4, "2.00")], [(6, 5, "2.00"), (7, 7, "1.00")]),
        ([], [(7, 4, "2.00"), (1, None, "9.00")]),
    ):
        bench.engine.change("e", insert=came, delete=went)
        bench.refresh()
        bench.check()


def test_keys_of_several_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orphans, "_pays", lambda *_: True)
    monkeypatch.setitem(ROWS, "p", 100)
    monkeypatch.setitem(ROWS, "f", 100)
    tables = "create table p (a int, b int, x int, primary key (a, b));"
    tables += "create table f (a int, b int, v int, foreign key (a, b) references p (a, b));"
    plan = _plan("select p.x, sum(f.v) as s from f join p on f.a = p.a and p.b = f.b group by p.x", tables)
    assert _orphans(plan) == ["m__fivm_orphans_f_by_a_b"]
    bench = Bench.built(plan, {"p": [(1, 1, 5)], "f": [(1, 1, 2), (1, None, 3), (2, 1, 4), (1, 2, 6)]})
    for name, came, went in (
        ("p", [(2, 1, 5), (1, None, 5)], []),
        ("p", [(1, 2, 6)], [(1, 1, 5)]),
        ("f", [(1, 1, 9), (2, 2, 1)], [(1, 2, 6)]),
        ("p", [(1, 1, 7), (2, 2, 7)], []),
    ):
        bench.engine.change(name, insert=came, delete=went)
        bench.refresh()
        bench.check()


@pytest.mark.parametrize(
    ("meta", "rows"),
    [
        ({"fivm_trust_keys": True}, ROWS),
        ({"fivm_strategy": "first_order"}, ROWS),
        ({"fivm_static": ["o"]}, ROWS),
        ({}, {"c": 100, "o": 1_000, "l": 10_000}),
    ],
    ids=["promised", "only the root", "parents never change", "small"],
)
def test_they_are_kept_where_they_pay(
    meta: dict[str, object], rows: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, count in rows.items():
        monkeypatch.setitem(ROWS, name, count)
    assert "m__fivm_orphans_l_by_ok" not in _orphans(_plan(LISTING, **meta))


def test_interrupted_after_each_statement() -> None:
    plan = _plan(LISTING)
    for stop in range(1, 12):
        disorder = Disorder(5)
        bench = Bench.built(plan, disorder.rows)
        disorder.change(bench, "col")
        try:
            bench.refresh(Interrupting(bench.engine, stop, after=bool(stop % 2)))
        except Interrupted:
            bench.refresh()
        bench.check()
