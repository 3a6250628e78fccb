"""Which views of a tree ``auto`` keeps: joins and groups that save reading, no copies, nothing for small tables."""

from __future__ import annotations

import pytest

from fivm_dbt.viewtree.choice import choose
from fivm_dbt.viewtree.hypergraph import Edge, Hypergraph
from fivm_dbt.viewtree.search import find_order
from fivm_dbt.viewtree.statistics import APPENDED, WRITTEN, Statistics
from fivm_dbt.viewtree.view_tree import View, view_tree

FOUR = Hypergraph(
    (
        Edge("L", ("orderkey", "day")),
        Edge("O", ("orderkey", "custkey")),
        Edge("C", ("custkey", "nationkey", "segment")),
        Edge("N", ("nationkey", "name")),
    ),
    frozenset(("day", "segment", "name")),
)
SF1 = {"L": 6_000_000, "O": 1_500_000, "C": 150_000, "N": 25}
DISTINCT = {
    ("L", "orderkey"): 1_500_000,
    ("L", "day"): 2_500,
    ("O", "custkey"): 100_000,
    ("C", "nationkey"): 25,
    ("C", "segment"): 5,
}

KEYS = (("L", "orderkey"), ("O", "custkey"))

ORDER_DATE = Hypergraph(
    (
        Edge("L", ("orderkey", "price")),
        Edge("O", ("orderkey", "custkey", "day")),
        Edge("C", ("custkey", "segment")),
    ),
    frozenset(("day", "segment")),
)
"""Prices of lines by the day of their order and the segment of its customer."""
OF_ORDERS = {("O", "custkey"): 100_000, ("O", "day"): 2_400, ("L", "orderkey"): 1_500_000}


def _chosen(rows: dict[str, int], updatable: str = "LOCN") -> dict[str, bool]:
    factor = rows["L"] / SF1["L"]
    distinct = {key: round(n * factor) if key in KEYS else n for key, n in DISTINCT.items()}
    statistics = Statistics(rows, distinct)
    tree = view_tree(FOUR, find_order(FOUR, updatable, statistics))
    choices = choose(FOUR, tree, updatable, statistics)
    return {
        ",".join(c.relations) if isinstance(c, View) else c.name: choice.is_kept
        for c, choice in choices.items()
    }


def test_static_dimensions_of_a_fact_are_joined_once_and_nothing_is_copied() -> None:
    chosen = _chosen(SF1, "L")
    assert chosen["O,C,N"] is True
    assert not any(chosen[name] for name in chosen if "," not in name)


@pytest.mark.parametrize(("updatable", "factor"), [("LOC", 1), ("LOC", 100), ("LOCN", 1)])
def test_a_join_as_large_as_its_inputs_does_not_pay(updatable: str, factor: int) -> None:
    """A change of lineitems would read orders with their customers instead of orders and customers; each order that
    changes would have to be written."""
    rows = {name: factor * rows for name, rows in SF1.items()} | {"N": 25}
    assert not any(_chosen(rows, updatable).values())


def test_keys_of_one_relation_have_no_more_values_than_it_has_rows() -> None:
    """Orders by customer and day: 240 million pairs, of which there are as many as orders at most."""
    statistics = Statistics(SF1, OF_ORDERS)
    assert statistics.groups(ORDER_DATE, "LO", ("custkey", "day")) == SF1["O"]
    assert statistics.groups(ORDER_DATE, "LO", ("day",)) == 2_400
    assert statistics.groups(ORDER_DATE, "OC", ("day", "segment", "custkey")) == SF1["O"]


def test_a_view_that_is_appended_to_pays_sooner() -> None:
    """Sums of lines by order are a quarter of the lines. A change of some lines has keys in all of their partitions."""
    kept = {}
    for upkeep in (APPENDED, WRITTEN):
        statistics = Statistics(SF1, OF_ORDERS, upkeep=upkeep)
        tree = view_tree(ORDER_DATE, find_order(ORDER_DATE, "LOC", statistics))
        choices = choose(ORDER_DATE, tree, "LOC", statistics)
        kept[upkeep] = {c.keys for c, choice in choices.items() if choice.is_kept and isinstance(c, View)}
    assert kept == {APPENDED: {("orderkey",)}, WRITTEN: set()}


def test_what_a_view_below_answers_is_not_kept_twice() -> None:
    """Flights per plane are few, flights per model fewer: but with the first ones kept, there is nothing to save."""
    graph = Hypergraph(
        (Edge("F", ("plane",)), Edge("P", ("plane", "model")), Edge("M", ("model", "maker"))),
        frozenset(("maker",)),
    )
    statistics = Statistics({"F": 10**8, "P": 5000, "M": 100})
    tree = view_tree(graph, find_order(graph, "FPM", statistics))
    choices = choose(graph, tree, "FPM", statistics)
    assert [c.name for c, choice in choices.items() if choice.is_kept and isinstance(c, Edge)] == ["F"]
    assert sum(choice.is_kept for choice in choices.values()) == 1


def test_days_pay_where_buckets_do_not() -> None:
    """A view by day is looked up by day and written by day, a few of its partitions at a time."""
    graph = Hypergraph((Edge("F", ("day", "k")), Edge("D", ("day", "k", "c"))), frozenset(("c",)))
    rows = {"F": 10**8, "D": 10**7}
    distinct = {("F", "day"): 1000, ("D", "day"): 1000, ("F", "k"): 10**4, ("D", "k"): 10**4, ("D", "c"): 10}
    for periods, is_kept in ((frozenset[str](), False), (frozenset({"day"}), True)):
        statistics = Statistics(rows, distinct, periods)
        tree = view_tree(graph, find_order(graph, "FD", statistics))
        choices = choose(graph, tree, "FD", statistics).values()
        assert any(c.is_kept for c in choices) is is_kept, choices


def test_an_order_is_found_for_the_changes_that_are_likely() -> None:
    """A change of the fact, the likeliest one, meets one view of all dimensions."""
    order = find_order(FOUR, "LOCN", Statistics(SF1, DISTINCT))
    assert order.variables[0] == "orderkey"


def test_small_tables_are_read() -> None:
    assert not any(_chosen({name: max(1, rows // 1000) for name, rows in SF1.items()}).values())


@pytest.mark.parametrize("rows", [10**4, 10**6, 10**9])
def test_a_static_dimension_costs_no_upkeep(rows: int) -> None:
    """Views over static relations alone are kept as soon as they save a row."""
    assert _chosen({"L": rows, "O": 1000, "C": 100, "N": 5}, "L")["O,C,N"] is True


def test_groups_that_are_few_pay() -> None:
    """A fact of a hundred million rows on a hundred thousand keys, beside a dimension that changes."""
    graph = Hypergraph((Edge("F", ("k",)), Edge("D", ("k", "region"))), frozenset(("region",)))
    statistics = Statistics({"F": 10**8, "D": 10**5}, {("F", "k"): 10**5, ("D", "k"): 10**5})
    choices = choose(graph, view_tree(graph, find_order(graph, "FD", statistics)), "FD", statistics)
    kept = {c.name if isinstance(c, Edge) else c.relations: choice for c, choice in choices.items()}
    assert sum(choice.is_kept for choice in kept.values()) == 1
    (reason,) = (choice.reason for choice in kept.values() if choice.is_kept)
    assert reason == "100,000 rows for 100,000,000 that deltas of D would read"
    assert any(choice.reason.startswith("a copy of D") for choice in kept.values())
