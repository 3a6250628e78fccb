"""Changes that are products are found, met as their factors, and give what a recompute gives."""

from __future__ import annotations

import logging
import random
from contextlib import closing
from itertools import product as pairs
from typing import TYPE_CHECKING

import pytest

from fivm_dbt.catalog import Catalog
from fivm_dbt.config import load_config
from fivm_dbt.delta.term import scans
from fivm_dbt.explain.text import explain
from fivm_dbt.plan.model.view import View
from fivm_dbt.plan.planner import plan_model
from fivm_dbt.plan.request import ModelRequest
from fivm_dbt.refresh import factorise, overlapping
from fivm_dbt.refresh.compare import difference_sql
from fivm_dbt.refresh.executor import refresh
from fivm_dbt.testing.workbench import TableSpec
from fixtures.matrices import CHAIN, MATRICES, META, PRODUCT, Cells, Model, added, found, matrices
from fixtures.models import Interrupted, Interrupting, plan_of, relation
from fixtures.runs import by_run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SALES = {
    "sale": "day int, store int, item int, units bigint",
    "store": "store int, city int, size int",
    "item": "item int, kind int, price decimal(8,2)",
    "day": "day int, month int",
}
STAR = (
    "from sale s join store t on s.store = t.store join item i on s.item = i.item join day d on s.day = d.day"
)


def view(model: Model, ending: str) -> View:
    (one,) = (v for v in model.bench.plan.views if v.name.endswith(ending))
    return one


class TestRank:
    @pytest.mark.parametrize("name", sorted(MATRICES))
    def test_an_outer_product(self, name: str) -> None:
        model = matrices()
        u, v = dict(enumerate([2, 3, -5, 7, 4, 9])), dict(enumerate([6, 10, -15, 2, 3, 5]))
        model.change(name, added(model.cells[name], (u, v)))
        assert found(model.refresh()) == ["one product: 12 values for 36 rows"]

    def test_a_row_and_a_column_are_no_saving_but_the_same_to_every_row_is(self) -> None:
        model = matrices()
        model.change("b", added(model.cells["b"], ({2: 1}, dict.fromkeys(range(6), 3))))
        assert found(model.refresh()) == [], "six rows, seven values"
        model.change("b", added(model.cells["b"], (dict.fromkeys(range(6), 1), {0: 4, 2: -1, 5: 7})))
        assert found(model.refresh()) == ["one product: 9 values for 18 rows"]

    def test_a_sum_of_products(self) -> None:
        model = matrices(12)
        first = (dict.fromkeys(range(6), 2), {y: y + 1 for y in range(12)})
        second = ({x: x - 11 for x in range(6, 11)}, {y: 3 * y - 7 for y in range(12)})
        model.change("b", added(model.cells["b"], first, second))
        assert found(model.refresh()) == ["a sum of 2 products: 35 values for 132 rows"]

    def test_an_over_approximation_with_a_correction(self) -> None:
        """Example 9 of the article: one more row that lacks one column takes n + m + 3 values, and not n + 2m."""
        n, m = 9, 11
        rows = {(x, y): 1 for x in range(n) for y in range(m)} | {(n, y): 1 for y in range(m - 1)}
        model = Model(
            f"select a.i, c.l, count(*) as n {CHAIN} group by a.i, c.l",
            MATRICES,
            {
                "a": {(i, j): 1 for i in range(3) for j in range(0, n + 1, 2)},
                "b": {},
                "c": {(k, x): 1 for k in range(0, m, 3) for x in range(4)},
            },
        )
        model.change("b", dict(rows))
        assert found(model.refresh()) == [f"a sum of 2 products: {n + m + 3} values for {n * m + m - 1} rows"]
        model.change("b", {})
        assert found(model.refresh()) == [f"a sum of 2 products: {n + m + 3} values for {n * m + m - 1} rows"]

    def test_what_is_no_product_is_met_as_it_is(self) -> None:
        model = matrices(8)
        rng = random.Random(3)
        model.change("b", {cell: rng.randint(-99, 99) for cell in model.cells["b"]})
        report = model.refresh()
        assert found(report) == []
        assert not any("factor_1" in s and "SELECT" in s and "part" in s for s in report.statements)

    def test_many_rows_of_different_keys_are_not_looked_at_further(self) -> None:
        """Where there are nearly as many keys as rows, one query tells that a product cannot be worth it."""
        model = matrices(12)
        plain = matrices(12, meta={"fivm_without": "products"})
        for one in (model, plain):
            one.change("b", {(x, y): v for (x, y), v in one.cells["b"].items() if x != y})
        extra = len(model.refresh().statements) - len(plain.refresh().statements)
        assert extra == 1

    def test_a_matrix_of_too_many_rows_or_terms_is_not_split(self, monkeypatch: pytest.MonkeyPatch) -> None:
        model = matrices(8)
        first, second = dict.fromkeys(range(4), 2), dict.fromkeys(range(4, 8), 3)
        for limit, value in (("MAX_KEYS", 7), ("MAX_TERMS", 1)):
            with monkeypatch.context() as patch:
                patch.setattr(factorise, limit, value)
                patch.setattr(overlapping, "MAX_RANK", 1)
                model.change("b", self._two(model, first, second))
                assert found(model.refresh()) == []
        model.change("b", self._two(model, first, second))
        assert found(model.refresh()) == ["a sum of 2 products: 24 values for 64 rows"]

    def _two(self, model: Model, *columns: dict[int, int]) -> Cells:
        return added(
            model.cells["b"], *((u, {y: y + 1 + n * y * y for y in range(8)}) for n, u in enumerate(columns))
        )

    def test_numbers_that_are_ratios_of_large_ones(self) -> None:
        """Rows whose ratios differ by less than a double can tell have one signature; the comparison finds it."""
        model = matrices(
            5, "select a.i, b.k, sum(a.v * b.v) as v from a join b on a.j = b.j group by a.i, b.k"
        )
        large = 2**55
        u = {x: {y: large + (x if y == 4 else 0) for y in range(5)} for x in range(5)}
        model.change("b", {(x, y): u[x][y] for x in range(5) for y in range(5)})
        model.refresh()


class TestParts:
    def test_a_product_stays_one_on_its_way(self) -> None:
        """Of three matrices a product of two is kept; the change of one of them is a product there too."""
        model = matrices()
        upper = view(model, "view_4_c_by_j")
        by_b = [p for p in upper.products if p.of.view.endswith("b_by_k")]
        assert [[k.name for k in part.keys] for p in by_b for part in p.parts] == [
            ["__fivm_term_1", "j"],
            ["__fivm_term_1", "l"],
        ]
        assert all(p.gives is not None for p in upper.products)
        root = model.bench.plan.top
        assert sorted(p.of.view.rsplit("_fivm_", 1)[1] for p in root.products) == [
            "view_1_a_by_j",
            "view_4_c_by_j",
            "view_4_c_by_j",
        ]

    def test_three_factors(self) -> None:
        """A change of a fact for some days, stores and items is split by all three of them."""
        rng = random.Random(5)
        model = Model(
            f"select t.city, i.kind, d.month, sum(s.units * i.price) as revenue, sum(s.units) as units {STAR} "
            "group by t.city, i.kind, d.month",
            SALES,
            {
                "sale": {(d, t, i): rng.randint(0, 5) for d in range(4) for t in range(5) for i in range(6)},
                "store": {(t, t % 2): t for t in range(5)},
                "item": {(i, i % 3): i + 0.25 for i in range(6)},
                "day": {(d,): d // 2 for d in range(4)},
            },
        )
        sold = model.cells["sale"]
        new = {k: int(str(v)) + (2 if k[0] != 3 and k[1] != 4 else 0) for k, v in sold.items()}  # type: ignore[operator]
        model.change("sale", new)
        assert found(model.refresh()) == ["one product: 13 values for 72 rows"]
        model.change("sale", {k: v for k, v in new.items() if k[2] not in (1, 2)})  # type: ignore[operator]
        model.refresh()

    def test_example_10_of_the_article(self) -> None:
        """A change of S that is a product of A, C and E: E is added up at once, A and C meet what they join."""
        columns = {"r": "a int, b bigint", "s": "a int, c int, e bigint", "t": "c int, d bigint"}
        cells: dict[str, Cells] = {
            "r": {(a,): 10 - a for a in range(6)},
            "s": {(a, c): a + c for a in range(6) for c in range(5)},
            "t": {(c,): c * c for c in range(5)},
        }
        sql = "select sum(b * d * e) as v, count(*) as n from r natural join s natural join t"
        model = Model(sql, columns, cells)
        (met,) = view(model, "_s_by_a").products
        assert [[name for name, _ in part.factor.keys] for part in met.parts] == [["a"], []]
        assert [len(scans(part.node)) for part in met.parts] == [1, 2], "C meets its view before it is joined"
        model.change("s", {(a, c): a + c + 7 for a, c in pairs(range(1, 6), range(5))})
        model.change("s", model.cells["s"] | {(0, c): c for c in range(5)})
        model.refresh()
        model.change("s", {cell: int(str(e)) + 4 for cell, e in model.cells["s"].items()})
        assert found(model.refresh()) == ["one product: 11 values for 30 rows"]

    @pytest.mark.parametrize(
        ("sql", "looked_at"),
        [
            (PRODUCT, 3),
            (f"select sum(a.v * b.v * c.v) as v {CHAIN}", 1),
            (f"select a.i, c.l {CHAIN}", 3),
            (f"select distinct a.i, c.l {CHAIN}", 3),
            (f"select a.i, avg(b.v) as v {CHAIN} group by a.i having sum(c.v) > 0", 2),
            (f"select a.i + c.l as s, sum(b.v) as v {CHAIN} group by a.i + c.l", 2),
            (f"select a.i, sum(a.v + b.v * c.v) as v {CHAIN} group by a.i", 2),
            (f"select a.i, c.l, sum(b.v) as v {CHAIN} where a.i < c.l group by a.i, c.l", 2),
            (f"select a.i, sum(case when b.v > 0 then c.v else 0 end) as v {CHAIN} group by a.i", 2),
            (
                "select a.i, count(*) as n from a join b on a.j = b.j join c on b.k = c.k and c.l = a.i "
                "group by a.i",
                0,
            ),
            (
                "select x.i, z.j, count(*) as n from a x join a y on x.j = y.i join a z on y.j = z.i "
                "group by x.i, z.j",
                3,
            ),
        ],
    )
    def test_whatever_stands_over_it(self, sql: str, looked_at: int) -> None:
        model = matrices(5, sql)
        assert sum(v.split is not None for v in model.bench.plan.views) == looked_at
        for number, name in enumerate(sorted({i.name for i in model.bench.plan.inputs})):
            u = {x: x + number + 1 for x in range(5)}
            model.change(name, added(model.cells[name], (u, dict.fromkeys(range(5), 2))))
            model.refresh()

    def test_several_relations_change_at_once(self) -> None:
        model = matrices()
        every = dict.fromkeys(range(6), 1)
        for names in ("ab", "bc", "ac", "abc"):
            for name in names:
                model.change(name, added(model.cells[name], (every, {0: 3, 1: 2, 4: 5, 5: 1})))
            assert len(found(model.refresh())) == len(names)

    def test_a_product_and_another_change(self) -> None:
        model = matrices()
        model.change("a", added(model.cells["a"], ({1: 1}, {2: 1})))
        model.change("b", added(model.cells["b"], (dict.fromkeys(range(6), 1), dict.fromkeys(range(6), 4))))
        assert len(found(model.refresh())) == 1

    def test_null_keys_and_values(self) -> None:
        model = matrices()
        every: list[int | None] = [None, *range(5)]
        model.change("b", {(x, y): None if x == 2 else 4 for x, y in pairs(every, every)})
        model.refresh()
        model.change("b", {(x, y): 3 for x, y in pairs(every, every)})
        assert found(model.refresh())
        model.change("b", {(x, y): None for x, y in pairs(every, every)})
        assert found(model.refresh())

    def test_decimals(self) -> None:
        columns = MATRICES | {"b": "j int, k int, v decimal(12,3)"}
        cells: dict[str, Cells] = {
            name: {(x, y): x * y - 3 for x in range(6) for y in range(6)} for name in MATRICES
        }
        sql = f"select a.i, c.l, sum(a.v * b.v) as v, sum(b.v) as w, avg(c.v) as c {CHAIN} group by a.i, c.l"
        model = Model(sql, columns, cells)
        model.change(
            "b", {(x, y): (x + 2) * (2 * y + 1) * 0.125 + x * y - 3 for x, y in pairs(range(6), range(6))}
        )
        assert found(model.refresh()) == ["one product: 12 values for 36 rows"]

    def test_lists_kept_as_factors(self) -> None:
        model = matrices(
            5, f"select a.i, a.j, b.k, c.l {CHAIN}", {"fivm_strategy": "auto", "fivm_result": "factorized"}
        )
        for name in MATRICES:
            model.change(name, {(x, y): 1 for x, y in pairs(range(2, 7), range(5))})
            model.refresh()

    def test_an_interrupted_refresh_is_finished(self) -> None:
        model = matrices()
        for number in range(1, 30):
            model.change(
                "b", added(model.cells["b"], ({x: x + 1 for x in range(6)}, dict.fromkeys(range(6), number)))
            )
            try:
                model.bench.refresh(Interrupting(model.bench.engine, number, after=number % 2 == 0))
            except Interrupted:
                model.refresh()
                continue
            break
        else:
            pytest.fail("never ran through")
        assert number > 6


class TestRandom:
    @pytest.mark.parametrize("seed", by_run(range(3), long=range(3, 8)))
    def test_low_rank_changes(self, seed: int) -> None:
        """Sums of products, with holes, rows that go, and changes that are none; many are found, all are right."""
        rng = random.Random(seed)
        size = 10
        model = matrices(size, seed=seed)
        products = 0
        for number in range(4):
            for name in rng.sample(sorted(MATRICES), rng.randint(1, 2)):
                new = added(model.cells[name], *(self._term(rng, size) for _ in range(1 + number // 2)))
                for _ in range((0, 1, 0, 3)[number]):
                    new[rng.randrange(size), rng.randrange(size)] = rng.randint(-3, 3)
                if number == 3:
                    gone = rng.sample(range(size), 7)
                    new = {(x, y): v for (x, y), v in new.items() if x not in gone}
                model.change(name, new)
            products += len(found(model.refresh()))
        assert products

    def _term(self, rng: random.Random, size: int) -> tuple[dict[int, int], dict[int, int]]:
        u = {x: rng.choice([-4, -1, 2, 6, 10]) for x in rng.sample(range(size), rng.randint(6, size))}
        return u, {y: rng.choice([-9, -2, 3, 5]) for y in rng.sample(range(size), rng.randint(6, size))}


def test_explain_says_what_is_made_of_a_product() -> None:
    text = explain(plan_of(PRODUCT, [relation(n, c) for n, c in MATRICES.items()], META))
    section = text[text.index("== changes that are products") :]
    for line in (
        "analytics.m__fivm_view_3_b_by_k: 1 changed rows or more may be",
        "  Δ[j, k] = ⊎ factor_1[j] ⊗ factor_2[k]",
        "analytics.m__fivm_view_4_c_by_j, where the change of m__fivm_view_3_b_by_k is a product:",
        "  part_2[l] = γ(factor_2 ⋈ new m__fivm_view_2_c_by_k)",
    ):
        assert line in section.split("\n")


def test_small_changes_are_not_looked_at(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    model = matrices(meta={"fivm_product_rows": 37})
    model.change("b", added(model.cells["b"], (dict.fromkeys(range(6), 1), dict.fromkeys(range(6), 1))))
    assert found(model.refresh()) == []


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize(
    ("numbers", "unit", "products"),
    [("bigint", 1, ["one product: 12 values for 36 rows"]), ("decimal(38,0)", 10**32, [])],
)
def test_products_are_found_on_spark(
    spark: SparkSession, numbers: str, unit: int, products: list[str]
) -> None:
    """Quotients of large decimals have no room in Spark's type for them: the delta is met as it is."""
    from fivm_dbt.testing.spark_workbench import SparkWorkbench

    with closing(SparkWorkbench(spark, "fivm_products")) as workbench:
        typed = {
            name: columns.replace("bigint", numbers if name == "b" else "bigint")
            for name, columns in MATRICES.items()
        }
        relations = [relation(f"fivm_products.{name}", columns) for name, columns in typed.items()]
        specs = {r.name.split(".")[1]: TableSpec(r.name, r.columns) for r in relations}
        cells: Cells = {(x, y): x - y for x in range(6) for y in range(6)}
        large: Cells = {(x, y): (x - y) * unit for x in range(6) for y in range(6)}
        for name, spec in specs.items():
            workbench.create(spec, [(*k, v) for k, v in (large if name == "b" else cells).items()])
        sql = PRODUCT.replace("from a join b", "from fivm_products.a join fivm_products.b")
        sql = sql.replace("join c", "join fivm_products.c")
        request = ModelRequest("fivm_products.m", sql, Catalog.of(relations), load_config(META))
        plan = plan_model(request, workbench.describe)
        refresh(plan, workbench.engine)
        column = {x: v * unit for x, v in enumerate([2, 3, -5, 7, 4, 9])}
        new = added(large, (column, dict(enumerate([6, 10, -15, 2, 3, 5]))))
        changed = [cell for cell in cells if new[cell] != large[cell]]
        workbench.change(specs["b"], [(*k, new[k]) for k in changed], [(*k, large[k]) for k in changed])
        report = refresh(plan, workbench.engine)
        assert found(report) == products
        assert not workbench.engine.query(difference_sql(plan, workbench.engine))
