"""What a changed row meets on its way to the root, and what the class of a query implies."""

from __future__ import annotations

import pytest

from fivm_dbt.explain.text import explain
from fivm_dbt.viewtree.classes import class_of
from fivm_dbt.viewtree.hypergraph import Edge, FunctionalDependency, Hypergraph
from fivm_dbt.viewtree.update_costs import implied, update_costs
from fivm_dbt.viewtree.variable_order import OrderNode, VariableOrder, chain
from fivm_dbt.viewtree.view_tree import view_tree
from fixtures.models import plan_of, relation

RETAILER = Hypergraph(
    (
        Edge("inventory", ("locn", "dateid", "ksn")),
        Edge("location", ("locn", "zip")),
        Edge("census", ("zip",)),
        Edge("item", ("ksn",)),
        Edge("weather", ("locn", "dateid")),
    )
)
RETAILER_ORDER = VariableOrder(chain(("locn",), (*chain(("dateid", "ksn")), OrderNode("zip"))))
FAVORITA = Hypergraph(
    (
        Edge("sales", ("date", "store", "item")),
        Edge("items", ("item",)),
        Edge("stores", ("store",)),
        Edge("transactions", ("date", "store")),
        Edge("oil", ("date",)),
    )
)
FAVORITA_ORDER = VariableOrder(chain(("date", "store", "item")))
ZIP = FunctionalDependency(frozenset({"zip"}), frozenset({"locn"}))


def _met(
    graph: Hypergraph, order: VariableOrder, static: str = "", *dependencies: FunctionalDependency
) -> dict[str, list[str]]:
    """By relation the views and relations that may have many rows for one of it."""
    updatable = graph.names - set(static.split())
    costs = update_costs(graph, (view_tree(graph, order),), updatable, dependencies)
    return {c.relation: [name for name, _ in c.met] for c in costs if c.met}


def test_of_a_retailer() -> None:
    """A census row has constant cost where its zip has one location, an item's row none unless items stay."""
    assert _met(RETAILER, RETAILER_ORDER) == {
        "census": ["location"],
        "item": ["inventory"],
    }
    assert _met(RETAILER, RETAILER_ORDER, "item") == {"census": ["location"]}
    assert _met(RETAILER, RETAILER_ORDER, "item", ZIP) == {}
    assert class_of(RETAILER) != "q-hierarchical"


def test_of_favorita() -> None:
    assert set(_met(FAVORITA, FAVORITA_ORDER)) == {"items", "stores"}
    assert _met(FAVORITA, FAVORITA_ORDER, "stores items") == {}


def test_a_triangle_meets_many_by_its_indicator_too() -> None:
    graph = Hypergraph((Edge("r", ("a", "b")), Edge("s", ("b", "c")), Edge("t", ("c", "a"))))
    assert _met(graph, VariableOrder(chain(("a", "b", "c")))) == {"r": ["s"], "s": ["t"], "t": ["s"]}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("q-hierarchical", "constant time"),
        ("hierarchical, free-connex", "linear in the inputs, and rows of a factorised result"),
        ("hierarchical, acyclic", "no order gives both"),
        ("acyclic", "no order gives both"),
        ("cyclic", "larger than the inputs"),
    ],
)
def test_what_classes_imply(name: str, words: str) -> None:
    assert words in implied(name)


@pytest.mark.parametrize("result", ["listing", "factorized"])
def test_explain_tells(result: str) -> None:
    tables = [relation("r", "a int, b int"), relation("s", "a int, c int"), relation("t", "c int, d int")]
    query = "select r.a, r.b, s.c, t.d from r join s on r.a = s.a join t on s.c = t.c"
    text = explain(plan_of(query, tables, {"fivm_strategy": "factorized", "fivm_result": result}))
    assert "  a changed row costs at most time linear in the inputs" in text
    if result == "factorized":
        assert "  a changed row of r, s meets single rows" in text
        assert "  a changed row of t may meet many of s by a" in text
