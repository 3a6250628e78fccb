"""Patterns that a regular expression finds: against the naive matcher and against the automaton."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest
from sqlglot import exp

from fivm_dbt.features.match.ir.match import Match, Recognizer
from fivm_dbt.features.match.ir.regular import NotRegular, Regular, regular
from fivm_dbt.features.match.ir.syntax import parse_pattern
from fivm_dbt.ir.node import Node
from fivm_dbt.rewrite.pipeline import rewrite
from fivm_dbt.spark.select import select
from fivm_dbt.sql.lower import lower
from fixtures.runs import by_run
from naive_matcher import (
    Agg,
    Clause,
    Compare,
    Const,
    IsNull,
    Logic,
    MatchNumber,
    Measure,
    Nav,
    Plus,
    Rep,
    RowOf,
    Seq,
    Var,
)
from random_matches import random_clause, random_stream
from test_match_recognize import CATALOG, STREAMS, expected, matched_by

Streams = dict[int, list[RowOf]]


def lowered(clause: Clause) -> Node:
    names = ", ".join(["k", *(["t"] if clause.all_rows else []), *(m.name for m in clause.measures)])
    return rewrite(lower(f"select {names} from p {clause.sql()} as m", CATALOG).node)


def match_of(node: Node) -> Match:
    return next(n for n in _all(node) if isinstance(n, Match))


def _all(node: Node) -> Iterable[Node]:
    yield node
    for child in node.inputs:
        yield from _all(child)


def sql_of(node: Node) -> str:
    return select(node, lambda scan: exp.to_table("p", alias=scan.alias)).sql(dialect="spark")


def drawn(rng: random.Random) -> tuple[Clause, Node, Streams]:
    """A clause that a regular expression can do, and streams of which some have a match."""
    while True:
        clause = random_clause(rng, by_rows=True)
        node = lowered(clause)
        if not isinstance(match_of(node).recognizer.regular, Regular):
            continue
        streams = {k: random_stream(rng) for k in range(STREAMS)}
        if sum(next(clause.matches(rows), None) is not None for rows in streams.values()) >= STREAMS // 4:
            return clause, node, streams


def shorter(node: Node) -> Node:
    """With partitions of more than four rows left to the automaton."""
    return _with(node, lambda found: replace(found, longest=4) if isinstance(found, Regular) else found)


def by_the_automaton(node: Node) -> Node:
    return _with(node, lambda found: "")


def _with(node: Node, way: Callable[[Regular | str], Regular | str]) -> Node:
    if isinstance(node, Match):
        recognizer = replace(node.recognizer, regular=way(node.recognizer.regular))
        return replace(node, recognizer=recognizer)
    return node.with_inputs(tuple(_with(child, way) for child in node.inputs))


def check(seed: int) -> Recognizer:
    rng = random.Random(seed)
    clause, node, streams = drawn(rng)
    wanted = expected(clause, streams)
    for name, sql in (("regular", sql_of(node)), ("both ways", sql_of(shorter(node)))):
        assert "REGEXP" in sql or match_of(node).are_whole_ranges
        assert matched_by(sql, streams, rng) == wanted, f"seed {seed}, {name}: {clause.sql()}"
    return match_of(node).recognizer


def check_all(seeds: Iterable[int]) -> None:
    done = [check(seed) for seed in seeds]
    assert {r.skip.mode for r in done} == {"past last row", "to next row"}
    assert 0.05 < sum(r.is_sliced for r in done) / len(done) < 0.95


def test_random_patterns() -> None:
    """Against the naive matcher, also where the automaton takes the longer partitions: 240 pairs."""
    check_all((12, 25))


@pytest.mark.more
def test_more_random_patterns() -> None:
    """3,000 pairs."""
    check_all(range(2000, 2050))


@pytest.mark.long
@pytest.mark.parametrize("first", range(20_000, 20_300, 50))
def test_many_random_patterns(first: int) -> None:
    """18,000 pairs in all."""
    check_all(range(first, first + 50))


@pytest.mark.more
def test_registers_of_variables_in_a_row() -> None:
    """Their rows are slices of the match, of none where an optional variable has none."""
    rng = random.Random(7)
    a, b, c = Var("a"), Rep(Var("b"), 1, None, "+"), Rep(Var("c"), 0, 1, "?")
    x = Nav(None, "x")
    define = {
        "a": Compare(">", x, Const(0)),
        "b": Logic("or", Compare(">=", x, Nav("b", "x", offset=-1)), IsNull(Nav("b", "y"))),
        "c": Compare("<", x, Const(2)),
    }
    values = [
        *(Agg(function, "b", "x") for function in ("count", "sum", "min", "max", "avg")),
        *(Agg("sum", v, "y") for v in (None, "c")),
        *(Agg("count", v, None) for v in (None, "a", "c")),
        *(Nav(v, "y", is_first) for v in ("b", "c") for is_first in (True, False)),
        *(Nav("b", "y", True, -1), Nav("c", "y", False, 1)),
        Plus(Agg("sum", "b", "y"), MatchNumber()),
    ]
    measures = tuple(Measure(f"m{n}", value) for n, value in enumerate(values))
    clause = Clause(Seq((a, b, c)), define, measures)
    streams = {k: random_stream(rng) for k in range(STREAMS)}
    node = lowered(clause)
    assert match_of(node).recognizer.is_sliced
    wanted = expected(clause, streams)
    assert sum(wanted.values()) > STREAMS // 2
    assert matched_by(sql_of(node), streams, rng) == wanted


def loop(rng: random.Random) -> Clause:
    """One variable in a row, with a condition on its own row, and any measures."""
    x, y = Nav(None, "x"), Nav(None, "y")
    condition = rng.choice(
        (
            Compare(">", x, Const(0)),
            Compare("<", x, y),
            Logic("or", Compare(">=", x, Const(1)), IsNull(y)),
            Logic("and", Compare("<", x, Const(2)), Compare(">=", y, Const(0))),
            IsNull(x),
        )
    )
    of = lambda: rng.choice((None, "a"))  # noqa: E731
    values = [
        *(Agg(function, of(), rng.choice("xy")) for function in ("count", "sum", "min", "max")),
        Agg("count", of(), None),
        *(Nav(of(), rng.choice("xy"), is_first) for is_first in (True, False)),
    ]
    chosen = rng.sample(values, rng.randint(1, len(values)))
    sign, least = rng.choice((("+", 1), ("{2,}", 2), ("{3,}", 3)))
    return Clause(
        Rep(Var("a"), least, None, sign),
        {"a": condition},
        tuple(Measure(f"m{n}", v) for n, v in enumerate(chosen)),
    )


@pytest.mark.parametrize("seed", by_run(range(4), more=range(4, 60), long=range(60, 400)))
def test_loops_of_one_variable_are_groups(seed: int) -> None:
    """All rows between two separators are a match: nothing is collected."""
    rng = random.Random(seed)
    clause, streams = loop(rng), {k: random_stream(rng) for k in range(STREAMS)}
    node = lowered(clause)
    assert match_of(node).are_whole_ranges
    sql = sql_of(node)
    assert "COLLECT_LIST" not in sql
    assert matched_by(sql, streams, rng) == expected(clause, streams), clause.sql()


@pytest.mark.parametrize(
    ("written", "is_whole"),
    [
        ("measures count(*) as n pattern (a{2,}) define a as x > 0", True),
        ("measures count(*) as n pattern (a a+) define a as x > 0 and y < 3", True),
        ("measures count(*) as n pattern (a{2,3}) define a as x > 0", False),
        ("measures count(*) as n pattern (a+ b) define a as x > 0, b as x > 1", False),
        ("measures count(*) as n after match skip to next row pattern (a+) define a as x > 0", False),
        ("measures classifier() as n pattern (a+) define a as x > 0", False),
        ("measures match_number() as n pattern (a+) define a as x > 0", False),
        ("measures sum(cast(x as double)) as n pattern (a+) define a as x > 0", False),
        ("measures max(cast(x as double)) as n pattern (a+) define a as x > 0", True),
        ("measures count(*) as n pattern (a+) define a as x > 0 and x > prev(x)", False),
        ("measures prev(first(x)) as n pattern (a+) define a as x > 0", False),
        ("measures t as n all rows per match pattern (a+) define a as x > 0", False),
        ("measures count(*) as n pattern (a+) define a as x > 0 and true", False),
    ],
)
def test_which_matches_are_groups(written: str, is_whole: bool) -> None:
    sql = f"select n from p match_recognize (partition by k order by t {written}) as m"
    assert match_of(rewrite(lower(sql, CATALOG).node)).are_whole_ranges is is_whole


def eight_variables() -> tuple[Clause, Streams]:
    """Each of eight variables takes rows from another number on: letters of two bytes are among those of the rows."""
    names = "abcdefgh"
    define = {name: Compare(">=", Nav(None, "x"), Const(n)) for n, name in enumerate(names)}
    pattern = Seq((*(Var(name) for name in names[:-1]), Rep(Var("h"), 1, None, "+")))
    measures = (Measure("n", Agg("count", "h", None)), Measure("s", Agg("sum", "d", "x")))
    numbers = {1: range(8), 2: [7] * 10, 3: [0, 1, 2, *range(7), 7, 7], 4: [None, *range(1, 8)]}
    rows = {k: [{"t": t, "x": x, "y": t} for t, x in enumerate(values)] for k, values in numbers.items()}
    return Clause(pattern, define, measures), rows


def test_eight_variables() -> None:
    clause, streams = eight_variables()
    found = matched_by(sql_of(lowered(clause)), streams, random.Random(0))
    assert found == expected(clause, streams) == Counter({(1, 1, 3): 1, (2, 3, 7): 1, (3, 2, 3): 1})


def test_no_rows_and_no_partition() -> None:
    sql = (
        "select n from p match_recognize (order by t measures count(*) as n after match skip {} "
        "pattern (a+) define a as x > 0) as m"
    )
    for mode, wanted in (("past last row", [2]), ("to next row", [2, 1])):
        query = _spark(sql.format(mode))
        assert matched_by(query, {}, random.Random(0)) == Counter()
        rows = [{"t": t, "x": x, "y": 0} for t, x in enumerate((0, 1, 2))]
        assert matched_by(query, {1: rows}, random.Random(0)) == Counter((n,) for n in wanted)


# Which way


@pytest.mark.parametrize(
    ("pattern", "text", "longest"),
    [
        ("a{3,}", "1{3,}", None),
        ("a b+ c", "[1357][2367]+[4567]", 10_000),
        ("a b+ c+ a", "[1357][2367]+[4567]+[1357]", 464),
        ("a b* a+ d*", "[13][23]*[13]+.*", 10_000),
        ("(a | b)+", "[123]+", None),
        ("(a | b c)", "[1357]|[2367][4567]", None),
        ("a (b | b c)?", "[1357](?:[2367]|[2367][4567])?", None),
        ("(a b)+ c", "(?:[1357][2367])+[4567]", 500),
        ("^ a+", "^1+", None),
        ("a+ $", "1+$", 10_000),
        ("^ (a | b a) $", "^(?:[13]|[23][13])$", None),
    ],
)
def test_expressions(pattern: str, text: str, longest: int | None) -> None:
    found = regular(parse_pattern(pattern), ("a", "b", "c"), at_each_row=False)
    assert (found.text, found.longest) == (text, longest)


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(a?)+ b", "a loop whose body may take no row"),
        ("(a b?)+ c", "a loop over a group that takes rows in several ways"),
        ("((a b)+ c)+", "a loop over a group that takes rows in several ways"),
        ("(a b?){20} c", "too many ways to take the same rows"),
        ("a+ b+ c+ a+ b+", "too many ways to take the same rows"),
        ("a b c d e f g h i", "DEFINE has more than 8 variables"),
    ],
)
def test_what_is_left_to_the_automaton(pattern: str, why: str) -> None:
    with pytest.raises(NotRegular, match=why):
        regular(parse_pattern(pattern), tuple("abcdefghi"), at_each_row=False)


@pytest.mark.parametrize(
    ("define", "way"),
    [
        ("a as x > prev(a.x) or next(y) = 1", "by the regular expression"),
        ("a as count(a.*) < 3", "by the automaton: DEFINE looks at the match so far"),
        ("b as b.x > first(a.x)", "by the automaton: DEFINE looks at the match so far"),
    ],
)
def test_the_way_is_shown(define: str, way: str) -> None:
    clause = f"partition by k order by t measures count(*) as n pattern (a+ b) define {define}"
    sql = f"select * from p match_recognize ({clause})"
    assert way in match_of(lower(sql, CATALOG).node).described


def test_skipping_to_a_variable_is_left_to_the_automaton() -> None:
    sql = (
        "select * from p match_recognize (partition by k order by t measures count(*) as n "
        "after match skip to last b pattern (a b))"
    )
    assert "by the automaton: AFTER MATCH SKIP TO LAST b" in match_of(lower(sql, CATALOG).node).described


def test_many_rows_of_a_key() -> None:
    """Ten thousand rows that match, some thousand matches, and a loop that has to give back all it took."""
    ones = [{"t": t, "x": 1 if t % 3 else 0, "y": None} for t in range(3000)]
    sql = (
        "select k, n from p match_recognize (partition by k order by t measures count(*) as n "
        "pattern (a+ b) define a as x >= 1, b as x = 0) as m"
    )
    assert matched_by(_spark(sql), {1: ones}, random.Random(0)) == Counter({(1, 3): 999})
    longer = sql.replace("x = 0", "x = 7").replace("x >= 1", "x >= 0")
    assert matched_by(_spark(longer), {1: ones}, random.Random(0)) == Counter()


COUNTED = ("(a | b)+", "a{3,}")
"""Patterns whose loops take any number of rows without a limit of Java's stack."""


def counting(pattern: str) -> str:
    """A query whose ``a`` and ``b`` take rows with x = 0 and 1, or all where there is no b."""
    condition = "a as x = 0, b as x = 1" if "b" in pattern else "a as x >= 0"
    return _spark(
        "select k, n from p match_recognize (partition by k order by t measures count(*) as n "
        f"pattern ({pattern}) define {condition}) as m"
    )


def _spark(sql: str) -> str:
    return sql_of(rewrite(lower(sql, CATALOG).node))
