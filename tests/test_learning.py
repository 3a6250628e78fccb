"""fivm_covariance: against sums over the joined rows in Python, its view trees, and what is refused."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import combinations_with_replacement
from math import prod
from typing import Any

import pytest

from fivm_dbt.catalog import Catalog
from fivm_dbt.config import load_config
from fivm_dbt.errors import FivmError
from fivm_dbt.explain.text import explain
from fivm_dbt.plan.model.plan import MaintainedPlan
from fivm_dbt.plan.model.state import StateTable
from fivm_dbt.plan.planner import plan_model
from fivm_dbt.plan.request import ModelRequest
from fivm_dbt.refresh.engine import Row
from fivm_dbt.refresh.oracle import runnable_sql
from fivm_dbt.rings.vectors import Vectors
from fivm_dbt.sql.lower import lower
from fixtures.models import Bench, plan_of, relation

SCHEMA = {"f": "k int, l int, x int, w int", "d": "k int, y decimal(6,2)", "e": "l int, z int, g int"}
SQL = """
select e.g, fivm_covariance(f.x, d.y, e.z - f.x as r, fivm_weight(f.w)) as m, count(*) as n
from f join d on f.k = d.k join e on f.l = e.l where f.x < 4 group by e.g
"""


def _rows(draw: random.Random, name: str) -> Row:
    small = lambda: draw.choice([None, *range(-2, 5)])  # noqa: E731
    key = lambda: draw.choice([None, 1, 2, 3])  # noqa: E731
    if name == "f":
        return key(), key(), small(), draw.choice([None, 1, 1, 2])
    return (key(), None if draw.random() < 0.2 else _cents(draw)) if name == "d" else (key(), small(), key())


def _cents(draw: random.Random) -> Any:
    return Decimal(draw.randint(-300, 300)).scaleb(-2)


def _expected(
    tables: Mapping[str, Sequence[Row]],
) -> dict[Any, tuple[int, list[Fraction], list[Fraction], int]]:
    """Count, sums and products per group, and its rows: one row of the join after the other."""
    found: dict[Any, tuple[int, list[Fraction], list[Fraction], int]] = {}
    for k, j, x, w in tables["f"]:
        for dk, y in tables["d"]:
            for el, z, g in tables["e"]:
                if k is None or j is None or k != dk or j != el or x is None or x >= 4:
                    continue
                count, sums, products, rows = found.get(g, (0, [Fraction(0)] * 3, [Fraction(0)] * 6, 0))
                if y is not None and z is not None and w is not None:
                    values = [Fraction(x), Fraction(y), Fraction(z - x)]
                    pairs = combinations_with_replacement(values, 2)
                    count += w
                    sums = [s + w * v for s, v in zip(sums, values, strict=True)]
                    products = [q + w * a * b for q, (a, b) in zip(products, pairs, strict=True)]
                found[g] = count, sums, products, rows + 1
    return found


@pytest.mark.parametrize("strategy", ["factorized", "first_order"])
@pytest.mark.parametrize("seed", range(3))
def test_moments_are_those_of_the_joined_rows(strategy: str, seed: int) -> None:
    draw = random.Random(seed)
    tables = {name: [_rows(draw, name) for _ in range(6)] for name in SCHEMA}
    bench = Bench.of(
        SQL, {n: (SCHEMA[n], list(rows)) for n, rows in tables.items()}, {"fivm_strategy": strategy}
    )
    for _ in range(5):
        bench.refresh()
        shown = {g: (m[0], m[2], m[3], n) for g, m, n in bench.engine.query("select * from analytics.m")}
        expected = _expected(tables)
        assert {
            g: (c, [*map(Fraction, s)], [*map(Fraction, q)], n) for g, (c, s, q, n) in shown.items()
        } == expected
        for name, rows in tables.items():
            gone = draw.sample(rows, min(len(rows), draw.randint(0, 3)))
            bench.exchange(name, rows, [_rows(draw, name) for _ in range(draw.randint(0, 3))], gone)


@pytest.mark.parametrize(
    ("degree", "strategy"), [(1, "factorized"), (3, "factorized"), (4, "first_order"), (4, "factorized")]
)
def test_monomials_are_those_of_the_joined_rows(degree: int, strategy: str) -> None:
    """By group the sum of each product of up to so many variables; the last one of both sides of the join."""
    draw = random.Random(degree)
    sql = f"""select e.g, fivm_covariance(cast(f.x as tinyint) as x, d.y, cast(e.z - f.x as tinyint) as r,
                                          fivm_weight(cast(f.w as tinyint)), fivm_degree({degree})) as m
              from f join d on f.k = d.k join e on f.l = e.l group by e.g"""
    tables = {name: [_rows(draw, name) for _ in range(6)] for name in SCHEMA}
    own = {n: (SCHEMA[n], list(rows)) for n, rows in tables.items()}
    bench = Bench.of(sql, own, {"fivm_strategy": strategy})
    for _ in range(4):
        bench.refresh()
        shown = {g: m for g, m in bench.engine.query("select * from analytics.m")}
        expected = _monomials(tables, degree)
        assert {
            g: [Fraction(m[0]), *(Fraction(v) for values in m[2:] for v in values)] for g, m in shown.items()
        } == expected
        recomputed = bench.engine.query(runnable_sql(bench.plan))
        assert {g: tuple(map(str, m)) for g, m in recomputed} == {
            g: tuple(map(str, m)) for g, m in shown.items()
        }
        for name, rows in tables.items():
            gone = draw.sample(rows, min(len(rows), draw.randint(0, 3)))
            bench.exchange(name, rows, [_rows(draw, name) for _ in range(draw.randint(0, 3))], gone)


def _monomials(tables: Mapping[str, Sequence[Row]], degree: int) -> dict[Any, list[Fraction]]:
    found: dict[Any, list[Fraction]] = {}
    for k, j, x, w in tables["f"]:
        for dk, y in tables["d"]:
            for el, z, g in tables["e"]:
                if k is None or j is None or k != dk or j != el:
                    continue
                values = [
                    None if v is None else Fraction(v)
                    for v in (x, y, None if z is None or x is None else z - x)
                ]
                known = [v for v in values if v is not None]
                every = [c for d in range(degree + 1) for c in combinations_with_replacement(range(3), d)]
                sums = found.setdefault(g, [Fraction(0)] * len(every))
                if len(known) == 3 and w is not None:
                    for n, monomial in enumerate(every):
                        sums[n] += w * prod((known[i] for i in monomial), start=Fraction(1))
    return found


CATEGORIES = """
select e.g, fivm_covariance(f.x, fivm_weight(f.w), fivm_categorical(d.y as kind), fivm_categorical(f.l)) as m
from f join d on f.k = d.k join e on f.l = e.l group by e.g
"""


def _cells(tables: Mapping[str, Sequence[Row]]) -> dict[Any, dict[tuple[str, str, str, str], int]]:
    """Count and sum per category, and count per pair of categories (Definition 9), of every group that has rows."""
    found: dict[Any, dict[tuple[str, str, str, str], int]] = {}
    for k, j, x, w in tables["f"]:
        for dk, y in tables["d"]:
            for el, _, g in tables["e"]:
                if k is None or j is None or k != dk or j != el:
                    continue
                cells = found.setdefault(g, {})
                if y is None or x is None or w is None:
                    continue
                kind, place = ("kind", str(y)), ("l", str(j))
                for one, other in ((kind, kind), (place, place), (kind, place)):
                    cells[(*one, *other)] = cells.get((*one, *other), 0) + w
                for one in (kind, place):
                    cells[(*one, "x", "")] = cells.get((*one, "x", ""), 0) + w * x
    return found


@pytest.mark.parametrize("seed", range(2))
def test_categories_are_those_of_the_joined_rows(seed: int) -> None:
    draw = random.Random(seed)
    tables = {name: [_rows(draw, name) for _ in range(5)] for name in SCHEMA}
    bench = Bench.of(CATEGORIES, {n: (SCHEMA[n], list(rows)) for n, rows in tables.items()})
    for _ in range(4):
        bench.refresh()
        shown = {
            g: {tuple(c.values())[:4]: c["value"] for c in m[4]}
            for g, m in bench.engine.query("select * from analytics.m")
        }
        assert shown == _cells(tables)
        for name, rows in tables.items():
            gone = draw.sample(rows, min(len(rows), draw.randint(0, 3)))
            bench.exchange(name, rows, [_rows(draw, name) for _ in range(draw.randint(0, 3))], gone)


MANY = """
select e.g, fivm_covariance(f.x, fivm_weight(f.w), fivm_categorical(d.y as kind), fivm_categorical(l.k as colour),
                            fivm_categorical(l.z as size), fivm_categorical(f.l)) as m
from f join d on f.k = d.k, (select l as k, z, l from e) as l join e on l.l = e.l where f.l = e.l group by e.g
"""


@pytest.mark.parametrize("strategy", ["factorized", "auto", "first_order"])
@pytest.mark.parametrize("seed", range(2))
def test_many_categories_of_several_relations(seed: int, strategy: str) -> None:
    """Rows are there once for each set of their categories before they are joined. One column is of a subquery."""
    draw = random.Random(seed)
    tables = {name: [_rows(draw, name) for _ in range(5)] for name in SCHEMA}
    own = {n: (SCHEMA[n], list(rows)) for n, rows in tables.items()}
    bench = Bench.of(MANY, own, {"fivm_strategy": strategy})
    for _ in range(4):
        bench.refresh()
        found = bench.engine.query("select * from analytics.m")
        assert {g: {tuple(c.values())[:4]: c["value"] for c in m[4]} for g, m in found} == _many_cells(tables)
        for name, rows in tables.items():
            gone = draw.sample(rows, min(len(rows), draw.randint(0, 3)))
            bench.exchange(name, rows, [_rows(draw, name) for _ in range(draw.randint(0, 3))], gone)


def _many_cells(tables: Mapping[str, Sequence[Row]]) -> dict[Any, dict[tuple[str, str, str, str], int]]:
    found: dict[Any, dict[tuple[str, str, str, str], int]] = {}
    for k, j, x, w in tables["f"]:
        for dk, y in tables["d"]:
            for colour, z, _ in tables["e"]:
                for el, _, g in tables["e"]:
                    if k is None or j is None or k != dk or j != el or colour != el:
                        continue
                    cells = found.setdefault(g, {})
                    if None in (y, x, w, z):
                        continue
                    chosen = {"kind": str(y), "colour": str(colour), "size": str(z), "l": str(j)}
                    for one, other in combinations_with_replacement(chosen.items(), 2):
                        cells[(*one, *other)] = cells.get((*one, *other), 0) + w
                    for one in chosen.items():
                        cells[(*one, "x", "")] = cells.get((*one, "x", ""), 0) + w * x
    return found


@pytest.mark.parametrize("number", [1, 4])
@pytest.mark.parametrize(("weight", "trees"), [("", (1, 1)), (", fivm_weight(f.w)", (3, 4))])
def test_all_categories_share_one_aggregate(number: int, weight: str, trees: tuple[int, int]) -> None:
    """One GROUP BY over the join; with weights one for the moments, one for categories, and one for their pairs."""
    columns = ("f.k", "f.l", "d.y", "e.g")[:number]
    variables = ", ".join(f"fivm_categorical({column} as c{n})" for n, column in enumerate(columns))
    call = f"fivm_covariance(f.x, {variables}{weight})"
    joined = f"select {call} as m from f join d on f.k = d.k join e on f.l = e.l"
    bench = Bench.of(joined, {n: (SCHEMA[n], []) for n in SCHEMA}, {"fivm_strategy": "factorized"})
    assert len(bench.plan.view_trees) == trees[number > 1]


FEW = """
select e.g as place, fivm_covariance(f.x, d.y, fivm_categorical(e.z as size), fivm_categorical(f.l))
                     filter (where f.x < 4) as m
from f join d on f.k = d.k join e on f.l = e.l group by e.g
"""


@pytest.mark.parametrize("strategy", ["factorized", "auto", "first_order"])
@pytest.mark.parametrize("is_global", [False, True])
def test_few_numbers_are_one_aggregate(strategy: str, is_global: bool) -> None:
    """Moments and cells of one GROUP BY: of groups without a row that counts, and of no rows at all, too."""
    draw = random.Random(strategy)
    sql = FEW.replace("e.g as place, ", "").replace("group by e.g", "") if is_global else FEW
    tables = {name: [_rows(draw, name) for _ in range(5)] for name in SCHEMA}
    bench = Bench.of(
        sql, {n: (SCHEMA[n], list(rows)) for n, rows in tables.items()}, {"fivm_strategy": strategy}
    )
    for step in range(6):
        bench.refresh()
        found = bench.engine.query("select * from analytics.m")
        assert {row[:-1]: _values(row[-1]) for row in found} == _few(tables, is_global=is_global)
        for name, rows in tables.items():
            gone = list(rows) if step == 3 else draw.sample(rows, min(len(rows), draw.randint(0, 3)))
            bench.exchange(name, rows, [_rows(draw, name) for _ in range(0 if step == 3 else 3)], gone)


def test_a_category_that_is_a_key_or_there_twice() -> None:
    """Such calls are several aggregates, and have the same cells."""
    tables = {"f": ("k int, s string, x int", [(1, "a", 2), (1, "b", 3), (2, "a", None), (2, None, 5)])}
    for key, categories in (
        ("s", "fivm_categorical(s)"),
        ("k", "fivm_categorical(s), fivm_categorical(s as t)"),
    ):
        bench = Bench.of(f"select {key}, fivm_covariance(x, {categories}) as m from f group by {key}", tables)
        bench.refresh()
        bench.exchange("f", list(tables["f"][1]), [(1, "b", 4)], [(1, "a", 2)])
        bench.refresh()
        shown = {
            k: {tuple(c.values()) for c in m[4]} for k, m in bench.engine.query("select * from analytics.m")
        }
        own = {("s", "b", "s", "b", 2), ("s", "b", "x", "", 7)}
        assert shown["b" if key == "s" else 1] >= own
        assert not shown[None if key == "s" else 2]


@pytest.mark.parametrize("others", ["k + 1, ", "k + 1 as n, count(*), "])
def test_columns_beside_categories_have_names(others: str) -> None:
    with pytest.raises(FivmError, match="a column without a name") as error:
        plan_of(
            f"select {others}fivm_covariance(x, fivm_categorical(s)) as m from f group by k + 1",
            [relation("f", "k int, s string, x int")],
        )
    assert error.value.code.number == "FIVM105"


def _values(struct: Any) -> tuple[Any, ...]:
    count, _, sums, products, cells = struct
    return count, *sums, *products, {tuple(c.values())[:4]: c["value"] for c in cells}


def _few(tables: Mapping[str, Sequence[Row]], *, is_global: bool) -> dict[Row, tuple[Any, ...]]:
    groups: dict[Row, list[tuple[Any, ...]]] = {(): []} if is_global else {}
    for k, j, x, _ in tables["f"]:
        for dk, y in tables["d"]:
            for el, z, g in tables["e"]:
                if k is None or j is None or k != dk or j != el:
                    continue
                rows = groups.setdefault(() if is_global else (g,), [])
                if None not in (x, y, z) and int(str(x)) < 4:
                    rows.append((x, y, ("size", str(z)), ("l", str(j))))
    found = {}
    for group, rows in groups.items():
        cells: dict[tuple[str, str, str, str], Any] = {}
        for x, y, size, place in rows:
            for one, other in ((size, size), (place, place), (size, place)):
                cells[(*one, *other)] = cells.get((*one, *other), 0) + 1
            for one in (size, place):
                for name, value in (("x", x), ("y", y)):
                    cells[(*one, name, "")] = cells.get((*one, name, ""), 0) + value
        sums = [sum(row[i] for row in rows) for i in range(2)]
        products = [sum(row[i] * row[j] for row in rows) for i, j in ((0, 0), (0, 1), (1, 1))]
        found[group] = (len(rows), *sums, *products, cells)
    return found


def test_many_categories_are_a_short_text() -> None:
    """Of 39 categorical variables there are 780 pairs. Arrays without a value have a type, which Delta asks for."""
    columns = ", ".join(f"fivm_categorical(f.c{n})" for n in range(39))
    catalog = Catalog.of([relation("f", ", ".join(f"c{n} int" for n in range(39)))])
    request = ModelRequest("m", f"select fivm_covariance({columns}) as m from f", catalog, load_config({}))
    sql = runnable_sql(plan_model(request))
    assert len(sql) < 20_000
    assert "CAST(ARRAY() AS ARRAY<STRING>) AS variables" in sql


# View trees: the article's schemas (section 9.1), all variables continuous.

RETAILER = {
    "inventory": ("locn dateid ksn", 1),
    "location": ("locn zip", 14),
    "census": ("zip", 15),
    "item": ("ksn", 4),
    "weather": ("locn dateid", 5),
}
RETAILER_JOIN = (
    "inventory join location on inventory.locn = location.locn join census on location.zip = census.zip "
    "join item on inventory.ksn = item.ksn "
    "join weather on inventory.locn = weather.locn and inventory.dateid = weather.dateid"
)
RETAILER_ORDER = {"locn": [{"dateid": ["ksn"]}, "zip"]}


def _plan(shape: Mapping[str, tuple[str, int]], join: str, m: int, **meta: object) -> MaintainedPlan:
    """The plan of one covariance over the first ``m`` of the variables."""
    relations, variables = [], []
    for name, (keys, own) in shape.items():
        columns = [f"{name}_{n}" for n in range(own)]
        variables += columns
        relations.append(relation(name, ", ".join(f"{c} int" for c in (*keys.split(), *columns))))
    sql = f"select fivm_covariance({', '.join(variables[:m])}) as m from {join}"
    config = load_config({"fivm_strategy": "factorized", **meta})
    plan = plan_model(ModelRequest("analytics.m", sql, Catalog.of(relations), config))
    assert isinstance(plan, MaintainedPlan)
    return plan


def _numbers(state: StateTable) -> int:
    """How many numbers its payload has, those of vectors one by one."""
    return sum(p.numbers.size if isinstance(p.numbers, Vectors) else 1 for p in state.payload)


def _entries(m: int) -> int:
    """Of the triple of m variables: ``1 + m + m(m + 1) / 2``."""
    return 1 + m + m * (m + 1) // 2


def test_a_view_has_the_moments_of_its_own_variables() -> None:
    """One view tree; each view has the count, the sums and the products of what is below it, and nothing twice."""
    plan = _plan(RETAILER, RETAILER_JOIN, 18, fivm_variable_order=RETAILER_ORDER)
    assert len(plan.view_trees) == 1
    kept = {v.name: v.state for v in plan.views}
    below = {frozenset(v.relations): kept[v.kept] for v in plan.view_trees[0].views if v.kept is not None}
    own = {"inventory": 1, "location": 14, "census": 3}
    for relations, state in below.items():
        m = sum(own.get(name, 0) for name in relations)
        # Beside the number of rows, the count of those without NULLs unless there is no variable.
        assert _numbers(state) == (_entries(m) if m else 0)
    assert _numbers(plan.root) == _entries(18) == 190


@pytest.mark.more
@pytest.mark.parametrize("m", [39])
def test_the_article_s_views_of_retailer(m: int) -> None:
    """Figure 18: 820 aggregates."""
    plan = _plan(RETAILER, RETAILER_JOIN, m, fivm_variable_order=RETAILER_ORDER)
    assert _numbers(plan.root) == _entries(m) == 820
    assert len(plan.views) == 9


def test_an_order_has_the_many_numbers_near_the_root() -> None:
    """By rows alone item, with four variables, would be joined last: 595 numbers for each row of all the others."""
    plan = _plan(RETAILER, RETAILER_JOIN, 39)
    below = [_numbers(view.state) for view in plan.views if view is not plan.top]
    assert max(below) == _entries(24) == 325, "of all relations but census"
    assert len(plan.views) == 9


HOUSING = {
    n: ("postcode", own)
    for n, own in zip(
        "house shop institution restaurant people transport".split(), (10, 4, 3, 3, 3, 3), strict=True
    )
}
HOUSING_JOIN = "house " + " ".join(f"join {n} on house.postcode = {n}.postcode" for n in [*HOUSING][1:])
FAVORITA = {
    "sales": ("date store item", 2),
    "stores": ("store", 4),
    "items": ("item", 3),
    "transactions": ("date store", 1),
    "holiday": ("date", 4),
    "oil": ("date", 1),
}
FAVORITA_JOIN = (
    "sales join stores on sales.store = stores.store join items on sales.item = items.item "
    "join transactions on sales.date = transactions.date and sales.store = transactions.store "
    "join holiday on sales.date = holiday.date join oil on sales.date = oil.date"
)


@pytest.mark.parametrize(
    ("shape", "join", "m", "aggregates", "views"),
    [(HOUSING, HOUSING_JOIN, 26, 378, 7), (FAVORITA, FAVORITA_JOIN, 15, 136, 9)],
    ids=["housing", "favorita"],
)
def test_the_article_s_views(
    shape: Mapping[str, tuple[str, int]], join: str, m: int, aggregates: int, views: int
) -> None:
    """Figure 18: so many views hold so many aggregates, where competitors have hundreds of views."""
    plan = _plan(shape, join, m)
    assert _numbers(plan.root) == _entries(m) == aggregates
    assert len(plan.views) == views


# What is refused


@pytest.mark.parametrize(
    ("call", "message", "remedy"),
    [
        ("fivm_covariance(note) as m", "note is a string, and a continuous variable is a number", "CAST it"),
        ("fivm_covariance(x, ordered) as m", "ordered is a date", "CAST it to a number"),
        ("fivm_covariance(x + 1) as m", "x + 1 has no name to be shown under", "write AS"),
        ("fivm_covariance(x, x) as m", "two variables called x", "another name"),
        ("fivm_covariance(x)", "fivm_covariance without a name", "write AS"),
        ("fivm_covariance(fivm_weight(x)) as m", "fivm_covariance without a variable", "name at least one column"),
        ("fivm_covariance(x, fivm_weight(x), fivm_weight(x)) as m", "a second weight", "multiply"),
        ("fivm_covariance(x, fivm_weight()) as m", "fivm_weight takes one value", "fivm_weight(x)"),
        ("fivm_covariance(distinct x) as m", "fivm_covariance of distinct rows", "SELECT DISTINCT"),
        ("fivm_weight(x) as m", "fivm_weight outside of fivm_covariance", "inside"),
        ("fivm_covariance(x) over () as m", "fivm_covariance over a window", "GROUP BY"),
        ("fivm_covariance(wide) as m", "needs 41 digits", "fewer digits"),
        ("fivm_covariance(note, fivm_degree(1)) as m", "note is a string", "CAST it to a number"),
        ("fivm_covariance(x, fivm_degree(5)) as m", "FIVM_DEGREE(5) is no degree", "from 1 to 4"),
        ("fivm_covariance(x, fivm_degree(x)) as m", "FIVM_DEGREE(x) is no degree", "from 1 to 4"),
        ("fivm_covariance(x, fivm_degree(1), fivm_degree(2)) as m", "a second fivm_degree", "alone"),
        ("fivm_covariance(wide, fivm_degree(2)) as m", "needs 41 digits", "fewer digits"),
        ("fivm_covariance(cast(wide as decimal(10,2)) as w, fivm_degree(4)) as m", "the power 4", "fewer digits"),
        ("fivm_covariance(fivm_degree(3), fivm_categorical(note)) as m", "fivm_degree beside", "two columns"),
        ("fivm_degree(2) as m", "fivm_degree outside of fivm_covariance", "inside"),
        ("fivm_covariance(sum(x) as s) as m", "an aggregate inside an aggregate", "subquery"),
        ("fivm_covariance(fivm_categorical(note, x)) as m", "fivm_categorical takes one value", "fivm_categorical(x)"),
        ("fivm_covariance(x, fivm_categorical(note as x)) as m", "two variables called x", "another name"),
        ("fivm_covariance(x, fivm_categorical(note)).count as m", "inside of an expression", "column of its own"),
        ("distinct fivm_covariance(x, fivm_categorical(note)) as m", "DISTINCT beside a covariance", "around"),
        ("fivm_covarianc(x) as m", "fivm_covarianc is no function of Spark", ""),
    ],
)  # fmt: skip
def test_bad_arguments_have_messages_of_their_own(call: str, message: str, remedy: str) -> None:
    catalog = Catalog.of([relation("r", "x int, note string, ordered date, wide decimal(20,2)")])
    with pytest.raises(FivmError) as found:
        lower(f"select {call} from r", catalog)
    assert message in found.value.message
    assert remedy in (found.value.remedy or "")


def test_explain_shortens_what_is_long() -> None:
    """The text that is recomputed has a sum for each entry, with all variables in each."""
    columns = [f"x{n}" for n in range(12)]
    tables = [relation("r", ", ".join(f"{c} int" for c in columns))]
    plan = plan_of(f"select fivm_covariance({', '.join(columns)}) as m from r", tables)
    text = explain(plan)
    assert "written out as Spark SQL: this is recomputed" in text
    assert plan.completed_sql not in text
    assert f"... ({len(plan.completed_sql):,} characters)" in text


def test_ties_and_moments_are_completed_together() -> None:
    """Both edit the text, and the recompute runs what comes of both."""
    plan = plan_of(
        "select k, max_by(x, y) as x, fivm_covariance(x, y) as m, mode(x) as c from r group by k",
        [relation("r", "k int, x int, y int")],
    )
    assert "max_by(x, if((y) is null" in plan.completed_sql
    assert "AS products" in plan.completed_sql and "mode(x, true)" in plan.completed_sql
    assert "fivm_covariance" not in plan.completed_sql
