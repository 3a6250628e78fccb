"""Changes that are sums of products that overlap are found, and give what a recompute gives."""

from __future__ import annotations

import random
from contextlib import closing
from decimal import Decimal
from itertools import product as pairs
from typing import TYPE_CHECKING

import pytest

from fivm_dbt.catalog import Catalog, SparkType
from fivm_dbt.catalog.types import BIGINT
from fivm_dbt.config import load_config
from fivm_dbt.plan.planner import plan_model
from fivm_dbt.plan.request import ModelRequest
from fivm_dbt.refresh import overlapping
from fivm_dbt.refresh.compare import difference_sql
from fivm_dbt.refresh.executor import refresh
from fivm_dbt.refresh.lattice import inverse
from fivm_dbt.spark.rank_factors import PRIMES, Combination
from fivm_dbt.testing.workbench import TableSpec
from fixtures.matrices import CHAIN, MATRICES, META, PRODUCT, Cells, Model, added, found, matrices
from fixtures.models import relation
from fixtures.runs import by_run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TWO = "select a.i, b.k, sum(a.v * b.v) as v, count(*) as n from a join b on a.j = b.j group by a.i, b.k"

Terms = list[tuple[dict[int, int], dict[int, int]]]


def _terms(rng: random.Random, rank: int, size: int, most: int = 9) -> Terms:
    """Outer products of full vectors."""
    numbers = [n for n in range(-most, most + 1) if n]
    return [
        ({x: rng.choice(numbers) for x in range(size)}, {y: rng.choice(numbers) for y in range(size)})
        for _ in range(rank)
    ]


def _of(products: int) -> str:
    return f"a sum of {products} products:"


class TestRank:
    @pytest.mark.parametrize("rank", [2, 3, 5])
    @pytest.mark.parametrize("name", by_run(["b"], long=["a", "c"]))
    def test_full_vectors(self, rank: int, name: str) -> None:
        model = matrices(24)
        model.change(name, added(model.cells[name], *_terms(random.Random(rank), rank, 24)))
        (text,) = found(model.refresh())
        assert text.startswith(_of(rank))
        values = int(text.split(": ")[1].split(" ")[0])
        assert values <= rank * 48, "u and v of each product"

    def test_rows_that_come_have_another_rank_than_their_values(self) -> None:
        """They are counted too, and the numbers of rows are a product of two vectors of ones."""
        model = Model(PRODUCT, MATRICES, {"a": _small(20), "b": {}, "c": _small(20)})
        terms = _terms(random.Random(1), 3, 20)
        model.change("b", added({cell: 0 for cell in pairs(range(20), range(20))}, *terms))
        (text,) = found(model.refresh())
        assert text.startswith(_of(3))
        model.change("b", {})
        assert found(model.refresh()) == [text]

    def test_decimals_null_keys_and_several_sums(self) -> None:
        columns = MATRICES | {"b": "j int, k int, v decimal(12,3)"}
        size = 20
        keys: list[int | None] = [None, *range(1, size)]
        cells: dict[str, Cells] = {
            n: {(keys[x], keys[y]): v for (x, y), v in _small(size).items()} for n in "ac"
        }
        cells["b"] = {(x, y): Decimal(0) for x, y in pairs(keys, keys)}
        sql = (
            "select a.i, c.l, sum(a.v * b.v) as v, sum(b.v) as w, sum(b.v * c.v) as x, avg(c.v) as c "
            "from a join b on a.j <=> b.j join c on b.k <=> c.k group by a.i, c.l"
        )
        model = Model(sql, columns, cells)
        for rank in (2, 4):
            terms = _terms(random.Random(rank), rank, size, most=99)
            thousandths = added({cell: 0 for cell in pairs(range(size), range(size))}, *terms)
            new = {
                (keys[x], keys[y]): Decimal(str(cells["b"][keys[x], keys[y]])) + Decimal(str(v)) / 1000
                for (x, y), v in thousandths.items()
            }
            model.change("b", new)
            cells["b"] = new
            (text,) = found(model.refresh())
            assert text.startswith(_of(rank))

    def test_three_factors(self) -> None:
        """Days and stores, and then stores and items, are sums of two products each."""
        rng = random.Random(5)
        days, size = 30, 8
        model = Model(
            "select t.city, i.kind, d.month, sum(s.units * i.price) as revenue, sum(s.units) as units from sale s "
            "join store t on s.store = t.store join item i on s.item = i.item join day d on s.day = d.day "
            "group by t.city, i.kind, d.month",
            {
                "sale": "day int, store int, item int, units bigint",
                "store": "store int, city int, size int",
                "item": "item int, kind int, price decimal(8,2)",
                "day": "day int, month int",
            },
            {
                "sale": {
                    (d, t, i): rng.randint(0, 5)
                    for d in range(days)
                    for t in range(size)
                    for i in range(size)
                },
                "store": {(t, t % 2): t for t in range(size)},
                "item": {(i, i % 3): i + 0.25 for i in range(size)},
                "day": {(d,): d // 2 for d in range(days)},
            },
        )
        of_days = [[rng.randint(1, 9) for _ in range(days)] for _ in range(2)]
        of_rest = [
            added({cell: 0 for cell in pairs(range(size), range(size))}, *_terms(rng, 1, size))
            for _ in range(2)
        ]
        model.change(
            "sale",
            {
                (d, t, i): int(str(v))
                + sum(u[d] * int(str(w[t, i])) for u, w in zip(of_days, of_rest, strict=True))  # type: ignore[index]
                for (d, t, i), v in model.cells["sale"].items()
            },
        )
        report = model.refresh()
        (text,) = found(report)
        assert text.startswith(_of(2))
        assert any("_picked_" in s for s in report.statements)

    @pytest.mark.parametrize("seed", by_run(range(2), long=range(2, 12)))
    def test_at_random(self, seed: int) -> None:
        """Some products, some of few rows, some cells by themselves: as it may be, and always right."""
        rng = random.Random(seed)
        size = 22
        model = matrices(size, seed=seed)
        products = 0
        for _ in range(3):
            name = rng.choice(sorted(MATRICES))
            new = added(model.cells[name], *_terms(rng, rng.randint(2, 4), size, rng.choice([2, 9, 99])))
            for _ in range(rng.choice([0, 0, 2])):
                new[rng.randrange(size), rng.randrange(size)] = rng.randint(-3, 3)
            model.change(name, new)
            products += len(found(model.refresh()))
        assert products


class TestSample:
    def test_products_of_few_rows_are_met_in_a_second_sample(self) -> None:
        """Two of 120 rows have a third product; the first sample has none of them."""
        rng = random.Random(2)
        model = _two(120, 20)
        few = ({x: x for x in (3, 71)}, {y: y + 1 for y in range(20)})
        wide = [({x: rng.randint(1, 99) for x in range(120)}, v) for _, v in _terms(rng, 2, 20)]
        model.change("b", _changed(model, *wide, few))
        report = model.refresh()
        (text,) = found(report)
        assert text.startswith(_of(3))
        assert sum("_sample_" in s.split(" AS ")[0] for s in report.statements) == 2

    def test_a_change_of_full_rank_is_left_alone(self) -> None:
        model = matrices(20)
        rng = random.Random(3)
        model.change("b", {cell: rng.randint(-99, 99) for cell in model.cells["b"]})
        report = model.refresh()
        assert found(report) == []
        assert not any("_picked_" in s for s in report.statements)

    @pytest.mark.parametrize(
        ("limit", "value"), [("MAX_VALUES", 300), ("MAX_VALUES", 90), ("MAX_RANK", 2), ("TURNS", 0)]
    )
    def test_limits(self, monkeypatch: pytest.MonkeyPatch, limit: str, value: int) -> None:
        model = _two(60, 10)
        monkeypatch.setattr(overlapping, limit, value)
        rng = random.Random(4)
        wide = [({x: rng.randint(1, 9) for x in range(60)}, v) for _, v in _terms(rng, 3, 10)]
        model.change("b", _changed(model, *wide))
        assert found(model.refresh()) == []

    def test_the_same_change_gives_the_same_statements(self) -> None:
        seen = []
        for _ in range(2):
            model = _two(30, 30)
            model.change("b", _changed(model, *_terms(random.Random(6), 3, 30)))
            seen.append([s for s in model.refresh().statements if "factor" in s])
        assert seen[0] == seen[1]


class TestLargeNumbers:
    """Sums of products fit their type here; what is on the way to them has to fit too, or is not begun."""

    @pytest.mark.parametrize(
        ("most", "is_found"),
        [(10**6, True), (10**15, True), (5 * 10**15, True), (9 * 10**16, False)],
    )
    def test_bigint(self, most: int, is_found: bool) -> None:
        model = _two(90, 20)
        model.change("b", _changed(model, *self._terms(most)))
        assert bool(found(model.refresh())) is is_found

    @pytest.mark.parametrize(
        ("type_", "most", "is_found"),
        [
            ("decimal(38,0)", 10**15, True),
            ("decimal(38,0)", 10**20, False),
            ("decimal(28,10)", 10**15, True),
            ("decimal(28,10)", 10**24, False),
            ("decimal(20,18)", 10**17, False),
        ],
    )
    def test_decimal(self, type_: str, most: int, is_found: bool) -> None:
        """In units of the last digit."""
        scale = SparkType.of(type_).scale
        cells: dict[str, Cells] = {"a": _ones(90), "b": {c: Decimal(0) for c in pairs(range(90), range(20))}}
        sql = "select a.i, b.k, sum(b.v) as v from a join b on a.j = b.j group by a.i, b.k"
        model = Model(sql, {"a": MATRICES["a"], "b": f"j int, k int, v {type_}"}, cells)
        new = added({cell: 0 for cell in cells["b"]}, *self._terms(most))
        model.change("b", {cell: Decimal(str(v)).scaleb(-scale) for cell, v in new.items()})
        assert bool(found(model.refresh())) is is_found

    def _terms(self, most: int) -> Terms:
        """Two products of small numbers and of large ones; no row is a multiple of another."""
        rng = random.Random(7)
        v, w = ({y: rng.randint(most // 2, most) for y in range(20)} for _ in range(2))
        return [({x: x + 1 for x in range(90)}, v), ({x: 90 - x for x in range(90)}, w)]

    def test_products_that_cancel_each_other(self) -> None:
        """Rows near to each other, with large and small numbers: whatever is found, nothing leaves its type."""
        model = _two(24, 24)
        rng = random.Random(8)
        v = {y: rng.randint(10**16, 10**17) for y in range(24)}
        near = {y: value + rng.randint(-3, 3) for y, value in v.items()}
        u = {x: rng.randint(10, 30) for x in range(24)}
        model.change("b", _changed(model, (u, v), ({x: 1 - n for x, n in u.items()}, near)))
        model.refresh()


def test_fractions_are_whole_numbers_modulo_a_prime() -> None:
    weights = inverse([[3, 1], [1, 5]])
    for prime in PRIMES:
        assert prime in (2**31 - 1, 2**31 - 19)
        assert all(prime % n for n in range(2, 46_341)), "it is a prime"
        for numerators, residues in zip(
            weights.numerators, Combination("v", BIGINT, BIGINT, weights).residues(prime), strict=True
        ):
            for n, residue in zip(numerators, residues, strict=True):
                assert (residue * weights.denominator - n) % prime == 0


def _small(size: int) -> Cells:
    return {(x, y): (x * y) % 5 - 2 for x in range(size) for y in range(size)}


def _ones(size: int) -> Cells:
    """Two rows, each with every second column."""
    return {(x % 2, x): 1 for x in range(size)}


def _two(rows: int, columns: int) -> Model:
    """Two matrices of which the first one adds some rows of the other."""
    a: Cells = {(x, x): 1 for x in range(rows)}
    b: Cells = {(x, y): 1 for x in range(rows) for y in range(columns)}
    return Model(TWO, {n: MATRICES[n] for n in "ab"}, {"a": a, "b": b})


def _changed(model: Model, *terms: tuple[dict[int, int], dict[int, int]]) -> Cells:
    return added(model.cells["b"], *terms)


@pytest.mark.long
@pytest.mark.spark
def test_overlapping_products_are_found_on_spark(spark: SparkSession) -> None:
    """Of whole numbers and of decimals, with NULL keys."""
    from fivm_dbt.testing.spark_workbench import SparkWorkbench

    with closing(SparkWorkbench(spark, "fivm_overlapping")) as workbench:
        columns = MATRICES | {"c": "k int, l int, v decimal(12,3)"}
        relations = [relation(f"fivm_overlapping.{name}", text) for name, text in columns.items()]
        specs = {r.name.split(".")[1]: TableSpec(r.name, r.columns) for r in relations}
        keys: list[int | None] = [None, *range(1, 16)]
        cells: Cells = {(x, y): n for n, (x, y) in enumerate(pairs(keys, keys))}
        exact: Cells = {cell: Decimal(str(v)) / 1000 for cell, v in cells.items()}
        for name, spec in specs.items():
            workbench.create(spec, [(*k, v) for k, v in (exact if name == "c" else cells).items()])
        chain = CHAIN.replace("from a join b", "from fivm_overlapping.a join fivm_overlapping.b")
        chain = chain.replace("join c", "join fivm_overlapping.c").replace("=", "<=>")
        sql = f"select a.i, c.l, sum(a.v * b.v * c.v) as v, count(*) as n {chain} group by a.i, c.l"
        request = ModelRequest("fivm_overlapping.m", sql, Catalog.of(relations), load_config(META))
        plan = plan_model(request, workbench.describe)
        refresh(plan, workbench.engine)
        for name, old in (("b", cells), ("c", exact)):
            terms = _terms(random.Random(9), 3, 16)
            more = added({cell: 0 for cell in pairs(range(16), range(16))}, *terms)
            changes = {(keys[x], keys[y]): int(str(v)) for (x, y), v in more.items() if v}
            unit = Decimal("0.001") if name == "c" else 1
            came = [(*k, old[k] + v * unit) for k, v in changes.items()]  # type: ignore[operator]
            workbench.change(specs[name], came, [(*k, old[k]) for k in changes])
            (text,) = found(refresh(plan, workbench.engine))
            assert text.startswith(_of(3))
            assert not workbench.engine.query(difference_sql(plan, workbench.engine))
