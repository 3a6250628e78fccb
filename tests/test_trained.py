"""Models that are trained from maintained moments: against scikit-learn over the joined rows, after each change."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import combinations, product
from math import log
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.preprocessing import StandardScaler

from fivm_dbt.catalog import Column
from fivm_dbt.errors import FivmError
from fivm_dbt.learning.components import principal_components
from fivm_dbt.learning.config import LearningConfig, RegressionConfig, load
from fivm_dbt.learning.information import Information, all_pairs, chow_liu
from fivm_dbt.learning.moments import INTERCEPT, Moments, Term
from fivm_dbt.learning.payload import Shape, groups_of
from fivm_dbt.learning.regression import Regression, train
from fivm_dbt.learning.training import KINDS
from fivm_dbt.refresh.engine import Row
from fixtures.models import Bench
from spark_bench import SparkBench

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = {
    "f": "k int, l int, x int, y int, kind string",
    "d": "k int, price decimal(6,2)",
    "e": "l int, color string",
}
FEATURES = ("x", "price", "kind", "color")
CATEGORIES = FEATURES[2:]
OF = {"x": "f", "price": "d", "kind": "f", "color": "e"}
STRATEGIES = ("auto", "factorized", "first_order")


@dataclass(frozen=True)
class Schema:
    """Which variables a covariance has, over which relations, and how it is kept."""

    features: tuple[str, ...] = FEATURES
    relations: tuple[str, ...] = ("f", "d", "e")
    numbers: str = "int"
    strategy: str = "auto"

    @staticmethod
    def random(draw: random.Random) -> Schema:
        features = tuple(sorted(draw.sample(FEATURES, draw.randint(1, 4)), key=FEATURES.index))
        needed = {OF[name] for name in features}
        relations = ("f", *(r for r in "de" if r in needed or draw.random() < 0.3))
        return Schema(
            features, relations, draw.choice(["int", "smallint", "decimal(5,1)"]), draw.choice(STRATEGIES)
        )

    @property
    def tables(self) -> dict[str, str]:
        every = TABLES | {"f": f"k int, l int, x {self.numbers}, y {self.numbers}, kind string"}
        return {name: every[name] for name in self.relations}

    @property
    def sql(self) -> str:
        named = {name: f"{OF[name]}.{name}" for name in self.features}
        calls = [f"fivm_categorical({v})" if n in CATEGORIES else v for n, v in named.items()]
        joins = {"d": " join d on f.k = d.k", "e": " join e on f.l = e.l"}
        joined = "".join(joins[r] for r in self.relations[1:])
        return f"select fivm_covariance(f.y, {', '.join(calls)}) as m from f{joined}"


def _row(draw: random.Random, name: str) -> Row:
    key = draw.choice([None, 1, 2, 3, 4])
    if name == "f":
        x = draw.choice([None, *range(9)])
        y = None if x is None else 3 * x + draw.randint(-4, 4)
        return key, draw.choice([1, 2, 3]), x, y, draw.choice(["a", "b", "c", None])
    if name == "d":
        return key, None if draw.random() < 0.1 else Decimal(draw.randint(1900_00, 2100_00)).scaleb(-2)
    return draw.choice([1, 2, 3]), draw.choice(["red", "blue"])


def _joined(tables: dict[str, list[Row]], schema: Schema) -> list[tuple[Any, ...]]:
    """The rows that all variables are known of: y, x, price, kind and color."""
    anything: list[Row] = [(None, None)]
    rows: list[Any] = [
        (y, x, price, kind, color)
        for k, at, x, y, kind in tables["f"]
        for dk, price in tables.get("d", anything)
        for el, color in tables.get("e", anything)
        if ("d" not in tables or (k is not None and k == dk)) and ("e" not in tables or at == el)
    ]
    used = [0, *(1 + FEATURES.index(name) for name in schema.features)]
    return [row for row in rows if all(row[place] is not None for place in used)]


def _matrix(rows: Sequence[tuple[Any, ...]], terms: Sequence[Term]) -> Any:
    """The design matrix, category by category."""
    places = {"x": 1, "price": 2, "kind": 3, "color": 4}

    def value(row: tuple[Any, ...], term: Term) -> float:
        found = row[places[term.variable]]
        return float(found) if term.category is None else float(found == term.category)

    return np.array([[value(row, term) for term in terms] for row in rows], dtype=float)


def _moments(bench: Bench) -> Moments:
    ((shown,),) = bench.engine.query("select m from analytics.m")
    assert isinstance(shown, Sequence)
    names = ("count", "variables", "sums", "products", "cells")
    return Moments.read(json.dumps(dict(zip(names, shown, strict=False)), default=str))


def _predicted(found: Regression, rows: Sequence[tuple[Any, ...]]) -> Any:
    terms = [p.term for p in found.parameters if p.term != INTERCEPT]
    weights = np.array([found.coefficients[term] for term in terms])
    return found.coefficients[INTERCEPT] + _matrix(rows, terms) @ weights


def _check(found: Regression, rows: Sequence[tuple[Any, ...]], ridge: float) -> None:
    terms = [p.term for p in found.parameters if p.term != INTERCEPT]
    matrix, label = _matrix(rows, terms), np.array([float(row[0]) for row in rows])
    theirs = (Ridge(alpha=ridge) if ridge else LinearRegression()).fit(matrix, label)
    expected = theirs.predict(matrix)
    scale = 1 + np.abs(label).max()
    assert np.abs(_predicted(found, rows) - expected).max() < 1e-6 * scale
    is_aliased = any(p.coefficient is None for p in found.parameters)
    centred = matrix - matrix.mean(axis=0)
    if not is_aliased and np.linalg.cond(centred.T @ centred + ridge * np.eye(len(terms))) <= 1e6:
        ours = [found.coefficients[term] for term in terms]
        assert np.allclose(ours, theirs.coef_, rtol=1e-6, atol=1e-6)
    if label.var() > 0:
        assert found.r2 == pytest.approx(theirs.score(matrix, label), abs=1e-9)


def _information(rows: Sequence[tuple[Any, ...]], one: int, other: int) -> float:
    both = Counter((row[one], row[other]) for row in rows)
    a, b, n = Counter(row[one] for row in rows), Counter(row[other] for row in rows), len(rows)
    return sum(c / n * log(c * n / (a[i] * b[k])) for (i, k), c in both.items())


def _learned(
    moments: Moments, rows: Sequence[tuple[Any, ...]], schema: Schema, before: dict[Term, float]
) -> None:
    """Train in both ways, compare with scikit-learn, and with what categories tell of each other."""
    assert moments.count == len(rows)
    if not rows:
        return
    features = schema.features
    ridge = 0.5 if len(features) % 2 else 0.0
    found = train(moments, RegressionConfig(fivm_label="y", fivm_ridge=ridge), features)
    _check(found, rows, ridge)
    descent = RegressionConfig(
        fivm_label="y", fivm_ridge=ridge, fivm_solver="gradient_descent", fivm_tolerance=1e-12,
        fivm_max_iterations=100_000,
    )  # fmt: skip
    slow = train(moments, descent, features, before=before)
    assert np.abs(_predicted(slow, rows) - _predicted(found, rows)).max() < 1e-4
    before.clear()
    before.update(slow.coefficients)
    _check_products(moments, rows, schema)
    if set(CATEGORIES) <= set(features):
        (told,) = (p for p in all_pairs(moments, CATEGORIES) if p.variable != p.other)
        assert told.nats == pytest.approx(_information(rows, 3, 4), abs=1e-12)


def _check_products(moments: Moments, rows: Sequence[tuple[Any, ...]], schema: Schema) -> None:
    """``XᵀX`` as NumPy has it: to the last digit, since the numbers are whole or decimals."""
    continuous = [n for n in schema.features if n not in CATEGORIES]
    places = [0, *(1 + FEATURES.index(name) for name in continuous)]
    exact = np.array([[Fraction(str(row[place])) for place in places] for row in rows], dtype=object)
    expected = exact.T @ exact
    for (i, one), (k, other) in product(enumerate(["y", *continuous]), repeat=2):
        assert moments.of(Term(one), Term(other)) == expected[i, k]


def _changes(draw: random.Random, rows: list[Row], name: str) -> tuple[list[Row], list[Row]]:
    """Rows that come, some of them late, and rows that go."""
    gone = draw.sample(rows, min(len(rows), draw.randint(0, 3)))
    return [_row(draw, name) for _ in range(draw.randint(0, 3))], gone


def _stream(seed: int, steps: int) -> None:
    draw = random.Random(seed)
    schema = Schema.random(draw)
    tables = {name: [_row(draw, name) for _ in range(draw.randint(4, 14))] for name in schema.tables}
    own = {n: (schema.tables[n], list(rows)) for n, rows in tables.items()}
    bench = Bench.of(schema.sql, own, {"fivm_strategy": schema.strategy})
    before: dict[Term, float] = {}
    for _ in range(steps):
        bench.refresh()
        _learned(_moments(bench), _joined(tables, schema), schema, before)
        for name, rows in tables.items():
            bench.exchange(name, rows, *_changes(draw, rows, name))
    bench.engine.close()


@pytest.mark.parametrize("seed", range(6))
def test_they_are_as_if_trained_on_the_joined_rows(seed: int) -> None:
    _stream(seed, 5)


@pytest.mark.long
@pytest.mark.parametrize("chunk", range(10))
def test_at_length(chunk: int) -> None:
    for seed in range(1000 + chunk * 50, 1050 + chunk * 50):
        _stream(seed, 4)


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize("chunk", range(4))
def test_on_spark(chunk: int, spark: SparkSession) -> None:
    for seed in range(5 * chunk, 5 * chunk + 5):
        draw = random.Random(seed)
        schema, place = Schema.random(draw), f"trained_{seed}"
        created = "; ".join(
            f"create table {name} ({columns}) FEED" for name, columns in schema.tables.items()
        )
        bench = SparkBench.create(spark, place, created, schema.sql, {"fivm_strategy": schema.strategy})
        tables: dict[str, list[Row]] = {name: [] for name in schema.tables}
        before: dict[Term, float] = {}
        for step in range(3):
            for name, rows in tables.items():
                come, gone = _changes(draw, rows, name)
                come += [_row(draw, name) for _ in range(0 if step else 8)]
                tables[name] = _changed_on_spark(bench, name, rows, come, gone)
            bench.refresh()
            ((shown,),) = bench.rows(f"select to_json(m) from {place}.m")
            _learned(Moments.read(shown), _joined(tables, schema), schema, before)


def _changed_on_spark(
    bench: SparkBench, name: str, rows: list[Row], come: Sequence[Row], gone: Sequence[Row]
) -> list[Row]:
    """The rows of a table after a change, which is an INSERT OVERWRITE: Delta's change feed has what is different."""
    left = list(rows)
    for row in gone:
        left.remove(row)
    left += come
    columns = bench.session.table(name).schema
    values = [tuple(Decimal(v) if isinstance(v, int) and "decimal" in f.dataType.simpleString() else v
                    for v, f in zip(row, columns.fields, strict=True)) for row in left]  # fmt: skip
    bench.session.createDataFrame(values, columns).write.insertInto(name, overwrite=True)
    return left


# By hand


def _read(variables: Sequence[str], rows: Sequence[Sequence[Any]], cells: Sequence[Any] = ()) -> Moments:
    """The moments of rows of numbers."""
    pairs = [(i, k) for i in range(len(variables)) for k in range(i, len(variables))]
    exact = [[Fraction(str(v)) for v in row] for row in rows]
    given = {
        "count": len(rows),
        "variables": list(variables),
        "sums": [str(sum((r[i] for r in exact), Fraction(0))) for i in range(len(variables))],
        "products": [str(sum((r[i] * r[k] for r in exact), Fraction(0))) for i, k in pairs],
        "cells": list(cells),
    }
    return Moments.read(json.dumps(given))


def _fit(moments: Moments, *features: str, **meta: Any) -> Regression:
    config = load(RegressionConfig, {"fivm_label": "y", "fivm_features": features, **meta})
    return train(moments, config, config.features_of(moments))


def _coefficients(found: Regression) -> dict[str, float | None]:
    return {p.term.variable: p.coefficient for p in found.parameters}


def test_a_perfect_line() -> None:
    found = _fit(_read(["x", "y"], [(1, 5), (2, 7), (4, 11)]), "x")
    assert _coefficients(found) == {"": pytest.approx(3), "x": pytest.approx(2)}
    assert found.r2 == pytest.approx(1) and found.loss == pytest.approx(0)


def test_standard_errors_are_those_of_the_textbook() -> None:
    """√(σ²·diag (XᵀX)⁻¹), X with a column of ones."""
    rows = [(1, 4, 5), (2, 1, 6.5), (4, 2, 11), (3, 3, 8), (9, 1, 17.5)]
    found = _fit(_read(["x", "z", "y"], rows), "x", "z")
    x = np.array([[1, r[0], r[1]] for r in rows], dtype=float)
    y = np.array([r[2] for r in rows], dtype=float)
    weights, *_ = np.linalg.lstsq(x, y, rcond=None)
    variance = ((y - x @ weights) ** 2).sum() / (5 - 3)
    errors = np.sqrt(variance * np.diag(np.linalg.inv(x.T @ x)))
    assert [p.coefficient for p in found.parameters] == pytest.approx(list(weights))
    assert [p.standard_error for p in found.parameters] == pytest.approx(list(errors))


def test_what_others_tell_has_no_coefficient() -> None:
    """A constant, and a variable that is twice another one; with a ridge both share."""
    rows = [(1, 2, 7, 1), (2, 4, 7, 3), (3, 6, 7, 4)]
    moments = _read(["x", "twice", "constant", "y"], rows)
    found = _coefficients(_fit(moments, "x", "twice", "constant"))
    assert found["twice"] is None and found["constant"] is None and found["x"] == pytest.approx(1.5)
    ridged = _coefficients(_fit(moments, "x", "twice", "constant", fivm_ridge=1))
    theirs = Ridge(alpha=1).fit([r[:3] for r in rows], [r[3] for r in rows])
    assert [ridged[n] for n in ("x", "twice", "constant")] == pytest.approx(list(theirs.coef_))


def test_fewer_rows_than_variables() -> None:
    found = _fit(_read(["x", "z", "y"], [(1, 5, 2), (2, 7, 4)]), "x", "z")
    assert _coefficients(found)["z"] is None and found.r2 == pytest.approx(1)
    assert {p.standard_error for p in found.parameters} == {None}


def test_no_rows_and_a_label_that_does_not_vary() -> None:
    empty = _fit(_read(["x", "y"], []), "x")
    assert _coefficients(empty) == {"": None, "x": None} and empty.r2 is None
    same = _fit(_read(["x", "y"], [(1, 5), (2, 5)]), "x")
    assert _coefficients(same) == {"": pytest.approx(5), "x": pytest.approx(0)} and same.r2 is None


def test_far_from_zero_no_digits_are_lost() -> None:
    """Years, or prices in cents: their squares have more digits than a double."""
    rows = [(10**9 + x, 3 * x + 1) for x in range(5)]
    assert _coefficients(_fit(_read(["x", "y"], rows), "x"))["x"] == pytest.approx(3, abs=1e-12)


def test_rows_held_out_judge() -> None:
    shape = Shape.of(
        [Column.of("g", "int"), Column.of("is_test", "boolean"), Column.of("m", _TYPE)],
        load(RegressionConfig, {"fivm_label": "y", "fivm_group_by": []}),
        "is_test",
    )
    assert [c.name for c in shape.keys] == []
    parts = [(False, [(1, 2), (2, 4)]), (False, [(3, 6.5)]), (True, [(4, 8), (5, 9)]), (None, [(6, 12)])]
    rows = [(None if out is None else str(out).lower(), _json(part)) for out, part in parts]
    (group,) = groups_of(rows, shape)
    trained = [row for out, part in parts if not out for row in part]
    held = [row for out, part in parts if out for row in part]
    config = RegressionConfig(fivm_label="y")
    found = train(group.moments, config, ["x"], holdout=group.holdout)
    theirs = LinearRegression().fit([[x] for x, _ in trained], [y for _, y in trained])
    assert found.r2_holdout == pytest.approx(theirs.score([[x] for x, _ in held], [y for _, y in held]))
    assert found.count == len(trained)


_TYPE = "struct<count:bigint,variables:array<string>,sums:array<bigint>,products:array<bigint>>"


def _json(rows: Sequence[tuple[float, float]]) -> str:
    moments = _read(["x", "y"], rows)
    products = [moments.of(Term(a), Term(b)) for a, b in (("x", "x"), ("x", "y"), ("y", "y"))]
    sums = [moments.of(Term(n), INTERCEPT) for n in ("x", "y")]
    texts = {"sums": [float(v) for v in sums], "products": [float(v) for v in products]}
    return json.dumps({"count": len(rows), "variables": ["x", "y"], **texts})


@pytest.mark.parametrize("is_scaled", [True, False])
def test_principal_components(is_scaled: bool) -> None:
    """scikit-learn's of the rows, but for the sign of a direction."""
    draw = random.Random(7)
    rows = [(x, 3 * x + draw.randint(-5, 5), draw.randint(0, 99)) for x in range(20)]
    found = principal_components(_read(["a", "b", "c"], rows), ["a", "b", "c"], is_scaled=is_scaled)
    matrix = np.array(rows, dtype=float)
    theirs = PCA().fit(StandardScaler().fit_transform(matrix) if is_scaled else matrix)
    assert [c.share for c in found] == pytest.approx(list(theirs.explained_variance_ratio_))
    for component, axis in zip(found, theirs.components_, strict=True):
        ours = np.array([part for _, part in component.loadings])
        assert abs(float(ours @ axis)) == pytest.approx(1)
        assert max(component.loadings, key=lambda each: abs(each[1]))[1] > 0
    assert principal_components(_read(["a"], [(1,), (1,)]), ["a"], is_scaled=is_scaled) == []


def test_the_tree_of_most_information() -> None:
    told = {"ab": 0.5, "ac": 0.4, "ad": 0.1, "bc": 0.45, "bd": 0.3, "cd": 0.3}
    pairs = [Information(a, b, told[a + b]) for a, b in combinations("abcd", 2)]
    assert [(e.variable, e.other) for e in chow_liu(pairs)] == [("a", "b"), ("b", "c"), ("b", "d")]
    assert [(e.variable, e.other) for e in chow_liu(pairs, "d")] == [("d", "b"), ("b", "a"), ("b", "c")]
    assert chow_liu([]) == []


@pytest.mark.parametrize(
    ("meta", "message"),
    [
        ({"fivm_label": "y", "fivm_features": ["x", "y"]}, "fivm_features: y is the label"),
        ({"fivm_label": "y", "fivm_features": ["X"]}, "there is no X among x, kind, did you mean x?"),
        ({"fivm_label": "kind"}, "fivm_label: kind is categorical, and a regression needs a number"),
        ({"fivm_label": "yy"}, "there is no yy among x, y"),
        ({"fivm_label": "y", "fivm_reference": {"kind": "z"}}, "fivm_reference: there is no z among a"),
        ({}, "fivm_label is missing"),
        ({"fivm_label": "y", "fivm_rigde": 1}, "fivm_rigde is no key of such a model, did you mean fivm_ridge?"),
        ({"fivm_label": "y", "fivm_ridge": -1}, "fivm_ridge: -1 is not allowed"),
        ({"fivm_label": "y", "fivm_every": 0}, "fivm_every: 0 is not allowed"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_configuration(meta: dict[str, Any], message: str) -> None:
    cell = {"variable": "kind", "category": "a", "other": "kind", "other_category": "a", "value": 1}
    moments = _read(["x", "y"], [(1, 2)], [cell])
    with pytest.raises(FivmError) as raised:
        load(RegressionConfig, meta).features_of(moments)
    assert raised.value.code.number == "FIVM201" and message in str(raised.value)


def test_too_many_categories() -> None:
    cells = [
        {"variable": "kind", "category": c, "other": "kind", "other_category": c, "value": 1} for c in "abc"
    ]
    moments = _read(["y"], [(1,), (2,), (3,)], cells)
    with pytest.raises(FivmError, match="kind has 3 categories, and fivm_max_categories is 2") as raised:
        _fit(moments, "kind", fivm_max_categories=2)
    assert raised.value.code.number == "FIVM208"


@pytest.mark.parametrize("kind", ["fivm_information", "fivm_chow_liu"])
def test_only_categories_tell_of_each_other(kind: str) -> None:
    config = load(KINDS[kind].config, {"fivm_features": ["x"]})
    shape = Shape.of([Column.of("m", _TYPE)], LearningConfig())
    with pytest.raises(FivmError, match="x is continuous, put it in bins"):
        KINDS[kind].learn(groups_of([(_json([(1, 2)]),)], shape), config, {})


@pytest.mark.parametrize(
    ("columns", "meta", "message"),
    [
        ({"a": "int"}, {}, "no column of the query can be learned from"),
        ({"a": "struct<x:int>"}, {}, "no column of the query can be learned from"),
        ({"m": _TYPE, "n": _TYPE}, {}, r"several columns \(m, n\)"),
        ({"m": _TYPE}, {"fivm_group_by": "store"}, "the query has no column store"),
    ],
)
def test_what_cannot_be_learned_from(columns: dict[str, str], meta: dict[str, Any], message: str) -> None:
    found = [Column.of(name, type_) for name, type_ in columns.items()]
    with pytest.raises(FivmError, match=message) as raised:
        Shape.of(found, load(LearningConfig, meta))
    assert raised.value.code.number == "FIVM208"
