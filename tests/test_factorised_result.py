"""``fivm_result: factorized``: a result that is joined when it is read, from views that are kept of its factors."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from fivm_dbt.errors import FivmError
from fivm_dbt.explain.graph import dot
from fivm_dbt.explain.text import explain
from fivm_dbt.plan.layout.clustering import enumeration_prefixes
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.refresh.engine import Row
from fivm_dbt.viewtree.factorised import factorised_tree
from fivm_dbt.viewtree.hypergraph import Edge, Hypergraph
from fivm_dbt.viewtree.search import find_order
from fivm_dbt.viewtree.variable_order import OrderNode, VariableOrder, chain
from fixtures.models import Bench, Interrupted, Interrupting, plan_of, relation
from fixtures.runs import by_run, fast_only

FACTORIZED = {"fivm_result": "factorized"}
COLUMNS = {
    "r": "a int, b int, x decimal(6,2)",
    "s": "a int, c int, e int, y decimal(6,2)",
    "t": "c int, d int, z bigint",
    "u": "a int, f int",
}
RST = "from r join s on r.a = s.a join t on s.c = t.c"
STAR = "from r join s on r.a = s.a join u on u.a = r.a"
QUERIES = {
    "free-connex": f"select r.a, r.b, s.c, t.d {RST}",
    "not free-connex": f"select r.b, t.d {RST}",
    "a star": f"select r.a, r.b, s.c, u.f {STAR}",
    "q-hierarchical sums": f"select r.a, r.b, u.f, sum(s.y) as y, count(*) as n {STAR} group by r.a, r.b, u.f",
    "sums of all": f"select r.a, s.c, sum(r.x * s.y) as xy, sum(r.x - s.y) as d, avg(t.z) as z {RST} group by r.a, s.c",
    "computed": f"select r.a + 1 as a1, r.b * s.c as bc, sum(t.z) as z {RST} group by r.a + 1, r.b * s.c",
    "having": f"select r.a, t.d, count(*) as n {RST} group by r.a, t.d having count(*) > 1 and sum(s.e) is not null",
    "distinct": f"select distinct r.b, s.e {RST}",
    "theta": f"select r.a, r.b, t.d {RST} where r.b < t.d and r.x > 1",
    "theta on what is not shown": f"select r.a, t.d, sum(s.y) as y {RST} where r.b < s.e group by r.a, t.d",
    "product": "select r.b, u.f, count(*) as n from r, u group by r.b, u.f",
    "one row": f"select count(*) as n, sum(r.x * t.z) as xz {RST}",
    "cycle": "select r.a, s.c, t.d from r join s on r.a = s.a join t on s.c = t.c and t.d = r.b",
    "self-join": "select p.a, p.b, q.b as b2, count(*) as n from r p join r q on p.a = q.a group by p.a, p.b, q.b",
    "null-safe": "select r.a, r.b, u.f from r join u on r.a <=> u.a",
    "constants": f"select 1 as one, r.a {RST}",
    "over an aggregate": "select r.b, g.n from r join (select a, count(*) as n from s group by a) g on g.a = r.a",
}


def _used(sql: str) -> list[str]:
    text = f"{sql} ".replace(",", " ,")
    return [name for name in COLUMNS if any(f"{word} {name} " in text for word in ("from", "join", ","))]


def _rows(rng: random.Random, name: str, many: int) -> list[Row]:
    types = [c.strip().split(" ")[1] for c in COLUMNS[name].replace("(6,2)", "").split(",")]
    choices: dict[str, list[object]] = {
        "int": [1, 2, 3, None],
        "bigint": [5, 7, None],
        "decimal": ["1.50", "2.00", None],
    }
    return [tuple(rng.choice(choices[t]) for t in types) for _ in range(many)]


class Stream:
    """A model over random rows that come and go."""

    def __init__(
        self, sql: str, seed: int, *, static: Sequence[str] = (), many: int = 8, **meta: object
    ) -> None:
        self.rng = random.Random(seed)
        self.used = _used(sql)
        self.static = static
        self.present = {name: _rows(self.rng, name, many) for name in self.used}
        tables = {name: (COLUMNS[name], list(rows)) for name, rows in self.present.items()}
        self.bench = Bench.of(sql, tables, FACTORIZED | meta, static=static)

    def change(self) -> None:
        changing = [name for name in self.used if name not in self.static]
        for name in self.rng.sample(changing, self.rng.randint(1, len(changing))):
            rows = self.present[name]
            gone = self.rng.sample(rows, min(len(rows), self.rng.randrange(5)))
            came = _rows(self.rng, name, self.rng.randrange(5))
            for row in gone:
                rows.remove(row)
            rows += came
            self.bench.engine.change(name, insert=came, delete=gone)


FAST = (
    *("free-connex", "a star", "sums of all", "having", "one row", "self-join", "cycle", "over an aggregate"),
    "theta on what is not shown",
)


@pytest.mark.parametrize(
    "run", by_run([("merge", 0)], more=[("replace", 1)], long=[("merge", 1), ("replace", 0)]), ids=str
)
@pytest.mark.parametrize("sql", fast_only(FAST, QUERIES))
def test_exact(sql: str, run: tuple[str, int]) -> None:
    apply, seed = run
    stream = Stream(sql, seed, fivm_apply=apply)
    bench = stream.bench
    assert bench.refresh().action == "built"
    bench.check()
    for _ in range(3):
        stream.change()
        bench.refresh()
        bench.check()
    for name, rows in stream.present.items():
        bench.engine.change(name, delete=rows)
    bench.refresh()
    bench.check()
    ((rows,),) = bench.engine.query(
        f"SELECT COUNT(*) FROM {bench.plan.state_relation} WHERE __fivm_view = 'root'"
    )
    assert rows == 0


@pytest.mark.parametrize("static", by_run(more=[("t", "u")], long=[("r",), ("s",)]), ids=str)
@pytest.mark.parametrize("sql", QUERIES.values(), ids=QUERIES)
def test_exact_with_static_inputs(sql: str, static: Sequence[str]) -> None:
    known = [name for name in static if name in _used(sql)]
    if not known or set(known) == set(_used(sql)):
        pytest.skip("of another query")
    stream = Stream(sql, 5, static=known)
    stream.bench.refresh()
    for _ in range(3):
        stream.change()
        stream.bench.refresh()
        stream.bench.check()


def _plan(sql: str, **meta: object) -> Plan:
    return plan_of(sql, [relation(n, COLUMNS[n]) for n in _used(sql)], FACTORIZED | meta)


@pytest.mark.parametrize("first_is_after", [False, pytest.param(True, marks=pytest.mark.long)])
def test_readers_see_what_was_there_until_all_is_written(*, first_is_after: bool) -> None:
    """Interrupted before or after each statement, in turn."""
    stream = Stream(QUERIES["free-connex"], 1)
    bench = stream.bench
    bench.refresh()
    before = bench.shown()
    stream.change()
    stream.change()
    whole = Interrupting(bench.engine, 0, after=False)
    bench.refresh(whole)
    after = bench.shown()
    assert before != after
    for number in range(1, len(whole.statements) + 1):
        stream = Stream(QUERIES["free-connex"], 1)
        bench = stream.bench
        bench.refresh()
        stream.change()
        stream.change()
        with pytest.raises(Interrupted):
            bench.refresh(Interrupting(bench.engine, number, after=first_is_after != (number % 2 == 0)))
        assert bench.shown() in (before, after)
        bench.refresh()
        assert bench.shown() == after
        bench.check()


def test_a_view_that_was_dropped_is_put_back() -> None:
    stream = Stream(QUERIES["a star"], 2)
    stream.bench.refresh()
    stream.bench.engine.run("DROP VIEW analytics.m")
    assert stream.bench.refresh().action == "no change"
    stream.bench.check()


def test_a_state_that_is_gone_is_built_anew() -> None:
    stream = Stream(QUERIES["a star"], 2)
    stream.bench.refresh()
    stream.bench.engine.drop(stream.bench.plan.state_relation)
    report = stream.bench.refresh()
    assert (report.action, "is missing" in (report.reason or "")) == ("rebuilt", True)
    stream.bench.check()


def test_from_a_list_to_factors_and_back() -> None:
    stream = Stream(QUERIES["a star"], 3)
    bench = stream.bench
    bench.refresh()
    factors = {v.name for v in bench.plan.stored}
    for meta in ({}, FACTORIZED):
        stream.change()
        bench.with_plan(meta=meta)
        assert bench.refresh().action == "rebuilt"
        bench.check()
        assert all(bench.engine.exists(name) == bool(meta) for name in factors)


def _wide(many: int) -> Bench:
    """Every a has ``many`` b and as many f, of which the list has all pairs."""
    keys = range(4)
    tables: dict[str, tuple[str, Sequence[Row]]] = {
        "r": (COLUMNS["r"], [(a, b, "1.00") for a in keys for b in range(many)]),
        "u": (COLUMNS["u"], [(a, f) for a in keys for f in range(many)]),
    }
    return Bench.of("select r.a, r.b, u.f from r join u on r.a = u.a", tables, FACTORIZED)


def test_the_state_is_linear_in_the_inputs() -> None:
    bench = _wide(50)
    bench.refresh()
    bench.check()
    kept = [len(bench.engine.query(f"SELECT * FROM {v.name}")) for v in bench.plan.stored]
    listed = sum(bench.shown().values())
    assert sum(kept) <= 2 * 400 + 3 * 4 and listed == 4 * 50 * 50
    bench.engine.change("r", insert=[(1, 99, "1.00")])
    report = bench.refresh()
    assert report.rows_merged <= 3
    assert sum(bench.shown().values()) == listed + 50


@pytest.mark.parametrize(
    ("sql", "meta", "told"),
    [
        ("select a, b from r", {}, "not that of an inner join"),
        ("select r.a, u.f from r left join u on r.a = u.a", {}, "not that of an inner join"),
        (
            "select r.a, max(u.f) as m from r join u on r.a = u.a group by r.a",
            {},
            "not that of an inner join",
        ),
        (QUERIES["a star"], {"fivm_strategy": "recursive"}, "fivm_strategy: recursive has no view tree"),
        (QUERIES["a star"], {"fivm_strategy": "first_order"}, "fivm_strategy: first_order has no view tree"),
        (QUERIES["a star"], {"fivm_partition_by": "a"}, "of which there is none"),
    ],
)
def test_refused(sql: str, meta: dict[str, object], told: str) -> None:
    with pytest.raises(FivmError, match=f"FIVM201 .*{told}"):
        _plan(sql, **meta)


def test_no_model_is_maintained_over_it() -> None:
    relations = [replace(relation("m", "a int"), kind="factorized"), relation("r", COLUMNS["r"])]
    for policy in ("incremental", "full"):
        with pytest.raises(FivmError, match=r"FIVM303 .*records no changes of its result"):
            plan_of("select m.a from m join r on m.a = r.a", relations, {"fivm_policy": policy})


def test_explain() -> None:
    text = explain(_plan(QUERIES["free-connex"]))
    for part in (
        "variable order: a – {b, c – d}",
        "V@a[a] of r, s, t → rows: kept as m__fivm_view_8_r, the values of a that the result has",
        "r[a, b] → rows: kept as m__fivm_view_1_r, a factor of the result",
        "no rows of its own: joined from the views above when the model is read",
    ):
        assert part in text
    assert "m__fivm_root" not in text
    # Remark 2 of the article: S by its key, by A for readers, and by C for the change of T.
    s = text[text.index("== inner view analytics.m__fivm_view_3_s") :].split("== inner view")[1]
    assert "  payload key [a, c]: its own delta, to be written\n" in s
    assert "  sibling delta [c]: the change of m__fivm_view_5_t_by_c\n" in s
    assert "  enumeration prefix [a]: readers of the model, sorted by a, c, all partitions\n" in s
    assert "pmod(xxhash64(c)" in s
    by = "CASE WHEN __fivm_view = 'view_3_s_by_c' THEN {} END"
    assert f"{by.format('a')},\n  {by.format('c')}" in text[text.index("SORT BY") :]
    assert "style=rounded" in dot(_plan(QUERIES["free-connex"]))


def test_a_prefix_goes_by_what_is_joined_and_not_by_names() -> None:
    sql = "select x.a, x.b, y.c, z.d from r x join s y on x.b = y.a join t z on y.c = z.d"
    plan = _plan(sql)
    first, *others = enumeration_prefixes(plan.top)
    assert first[1] == ()
    assert len(others) > 2 and all(prefix for _, prefix in others)
    stored = {v.name: v.state.sorted_by for v in plan.helpers}
    for scan, prefix in enumeration_prefixes(plan.top):
        assert stored[scan.relation][: len(prefix)] == prefix


def _graph(free: str, *edges: str) -> Hypergraph:
    return Hypergraph(tuple(Edge(e[0], tuple(e[1:])) for e in edges), frozenset(free))


class TestTrees:
    def test_of_the_article(self) -> None:
        """Figure 10: H at A and C, V at B, C, D and E, and the relations with free variables alone."""
        graph = _graph("abc", "Rab", "Sace", "Tcd")
        order = VariableOrder(
            chain(("a",), (OrderNode("b"), OrderNode("c", (OrderNode("d"), OrderNode("e")))))
        )
        tree = factorised_tree(graph, order)
        assert [(v.variables[0], v.keys) for v in tree.joins] == [("c", ("a", "c")), ("a", ("a",))]
        assert [(v.variables[0], v.keys) for v in tree.above if v not in tree.joins] == [
            ("b", ("a",)),
            ("c", ("a",)),
        ]
        pieces = {p.name if isinstance(p, Edge) else (p.variables[0], p.keys) for p in tree.pieces}
        assert pieces == {"R", ("d", ("c",)), ("e", ("a", "c"))}

    def test_a_bound_variable_above_a_free_one_is_refused(self) -> None:
        graph = _graph("b", "Rab")
        with pytest.raises(FivmError, match=r"FIVM204 .*a is no variable of the result and stands above b"):
            factorised_tree(graph, VariableOrder(chain(("a", "b"))))

    @pytest.mark.parametrize("seed", range(60))
    def test_found_orders_are_free_top(self, seed: int) -> None:
        rng = random.Random(seed)
        edges = tuple(
            Edge(f"R{i}", tuple(rng.sample("abcdef", rng.randint(1, 3)))) for i in range(rng.randint(1, 5))
        )
        names = sorted({v for e in edges for v in e.variables})
        graph = Hypergraph(edges, frozenset(rng.sample(names, rng.randint(0, len(names)))))
        order = find_order(graph, graph.names, is_free_top=True)
        tree = factorised_tree(graph, order)
        covered = {n for p in tree.pieces for n in ((p.name,) if isinstance(p, Edge) else p.relations)}
        assert covered == graph.names
        for piece in tree.pieces:
            schema = piece.variables if isinstance(piece, Edge) else piece.keys
            assert set(schema) <= graph.free
