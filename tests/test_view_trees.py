"""View trees against the papers' compiler: number of views and their keys for the same query, order and updates."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from fivm_dbt.errors import FivmError
from fivm_dbt.viewtree.classes import (
    canonical_order,
    is_acyclic,
    is_free_connex,
    is_hierarchical,
    is_q_hierarchical,
)
from fivm_dbt.viewtree.hypergraph import Edge, FunctionalDependency, Hypergraph
from fivm_dbt.viewtree.nested import nested_order
from fivm_dbt.viewtree.order_file import read_order, write_order
from fivm_dbt.viewtree.recursive import recursive_maps
from fivm_dbt.viewtree.search import find_order
from fivm_dbt.viewtree.statistics import Statistics
from fivm_dbt.viewtree.variable_order import VariableOrder
from fivm_dbt.viewtree.view_tree import delta_path, looked_up, materialised, view_tree


@dataclass(frozen=True)
class Case:
    """A query as its relations, the order, what is updated (everything if empty), and the keys of the views kept."""

    relations: dict[str, str]
    order: object
    keys: str
    free: str = ""
    together: tuple[str, ...] = ()
    updatable: str = ""

    @property
    def graph(self) -> Hypergraph:
        edges = tuple(Edge(name, tuple(schema.split())) for name, schema in self.relations.items())
        return Hypergraph(
            edges, frozenset(self.free.split()), tuple(frozenset(t.split()) for t in self.together)
        )

    @property
    def variable_order(self) -> VariableOrder:
        return nested_order(self.order)

    @property
    def changing(self) -> frozenset[str]:
        return frozenset(self.updatable.split()) or self.graph.names


def down(variables: str, *below: object) -> object:
    """A chain of variables with orders below the last."""
    first, *rest = variables.split()
    if not rest:
        return {first: list(below)} if below else first
    return {first: down(" ".join(rest), *below)}


HOUSING = "House Shop Institution Restaurant People Transport".split()
RETAILER = {
    "Inventory": "locn dateid ksn units",
    "Location": "locn zip rgn area",
    "Census": "zip population white",
    "Item": "ksn subcategory price",
    "Weather": "locn dateid rain snow",
}
RETAILER_ORDER = down(
    "locn",
    down("dateid", down("ksn", "units", down("subcategory price")), down("rain snow")),
    down("zip", down("rgn area"), down("population white")),
)
FAVORITA = {
    "Sales": "date store item unit_sales onpromotion",
    "Oil": "date price",
    "Holiday": "date type locale",
    "Transactions": "date store n",
    "Stores": "store city state",
    "Items": "item family class",
}
FAVORITA_ORDER = down(
    "date",
    down(
        "store", down("item", down("unit_sales onpromotion"), down("family class")), "n", down("city state")
    ),
    "price",
    down("type locale"),
)
LINE, CUSTOMER = "l_partkey l_extendedprice l_discount", "c_name c_address c_phone c_acctbal c_comment"

PAPERS = {
    "three relations, updates to two": Case(
        {"R": "A B", "S": "A C E extra", "T": "C D"},
        down("A", "B", down("C", "D", down("E extra"))),
        "[] [A] [A] [A,C]",
        updatable="R T",
    ),
    "housing": Case(
        {name: f"postcode {name}_a {name}_b" for name in HOUSING},
        down("postcode", *(down(f"{name}_a {name}_b") for name in HOUSING)),
        "[] [postcode] [postcode] [postcode] [postcode] [postcode] [postcode]",
    ),
    "retailer": Case(
        RETAILER,
        RETAILER_ORDER,
        "[] [locn] [locn,dateid] [locn,dateid,ksn] [ksn] [locn,dateid] [locn] [locn,zip] [zip]",
    ),
    "retailer, updates to Inventory": Case(
        RETAILER, RETAILER_ORDER, "[] [ksn] [locn,dateid] [locn]", updatable="Inventory"
    ),
    "favorita": Case(
        FAVORITA,
        FAVORITA_ORDER,
        "[] [date] [date,store] [date,store,item] [item] [date,store] [store] [date] [date]",
    ),
    "TPC-H 3": Case(
        {
            "L": f"orderkey {LINE}",
            "O": "orderkey o_date o_priority custkey o_status",
            "C": f"custkey {CUSTOMER}",
        },
        down("orderkey", down(LINE), down("o_date o_priority custkey", "o_status", down(CUSTOMER))),
        "[orderkey,o_date,o_priority] [orderkey] [orderkey,o_date,o_priority]"
        " [orderkey,o_date,o_priority,custkey] [custkey]",
        free="orderkey o_date o_priority",
    ),
    "TPC-H 5": Case(
        {
            "S": "suppkey nationkey s_name s_address",
            "L": f"orderkey suppkey {LINE}",
            "C": f"custkey nationkey {CUSTOMER}",
            "O": "orderkey custkey o_date o_status",
            "N": "nationkey n_name regionkey",
            "R": "regionkey r_name",
        },
        down(
            "nationkey",
            down(
                "orderkey",
                down("suppkey", down("s_name s_address"), down(LINE)),
                down("custkey", down(CUSTOMER), down("o_date o_status")),
            ),
            down("regionkey", "n_name", "r_name"),
        ),
        "[n_name] [nationkey,orderkey] [nationkey,suppkey] [orderkey,suppkey] [nationkey,orderkey]"
        " [nationkey,custkey] [orderkey,custkey] [nationkey,n_name]",
        free="n_name",
        updatable="S L C O",
    ),
    "TPC-H 10": Case(
        {
            "L": f"orderkey {LINE}",
            "O": "orderkey custkey o_status",
            "C": f"custkey nationkey {CUSTOMER}",
            "N": "nationkey n_name n_comment",
        },
        down(
            "orderkey",
            down(LINE),
            down("custkey", "o_status", down("nationkey", down(CUSTOMER), down("n_name n_comment"))),
        ),
        "[custkey,{c},n_name] [orderkey] [orderkey,custkey,{c},n_name] [orderkey,custkey] [custkey,{c},n_name]"
        " [nationkey,n_name]".replace("{c}", CUSTOMER.replace(" ", ",")),
        free=f"custkey {CUSTOMER} n_name",
        updatable="L O C",
    ),
    "TPC-H 12": Case(
        {"L": f"orderkey {LINE} l_shipmode", "O": "orderkey o_priority o_status"},
        down("orderkey", down(f"{LINE} l_shipmode"), down("o_priority o_status")),
        "[l_shipmode] [orderkey,l_shipmode] [orderkey]",
        free="l_shipmode",
    ),
    "TPC-H 14, its CASE as a whole": Case(
        {"L": f"l_orderkey partkey {LINE[10:]}", "P": "partkey p_name p_type"},
        down("partkey", down(f"l_orderkey {LINE[10:]}"), down("p_name p_type")),
        "[] [partkey,l_extendedprice,l_discount] [partkey,p_type]",
        together=("p_type l_extendedprice l_discount",),
    ),
}


@pytest.mark.parametrize("case", PAPERS.values(), ids=PAPERS)
def test_the_views_of_the_papers_compiler(case: Case) -> None:
    kept = materialised(view_tree(case.graph, case.variable_order), case.changing)
    expected = sorted(sorted(keys.strip("[]").split(",")) for keys in case.keys.split())
    assert sorted(sorted(view.keys) or [""] for view in kept) == expected
    assert kept[-1].relations == tuple(case.relations), "the root comes last"


def test_nothing_is_kept_of_what_no_change_meets() -> None:
    tree = view_tree(PAPERS["retailer"].graph, PAPERS["retailer"].variable_order)
    assert materialised(tree, ()) == (tree,)
    assert [v.variables[0] for v in materialised(tree, {"Inventory"})] == [
        "subcategory",
        "rain",
        "zip",
        "locn",
    ]
    assert [v.variables[0] for v in delta_path(tree, "Item")] == ["subcategory", "ksn", "dateid", "locn"]


def test_a_relation_without_variables_of_its_own_is_met_as_it_is() -> None:
    graph = Hypergraph((Edge("R", ("a",)), Edge("S", ("a", "b"))))
    tree = view_tree(graph, nested_order({"a": "b"}))
    assert [e.name for e in looked_up(tree, {"S"})] == ["R"]
    assert looked_up(tree, {"R"}) == ()


def test_independent_relations_are_multiplied_at_the_top() -> None:
    graph = Hypergraph((Edge("R", ("a",)), Edge("S", ("b",)), Edge("T", ())))
    tree = view_tree(graph, nested_order(["a", "b"]))
    assert (tree.variables, tree.keys, tree.relations) == ((), (), ("R", "S", "T"))
    assert [str(v) for v in materialised(tree, graph.names)] == [
        "V@a[] over R",
        "V@b[] over S",
        "V@∅[] over R, S, T",
    ]


class TestOrders:
    GRAPH = Hypergraph((Edge("R", ("A", "B")), Edge("S", ("A", "C", "E")), Edge("T", ("C", "D"))))

    @pytest.mark.parametrize(
        ("order", "message"),
        [
            ({"A": ["B", {"C": ["D"]}]}, "E of S is missing in the order"),
            ({"A": ["B", {"C": ["D", "E", "F"]}]}, "F is no variable of the query, which has A, B, C, E, D"),
            (
                {"A": ["B", "E", {"C": "D"}]},
                "S has E and C, which stand on different branches: A – E and A – C",
            ),
            ({"A": ["B", {"C": ["D", "E", "B"]}]}, "B stands in the order twice"),
            ({"A": 3}, "3 in the order is neither a name, nor a list, nor a mapping of names"),
            ({1: "A"}, "1 in the order is no name"),
        ],
    )
    def test_bad_ones_are_refused_with_the_place(self, order: object, message: str) -> None:
        with pytest.raises(FivmError) as caught:
            view_tree(self.GRAPH, nested_order(order))
        assert caught.value.code.number == "FIVM204"
        assert caught.value.message == message

    def test_what_is_found_fits_the_query_and_is_the_same_again(self) -> None:
        for case in PAPERS.values():
            found = find_order(case.graph, case.changing)
            found.check(case.graph)
            assert found == find_order(case.graph, case.changing)

    def test_sizes_decide(self) -> None:
        """Views of a path are keyed by the variable that has few values."""
        edges = (Edge("R", ("a", "b")), Edge("S", ("b", "c")), Edge("T", ("c", "d")))
        graph = Hypergraph(edges)
        small_b = Statistics({}, {("R", "b"): 3, ("S", "b"): 3})
        small_c = Statistics({}, {("S", "c"): 3, ("T", "c"): 3})
        assert str(find_order(graph, graph.names, small_b)) == "b – {a, c – d}"
        assert str(find_order(graph, graph.names, small_c)) == "c – {b – a, d}"

    def test_of_many_variables_an_order_is_found_at_once(self) -> None:
        edges = tuple(Edge(f"R{i}", (f"A{i}", f"A{i + 1}")) for i in range(40))
        graph = Hypergraph(edges, frozenset(("A0", "A40")))
        find_order(graph, graph.names).check(graph)


class TestOrderFile:
    TEXT = """\
6 3
0 A int -1 {} 0
1 B double 0 {0} 0
2 C int 0 {0} 0
3 D int 2 {2} 1
4 E int 2 {0,2} 0
5 F double 1 {0,1} 0
R 5 A,B,F
S 4 A,C, E
T 3 C,D
"""

    def test_it_is_read_and_written(self) -> None:
        read = read_order(self.TEXT)
        assert str(read.order) == "A – {B – F, C – {D, E}}"
        assert read.edges == (Edge("R", ("A", "B", "F")), Edge("S", ("A", "C", "E")), Edge("T", ("C", "D")))
        assert (read.kept, read.notes) == ({"D"}, ())
        written = write_order(read.order, Hypergraph(read.edges), dict(read.types))
        assert sorted(written.splitlines()) != sorted(self.TEXT.splitlines()), (
            "the ids are those of the order"
        )
        assert read_order(written).order == read.order
        assert read_order(written).types == tuple(sorted(read.types, key=lambda t: "ABFCDE".index(t[0])))

    def test_counts_that_are_wrong_and_dependencies_that_are_do_not_mislead(self) -> None:
        read = read_order(self.TEXT.replace("6 3", "5 3").replace("{2} 1", "{0,2} 1"))
        assert read.order == read_order(self.TEXT).order
        assert read.notes == ("D is said to depend on A, C; by the relations it depends on C",)

    @pytest.mark.parametrize(
        ("old", "new", "message"),
        [
            ("6 3\n", "variables\n", "line 1: expected the number of variables and of relations"),
            ("1 B double 0 {0} 0", "1 B double 0 {0}", "line 3: expected `id name type parent {ids} 0|1`"),
            ("1 B double 0", "0 B double 0", "line 3: 0 B is declared in line 2 already"),
            ("2 C int 0", "2 C int 7", "line 4: C refers to variable 7, which is not declared"),
            ("2 C int 0 {0}", "2 C int 3 {0}", "line 4: C is its own ancestor"),
            ("T 3 C,D", "T 3 C,G", "line 10: G of T is no variable of the order"),
            ("T 3 C,D", "T 9 C,D", "line 10: T hangs at variable 9, which is not declared"),
            ("T 3 C,D", "R 3 C,D", "line 10: R is declared twice"),
            ("T 3 C,D", "T", "line 10: expected `NAME id attribute,attribute...`"),
            (
                "T 3 C,D",
                "IMPORT DTREE FROM FILE x",
                "line 10: expected `NAME id attribute,attribute...`, not 'IMPORT DTREE FROM FILE x'",
            ),
            ("T 3 C,D", "T 2 C,D", "T is said to hang at C, but D is its lowest variable"),
        ],
    )
    def test_mistakes_are_named_with_their_line(self, old: str, new: str, message: str) -> None:
        with pytest.raises(FivmError) as caught:
            read_order(self.TEXT.replace(old, new), "order.txt")
        assert caught.value.code.number == "FIVM204"
        assert message in caught.value.message
        assert "order.txt" in caught.value.message

    def test_comments_are_no_lines(self) -> None:
        text = self.TEXT.replace("6 3", "# the order of a paper\n6 3 -- six variables")
        text = text.replace("T 3 C,D", "// the last one\nT 3 C,D # with its columns\n")
        assert read_order(text) == read_order(self.TEXT)
        with pytest.raises(FivmError, match=r"line 4: expected"):
            read_order(text.replace("1 B double 0 {0} 0", "1 B"))

    def test_an_empty_file_is_refused(self) -> None:
        with pytest.raises(FivmError, match=r"order\.txt is empty"):
            read_order("\n", "order.txt")


def _path(length: int) -> Hypergraph:
    edges = tuple(Edge(f"R{i}", (f"A{i}", f"A{i + 1}")) for i in range(1, length + 1))
    return Hypergraph(edges, frozenset(("A1", f"A{length + 1}")))


def _star(width: int) -> Hypergraph:
    """A fact with a foreign key per dimension, each with an attribute to group by."""
    fact = Edge("F", tuple(f"k{i}" for i in range(width)))
    dimensions = tuple(Edge(f"D{i}", (f"k{i}", f"a{i}")) for i in range(width))
    return Hypergraph((fact, *dimensions), frozenset(f"a{i}" for i in range(width)))


class TestRecursion:
    @pytest.mark.parametrize(("length", "in_tree", "recursive"), [(4, 3, 6), (10, 9, 45), (20, 19, 190)])
    def test_paths_of_growing_length(self, length: int, in_tree: int, recursive: int) -> None:
        """The article's 19 views against 190 for a path of 20: joins only, the edges themselves are inputs."""
        graph = _path(length)
        tree = view_tree(graph, find_order(graph, graph.names))
        kept = materialised(tree, graph.names)
        assert sum(len(v.relations) > 1 for v in kept) == in_tree
        assert sum(not m.is_input for m in recursive_maps(graph, graph.names)) == recursive

    def test_stars_of_growing_width(self) -> None:
        counts = []
        for width in (2, 4, 6, 8):
            graph = _star(width)
            tree = view_tree(graph, find_order(graph, graph.names))
            kept = [v for v in materialised(tree, graph.names) if len(v.relations) > 1]
            recursive = [m for m in recursive_maps(graph, graph.names) if not m.is_input]
            counts.append((len(kept), len(recursive)))
        assert counts == [(2, 3), (4, 15), (6, 63), (8, 255)]

    def test_a_depth_bounds_what_is_kept(self) -> None:
        """SSB4 as the papers have it: a snowflake of seven relations, of which two are the same nation."""
        graph = Hypergraph(
            (
                Edge("C", ("custkey", "c_nation")),
                Edge("O", ("orderkey", "custkey")),
                Edge("L", ("orderkey", "partkey", "suppkey")),
                Edge("P", ("partkey", "type")),
                Edge("S", ("suppkey", "s_nation")),
                Edge("CN", ("c_nation", "c_region")),
                Edge("SN", ("s_nation", "s_region")),
            ),
            frozenset(("c_region", "s_region", "type")),
        )
        counts = [len(recursive_maps(graph, graph.names, depth)) for depth in (0, 1, 2, 3, 4, 5, None)]
        # Without the query itself and with the papers' copies of six base relations: 6, 18, 33, 39, 39; in full 33.
        # The paper has 6, 18, 36, 45, 45 and in full 39: it names no maps, and inputs need no copies here.
        assert counts == [0, 1, 13, 28, 34, 34, 34]

    def test_static_relations_have_no_delta(self) -> None:
        graph = PAPERS["retailer"].graph
        maps = recursive_maps(graph, {"Inventory"})
        assert [(m.relations, m.keys) for m in maps] == [
            (("Item",), ("ksn",)),
            (("Weather",), ("locn", "dateid")),
            (("Location", "Census"), ("locn",)),
            (tuple(RETAILER), ()),
        ]


class TestClasses:
    def test_the_articles_examples(self) -> None:
        free = frozenset("ABC")
        connex = Hypergraph((Edge("R", ("A", "B")), Edge("S", ("A", "C", "E")), Edge("T", ("C", "D"))), free)
        extended = Hypergraph(
            (Edge("R", ("A", "B")), Edge("S", ("A", "C", "E")), Edge("T", ("A", "C", "D"))), free
        )
        bound = Hypergraph(extended.edges, frozenset("BC"))
        assert [_classes(g) for g in (connex, extended, bound)] == [
            "acyclic free-connex",
            "acyclic free-connex hierarchical q-hierarchical",
            "acyclic hierarchical",
        ]
        assert str(canonical_order(extended)) == "A – {B, C – {E, D}}"
        assert canonical_order(connex) is None

    def test_triangles_are_cyclic(self) -> None:
        triangle = Hypergraph((Edge("R", ("a", "b")), Edge("S", ("b", "c")), Edge("T", ("c", "a"))))
        assert _classes(triangle) == ""
        covered = Hypergraph((*triangle.edges, Edge("U", ("a", "b", "c"))))
        assert is_acyclic(covered)

    def test_dependencies_make_a_path_q_hierarchical(self) -> None:
        path = Hypergraph(
            (Edge("R", ("A", "B")), Edge("S", ("B", "C")), Edge("T", ("C", "D"))), frozenset("ABCD")
        )
        dependencies = [
            FunctionalDependency(frozenset("B"), frozenset("C")),
            FunctionalDependency(frozenset("C"), frozenset("D")),
        ]
        assert canonical_order(path) is None
        assert str(canonical_order(path, dependencies)) == "C – D – B – A"
        tree = view_tree(path, find_order(path, path.names, dependencies=dependencies))
        assert tree.keys == ("C", "D", "B", "A")


def _classes(graph: Hypergraph) -> str:
    tests = {
        "acyclic": is_acyclic,
        "free-connex": is_free_connex,
        "hierarchical": is_hierarchical,
        "q-hierarchical": is_q_hierarchical,
    }
    return " ".join(name for name, holds in tests.items() if holds(graph))
