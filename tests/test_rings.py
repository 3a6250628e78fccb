"""The laws of every ring, on the SQL that statements are made of, and that a ring is one file."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import reduce
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

from fivm_dbt.catalog import Column, SparkType
from fivm_dbt.catalog.types import BIGINT, DOUBLE
from fivm_dbt.engines.duckdb.engine import DuckDbEngine
from fivm_dbt.functions.learning import COVARIANCE
from fivm_dbt.functions.lookup import type_of_call
from fivm_dbt.ir.aggregate import AggregateCall
from fivm_dbt.ir.scalar import Scalar, column_ast
from fivm_dbt.refresh.engine import Row
from fivm_dbt.rings.component import ROWS, Component
from fivm_dbt.rings.covariances import Covariances as OfDegree
from fivm_dbt.rings.covariances import moments_type, of_degree
from fivm_dbt.rings.decimals import Decimals
from fivm_dbt.rings.doubles import DOUBLES
from fivm_dbt.rings.integers import INTEGERS
from fivm_dbt.rings.numbers import Numbers
from fivm_dbt.rings.polynomial import Polynomial
from fivm_dbt.rings.quotient import averages_exactly, decimal_average
from fivm_dbt.rings.registry import components, finish, ring_for
from fivm_dbt.rings.ring import RINGS, Payload, Ring
from fivm_dbt.rings.vectors import Vectors
from fivm_dbt.testing.compare import compare_rows
from fixtures.covariances import Covariances
from fixtures.models import Bench

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ONCE = Scalar.number(1)


@pytest.fixture(scope="module")
def engine() -> Iterator[DuckDbEngine]:
    engine = DuckDbEngine(tiny=True)
    yield engine
    engine.close()


def _literal(value: object, type_: SparkType) -> str:
    if isinstance(value, tuple):
        return f"ARRAY({', '.join(_literal(each, type_.element) for each in value)})"
    return f"CAST({'NULL' if value is None else repr(str(value))} AS {type_})"


# Laws: an expression over the columns of a, b and c, step by step, each of whose values is a column of the next query.


Values = Callable[[random.Random], Any]
KINDS: dict[str, tuple[Numbers, Values]] = {
    "integers": (INTEGERS, lambda r: r.choice([r.randint(-4, 4), r.randint(-(2**20), 2**20)])),  # DuckDB does not wrap
    "decimals": (Decimals(2), lambda r: Decimal(r.choice([r.randint(-3, 3), r.randint(-(10**8), 10**8)])).scaleb(-2)),
    "products of decimals": (Decimals(4), lambda r: Decimal(r.randint(-(10**8), 10**8)).scaleb(-4)),
    "whole decimals": (Decimals(0), lambda r: Decimal(r.randint(-(10**9), 10**9))),
    "long decimals": (Decimals(6), lambda r: Decimal(r.randint(-(10**9), 10**9)).scaleb(-6)),
    "vectors": (Vectors(INTEGERS, 3), lambda r: tuple(r.randint(-(2**20), 2**20) for _ in range(3))),
    # Whole ones: Spark does not compare arrays of other scales, as products have.
    "vectors of decimals": (Vectors(Decimals(0), 2), lambda r: (Decimal(r.randint(-(10**8), 10**8)), Decimal(3))),
    "doubles": (DOUBLES, lambda r: float(r.randint(-(2**15), 2**15))),  # whose sums and products lose no digit
}  # fmt: skip


@dataclass(frozen=True)
class Value:
    """A value of a ring: its columns, and the numbers in each."""

    columns: tuple[tuple[Scalar, Numbers], ...]

    @property
    def payload(self) -> Payload:
        return tuple(Polynomial.of(scalar, numbers.type) for scalar, numbers in self.columns)


class Operations:
    """What a ring's values are computed with; of numbers alone a product is that of both columns."""

    def __init__(self, columns: Sequence[Numbers], ring: Ring | None = None) -> None:
        self.columns = columns
        self.ring = ring

    def zero(self) -> Value:
        return Value(tuple((Scalar(n.zero()), n) for n in self.columns))

    def one(self) -> Value:
        if self.ring is None:
            return Value(tuple((Scalar(n.one()), n) for n in self.columns))
        return self._written(self.ring.one())

    def add(self, left: Value, right: Value) -> Value:
        pairs = zip(left.columns, right.columns, strict=True)
        return Value(tuple((Scalar(n.add(a.ast(), b.ast())), n) for (a, n), (b, _) in pairs))

    def negate(self, value: Value) -> Value:
        return Value(tuple((Scalar(n.negate(a.ast())), n) for a, n in value.columns))

    def multiply(self, left: Value, right: Value) -> Value:
        if self.ring is not None:
            return self._written(self.ring.multiply(left.payload, right.payload))
        pairs = zip(left.columns, right.columns, strict=True)
        found = []
        for (a, n), (b, m) in pairs:
            product = n.over([n.type, m.type])
            found.append((Scalar(product.multiply([(a, n.type), (b, m.type)])), product))
        return Value(tuple(found))

    def _written(self, payload: Payload) -> Value:
        found = []
        for numbers, part in zip(self.columns, payload, strict=True):
            widest = [numbers.over([t for _, t in p.factors]) for p in part.products] or [numbers]
            own = max(widest, key=lambda n: n.type.scale)
            found.append((own.sum_of(part.products, ONCE), own))
        return Value(tuple(found))


Law = Callable[[Operations, Callable[[Value], Value], Value, Value, Value], tuple[Value, Value]]
LAWS: dict[str, Law] = {
    "+ is associative": lambda o, k, a, b, c: (o.add(k(o.add(a, b)), c), o.add(a, k(o.add(b, c)))),
    "+ commutes": lambda o, k, a, b, c: (o.add(a, b), o.add(b, a)),
    "0 + a = a": lambda o, k, a, b, c: (o.add(o.zero(), a), a),
    "a - a = 0": lambda o, k, a, b, c: (o.add(a, k(o.negate(a))), o.zero()),
    "-(a + b) = -a - b": lambda o, k, a, b, c: (
        o.negate(k(o.add(a, b))), o.add(k(o.negate(a)), k(o.negate(b))),
    ),
    "× is associative": lambda o, k, a, b, c: (
        o.multiply(k(o.multiply(a, b)), c), o.multiply(a, k(o.multiply(b, c))),
    ),
    "× commutes": lambda o, k, a, b, c: (o.multiply(a, b), o.multiply(b, a)),
    "1 × a = a": lambda o, k, a, b, c: (o.multiply(k(o.one()), a), a),
    "a × 1 = a": lambda o, k, a, b, c: (o.multiply(a, k(o.one())), a),
    "0 × a = 0": lambda o, k, a, b, c: (o.multiply(k(o.zero()), a), o.zero()),
    "a × (b + c) = a × b + a × c": lambda o, k, a, b, c: (
        o.multiply(a, k(o.add(b, c))), o.add(k(o.multiply(a, b)), k(o.multiply(a, c))),
    ),
    "(-a) × b = -(a × b)": lambda o, k, a, b, c: (o.multiply(k(o.negate(a)), b), o.negate(k(o.multiply(a, b)))),
}  # fmt: skip


Ask = Callable[[str], Sequence[Sequence[object]]]


def _broken(ask: Ask, source: str, operations: Operations, laws: Mapping[str, Law] = LAWS) -> set[str]:
    """The laws that some row of ``source`` breaks, which has the columns of a, b and c."""
    triple = [
        Value(tuple((Scalar.column("", f"{x}{i}"), n) for i, n in enumerate(operations.columns)))
        for x in "abc"
    ]
    queries = []
    for number, law in enumerate(laws.values()):
        query, width = source, 0

        def kept(value: Value) -> Value:
            nonlocal query, width
            named = [(s.sql, f"k{width + i}", n) for i, (s, n) in enumerate(value.columns)]
            width += len(named)
            shown = ", ".join(f"CAST({sql} AS {n.type}) AS {name}" for sql, name, n in named)
            query = f"(SELECT *, {shown} FROM {query} AS q{width})"
            return Value(tuple((Scalar.column("", name), n) for _, name, n in named))

        left, right = (kept(side) for side in law(operations, kept, *triple))
        same = " AND ".join(
            f"{a.sql} <=> {b.sql}" for (a, _), (b, _) in zip(left.columns, right.columns, strict=True)
        )
        queries.append(
            f"SELECT {number} AS law, COUNT_IF(NOT ({same})) AS broken, COUNT(*) AS n FROM {query} AS q"
        )
    found = ask(" UNION ALL ".join(queries))
    assert len(found) == len(laws) and all(int(str(n)) == _TRIPLES for _, _, n in found)
    names = list(laws)
    return {names[int(str(law))] for law, broken, _ in found if int(str(broken)) > 0}


_TRIPLES = 60


def _drawn(columns: Sequence[Numbers], values: Sequence[Values]) -> tuple[list[Column], list[Row]]:
    """Random values of a, b and c, column by column."""
    draw = random.Random(17)
    named = [Column(f"{x}{i}", n.type) for x in "abc" for i, n in enumerate(columns)]
    return named, [tuple(v(draw) for _ in "abc" for v in values) for _ in range(_TRIPLES)]


def _on_duckdb(
    engine: DuckDbEngine, operations: Operations, values: Sequence[Values], laws: Mapping[str, Law] = LAWS
) -> set[str]:
    columns, rows = _drawn(operations.columns, values)
    name = f"raw.laws_{next(_NUMBERS)}"
    engine.create_table(name, columns, rows, change_feed=False)
    return _broken(engine.query, name, operations, laws)


_NUMBERS = itertools.count()


def test_all_numbers_have_values_here() -> None:
    assert {type(numbers) for numbers, _ in KINDS.values()} == set(Numbers.__subclasses__())


@pytest.mark.parametrize("kind", KINDS)
def test_laws_of_numbers(kind: str, engine: DuckDbEngine) -> None:
    numbers, values = KINDS[kind]
    assert _on_duckdb(engine, Operations([numbers]), [values]) == set()


@pytest.mark.spark
@pytest.mark.parametrize("kind", KINDS)
def test_laws_of_numbers_on_spark(kind: str, spark: SparkSession) -> None:
    """Where bigints wrap around."""
    numbers, values = KINDS[kind]
    if numbers == INTEGERS:
        values = lambda r: r.choice([r.randint(-4, 4), r.randint(-(2**63), 2**63 - 1), -(2**63)])  # noqa: E731
    columns, rows = _drawn([numbers], [values])
    shown = (", ".join(_literal(v, c.type) for v, c in zip(row, columns, strict=True)) for row in rows)
    source = f"(SELECT * FROM VALUES {', '.join(f'({r})' for r in shown)} AS t({', '.join(c.name for c in columns)}))"
    assert _broken(lambda sql: spark.sql(sql).collect(), source, Operations([numbers])) == set()


def _call(function: str, *types: str) -> AggregateCall:
    arguments = [(Scalar.column("r", name), SparkType.of(t)) for name, t in zip("xyw", types, strict=False)]
    if function.startswith(COVARIANCE):
        variables, weights = [t for _, t in arguments[:2]], [t for _, t in arguments[2:]]
        ring = RINGS[function]
        assert issubclass(ring, OfDegree)
        type_ = moments_type(variables, *(weights or [None]), ring.degree)
        made = AggregateCall.over("result", function, arguments, type_)
        return replace(made, names=("x", "y")[: len(types)])
    known = {value: type_ for value, type_ in arguments}
    written = exp.func(function, *(value.ast() for value, _ in arguments), dialect="spark")
    result = type_of_call(written, lambda node: known.get(Scalar(node)))
    return AggregateCall.over("result", function, arguments, result or SparkType.of(types[0]))


CALLS = [
    ("count", ("int",)),
    ("sum", ("int",)),
    ("sum", ("decimal(9,2)",)),
    ("sum", ("double",)),
    ("avg", ("int",)),
    ("avg", ("bigint",)),
    ("avg", ("decimal(9,2)",)),
    ("total", ("decimal(38,2)",)),
    ("total", ("bigint",)),
    (COVARIANCE, ("int",)),
    (COVARIANCE, ("int", "int")),
    (COVARIANCE, ("decimal(9,2)", "int")),
    (COVARIANCE, ("decimal(9,2)", "decimal(9,2)", "int")),
    (of_degree(1), ("decimal(9,2)", "int")),
    (of_degree(3), ("int", "int")),
    (of_degree(3), ("decimal(5,2)", "int", "int")),
    (of_degree(4), ("int", "int")),
]
COMPOUND = [("covar_pop", ("int", "int")), ("covar_pop", ("decimal(5,2)", "int"))]


def _values(numbers: Numbers) -> Values:
    return next(
        v for n, v in KINDS.values() if type(n) is type(numbers) and n.type.scale == numbers.type.scale
    )


def test_all_rings_have_calls_here() -> None:
    assert {function for function, _ in CALLS} == set(RINGS)


@pytest.mark.parametrize(("function", "types"), [*CALLS, *COMPOUND], ids=str)
def test_laws_of_rings(
    function: str, types: tuple[str, ...], engine: DuckDbEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(RINGS, "covar_pop", Covariances)
    ring = ring_for(_call(function, *types))
    columns = list(ring.columns.values())
    assert _on_duckdb(engine, Operations(columns, ring), [_values(n) for n in columns]) == set()


@pytest.mark.parametrize(("function", "types"), CALLS, ids=str)
def test_a_payload_is_the_product_of_its_lifts(function: str, types: tuple[str, ...]) -> None:
    """Where a ring knows it at once, too."""
    ring = ring_for(_call(function, *types))
    lifts = (ring.lift(place, *argument) for place, argument in enumerate(ring.call.arguments))
    product = reduce(ring.multiply, lifts, ring.one())
    known, multiplied = ([_factors(part) for part in payload] for payload in (ring.payload(), product))
    assert known == multiplied


def _factors(polynomial: Polynomial) -> set[tuple[int, tuple[str, ...]]]:
    """Its products, with one indicator each."""
    products = polynomial.with_presence_by(lambda _: None).products
    return {(p.coefficient, tuple(sorted(value.sql for value, _ in p.factors))) for p in products}


@pytest.mark.parametrize(
    ("method", "wrong", "law"),
    [
        ("add", lambda self, left, right: exp.Sub(this=left, expression=right), "+ is associative"),
        ("add", lambda self, left, right: left, "+ commutes"),
        ("zero", lambda self: exp.Literal.number(1), "0 + a = a"),
        ("negate", lambda self, value: value, "a - a = 0"),
        ("one", lambda self: exp.Literal.number(2), "1 × a = a"),
        ("multiply", lambda self, factors: factors[0][0].ast(), "× commutes"),
        (
            "multiply",
            lambda self, factors: exp.Add(this=factors[0][0].ast(), expression=factors[-1][0].ast()),
            "a × (b + c) = a × b + a × c",
        ),
    ],
)
def test_a_broken_law_is_noticed(
    method: str,
    wrong: Callable[..., exp.Expr],
    law: str,
    engine: DuckDbEngine,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(type(INTEGERS), method, wrong)
    assert law in _on_duckdb(engine, Operations([INTEGERS]), [lambda r: r.randint(-9, 9)])


# Lifts: sums over signed rows are homomorphisms from bags.


LIFTED: list[tuple[Numbers, str]] = [
    *((INTEGERS, t) for t in ("tinyint", "smallint", "int", "bigint")),
    *((Decimals(s), f"decimal({p},{s})") for p, s in ((9, 2), (18, 4), (30, 6), (38, 2))),
    *((DOUBLES, t) for t in ("float", "double")),
]  # fmt: skip
_TYPED = pytest.mark.parametrize(("numbers", "type_"), LIFTED, ids=lambda p: p if isinstance(p, str) else "")


def _rows(type_: SparkType) -> st.SearchStrategy[list[tuple[int, Any]]]:
    """Signed rows whose sums stay within the state's column."""
    bits = {"tinyint": 7, "smallint": 15, "int": 31, "bigint": 40, "float": 20, "double": 40}
    bound = 10 ** min(type_.precision, 8) - 1 if type_.is_decimal else 2 ** bits[type_.text] - 1
    number: st.SearchStrategy[Any] = st.integers(-bound, bound)
    if type_.is_decimal:
        number = number.map(lambda n: Decimal(n).scaleb(-type_.scale))
    if type_.is_floating:
        number = number.map(float)
    row = st.tuples(st.sampled_from([1, -1, 2, -3, 7]), st.one_of(st.none(), number))
    return st.lists(row, min_size=1, max_size=5)


def _signed(rows: Sequence[tuple[int, Any]], type_: SparkType) -> str:
    values = (f"SELECT CAST({m} AS BIGINT) AS m, {_literal(v, type_)} AS x" for m, v in rows)
    return f"({' UNION ALL '.join(values)}) AS r"


@_TYPED
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_a_sum_of_lifts_is_a_homomorphism(
    numbers: Numbers, type_: str, engine: DuckDbEngine, data: st.DataObject
) -> None:
    """Σ multiplicity × value, of a row as often as it is there, of two bags together the sum of both; NULL is zero."""
    spark_type = SparkType.of(type_)
    one, other = data.draw(_rows(spark_type)), data.draw(_rows(spark_type))
    lifted = numbers.lifted(Scalar.column("r", "m"), Scalar.column("r", "x"), spark_type)
    total = numbers.stored(numbers.total(lifted.ast())).sql("spark")

    def asked(rows: Sequence[tuple[int, Any]]) -> str:
        return f"(SELECT {total} FROM {_signed(rows, spark_type)})"

    added = numbers.add(column_ast("", "x"), column_ast("", "y")).sql("spark")
    expanded = [((m > 0) - (m < 0), v) for m, v in [*one, *other] for _ in range(abs(m))]
    ((together, row_by_row, sum_of_both),) = engine.query(
        f"SELECT {asked([*one, *other])}, {asked(expanded)}, "
        f"(SELECT {added} FROM (SELECT {asked(one)} AS x, {asked(other)} AS y) AS t)"
    )
    expected = sum((m * v for m, v in [*one, *other] if v is not None), start=0)
    assert together == row_by_row == sum_of_both == _kept(numbers, expected)


def _kept(numbers: Numbers, value: Any) -> Any:
    """How a state keeps a value: doubles are scaled, so that no sum overflows."""
    return value if numbers.is_exact else value * 2.0**-64


@_TYPED
@pytest.mark.parametrize("sign", [1, -1])
def test_constant_multiplicity(numbers: Numbers, type_: str, engine: DuckDbEngine, sign: int) -> None:
    """A constant ±1 gives the same terms as a column that holds it, of the type of the state's column."""
    column, spark_type = numbers.type, SparkType.of(type_)
    constant = numbers.lifted(Scalar.number(sign), Scalar.column("r", "x"), spark_type)
    general = numbers.lifted(Scalar.column("r", "m"), Scalar.column("r", "x"), spark_type)
    value = Decimal("2.5") if spark_type.is_decimal else 3
    for x in (value, None):
        source = f"(SELECT CAST({sign} AS BIGINT) AS m, {_literal(x, spark_type)} AS x) AS r"
        sql = f"SELECT CAST({constant.sql} AS {column}), CAST({general.sql} AS {column}) FROM {source}"
        ((one, other),) = engine.query(sql)
        assert one == other == _kept(numbers, 0 if x is None else sign * x)


@pytest.mark.spark
def test_a_difference_of_decimals_keeps_its_digits_on_spark(spark: SparkSession) -> None:
    """Spark rounds the last digit of a sum of two decimals of 38 digits, more than six of them behind the point."""
    type_ = SparkType.of("decimal(20,8)")
    x, y = (Polynomial.of(Scalar.column("r", name), type_) for name in "xy")
    difference = Decimals(8).sum_of((x + -y).products, Scalar.column("r", "m"))
    values = {"x": ("0.12345678", type_), "y": ("0.00000001", type_), "m": ("3", BIGINT)}
    source = ", ".join(f"{_literal(*value)} AS {name}" for name, value in values.items())
    ((found,),) = spark.sql(f"SELECT {difference.sql} FROM (SELECT {source}) AS r").collect()
    assert found == Decimal("0.37037031")


# Calls


@pytest.mark.parametrize(
    ("function", "type_", "columns", "result"),
    [
        ("count", None, [], "bigint"),
        ("count", "string", ["bigint"], "bigint"),
        ("sum", "int", ["bigint", "bigint"], "bigint"),
        ("sum", "decimal(10,2)", ["decimal(38,2)", "bigint"], "decimal(20,2)"),
        ("sum", "decimal(38,4)", ["decimal(38,4)", "bigint"], "decimal(38,4)"),
        ("avg", "smallint", ["bigint", "bigint"], "double"),
        ("avg", "bigint", ["decimal(38,0)", "bigint"], "double"),
        ("avg", "decimal(10,2)", ["decimal(38,2)", "bigint"], "decimal(14,6)"),
        ("sum", "double", ["double", "bigint", "bigint", "bigint", "bigint"], "double"),
    ],
)
def test_components(function: str, type_: str | None, columns: list[str], result: str) -> None:
    call = _call(function, *([] if type_ is None else [type_])) if type_ else _rows_call()
    assert [component.type.text for component in components(call)] == columns
    assert call.type.text == result


def _rows_call() -> AggregateCall:
    return AggregateCall.over("result", "count", (), BIGINT)


@pytest.mark.parametrize(("function", "types"), [("count", ()), *CALLS[:7]], ids=str)
@pytest.mark.parametrize("values", [["1", "2", None], [None, None], ["-3", "3"], []], ids=str)
def test_finish_is_the_aggregate(
    function: str, types: tuple[str, ...], values: list[str | None], engine: DuckDbEngine
) -> None:
    """From the components' columns comes what the aggregate itself gives, NULL where nothing is there to add."""
    call = _call(function, *types) if types else _rows_call()
    spark_type = SparkType.of(types[0] if types else "int")
    source = " UNION ALL ".join(f"SELECT {_literal(v, spark_type)} AS x" for v in values)
    source = f"({source or f'SELECT {_literal(None, spark_type)} AS x WHERE false'}) AS r"
    columns: dict[Component, str] = {ROWS: "n"}
    sums = ["COUNT(*) AS n"]
    for number, component in enumerate(components(call)):
        columns[component] = f"c{number}"
        total = component.numbers.total(component.term(ONCE).ast()).sql("spark")
        zero = component.numbers.zero().sql("spark")
        sums.append(f"COALESCE(CAST({total} AS {component.type}), {zero}) AS c{number}")
    finished = finish(call, lambda c: Scalar.column("", columns[c])).sql
    own = f"{function}({'x' if types else '*'})"
    ((found,),) = engine.query(f"SELECT {finished} FROM (SELECT {', '.join(sums)} FROM {source}) AS s")
    ((wanted,),) = engine.query(f"SELECT {own} FROM {source}")
    assert (found is None) == (wanted is None)
    if wanted is not None:
        assert float(str(found)) == pytest.approx(float(str(wanted)), rel=1e-9)


@pytest.mark.parametrize(
    ("type_", "exact"),
    [("decimal(10,2)", True), ("decimal(12,12)", True), ("decimal(20,4)", True), ("decimal(31,2)", True),
     ("decimal(32,2)", False), ("decimal(38,0)", False), ("decimal(20,14)", False)],
)  # fmt: skip
def test_averages_that_need_more_digits_are_known(type_: str, exact: bool) -> None:
    assert averages_exactly(SparkType.of(type_)) is exact


@pytest.mark.parametrize("type_", ["decimal(10,2)", "decimal(18,4)", "decimal(18,0)"])
@pytest.mark.parametrize(("total", "count"), [("10", 3), ("-10", 3), ("0.01", 7), ("123456.78", 9), ("5", 2)])
def test_decimal_average(type_: str, total: str, count: int, engine: DuckDbEngine) -> None:
    """Sum and count give the mean, narrow types by one division and wide ones by parts (rounding: on Spark)."""
    argument = SparkType.of(type_)
    exact = Decimal(total).quantize(Decimal(1).scaleb(-argument.scale))
    result = SparkType.decimal(argument.precision + 4, argument.scale + 4)
    scalar = decimal_average(
        Scalar.parse(f"CAST('{exact}' AS DECIMAL(38,{argument.scale}))"),
        Scalar.number(count),
        argument,
        result,
    )
    ((found,),) = engine.query(f"SELECT {scalar.sql}")
    assert float(found) == pytest.approx(float(exact / count), abs=0.6 * 10.0**-result.scale)


# A ring of one's own


JOINED = """select a.k, covar_pop(a.x, b.y) as c, covar_pop(a.x, a.x + b.y) filter (where b.y <> 2) as d, count(*) as n
from raw.a join raw.b on a.j = b.j group by a.k"""


@pytest.mark.parametrize(
    ("strategy", "apply"), [("first_order", "merge"), ("factorized", "append"), ("recursive", "replace")]
)
def test_a_new_ring_is_one_file(strategy: str, apply: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Registered, it maintains by addition what is otherwise recomputed per group, and its product makes view trees."""
    meta = {"fivm_strategy": strategy, "fivm_apply": apply}
    tables: dict[str, tuple[str, Sequence[Row]]] = {
        "raw.a": ("j int, k int, x decimal(9,2)", []), "raw.b": ("j int, y bigint", []),
    }  # fmt: skip
    assert Bench.of(f"{JOINED} having 1 = 1", tables, meta).plan.root.payload == ()
    monkeypatch.setitem(RINGS, "covar_pop", Covariances)
    bench, draw = Bench.of(JOINED, tables, meta), random.Random(5)
    assert {p.type.text for p in bench.plan.root.payload} == {"bigint", "decimal(38,2)", "decimal(38,4)"}
    assert bool(bench.plan.helpers) is (strategy != "first_order")
    bench.refresh()
    kept: dict[str, list[Row]] = {"raw.a": [], "raw.b": []}
    for _ in range(6):
        for name, rows in kept.items():
            j = draw.choice([1, 2, None])
            number = draw.choice([None, *range(-3, 4)])
            x = None if number is None else Decimal(number) / 4
            row: Row = (j, draw.choice([1, 2, None]), x) if name == "raw.a" else (j, number)
            gone = [rows.pop(draw.randrange(len(rows)))] if len(rows) > 3 else []
            come = [row] * draw.choice([1, 2])
            rows += come
            bench.engine.change(name, insert=come, delete=gone)
        bench.refresh()
        _same(bench.shown(), bench.newest())
    for name, rows in kept.items():
        bench.engine.change(name, delete=rows)
    bench.refresh()
    assert not bench.shown()


def _same(shown: Iterable[Row], wanted: Iterable[Row]) -> None:
    difference = compare_rows(list(shown), list(wanted), [SparkType.of("int"), DOUBLE, DOUBLE, BIGINT])
    assert not difference, "\n".join(difference.lines("maintained", "recomputed"))
