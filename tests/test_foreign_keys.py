"""``fivm_trust_keys``: what is promised of keys leaves out work, and nothing else while the promise holds."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

import pytest

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

CHAIN = """
create table c (ck int primary key, seg string, active boolean);
create table o (ok int primary key, ck int references c (ck), day int);
create table l (ok int references o (ok), line int, x decimal(10,2));
"""
JOINED = "from l join o on l.ok = o.ok join c on o.ck = c.ck"
SUMS = f"select o.day, c.seg, count(*) as n, sum(l.x) as s {JOINED} group by o.day, c.seg"
ORDERS = "select o.day, o.ck, count(*) as n from o join l on l.ok = o.ok group by o.day, o.ck"
QUERIES = {
    "sums": SUMS,
    "rows": f"select l.ok, l.line, o.day, c.seg {JOINED}",
    "filtered parents": f"select o.day, sum(l.x) as s {JOINED} where c.active and o.day > 1 group by o.day",
    "affected groups": f"select c.seg, max(l.x) as m {JOINED} group by c.seg",
    "the parent first": "select c.seg, count(*) as n from c join o on c.ck = o.ck join l on o.ok = l.ok group by c.seg",
    "a union": f"select l.ok as k {JOINED} union all select c.ck from o join c on o.ck = c.ck",
    "below an outer join": f"select t.day, c.seg, t.n from ({ORDERS}) t left join c on t.ck = c.ck",
}


def _plan(sql: str, tables: str = CHAIN, *, trusts: bool = True, **meta: object) -> Plan:
    script = read_script(f"{tables}{sql};")
    config = load_config({"fivm_trust_keys": trusts, **meta})
    return plan_model(ModelRequest("m", script.sql, script.catalog, config))


class Shop:
    """Rows of the chain through changes that keep every promise."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.c: dict[int, Row] = {}
        self.o: dict[int, Row] = {}
        self.l: list[Row] = []
        self.number = 0
        for _ in range(12):
            self.grow()

    @property
    def rows(self) -> dict[str, list[Row]]:
        return {"c": list(self.c.values()), "o": list(self.o.values()), "l": list(self.l)}

    def customer(self) -> None:
        self.number += 1
        self.c[self.number] = (self.number, self.rng.choice("ab"), self.rng.random() < 0.7)

    def order(self) -> None:
        self.number += 1
        self.o[self.number] = (self.number, self.rng.choice([None, *self.c]), self.rng.randrange(4))

    def line(self) -> None:
        self.l.append(
            (self.rng.choice([None, *self.o]), self.rng.randrange(3), f"{self.rng.randrange(9)}.50")
        )

    def grow(self) -> None:
        self.customer()
        self.order()
        self.line()

    def update(self) -> None:
        k = self.rng.choice(list(self.c))
        self.c[k] = (k, self.rng.choice("abc"), self.rng.random() < 0.5)
        k = self.rng.choice(list(self.o))
        self.o[k] = (k, self.rng.choice([None, *self.c]), self.rng.randrange(4))

    def shrink(self) -> None:
        """A customer goes, and with it what refers to it."""
        gone = self.rng.choice(list(self.c))
        del self.c[gone]
        orders = {k for k, row in self.o.items() if row[1] == gone}
        self.o = {k: row for k, row in self.o.items() if k not in orders}
        self.l = [row for row in self.l if row[0] not in orders]


def _follow(bench: Bench, shop: Shop, steps: Sequence[str]) -> None:
    before = shop.rows
    for step in steps:
        getattr(shop, step)()
    for name in (item.name for item in bench.plan.inputs):
        then, now = Counter(before[name]), Counter(shop.rows[name])
        bench.engine.change(name, insert=list((now - then).elements()), delete=list((then - now).elements()))


@pytest.mark.parametrize(
    "sql", fast_only(["sums", "affected groups", "filtered parents", "below an outer join"], QUERIES)
)
@pytest.mark.parametrize("strategy", by_run(["auto"], more=["recursive"], long=["factorized", "first_order"]))
def test_exact_while_the_promise_holds(sql: str, strategy: str) -> None:
    for seed in range(2):
        shop = Shop(seed)
        bench = Bench.built(_plan(sql, fivm_strategy=strategy), shop.rows)
        verbs = ("customer", "order", "line", "grow", "update", "shrink")
        for _ in range(5):
            _follow(bench, shop, [shop.rng.choice(verbs) for _ in range(3)])
            bench.refresh()
            bench.check()


def _reads(plan: Plan) -> set[tuple[str, str]]:
    return {(read, c) for view in plan.views for read, when in reads_in_full(view) for c in when}


def test_new_parents_read_nothing() -> None:
    plan = _plan(SUMS)
    assert ("l", "c (old rows)") in _reads(plan) and ("l", "o (old rows)") in _reads(plan)
    assert not {("l", "c"), ("l", "o"), ("o", "c")} & _reads(plan)
    assert ("l", "c") in _reads(_plan(SUMS, trusts=False))
    assert "! reads l in full when c (old rows) changes" in explain(plan)

    shop = Shop(1)
    bench = Bench.built(plan, shop.rows)
    _follow(bench, shop, ["customer", "order", "customer"])
    statements = bench.refresh().statements
    assert not any("l VERSION AS OF" in s or "JOIN" in s for s in statements), statements
    bench.check()
    _follow(bench, shop, ["update", "update"])
    assert any("l VERSION AS OF" in s for s in bench.refresh().statements)
    bench.check()


def test_new_parents_with_their_children() -> None:
    shop = Shop(2)
    bench = Bench.built(_plan(SUMS), shop.rows)
    _follow(bench, shop, ["grow", "grow", "line"])
    statements = bench.refresh().statements
    bench.check()
    assert not any("l VERSION AS OF" in s for s in statements), "old lines have no new order"


def test_the_promise_is_relied_on() -> None:
    """A child that was there before its parent is missed, until the model is built anew."""
    rows: dict[str, list[Row]] = {
        "c": [(1, "a", True)],
        "o": [(1, 1, 1)],
        "l": [(1, 1, "1.00"), (7, 1, "5.00")],
    }
    bench = Bench.built(_plan(SUMS), rows)
    bench.engine.change("o", insert=[(7, 1, 1)])
    bench.refresh()
    assert bench.shown() != bench.newest()
    bench.refresh(full_refresh=True)
    bench.check()


@pytest.mark.parametrize(
    "tables",
    [
        CHAIN.replace(" references o (ok)", "").replace(" references c (ck)", ""),
        CHAIN.replace(" primary key", ""),
    ],
    ids=["no foreign keys", "no keys"],
)
def test_what_is_not_declared_is_not_relied_on(tables: str) -> None:
    assert not any("(old rows)" in c for _, c in _reads(_plan(SUMS, tables)))


def test_another_join_than_that_of_the_key_is_not() -> None:
    plan = _plan("select o.day, count(*) as n from l join o on l.line = o.ok group by o.day")
    assert ("l", "o") in _reads(plan)
    half = "create table p (a int, b int, x int, primary key (a, b));"
    half += "create table f (a int, b int, v int, foreign key (a, b) references p (a, b));"
    assert ("f", "p") in _reads(
        _plan("select p.x, sum(f.v) as s from f join p on f.a = p.a group by p.x", half)
    )
    both = "select p.x, sum(f.v) as s from f join p on f.a = p.a and p.b = f.b group by p.x"
    assert ("f", "p (old rows)") in _reads(_plan(both, half))


def test_a_relation_that_refers_to_itself() -> None:
    tables = "create table e (id int primary key, boss int references e (id), pay decimal(9,2));"
    sql = "select b.id, count(*) as n, sum(e.pay) as pay from e join e b on e.boss = b.id group by b.id"
    rows: list[Row] = [(1, None, "9.00"), (2, 1, "5.00"), (3, 1, "4.00"), (4, 2, "3.00")]
    bench = Bench.built(_plan(sql, tables), {"e": rows})
    for came, went in (
        ([(5, 5, "1.00"), (6, 5, "2.00")], []),
        ([(2, 3, "6.00")], [(2, 1, "5.00")]),
        ([(7, 4, "2.00")], [(6, 5, "2.00"), (5, 5, "1.00")]),
    ):
        bench.engine.change("e", insert=came, delete=went)
        bench.refresh()
        bench.check()


def test_an_interrupted_refresh_knows_which_inputs_lost_rows() -> None:

    shop = Shop(3)
    bench = Bench.built(_plan(SUMS), shop.rows)
    for steps in (["update"], ["customer", "grow"], ["shrink", "grow"]):
        _follow(bench, shop, steps)
        with pytest.raises(Interrupted):
            bench.refresh(Interrupting(bench.engine, 3, after=False))
        bench.refresh()
        bench.check()
