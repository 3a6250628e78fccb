"""The laws of every ring, and that its SQL agrees with its Python."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fivm_dbt.catalog import SparkType
from fivm_dbt.engines.duckdb.engine import DuckDbEngine
from fivm_dbt.ir.aggregate import AggregateCall
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.rings.quotient import averages_exactly, decimal_average
from fivm_dbt.rings.registry import RINGS, ROWS, Component, components, finish
from fivm_dbt.rings.ring import Ring
from fivm_dbt.sql.aggregate_calls import result_type

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "integers": st.one_of(st.integers(-4, 4), st.integers(-(2**63), 2**63 - 1)),
    "decimals": st.integers(-(10**8), 10**8).map(lambda n: Decimal(n).scaleb(-2)),
    "doubles": st.integers(-(2**15), 2**15).map(float),  # whose sums and products lose no digit
}
LIFTED: dict[str, tuple[str, ...]] = {
    "integers": ("tinyint", "smallint", "int", "bigint"),
    "decimals": ("decimal(9,2)", "decimal(18,4)", "decimal(30,6)", "decimal(38,2)"),
    "doubles": ("float", "double"),
}
_EVERY = pytest.mark.parametrize("ring", RINGS.values(), ids=lambda r: r.name)
_TYPED = pytest.mark.parametrize(
    ("ring", "type_"),
    [pytest.param(RINGS[name], SparkType.of(t), id=t) for name, types in LIFTED.items() for t in types],
)


def test_every_ring_has_values_here() -> None:
    assert set(VALUES) == set(LIFTED) == set(RINGS)


@_EVERY
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_laws(ring: Ring, data: st.DataObject) -> None:
    a, b, c = (data.draw(VALUES[ring.name]) for _ in range(3))
    zero, one, add, times = ring.zero(), ring.one(), ring.add, ring.multiply
    assert add(a, b) == add(b, a)
    assert add(add(a, b), c) == add(a, add(b, c))
    assert add(a, zero) == a
    assert times(times(a, b), c) == times(a, times(b, c))
    assert times(a, one) == times(one, a) == a
    assert times(a, zero) == times(zero, a) == zero
    assert times(a, add(b, c)) == add(times(a, b), times(a, c))
    assert times(add(a, b), c) == add(times(a, c), times(b, c))
    assert ring.has_inverse
    assert add(a, ring.negate(a)) == zero
    assert ring.negate(ring.negate(a)) == a
    assert ring.is_zero(zero) and ring.is_zero(a) == (a == zero)
    if ring.commutes:
        assert times(a, b) == times(b, a)


@pytest.fixture(scope="module")
def engine() -> Iterator[DuckDbEngine]:
    engine = DuckDbEngine(tiny=True)
    yield engine
    engine.close()


def _literal(value: object, type_: SparkType) -> str:
    return f"CAST({'NULL' if value is None else repr(str(value))} AS {type_})"


def _rows(ring: Ring, type_: SparkType) -> st.SearchStrategy[list[tuple[int, Any]]]:
    """Signed rows whose sums stay within the state's column."""
    bits = {"tinyint": 7, "smallint": 15, "int": 31, "bigint": 40, "float": 20, "double": 40}
    bound = 10 ** min(type_.precision, 8) - 1 if type_.is_decimal else 2 ** bits[type_.text] - 1
    number = st.integers(-bound, bound)
    value = number.map(lambda n: Decimal(n).scaleb(-type_.scale)) if type_.is_decimal else number
    row = st.tuples(st.sampled_from([1, -1, 2, -3, 7]), st.one_of(st.none(), value))
    if type_.is_floating:
        row = st.tuples(st.sampled_from([1, -1, 2, -3, 7]), st.one_of(st.none(), number.map(float)))
    return st.lists(row, min_size=1, max_size=5)


@_TYPED
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_sum_of_terms_is_the_payload(
    ring: Ring, type_: SparkType, engine: DuckDbEngine, data: st.DataObject
) -> None:
    """Σ term(multiplicity, value) in SQL is Σ multiplicity × value in the ring; NULL counts nothing."""
    rows = data.draw(_rows(ring, type_))
    expected = ring.zero()
    for multiplicity, value in rows:
        for _ in range(abs(multiplicity) if value is not None else 0):
            expected = ring.add(expected, value if multiplicity > 0 else ring.negate(value))
    term = ring.term(Scalar.column("r", "m"), Scalar.column("r", "x"), type_)
    values = " UNION ALL ".join(
        f"SELECT CAST({m} AS BIGINT) AS m, {_literal(v, type_)} AS x" for m, v in rows
    )
    sql = f"SELECT CAST(SUM({term.sql}) AS {ring.column_type(type_)}) FROM ({values}) AS r"
    ((found,),) = engine.query(sql)
    assert found == _kept(ring, expected)


def _kept(ring: Ring, value: Any) -> Any:
    """How a state keeps a value: doubles are scaled, so that no sum overflows."""
    return value * 2.0**-64 if ring.name == "doubles" else value


@_TYPED
@pytest.mark.parametrize("sign", [1, -1])
def test_constant_multiplicity(ring: Ring, type_: SparkType, engine: DuckDbEngine, sign: int) -> None:
    """A constant ±1 gives the same terms as a column that holds it, of the type of the state's column."""
    column = ring.column_type(type_)
    constant = ring.term(Scalar.number(sign), Scalar.column("r", "x"), type_)
    general = ring.term(Scalar.column("r", "m"), Scalar.column("r", "x"), type_)
    value = Decimal("2.5") if type_.is_decimal else 3
    for x in (value, None):
        source = f"(SELECT CAST({sign} AS BIGINT) AS m, {_literal(x, type_)} AS x) AS r"
        sql = f"SELECT CAST({constant.sql} AS {column}), CAST({general.sql} AS {column}) FROM {source}"
        ((one, other),) = engine.query(sql)
        assert one == other == _kept(ring, 0 if x is None else sign * x)


def test_integers_wrap_as_bigint_does() -> None:
    ring = RINGS["integers"]
    assert ring.add(2**63 - 1, 1) == -(2**63)
    assert ring.negate(-(2**63)) == -(2**63)
    assert ring.add(ring.add(2**63 - 1, 1), -1) == 2**63 - 1


def _call(function: str, type_: str | None) -> AggregateCall:
    argument = Scalar.parse("r.x") if type_ is not None else None
    spark_type = SparkType.of(type_) if type_ is not None else None
    result = result_type(function, spark_type, Scalar.parse("sum(r.x)").ast())
    return AggregateCall("result", function, argument, spark_type, result)


@pytest.mark.parametrize(
    ("function", "type_", "rings", "result"),
    [
        ("count", None, [], "bigint"),
        ("count", "string", ["integers"], "bigint"),
        ("sum", "int", ["integers", "integers"], "bigint"),
        ("sum", "bigint", ["integers", "integers"], "bigint"),
        ("sum", "decimal(10,2)", ["decimals", "integers"], "decimal(20,2)"),
        ("sum", "decimal(38,4)", ["decimals", "integers"], "decimal(38,4)"),
        ("avg", "smallint", ["integers", "integers"], "double"),
        ("avg", "bigint", ["decimals", "integers"], "double"),
        ("avg", "decimal(10,2)", ["decimals", "integers"], "decimal(14,6)"),
    ],
)
def test_components(function: str, type_: str | None, rings: list[str], result: str) -> None:
    call = _call(function, type_)
    assert [component.ring for component in components(call)] == rings
    assert call.type.text == result


CALLS = [
    ("count", None),
    ("count", "int"),
    ("sum", "int"),
    ("sum", "decimal(9,2)"),
    ("avg", "int"),
    ("avg", "bigint"),
    ("avg", "decimal(9,2)"),
]


@pytest.mark.parametrize(("function", "type_"), CALLS)
@pytest.mark.parametrize("values", [["1", "2", None], [None, None], ["-3", "3"], []], ids=str)
def test_finish_is_the_aggregate(
    function: str, type_: str | None, values: list[str | None], engine: DuckDbEngine
) -> None:
    """From the components' columns comes what the aggregate itself gives, NULL where nothing is there to add."""
    call = _call(function, type_)
    spark_type = SparkType.of(type_ or "int")
    source = " UNION ALL ".join(f"SELECT {_literal(v, spark_type)} AS x" for v in values)
    source = f"({source or f'SELECT {_literal(None, spark_type)} AS x WHERE false'}) AS r"
    columns: dict[Component, str] = {ROWS: "n"}
    sums = ["COUNT(*) AS n"]
    for number, component in enumerate(components(call)):
        columns[component] = f"c{number}"
        total = f"CAST(SUM({component.term(Scalar.number(1)).sql}) AS {component.type})"
        sums.append(f"COALESCE({total}, CAST(0 AS {component.type})) AS c{number}")
    finished = finish(call, lambda c: Scalar.column("", columns[c])).sql
    own = f"{function}({'*' if type_ is None else 'x'})"
    ((found,),) = engine.query(f"SELECT {finished} FROM (SELECT {', '.join(sums)} FROM {source}) AS s")
    ((wanted,),) = engine.query(f"SELECT {own} FROM {source}")
    assert (found is None) == (wanted is None)
    if wanted is not None:
        assert float(found) == pytest.approx(float(wanted), rel=1e-9)


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
