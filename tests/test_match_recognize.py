"""MATCH_RECOGNIZE against a naive matcher: random patterns over random streams, and cases written by hand."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest
from sqlglot import exp

from fivm_dbt.catalog import Catalog, Column, Relation
from fivm_dbt.config import load_config
from fivm_dbt.engines.duckdb.engine import DuckDbEngine
from fivm_dbt.errors import FivmError
from fivm_dbt.plan.planner import plan_model
from fivm_dbt.plan.request import ModelRequest
from fivm_dbt.rewrite.pipeline import rewrite
from fivm_dbt.spark.select import select
from fivm_dbt.sql.lower import lower
from naive_matcher import (
    Agg,
    Alt,
    Classifier,
    Clause,
    Compare,
    Const,
    Endless,
    Measure,
    Nav,
    Rep,
    RowOf,
    Seq,
    Var,
)
from random_matches import random_clause, random_stream

COLUMNS = tuple(Column.of(name, "int") for name in ("k", "t", "x", "y"))
CATALOG = Catalog.of([Relation("p", COLUMNS)])
STREAMS = 60
"""Streams per clause, each a partition of one table."""


def spark_sql(clause: Clause) -> str:
    """The SELECT that fivm writes for a clause."""
    names = ", ".join(["k", *(["t"] if clause.all_rows else []), *(m.name for m in clause.measures)])
    node = rewrite(lower(f"select {names} from p {clause.sql()} as m", CATALOG).node)
    return select(node, lambda scan: exp.to_table("p", alias=scan.alias)).sql(dialect="spark")


def matched(clause: Clause, streams: dict[int, list[RowOf]], rng: random.Random) -> Counter[tuple[Any, ...]]:
    """What the generated SQL gives over all streams."""
    return matched_by(spark_sql(clause), streams, rng)


def matched_by(sql: str, streams: dict[int, list[RowOf]], rng: random.Random) -> Counter[tuple[Any, ...]]:
    """What a query gives over all streams at once, whose rows lie in the table in any order."""
    rows = [(k, r["t"], r["x"], r["y"]) for k, stream in streams.items() for r in stream]
    rng.shuffle(rows)
    engine = DuckDbEngine()
    try:
        engine.create_table("p", COLUMNS, rows)
        return Counter(tuple(row) for row in engine.query(sql))
    finally:
        engine.close()


def expected(clause: Clause, streams: dict[int, list[RowOf]]) -> Counter[tuple[Any, ...]]:
    return Counter((k, *row) for k, stream in streams.items() for row in clause.rows(stream))


def drawn(rng: random.Random) -> tuple[Clause, dict[int, list[RowOf]]]:
    """A clause and streams; most conditions hold nowhere, so it is drawn again while few streams have a match."""
    while True:
        clause = random_clause(rng)
        streams = {k: random_stream(rng) for k in range(STREAMS)}
        with_match = sum(next(clause.matches(rows), None) is not None for rows in streams.values())
        if with_match >= STREAMS // 4 or rng.random() < 0.05:
            return clause, streams


def check(seed: int) -> tuple[Clause, int, int]:
    rng = random.Random(seed)
    clause, streams = drawn(rng)
    wanted = expected(clause, streams)
    assert matched(clause, streams, rng) == wanted, f"seed {seed}: {clause.sql()}"
    return clause, len({k for k, *_ in wanted}), sum(wanted.values())


def check_all(seeds: Iterable[int]) -> None:
    """Every pair agrees; and enough of them have matches, and every kind of clause was among them."""
    done = [check(seed) for seed in seeds]
    modes = Counter(clause.skip[0] for clause, _, _ in done)
    assert set(modes) == {"past last row", "to next row", "to first", "to last"}
    assert 0.1 < sum(clause.all_rows for clause, _, _ in done) / len(done) < 0.7
    with_matches = sum(streams for _, streams, _ in done)
    assert with_matches > 0.4 * STREAMS * len(done)


def test_random_patterns() -> None:
    """Five clauses over 60 streams each: 300 pairs."""
    check_all(range(11, 16))


@pytest.mark.more
def test_more_random_patterns() -> None:
    """100 clauses, 6,000 pairs."""
    check_all(range(1000, 1100))


@pytest.mark.long
def test_many_random_patterns() -> None:
    """1,000 clauses, 60,000 pairs."""
    check_all(range(10_000, 10_300))


# Written by hand: what SQL:2016 says, worked out on paper


def row(t: int, x: int | None, y: int | None = None) -> RowOf:
    return {"t": t, "x": x, "y": y}


def stream(*values: int | None) -> list[RowOf]:
    return [row(t, x) for t, x in enumerate(values)]


X = Nav(None, "x")


def is_(value: int) -> Compare:
    return Compare("=", X, Const(value))


LABELS = Measure("c", Classifier())
COUNT = Measure("n", Agg("count", None, None))
FIRST = Measure("f", Nav(None, "t", is_first=True))
A, B, C = Var("a"), Var("b"), Var("c")


def rep(part: Any, sign: str) -> Rep:
    """``part`` with a quantifier as it is written."""
    bounds = {"*": (0, None), "+": (1, None), "?": (0, 1)}
    if sign in bounds:
        least, most = bounds[sign]
    else:
        low, comma, high = sign.strip("{}").partition(",")
        least = int(low or 0)
        most = (int(high) if high else None) if comma else least
    return Rep(part, least, most, sign)


CASES: dict[str, tuple[Clause, list[RowOf], list[tuple[Any, ...]]]] = {
    "an empty stream has no match": (Clause(A, {}, (COUNT,)), [], []),
    "one row is a match of one variable": (Clause(A, {}, (COUNT,)), stream(7), [(1,)]),
    "one row is no match of two": (Clause(Seq((A, B)), {}, (COUNT,)), stream(7), []),
    "greedy takes all, and gives back what is needed": (
        Clause(Seq((rep(A, "+"), B)), {}, (LABELS,), all_rows=True),
        stream(1, 2, 3),
        [(0, "a"), (1, "a"), (2, "b")],
    ),
    "the left alternative is preferred": (
        Clause(rep(Alt((A, B)), "+"), {}, (LABELS,), all_rows=True),
        stream(1, 2),
        [(0, "a"), (1, "a")],
    ),
    "the other way round, the other": (
        Clause(rep(Alt((B, A)), "+"), {}, (LABELS,), all_rows=True),
        stream(1, 2),
        [(0, "b"), (1, "b")],
    ),
    "a preferred short alternative beats a longer one": (
        Clause(Alt((A, Seq((A, B)))), {}, (COUNT,)),
        stream(1, 2, 3),
        [(1,), (1,), (1,)],
    ),
    "behind an alternative that needs no row another is never tried": (
        Clause(
            Seq((A, Alt((rep(C, "{,2}"), B)))),
            {"b": is_(2), "c": is_(3)},
            (COUNT, Measure("b", Agg("count", "b", None)), Measure("p", Nav("b", "t"))),
        ),
        stream(1, 2, 3),
        [(1, 0, None), (2, 0, None)],
    ),
    "a preferred alternative that fails later is given up": (
        Clause(Alt((Seq((A, B, C)), A)), {"c": is_(9)}, (COUNT,)),
        stream(1, 2, 3),
        [(1,), (1,), (1,)],
    ),
    "bounds": (
        Clause(rep(A, "{2,3}"), {}, (COUNT,)),
        stream(1, 1, 1, 1, 1, 1, 1),
        [(3,), (3,)],
    ),
    "exactly": (Clause(rep(A, "{2}"), {}, (COUNT,)), stream(1, 1, 1, 1, 1), [(2,), (2,)]),
    "at most": (Clause(Seq((rep(A, "{,2}"), B)), {}, (COUNT,)), stream(1, 1, 1, 1), [(3,), (1,)]),
    "at least": (Clause(rep(A, "{3,}"), {"a": is_(1)}, (COUNT,)), stream(1, 1, 2, 1, 1, 1, 1), [(4,)]),
    "nested groups": (
        Clause(
            Seq((rep(Seq((rep(Seq((A, B)), "+"), C)), "*"), Var("d"))),
            {"a": is_(1), "b": is_(2), "c": is_(3), "d": is_(4)},
            (COUNT, FIRST),
        ),
        stream(1, 2, 1, 2, 3, 1, 2, 3, 4, 2, 4, 1, 2, 4),
        [(9, 0), (1, 10), (1, 13)],
    ),
    "matches overlap where the next one may begin in the next row": (
        Clause(rep(A, "+"), {"a": is_(1)}, (FIRST, COUNT), ("to next row", None)),
        stream(1, 1, 2, 1),
        [(0, 2), (1, 1), (3, 1)],
    ),
    "the next match begins with the first b": (
        Clause(Seq((A, rep(B, "+"))), {}, (FIRST, COUNT), ("to first", "b")),
        stream(1, 1, 1),
        [(0, 3), (1, 2)],
    ),
    "the next match begins with the last b": (
        Clause(Seq((A, rep(B, "+"))), {}, (FIRST, COUNT), ("to last", "b")),
        stream(1, 1, 1, 1),
        [(0, 4)],
    ),
    "unknown is not true": (
        Clause(rep(A, "+"), {"a": Compare("<>", X, Const(1))}, (COUNT,)),
        stream(None, 2, None, 3, 3),
        [(1,), (2,)],
    ),
    "PREV looks at rows before the match": (
        Clause(
            A, {"a": Compare(">", X, Nav("a", "x", offset=-1))}, (Measure("p", Nav("a", "x", offset=-1)),)
        ),
        stream(1, 2, 2, 3),
        [(1,), (2,)],
    ),
    "NEXT looks at rows behind it": (
        Clause(A, {"a": Compare("<", X, Nav("a", "x", offset=1))}, (Measure("p", Nav("a", "x", offset=1)),)),
        stream(1, 2, 2, 3),
        [(2,), (3,)],
    ),
    "a condition counts the row that is tried": (
        Clause(rep(A, "+"), {"a": Compare("<", Agg("sum", "a", "x"), Const(4))}, (COUNT,)),
        stream(1, 2, 3, 1),
        [(2,), (1,), (1,)],
    ),
    "a condition on another variable that has no row yet is unknown": (
        Clause(Seq((A, B)), {"a": Compare("=", Nav("b", "x"), Const(1))}, (COUNT,)),
        stream(1, 1),
        [],
    ),
    "threads that conditions tell apart are both kept": (
        # The preferred way takes the first row as an a, and then there is no c; only with b, a it goes on.
        Clause(
            Seq((Alt((A, B)), Alt((A, B)), C)),
            {"c": Compare("=", Nav("a", "x"), Const(2))},
            (LABELS,),
            all_rows=True,
        ),
        stream(2, 1, 0),
        [(0, "a"), (1, "b"), (2, "c")],
    ),
    "from the first row on": (Clause(A, {}, (FIRST,), at_start=True), stream(1, 1, 1), [(0,)]),
    "up to the last row": (
        Clause(Seq((A, rep(B, "{,1}"))), {}, (FIRST,), at_end=True),
        stream(1, 1, 1),
        [(1,)],
    ),
    "running and final measures": (
        Clause(
            Seq((A, rep(B, "*"))),
            {},
            (Measure("r", Agg("sum", None, "x")), Measure("s", Agg("sum", None, "x"), "FINAL")),
            all_rows=True,
        ),
        stream(1, 2, 3),
        [(0, 1, 6), (1, 3, 6), (2, 6, 6)],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_by_hand(name: str) -> None:
    clause, rows, wanted = CASES[name]
    assert clause.rows(rows) == wanted, "the naive matcher"
    found = matched(clause, {1: rows, 2: stream(5), 3: rows}, random.Random(0))
    alone = [(2, *r) for r in clause.rows(stream(5))]
    assert found == Counter([(k, *r) for k in (1, 3) for r in wanted] + alone)


def test_rows_that_are_equal_in_order_by_are_ordered_by_what_is_used() -> None:
    clause = Clause(
        rep(A, "+"), {}, (Measure("f", Nav(None, "x", is_first=True)), Measure("l", Nav(None, "x")))
    )
    for seed in range(5):
        rows = [row(1, 3), row(1, 1), row(1, None), row(1, 2)]
        assert matched(clause, {1: rows}, random.Random(seed)) == Counter([(1, None, 3)])


def test_skipping_to_a_variable_without_a_row_is_an_error() -> None:
    clause = Clause(Seq((A, rep(B, "?"))), {"a": is_(1), "b": is_(2)}, (COUNT,), ("to last", "b"))
    with pytest.raises(Endless):
        clause.rows(stream(1, 1))
    with pytest.raises(Exception, match="AFTER MATCH SKIP TO LAST b leads to no row behind the first one"):
        matched(clause, {1: stream(1, 1)}, random.Random(0))
    assert matched(clause, {1: stream(1, 2)}, random.Random(0)) == Counter([(1, 2)])


@pytest.mark.parametrize("name", ["b", "`b`", "B"])
def test_skip_to_is_skip_to_last(name: str) -> None:
    sql = (
        "select * from p match_recognize (partition by k order by t measures count(*) as n "
        "after match skip to{} pattern (a b+ c) define b as b.x > 1) as f"
    )
    assert lower(sql.format(f" {name}"), CATALOG).node == lower(sql.format(f" last {name}"), CATALOG).node


REFUSED = {
    "pattern (a+? b)": ("FIVM105", "?"),
    "pattern (a {- b -})": ("FIVM105", "{-"),
    "pattern (permute(a, b))": ("FIVM105", "permute"),
    "pattern (a b) subset u = (a, b)": ("FIVM105", "subset"),
    "pattern (a*)": ("FIVM105", "a*"),
    "pattern ((a{20}){20})": ("FIVM105", "(a{20}){20}"),
    "pattern (a{3,2})": ("FIVM101", "{3,2}"),
    "pattern ((a b)": ("FIVM101", None),
    "pattern (a (b)": ("FIVM101", None),
    "pattern (a | )": ("FIVM101", None),
    "pattern (a | b $)": ("FIVM105", "a | b $"),
    "pattern (a (b ^))": ("FIVM105", "^"),
    "all rows per match with unmatched rows pattern (a b)": ("FIVM105", None),
    "after match skip to first a pattern (a b)": ("FIVM105", None),
    "after match skip to last a pattern (a b)": ("FIVM105", None),
    "after match skip to first z pattern (a b)": ("FIVM102", None),
    "after match skip to a pattern (a b)": ("FIVM105", None),
    "after match skip to z pattern (a b)": ("FIVM102", None),
    "after match skip to pattern (a b)": ("FIVM101", None),
    "pattern (a b) define z as x > 1": ("FIVM102", "z as x > 1"),
    "pattern (a b) define a as x > 1, A as x > 2": ("FIVM102", "A as x > 2"),
    "pattern (a b) define a as x + 1": ("FIVM105", "x + 1"),
    "pattern (a b) define a as z.x > 1": ("FIVM102", "z.x"),
    "pattern (a b) define a as b.z > 1": ("FIVM102", "z"),
    "pattern (a b) define a as x > (select 1)": ("FIVM105", None),
    "pattern (a b) define a as x > rand()": ("FIVM106", "rand"),
    "pattern (a b) define a as match_number() > 1": ("FIVM105", "match_number"),
    "pattern (a b) define a as sum(a.x + b.x) > 1": ("FIVM105", "a.x + b.x"),
    "pattern (a b) define a as first(a.x, 1) > 1": ("FIVM105", "first"),
    "pattern (a b) define a as prev(first(a.x, 1)) > 1": ("FIVM105", "first"),
    "pattern (a b) define a as first(prev(a.x)) > 1": ("FIVM105", "prev(a.x"),
    "pattern (a b) define a as prev(x, t) > 1": ("FIVM105", "prev(x, t"),
    "pattern (a b) define a as count(distinct x) > 1": ("FIVM105", None),
    "pattern (a b) define a as stddev(x) > 1": ("FIVM105", None),
    "pattern (a b) define a as sum(x) filter (where y > 1) > 1": ("FIVM105", None),
}


@pytest.mark.parametrize("clauses", REFUSED)
def test_refused(clauses: str) -> None:
    code, where = REFUSED[clauses]
    sql = f"select * from p match_recognize (partition by k order by t measures count(*) as n {clauses})"
    with pytest.raises(FivmError) as caught:
        lower(sql, CATALOG)
    error = caught.value
    assert error.code.number == code and error.remedy
    if where is not None:
        assert error.span is not None and sql[error.span.start : error.span.end].startswith(where)


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("select * from p match_recognize (partition by k measures count(*) as n pattern (a))", "FIVM106"),
        ("select * from p match_recognize (order by t pattern (a))", "FIVM112"),
        ("select * from p match_recognize (partition by k + 1 order by t pattern (a))", "FIVM105"),
        ("select * from p match_recognize (order by t measures x as k, y as K pattern (a))", "FIVM112"),
        ("select * from (p join p q on p.k = q.k) match_recognize (order by t pattern (a))", "FIVM104"),
    ],
)
def test_refused_as_a_whole(sql: str, code: str) -> None:
    with pytest.raises(FivmError) as caught:
        lower(sql, CATALOG)
    assert caught.value.code.number == code


def test_a_pattern_that_is_not_maintained_is_not_recomputed_either() -> None:
    """There is nobody who could run it."""
    sql = "select * from p match_recognize (order by t measures count(*) as n pattern (a*))"
    with pytest.raises(FivmError) as caught:
        plan_model(ModelRequest("v", sql, CATALOG, load_config({"fivm_policy": "auto"})))
    assert caught.value.code.number == "FIVM105"


def test_a_long_run_does_not_keep_a_start_for_each_row() -> None:
    """With SKIP PAST LAST ROW the first start covers those behind it, so that 1,500 rows take no second."""
    clause = Clause(rep(A, "+"), {"a": Compare(">=", X, Const(0))}, (COUNT,))
    assert matched(clause, {1: stream(*[1] * 1500)}, random.Random(0)) == Counter([(1, 1500)])
