"""Cyclic joins: which views indicator projections restrict, that results stay exact, and how large the views are."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from sqlglot import exp

from fivm_dbt.explain.text import explain
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.refresh.engine import Row
from fivm_dbt.spark.added import read_summed
from fivm_dbt.viewtree.classes import class_of
from fivm_dbt.viewtree.hypergraph import Edge, Hypergraph
from fivm_dbt.viewtree.search import find_order
from fivm_dbt.viewtree.variable_order import OrderNode, VariableOrder, chain
from fivm_dbt.viewtree.view_tree import Indicator, View, delta_path, view_tree
from fixtures.models import Bench, plan_of, relation
from fixtures.runs import fast_only

FACTORIZED = {"fivm_strategy": "factorized"}
TRIANGLE = "from r join s on r.b = s.b join t on s.c = t.c and t.a = r.a"
FOUR = "from r join s on r.b = s.b join t on s.c = t.c join u on t.d = u.d and u.a = r.a"
CLIQUE = (
    "from e r, e s, e t, e u, e v, e w where r.x = s.x and s.x = t.x and r.y = u.x and u.x = v.x and s.y = w.x "
    "and s.y = u.y and t.y = v.y and v.y = w.y"
)
LOOP = "from e r join e s on r.y = s.x join e t on s.y = t.x and t.y = r.x"
QUERIES = {
    "triangles": f"select count(*) as n {TRIANGLE}",
    "sum": f"select sum(r.w * s.w) as x, count(t.w) as n {TRIANGLE}",
    "by a variable": f"select r.a, count(*) as n, sum(s.w) as x {TRIANGLE} group by r.a",
    "by two": f"select r.a, s.c, count(*) as n {TRIANGLE} group by r.a, s.c",
    "by another column": f"select s.w, count(*) as n, max(r.w) as m {TRIANGLE} group by s.w",
    "listed": f"select r.a, r.b, s.c {TRIANGLE}",
    "null-safe": f"select count(*) as n {TRIANGLE.replace('t.a = r.a', 't.a <=> r.a')}",
    "filtered": f"select count(*) as n {TRIANGLE} where r.w > 1 and s.w <> t.w",
    "four": f"select count(*) as n, sum(t.w) as x {FOUR}",
    "four by two": f"select r.a, s.c, count(*) as n {FOUR} group by r.a, s.c",
    "of one relation": f"select count(*) as n {LOOP}",
    "of one relation by node": f"select r.x, count(*) as n {LOOP} group by r.x",
    "clique of four": f"select count(*) as n {CLIQUE}",
}
COLUMNS = {
    "r": "a int, b int",
    "s": "b int, c int",
    "t": "c int, d int, a int",
    "u": "d int, a int",
    "e": "x int, y int",
}


def _columns(name: str) -> str:
    return f"{COLUMNS[name]}, w bigint"


def _rows(rng: random.Random, name: str, many: int) -> list[Row]:
    width = COLUMNS[name].count(",") + 1
    return [
        (*(rng.choice([1, 2, 3, 3, None]) for _ in range(width)), rng.choice([None, 1, 2]))
        for _ in range(many)
    ]


def _used(sql: str) -> list[str]:
    return [name for name in COLUMNS if any(f"{word} {name} " in f"{sql} " for word in ("from", "join", ","))]


@pytest.mark.parametrize(
    "static",
    [(), *(pytest.param(names, marks=pytest.mark.more) for names in (("r",), ("s", "t")))],
    ids=["all change", "r static", "s and t static"],
)
@pytest.mark.parametrize(
    "sql", fast_only(["sum", "by another column", "null-safe", "four by two", "of one relation"], QUERIES)
)
def test_exact(sql: str, static: Sequence[str]) -> None:
    used = _used(sql)
    if set(static) - set(used):
        pytest.skip("of another query")
    for seed in range(2):
        rng = random.Random(seed)
        present = {name: _rows(rng, name, 10) for name in used}
        tables = {name: (_columns(name), rows) for name, rows in present.items()}
        bench = Bench.of(sql, tables, FACTORIZED, static=static)
        bench.refresh()
        bench.check()
        for _ in range(3):
            changing = [name for name in used if name not in static]
            for name in rng.sample(changing, rng.randint(1, len(changing))):
                gone = rng.sample(present[name], min(len(present[name]), rng.randrange(6)))
                came = _rows(rng, name, rng.randrange(6))
                for row in gone:
                    present[name].remove(row)
                present[name] += came
                bench.engine.change(name, insert=came, delete=gone)
            bench.refresh()
            bench.check()


def _plan(sql: str) -> Plan:
    return plan_of(sql, [relation(n, _columns(n)) for n in _used(sql)], FACTORIZED)


def _rows_of(bench: Bench, plan: Plan) -> dict[str, int]:
    rows = {v.name: read_summed(plan, v, None, None, "state", has_tail=True) for v in plan.views}
    queries = {name: exp.select("*").from_(state).sql(dialect="spark") for name, state in rows.items()}
    return {name: len(bench.engine.query(query)) for name, query in queries.items()}


def test_a_hub_does_not_blow_up_the_state() -> None:
    """All a's meet all b's over one c: the pairs are the square of the rows, of which r has few."""
    many = 60
    tables: dict[str, tuple[str, Sequence[Row]]] = {
        "r": (_columns("r"), [(i, i, 1) for i in range(many)]),
        "s": (_columns("s"), [(i, 0, 1) for i in range(many)]),
        "t": (_columns("t"), [(0, None, i, 1) for i in range(many)]),
    }
    bench = Bench.of(QUERIES["triangles"], tables, FACTORIZED)
    bench.refresh()
    bench.check()
    assert max(_rows_of(bench, bench.plan).values()) == many
    bench.engine.change("r", insert=[(1, 2, 1), (1, 3, 1)], delete=[(5, 5, 1)])
    bench.refresh()
    bench.check()
    assert max(_rows_of(bench, bench.plan).values()) == many + 1
    pairs = bench.engine.query("SELECT COUNT(*) FROM s JOIN t ON s.c = t.c")
    assert pairs == [(many * many,)]


def test_explain_names_the_indicator() -> None:
    text = explain(_plan(QUERIES["triangles"]))
    assert "V@c[b, a] of s, t → rows: kept" in text
    assert "∃r[b, a] → present: kept as m__fivm_view_3_r, restricts the view above" in text
    assert "the values of b, a in r, which close a cycle" in text


def _graph(*edges: str) -> Hypergraph:
    return Hypergraph(tuple(Edge(e[0], tuple(e[1:])) for e in edges))


def _restricted(tree: View) -> dict[str, tuple[Indicator, ...]]:
    return {v.variables[0]: v.indicators for v in tree.walk() if v.indicators}


class TestIndicators:
    def test_of_a_triangle(self) -> None:
        tree = view_tree(_graph("Rab", "Sbc", "Tca"), VariableOrder(chain(("a", "b", "c"))))
        assert _restricted(tree) == {"c": (Indicator("R", ("a", "b")),)}
        assert [v.variables[0] for v in delta_path(tree, "R")] == ["c", "a"]

    def test_of_a_cycle_of_four(self) -> None:
        """On one path the last but one variable closes a triangle; on two branches none does."""
        edges = _graph("Rab", "Sbc", "Tcd", "Uda")
        path = view_tree(edges, VariableOrder(chain(("a", "b", "c", "d"))))
        assert _restricted(path) == {"c": (Indicator("R", ("a", "b")),)}
        branches = VariableOrder(chain(("a", "c"), (OrderNode("b"), OrderNode("d"))))
        assert _restricted(view_tree(edges, branches)) == {}

    def test_projects_relations_to_what_is_there(self) -> None:
        tree = view_tree(
            _graph("Rabx", "Sbc", "Tca"), VariableOrder(chain(("a", "b"), (OrderNode("c"), OrderNode("x"))))
        )
        assert _restricted(tree) == {"c": (Indicator("R", ("a", "b")),)}

    def test_the_same_restriction_is_made_once(self) -> None:
        tree = view_tree(_graph("Rab", "Qab", "Sbc", "Tca"), VariableOrder(chain(("a", "b", "c"))))
        assert _restricted(tree) == {"c": (Indicator("R", ("a", "b")),)}

    @pytest.mark.parametrize("seed", range(30))
    def test_none_where_nothing_is_cyclic(self, seed: int) -> None:
        rng = random.Random(seed)
        edges = tuple(
            Edge(f"R{i}", tuple(rng.sample("abcdef", rng.randint(1, 3)))) for i in range(rng.randint(2, 5))
        )
        graph = Hypergraph(edges)
        tree = view_tree(graph, find_order(graph, graph.names))
        if class_of(graph) != "cyclic":
            assert _restricted(tree) == {}
        for view in tree.walk():
            here = {v for c in view.children for v in (c.keys if isinstance(c, View) else c.variables)}
            for indicator in view.indicators:
                assert indicator.relation not in view.relations
                assert set(indicator.variables) == set(graph.edge(indicator.relation).variables) & here
