"""Least and greatest values over joins are aggregates of aggregates, and are what a recompute finds."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from contextlib import closing
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from fivm_dbt.catalog import Catalog, SparkType
from fivm_dbt.config import load_config
from fivm_dbt.ir.aggregate import Aggregate
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.plan.planner import plan_model
from fivm_dbt.plan.request import ModelRequest
from fivm_dbt.refresh.engine import Row
from fivm_dbt.rings.extremes import read
from fixtures.models import Bench, relation
from spark_bench import SparkBench

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = {
    "a": "k int, g int, x decimal(8,2), n int, f boolean",
    "b": "k int, j int, y decimal(8,2), n int, f boolean",
    "c": "j int, h int, z decimal(6,3), n int, f boolean, s string",
    "d": "k int, w decimal(4,1), n bigint, f boolean",
}
LINKS = {"b": "a.k = b.k", "c": "b.j = c.j", "d": "a.k = d.k"}
RANGE_LINKS = {"b": "a.k <= b.k", "c": "b.j = c.j and b.n < c.n", "d": "a.k = d.k"}
NUMBERS = {"a": ("x", "n"), "b": ("y", "n"), "c": ("z", "n"), "d": ("w", "n")}


def _plan(sql: str, *, keys: Mapping[str, str] | None = None, ansi: bool = True, **meta: object) -> Plan:
    """``keys`` has by table the columns of its key."""
    declared = {name: (tuple(key.split(", ")),) for name, key in (keys or {}).items()}
    relations = [relation(name, columns, keys=declared.get(name, ())) for name, columns in TABLES.items()]
    config = load_config({"fivm_strategy": "factorized", **meta})
    session = (("ansi", str(ansi).lower()), ("timezone", "UTC"))
    used = [r for r in relations if f" {r.name}" in sql]
    return plan_model(ModelRequest("analytics.m", sql, Catalog.of(used), config, session))


def _row(draw: random.Random, table: str) -> Row:
    key = draw.choice([1, 1, 2, 3, None])
    integer, flag = draw.choice([None, -2, -1, 0, 1, 3]), draw.choice([True, False, None])

    def decimal(scale: int) -> Decimal | None:
        return None if draw.random() < 0.2 else Decimal(draw.randint(-400, 400)).scaleb(-scale)

    if table == "a":
        return key, draw.choice([1, 2, None]), decimal(2), integer, flag
    if table == "b":
        return key, draw.choice([1, 2, None]), decimal(2), integer, flag
    if table == "c":
        text = draw.choice(["", "p", "q", None])
        return draw.choice([1, 2, None]), draw.choice([1, 2]), decimal(3), integer, flag, text
    return key, decimal(1), integer, flag


def _expression(draw: random.Random, tables: Sequence[str], depth: int = 0) -> str:
    """A number over some tables, most of them once."""
    if len(tables) > 1:
        at = draw.randint(1, len(tables) - 1)
        left, right = _expression(draw, tables[:at], depth + 1), _expression(draw, tables[at:], depth + 1)
        return f"({left} {draw.choice('+-*')} {right})"
    one = f"{tables[0]}.{draw.choice(NUMBERS[tables[0]])}"
    return draw.choice([one, one, one, f"-{one}", f"({one} - 2)", f"({one} * {one})", f"coalesce({one}, 1)"])


def _condition(draw: random.Random, tables: Sequence[str]) -> str:
    if len(tables) > 1:
        word = draw.choice(["and", "or"])
        both = f"({_condition(draw, tables[:1])} {word} {_condition(draw, tables[1:])})"
        return draw.choice([both, both, f"not {both}"])
    return draw.choice([f"{tables[0]}.f", f"{tables[0]}.n > 0", f"not {tables[0]}.f"])


def _call(draw: random.Random, tables: Sequence[str]) -> str:
    some = draw.sample(tables, draw.randint(1, len(tables)))
    kind = draw.randrange(8)
    if kind < 4:
        return f"{draw.choice(['min', 'max'])}({_expression(draw, some)})"
    if kind < 6:
        return f"{draw.choice(['bool_and', 'bool_or', 'every', 'any'])}({_condition(draw, some)})"
    if kind == 6:
        return f"count(distinct {some[0]}.n)"
    return f"max({some[0]}.n) filter (where {draw.choice(tables)}.f)"


def random_query(seed: int) -> tuple[str, list[str]]:
    """An aggregate of a tree of two to four relations, and these."""
    draw = random.Random(seed)
    tables = draw.choice([["a", "b"], ["a", "d"], ["a", "b", "c"], ["b", "a", "d"], ["a", "b", "c", "d"]])
    links = draw.choice([LINKS, LINKS, RANGE_LINKS])
    where = [links[t] for t in tables if t in links]
    if draw.random() < 0.3:
        where.append(f"{draw.choice(tables)}.n < 3")
    keys = draw.choice([["a.g"], ["a.g"], [], ["b.j"] if "b" in tables else [], ["a.k", "a.g"]])
    if "c" in tables and draw.random() < 0.3:
        keys = [*keys, "c.h"]
    calls = [f"{_call(draw, tables)} as m{n}" for n in range(draw.randint(1, 3))]
    shown = [*(f"{key} as k{n}" for n, key in enumerate(keys)), *calls]
    if "c" in tables and draw.random() < 0.3:
        shown.append("max(c.s) as text")
    group = f" group by {', '.join(keys)}" if keys else ""
    return f"select {', '.join(shown)} from {', '.join(tables)} where {' and '.join(where)}{group}", tables


def _stream(seed: int) -> int:
    """Refresh over random changes; how many aggregates are nested."""
    draw = random.Random(seed)
    sql, names = random_query(seed)
    plan = _plan(sql, fivm_apply=draw.choice(["auto", "merge"]))
    rows = {name: [_row(draw, name) for _ in range(draw.randint(0, 9))] for name in names}
    bench = Bench.built(plan, rows)
    with closing(bench.engine):
        for _ in range(4):
            for name in names:
                gone = draw.sample(rows[name], min(len(rows[name]), draw.choice([0, 0, 1, 3])))
                bench.exchange(
                    name, rows[name], [_row(draw, name) for _ in range(draw.choice([0, 1, 3]))], gone
                )
            bench.refresh()
            bench.check()
    return _aggregates(plan) - 1


def _aggregates(plan: Plan) -> int:
    return sum(isinstance(node, Aggregate) for node in plan.query.walk())


def test_random_streams() -> None:
    assert sum(_stream(seed) for seed in range(12)) > 8


@pytest.mark.more
@pytest.mark.parametrize("chunk", range(8))
def test_random_streams_at_length(chunk: int) -> None:
    assert sum(_stream(seed) for seed in range(100 + 40 * chunk, 140 + 40 * chunk)) > 20


JOIN = "from a join b on a.k = b.k join c on b.j = c.j group by a.g"


def _texts(sql: str, **meta: object) -> list[str]:
    """What each aggregate of the plan calls, from the top."""
    plan = _plan(sql, **meta)  # type: ignore[arg-type]
    return [
        ", ".join(c.described for c in node.calls)
        for node in plan.query.walk()
        if isinstance(node, Aggregate)
    ]


def test_a_product_of_a_chain_is_one_tree() -> None:
    """(max, ×): the ends of both factors are kept, as one of them may be negative."""
    assert _texts(f"select a.g, max(a.x * b.y * c.z) as m {JOIN}") == [
        "MAX(CAST(GREATEST(a.x * b_extremes.min_1, a.x * b_extremes.max_1) AS DECIMAL(24, 7)))",
        "MIN(CAST(LEAST(b.y * c_extremes.min_1, b.y * c_extremes.max_1) AS DECIMAL(15, 5))), "
        "MAX(CAST(GREATEST(b.y * c_extremes.min_1, b.y * c_extremes.max_1) AS DECIMAL(15, 5)))",
        "MIN(c.z), MAX(c.z)",
    ]


def test_a_sum_needs_one_end() -> None:
    """(max, +), the longest path: what is subtracted is kept by its least value."""
    assert _texts(f"select a.g, max(a.x + b.y - c.z) as m {JOIN}") == [
        "MAX(CAST(a.x + b_extremes.max_1 AS DECIMAL(11, 3)))",
        "MAX(CAST(b.y + (-c_extremes.min_1) AS DECIMAL(10, 3)))",
        "MIN(c.z)",
    ]


def test_whether_there_is_a_row() -> None:
    """(or, and), and sets: of relations that no call names only their keys are kept, once."""
    assert _texts(f"select a.g, max(a.x) as m, count(distinct a.n) as n {JOIN}") == [
        "MAX(a.x), COUNT(DISTINCT a.n)",
        "",
        "",
    ]


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ("sum(a.x * b.y)", "a sum counts rows as often as they are there"),
        ("max(a.x * b.y), count(*)", "so does a count beside it"),
        ("max(a.n * b.n)", "products of integers start again from the other end, where nothing stops them"),
    ],
)
def test_what_stays_as_it_is(call: str, told: str) -> None:
    calls = ", ".join(f"{each} as m{n}" for n, each in enumerate(call.split(", ")))
    sql = f"select a.g, {calls} from a join b on a.k = b.k group by a.g"
    assert _aggregates(_plan(sql, ansi="n * " not in call)) == 1 or "n * " in call, told
    if "n * " in call:
        assert "GREATEST" not in " ".join(_texts(sql, ansi=False)), told


def test_values_of_two_relations_in_several_places_are_kept_apart() -> None:
    """``x·y + x`` is extreme at an end of x that depends on y: pairs of rows are needed."""
    calls = _texts("select a.g, max(a.x * b.y + b.n * a.n) as m from a join b on a.k = b.k group by a.g")
    assert calls == ["MAX(a.x * b.y + b.n * a.n)"]


def test_single_rows_are_not_added_up() -> None:
    """A key says that groups have one row each."""
    sql = "select a.g, max(a.x * d.w) as m from a join d on a.k = d.k group by a.g"
    assert _aggregates(_plan(sql, keys={"d": "k"})) == 1
    assert _aggregates(_plan(sql, keys={"d": "k, n"})) == 2
    assert _aggregates(_plan(sql)) == 2
    chain = f"select a.g, max(a.x * c.z) as m {JOIN}"
    assert _aggregates(_plan(chain, keys={"b": "k", "c": "j"})) == 1, (
        "each row of a finds one of b, and that one of c"
    )
    assert _aggregates(_plan(chain, keys={"c": "j"})) == 2


def test_it_can_be_left_out() -> None:
    sql = f"select a.g, max(a.x * b.y * c.z) as m {JOIN}"
    assert _aggregates(_plan(sql, fivm_without="nested_extremes")) == 1
    assert _aggregates(_plan(sql, fivm_strategy="auto")) == 1


@pytest.mark.parametrize("type_", ["double", "string collate UTF8_LCASE", "array<int>", "struct<a:double>"])
def test_equal_values_may_differ(type_: str) -> None:
    """0.0 and -0.0, letters of two cases: which one is shown may not depend on where it is added up."""
    assert read(Scalar.parse("a.x"), lambda _: SparkType.of(type_), may_add=True) is None


@pytest.mark.parametrize(
    ("value", "types"),
    [
        ("a.x * b.y", ("decimal(20,2)", "decimal(20,2)")),
        ("a.x + b.y", ("double", "double")),
        ("a.x / b.y", ("decimal(8,2)", "decimal(8,2)")),
    ],
)
def test_digits_may_be_lost(value: str, types: tuple[str, str]) -> None:
    of = dict(zip([("a", "x"), ("b", "y")], map(SparkType.of, types), strict=True))
    assert read(Scalar.parse(value), of.__getitem__, may_add=True) is None


CHANGES = """
insert into a values (1, 1, 2.00, 3, true), (1, 2, -1.50, null, false), (2, 1, null, 2, null), (null, 1, 9, 9, true);
insert into b values (1, 1, 4.00, 5, null), (1, 2, -7.25, -1, true), (2, 1, 0.50, 2, false), (1, 1, 4.00, 5, null);
insert into c values (1, 1, 1.125, 4, false, 'p'), (2, 1, -2.500, null, true, 'q'), (1, 2, null, -3, null, null);
delete from b where y = -7.25;
update c set z = -9.000, f = true where n = 4;
delete from a where g = 2; insert into b values (2, 2, 100.00, 2000000000, true);
delete from c where j = 1; delete from b where k = 1
"""


@pytest.mark.spark
def test_on_spark(spark: SparkSession) -> None:
    """With integers, which stop where they have no room, and truth values."""
    sql = """select a.g, max(a.n * b.n - c.n) as paths, min(a.x * b.y * c.z) as least, bool_or(a.f and c.f) as any_true,
             every(a.f or not b.f) as all_true, max(c.s) as text, count(distinct a.n) as numbers
             from a join b on a.k = b.k join c on b.j = c.j group by a.g"""
    schema = "nested_extremes"
    tables = "; ".join(f"create table {name} ({TABLES[name]}) FEED" for name in "abc")
    bench = SparkBench.create(spark, schema, tables, sql, {"fivm_strategy": "factorized"})
    bench.is_told_session = True
    assert _aggregates(bench.plan()) == 3
    for change in CHANGES.split(";"):
        bench.run(change)
        bench.refresh()
        bench.check()
