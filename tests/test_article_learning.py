"""The article's section 1.1 and its examples 18 to 22, with numbers of our own: results, views, and what these keep.

All are over the join of figure 3, ``R(A, B) ⋈ S(A, C, E) ⋈ T(C, D)``, but for the chain of matrices. Every number below
was computed by hand. The change deletes a row of each table and inserts one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from fivm_dbt.catalog import Catalog
from fivm_dbt.config import load_config
from fivm_dbt.naming import COUNT
from fivm_dbt.plan.model.plan import MaintainedPlan
from fivm_dbt.plan.planner import plan_model
from fivm_dbt.plan.request import ModelRequest
from fivm_dbt.refresh.engine import Row
from fivm_dbt.spark.states import stored
from fixtures.models import Bench, relation

COLUMNS = {"r": "a bigint, b bigint", "s": "a bigint, c bigint, e bigint", "t": "c bigint, d bigint"}
ROWS: dict[str, list[Row]] = {
    "r": [(1, 2), (1, 5), (2, 3), (4, 7)],
    "s": [(1, 10, 1), (1, 10, 4), (1, 20, 2), (2, 20, 3), (3, 10, 9)],
    "t": [(10, 6), (10, 2), (20, 1), (20, 8), (30, 5)],
}
DELETED: dict[str, list[Row]] = {"r": [(1, 5)], "s": [(1, 10, 4)], "t": [(20, 8)]}
INSERTED: dict[str, list[Row]] = {"r": [(2, 1)], "s": [(2, 10, 5)], "t": [(10, 3)]}
JOIN = "from r join s on r.a = s.a join t on s.c = t.c"
ORDER = {"a": ["b", {"c": ["d", "e"]}]}
"""Figure 3."""

KEPT = {"fivm_strategy": "factorized", "fivm_apply": "merge"}


def _plan(
    sql: str, columns: Mapping[str, str] = COLUMNS, static: Sequence[str] = (), **meta: object
) -> MaintainedPlan:
    relations = [relation(name, own, is_static=name in static) for name, own in columns.items()]
    config = load_config({**KEPT, **meta})
    plan = plan_model(ModelRequest("analytics.m", sql, Catalog.of(relations), config))
    assert isinstance(plan, MaintainedPlan)
    return plan


def _built(plan: MaintainedPlan, rows: Mapping[str, Sequence[Row]] = ROWS) -> Bench:
    bench = Bench(plan)
    for item in plan.inputs:
        bench.engine.create_table(item.name, item.relation.columns, rows[item.name], change_feed=True)
    assert bench.refresh().action == "built"
    return bench


def _change(bench: Bench) -> None:
    """Bring the change to all tables in one refresh."""
    for name in [item.name for item in bench.plan.inputs]:
        bench.engine.change(name, insert=INSERTED[name], delete=DELETED[name])
    assert bench.refresh().action == "refreshed"


def _views(plan: MaintainedPlan) -> dict[str, int]:
    """The views of the one tree that are kept, by their keys and relations, and how many numbers each has of a key."""
    (tree,) = plan.view_trees
    numbers = {view.name: len(view.state.payload) for view in plan.views}
    found = {}
    for view in tree.views:
        kept = plan.top.name if view.depth == 0 else view.kept
        if kept is not None:
            found[f"[{', '.join(sorted(view.keys))}] of {' '.join(sorted(view.relations))}"] = numbers[kept]
    return found


def _rows(bench: Bench, of: str) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """What is kept of the view with these keys and relations: multiplicity and payload by key."""
    plan = bench.plan
    assert isinstance(plan, MaintainedPlan)
    keys, _, relations = of.removeprefix("[").partition("] of ")
    (kept,) = {
        view.kept
        for view in plan.view_trees[0].views
        if view.kept is not None
        and sorted(view.keys) == keys.split(", ")
        and sorted(view.relations) == relations.split()
    }
    view = plan.helper(kept)
    assert view is not None
    columns = [*keys.split(", "), *view.state.payload_names]
    state = stored(plan, view, None).sql(dialect="spark")
    found = bench.engine.query(f"select {', '.join(f'`{c}`' for c in columns)} from {state}")
    width = columns.index(COUNT)
    return {tuple(row[:width]): tuple(row[width:]) for row in found}


def _moments(bench: Bench, *keys: str) -> dict[Any, tuple[int, list[int], list[int]]]:
    """Count, sums and products by group."""
    shown = bench.engine.query(f"select {''.join(f'{key}, ' for key in keys)}m from analytics.m")
    return {tuple(row[:-1]): (row[-1][0], row[-1][2], row[-1][3]) for row in shown}  # type: ignore[index]


def _cells(bench: Bench) -> dict[Any, dict[tuple[str, str], int]]:
    """By group the value of each category of c with another variable, or with itself."""
    shown = bench.engine.query("select * from analytics.m")
    return {
        tuple(row[:-1]): {(cell["category"], cell["other"]): cell["value"] for cell in row[-1][4]}  # type: ignore[index]
        for row in shown
    }


# Section 1.1: a function of D and E that predicts B, for each pair of A and C.

TEN_SUMS = "count(*) as n, " + ", ".join(
    f"sum({value}) as q{number}"
    for number, value in enumerate(
        ["b", "d", "e", "b * b", "b * d", "b * e", "d * d", "d * e", "e * e"], start=1
    )
)
ALL_VIEWS = ["[a, c] of r s t", "[a, c] of s t", "[a, c] of s", "[c] of t", "[a] of r"]
"""Figure 1: the query, V_ST, V_S, V_T and V_R."""


def test_ten_sums_share_the_tree_of_one() -> None:
    """Section 1.1: one SUM, ten SUMs and the compound aggregate have the same views, for updates of all relations."""
    one, ten, compound = (
        _views(_plan(f"select s.a, s.c, {aggregates} {JOIN} group by s.a, s.c"))
        for aggregates in ("sum(b * d * e) as q", TEN_SUMS, "fivm_covariance(b, d, e) as m")
    )
    assert sorted(one) == sorted(ten) == sorted(compound) == sorted(ALL_VIEWS)
    # A triple of k variables has 1 + k + k(k + 1)/2 numbers; of ten plain SUMs nine have a count beside each.
    assert compound == dict(zip(ALL_VIEWS, (10, 6, 3, 3, 3), strict=True))
    assert ten == dict(zip(ALL_VIEWS, (18, 10, 4, 4, 4), strict=True))


@pytest.mark.parametrize(
    ("static", "kept"),
    [
        ("st", ["[a, c] of s t"]),
        ("rt", ["[a] of r", "[c] of t"]),
        # The article keeps V_R and V_S. Where neither changes, fivm keeps their join, which T meets at once.
        ("rs", ["[a, c] of r s"]),
    ],
    ids=["R changes", "S changes", "T changes"],
)
def test_views_by_what_changes(static: str, kept: list[str]) -> None:
    """Section 1.1: which views are materialised for updates of one relation alone."""
    plan = _plan(f"select s.a, s.c, fivm_covariance(b, d, e) as m {JOIN} group by s.a, s.c", static=static)
    assert sorted(_views(plan)) == sorted(["[a, c] of r s t", *kept])


def test_the_views_of_the_article_for_changes_of_t() -> None:
    """With the article's order V_S is kept, and V_R is."""
    sql = f"select s.a, s.c, fivm_covariance(b, d, e) as m {JOIN} group by s.a, s.c"
    plan = _plan(sql, static="rs", fivm_variable_order={"a": ["c"]})
    assert sorted(_views(plan)) == sorted(["[a, c] of r s t", "[a, c] of s", "[a] of r"])


def test_ten_sums_by_a_and_c() -> None:
    """Section 1.1: the compound aggregate, before and behind a change of all three relations."""
    plan = _plan(f"select s.a, s.c, fivm_covariance(b, d, e) as m {JOIN} group by s.a, s.c")
    bench = _built(plan)
    assert _moments(bench, "a", "c") == {
        (1, 10): (8, [28, 32, 20], [116, 112, 70, 160, 80, 68]),
        (1, 20): (4, [14, 18, 8], [58, 63, 28, 130, 36, 16]),
        (2, 20): (2, [6, 9, 6], [18, 27, 18, 65, 27, 18]),
    }
    # V_S has rows, count, E, EE and V_T rows, count, D, DD. Their product has rows, count, D, E, DD, DE, EE.
    assert _rows(bench, "[a, c] of s")[1, 10] == (2, 2, 5, 17)
    assert _rows(bench, "[c] of t")[10,] == (2, 2, 8, 40)
    assert _rows(bench, "[a, c] of s t")[1, 10] == (4, 4, 16, 10, 80, 40, 34)
    _change(bench)
    assert _moments(bench, "a", "c") == {
        (1, 10): (3, [6, 11, 3], [12, 22, 6, 49, 11, 3]),
        (1, 20): (1, [2, 1, 2], [4, 2, 4, 1, 2, 4]),
        (2, 20): (2, [4, 2, 6], [10, 4, 12, 2, 6, 18]),
        (2, 10): (6, [12, 22, 30], [30, 44, 60, 98, 110, 150]),
    }


# Example 18: the covariance of all five variables.


def test_example_18() -> None:
    """The covariance matrix of A to E; V_ST has the triple of C, D and E, and the root that of all five.

    The article lifts a variable where it is summed over. fivm lifts it in the relation whose column is named, here A in
    R and C in T: their views have its entries already.
    """
    sql = f"select fivm_covariance(r.a, r.b, t.c, t.d, s.e) as m {JOIN}"
    plan = _plan(sql, fivm_variable_order=ORDER)
    assert _views(plan) == {
        "[] of r s t": 21,
        "[a] of s t": 10,
        "[a, c] of s": 3,
        "[c] of t": 6,
        "[a] of r": 6,
    }
    bench = _built(plan)
    assert _moments(bench) == {
        (): (14, [16, 48, 200, 59, 34],
             [20, 54, 240, 68, 40, 192, 680, 202, 116, 3200, 860, 480, 355, 143, 102])
    }  # fmt: skip
    # Of key 2: rows, count, E, EE, and with these C, D, CC, CD, DD, CE, DE.
    assert _rows(bench, "[a, c] of s")[2, 20] == (1, 1, 3, 9)
    assert _rows(bench, "[c] of t")[20,] == (2, 2, 40, 9, 800, 180, 65)
    assert sorted(_rows(bench, "[a] of s t")[2,]) == sorted((2, 2, 40, 9, 6, 800, 180, 120, 65, 27, 18))
    _change(bench)
    assert _moments(bench) == {
        (): (12, [20, 24, 150, 36, 41],
             [36, 40, 250, 60, 77, 56, 300, 72, 82, 2100, 390, 490, 150, 129, 175])
    }  # fmt: skip


# Example 19: C is categorical.


def test_example_19_at_the_root() -> None:
    """A relation as an entry of the matrix is the rows of a GROUP BY here, and the cells of the struct when shown."""
    sql = f"select fivm_covariance(r.a, r.b, t.d, s.e, fivm_categorical(s.c)) as m {JOIN}"
    bench = _built(_plan(sql))
    assert _moments(bench) == {(): (14, [16, 48, 59, 34], [20, 54, 68, 40, 192, 202, 116, 355, 143, 102])}
    assert _cells(bench)[()] == {
        ("10", "c"): 8, ("10", "a"): 8, ("10", "b"): 28, ("10", "d"): 32, ("10", "e"): 20,
        ("20", "c"): 6, ("20", "a"): 8, ("20", "b"): 20, ("20", "d"): 27, ("20", "e"): 14,
    }  # fmt: skip
    _change(bench)
    assert _moments(bench) == {(): (12, [20, 24, 36, 41], [36, 40, 60, 77, 56, 72, 82, 150, 129, 175])}
    assert _cells(bench)[()] == {
        ("10", "c"): 9, ("10", "a"): 15, ("10", "b"): 18, ("10", "d"): 33, ("10", "e"): 33,
        ("20", "c"): 3, ("20", "a"): 5, ("20", "b"): 6, ("20", "d"): 3, ("20", "e"): 8,
    }  # fmt: skip


def test_example_19_at_an_inner_view() -> None:
    """The payload of V_ST by A: SUM(1), SUM(D) and SUM(E) by C. With its last row a category goes."""
    sql = "select s.a, fivm_covariance(t.d, s.e, fivm_categorical(s.c)) as m from s join t on s.c = t.c group by s.a"
    bench = _built(_plan(sql, {n: COLUMNS[n] for n in "st"}))
    assert _cells(bench) == {
        (1,): {("10", "c"): 4, ("10", "d"): 16, ("10", "e"): 10, ("20", "c"): 2, ("20", "d"): 9, ("20", "e"): 4},
        (2,): {("20", "c"): 2, ("20", "d"): 9, ("20", "e"): 6},
        (3,): {("10", "c"): 2, ("10", "d"): 8, ("10", "e"): 18},
    }  # fmt: skip
    _change(bench)
    assert _cells(bench)[2,] == {
        ("10", "c"): 3, ("10", "d"): 11, ("10", "e"): 15, ("20", "c"): 1, ("20", "d"): 1, ("20", "e"): 3
    }  # fmt: skip
    bench.engine.change("t", delete=[(20, 1)])
    bench.refresh()
    assert _cells(bench) == {
        (1,): {("10", "c"): 3, ("10", "d"): 11, ("10", "e"): 3},
        (2,): {("10", "c"): 3, ("10", "d"): 11, ("10", "e"): 15},
        (3,): {("10", "c"): 3, ("10", "d"): 11, ("10", "e"): 27},
    }


# Example 20: a listing, Q[A, B, C, D] with E summed over.


def test_example_20() -> None:
    """A relation as a payload is rows here: its values are keys, and its multiplicities are kept beside them.

    So V_T[c] = {d → 1} are the rows (c, d), and V_ST[a] = {(c, d) → n} the rows (a, c, d).
    """
    bench = _built(_plan(f"select r.a, r.b, s.c, t.d {JOIN}", fivm_variable_order=ORDER))
    plan = bench.plan
    assert isinstance(plan, MaintainedPlan)
    assert sorted(_views(plan)) == sorted(
        ["[a, b, c, d] of r s t", "[a, b] of r", "[a, c, d] of s t", "[c, d] of t", "[a, c] of s"]
    )
    assert _rows(bench, "[a, c] of s") == {(1, 10): (2,), (1, 20): (1,), (2, 20): (1,), (3, 10): (1,)}
    assert _rows(bench, "[c, d] of t") == {(c, d): (1,) for c, d in ROWS["t"]}
    assert _rows(bench, "[a, c, d] of s t") == {
        (1, 10, 6): (2,), (1, 10, 2): (2,), (1, 20, 1): (1,), (1, 20, 8): (1,),
        (2, 20, 1): (1,), (2, 20, 8): (1,), (3, 10, 6): (1,), (3, 10, 2): (1,),
    }  # fmt: skip
    assert bench.shown() == Counter(
        {
            (1, 2, 10, 6): 2, (1, 2, 10, 2): 2, (1, 5, 10, 6): 2, (1, 5, 10, 2): 2,
            (1, 2, 20, 1): 1, (1, 2, 20, 8): 1, (1, 5, 20, 1): 1, (1, 5, 20, 8): 1,
            (2, 3, 20, 1): 1, (2, 3, 20, 8): 1,
        }
    )  # fmt: skip
    _change(bench)
    assert bench.shown() == Counter(
        {
            (1, 2, 10, 6): 1, (1, 2, 10, 2): 1, (1, 2, 10, 3): 1, (1, 2, 20, 1): 1,
            (2, 3, 20, 1): 1, (2, 3, 10, 6): 1, (2, 3, 10, 2): 1, (2, 3, 10, 3): 1,
            (2, 1, 20, 1): 1, (2, 1, 10, 6): 1, (2, 1, 10, 2): 1, (2, 1, 10, 3): 1,
        }
    )  # fmt: skip


# Example 21: the same result as factors.

UNION_OF_A, UNION_OF_C, UNION_OF_B, UNION_OF_D = "[a] of r s t", "[a, c] of s t", "[a, b] of r", "[c, d] of t"


def _factorised(free: str) -> Bench:
    plan = _plan(f"select {free} {JOIN}", fivm_strategy="auto", fivm_result="factorized")
    return _built(plan)


def test_example_21() -> None:
    """Unions of values under those above them, each with the number of its derivations: of A, of C under A, and so on.

    A payload is the rows of its view here, and the keys of the view are columns before it.
    """
    bench = _factorised("r.a, r.b, s.c, t.d")
    assert _rows(bench, UNION_OF_A) == {(1,): (12,), (2,): (2,)}
    assert _rows(bench, UNION_OF_C) == {(1, 10): (4,), (1, 20): (2,), (2, 20): (2,), (3, 10): (2,)}
    assert _rows(bench, UNION_OF_B) == {(a, b): (1,) for a, b in ROWS["r"]}
    # The values of D under 20 are there once, though six rows of the result have 20.
    assert _rows(bench, UNION_OF_D) == {(c, d): (1,) for c, d in ROWS["t"]}
    assert sum(n for row, n in bench.shown().items() if row[2] == 20) == 6
    _change(bench)
    assert _rows(bench, UNION_OF_A) == {(1,): (4,), (2,): (8,)}
    assert _rows(bench, UNION_OF_C) == {
        (1, 10): (3,),
        (1, 20): (1,),
        (2, 20): (1,),
        (2, 10): (3,),
        (3, 10): (3,),
    }
    assert len(list(bench.shown().elements())) == 12


def test_example_21_without_d() -> None:
    """Were D not free, the factors would be the same, but for the values of D."""
    whole, without = _factorised("r.a, r.b, s.c, t.d"), _factorised("r.a, r.b, s.c")
    _same_but_for_d(whole, without)
    _change(whole)
    _change(without)
    _same_but_for_d(whole, without)


def _same_but_for_d(whole: Bench, without: Bench) -> None:
    for union in (UNION_OF_A, UNION_OF_B, UNION_OF_C):
        assert _rows(whole, union) == _rows(without, union)
    counted = Counter(c for c, _ in _rows(whole, UNION_OF_D))
    assert _rows(without, "[c] of t") == {(c,): (n,) for c, n in counted.items()}


# Example 22: a chain of four matrices, of which the second changes by an outer product.

SIZE = 4
CHAIN = """select m1.x1, m4.x5, sum(m1.v * m2.v * m3.v * m4.v) as v
from m1 join m2 on m1.x2 = m2.x2 join m3 on m2.x3 = m3.x3 join m4 on m3.x4 = m4.x4 group by m1.x1, m4.x5"""
MATRICES = {f"m{i}": f"x{i} int, x{i + 1} int, v bigint" for i in range(1, 5)}


def _chain() -> tuple[Bench, dict[tuple[int, int], int]]:
    """Two times the second matrix, its columns moved by one, the column that becomes column j times j + 1."""
    second = {(i, j): 10 * i + j for i in range(SIZE) for j in range(SIZE)}
    rows: dict[str, list[Row]] = {
        "m1": [(i, i, 2) for i in range(SIZE)],
        "m2": [(*cell, value) for cell, value in second.items()],
        "m3": [(j, (j + 1) % SIZE, 1) for j in range(SIZE)],
        "m4": [(j, j, j + 1) for j in range(SIZE)],
    }
    order = {"x1": [{"x5": [{"x3": ["x2", "x4"]}]}]}
    plan = _plan(CHAIN, MATRICES, fivm_variable_order=order, fivm_product_rows=1)
    return _built(plan, rows), second


def _product(second: Mapping[tuple[int, int], int]) -> dict[Row, int]:
    moved = {(i, (j + 1) % SIZE): value for (i, j), value in second.items()}
    return {(i, j): 2 * value * (j + 1) for (i, j), value in moved.items()}


def test_example_22() -> None:
    """Two views of two matrices each below the result; a change u ⊗ v stays a product on its way up."""
    bench, second = _chain()
    plan = bench.plan
    assert isinstance(plan, MaintainedPlan)
    assert plan.view_trees[0].order == "x1 – x5 – x3 – {x2, x4}"
    # The article's views at X3, X5 and X1 are one here, too.
    joined = [view for view in _views(plan) if len(view.split(" of ")[1].split()) > 1]
    assert joined == ["[x1, x5] of m1 m2 m3 m4", "[x1, x3] of m1 m2", "[x3, x5] of m3 m4"]
    assert {row[:2]: row[2] for row in bench.shown()} == _product(second)

    u, v = (1, 2, -1, 3), (5, -2, 7, 1)
    changed = {(i, j): value + u[i] * v[j] for (i, j), value in second.items()}
    bench.engine.change(
        "m2",
        insert=[(*cell, value) for cell, value in changed.items()],
        delete=[(*cell, value) for cell, value in second.items()],
    )
    report = bench.refresh()
    bench.check()
    assert [view.product for view in report.inner_views if view.product] == [
        "one product: 8 values for 16 rows"
    ]
    (upper,) = (view for view in plan.views if view.name.endswith("_m1_by_x3"))
    assert all(product.gives is not None for product in upper.products), "what is above meets factors, too"
    assert {row[:2]: row[2] for row in bench.shown()} == _product(changed)
    assert dict(_product(changed))[0, 1] == 2 * (0 + 1 * 5) * 2

    bench.changed("m3", delete=[(3, 0, 1)])
    assert {row[:2]: row[2] for row in bench.shown()} == {
        cell: value for cell, value in _product(changed).items() if cell[1] != 0
    }
