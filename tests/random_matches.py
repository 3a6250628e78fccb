"""Random MATCH_RECOGNIZE clauses and streams, for the comparison with the naive matcher."""

from __future__ import annotations

import random
from typing import Any

from naive_matcher import (
    Agg,
    Alt,
    Classifier,
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
    may_be_empty,
    names_of,
)

_SIGNS = (
    ("*", 0, None),
    ("+", 1, None),
    ("?", 0, 1),
    ("{2}", 2, 2),
    ("{2,}", 2, None),
    ("{,2}", 0, 2),
    ("{1,3}", 1, 3),
)
_COLUMNS = ("x", "y")


def random_clause(rng: random.Random, *, by_rows: bool = False) -> Clause:
    """A clause that takes a row at least; skips to a variable have one to go to.

    ``by_rows``: its conditions are over the row that is tried and its neighbours, and its loops over groups take a row.
    """
    mode = rng.choice(("past last row", "past last row", "to next row", "to first", "to last"))
    pattern = _pattern(rng, 3)
    while may_be_empty(pattern):
        pattern = _pattern(rng, 3)
    if by_rows:
        mode = rng.choice(("past last row", "past last row", "to next row"))
    variable = None
    if mode in ("to first", "to last"):
        variable = "t_"
        behind = _pattern(rng, 1)
        target = rng.choice(
            (Var("t_"), Rep(Var("t_"), 1, None, "+"), Rep(Seq((Var("t_"), Var("a"))), 1, 2, "{1,2}"))
        )
        pattern = Seq((pattern, target, behind))
    names = sorted(names_of(pattern))
    others = None if by_rows else names
    define = {n: _condition(rng, n, others, 2) for n in names if rng.random() < 0.7}
    all_rows = rng.random() < 0.4
    measures = []
    for number in range(rng.randint(1, 4)):
        value = _measure(rng, names)
        final = all_rows and isinstance(value, (Nav, Agg)) and rng.random() < 0.3
        measures.append(Measure(f"m{number}", value, "FINAL" if final else ""))
    anchors = rng.random() < 0.1, rng.random() < 0.1
    return Clause(pattern, define, tuple(measures), (mode, variable), all_rows, *anchors)


def random_stream(rng: random.Random) -> list[RowOf]:
    """The rows of a partition, in order: few values, NULLs among them, sometimes none, one, or equal rows."""
    rows: list[RowOf] = []
    for t in range(rng.choice((0, 1, 2, 4, 6, 8, 9))):
        x, y = (rng.choice((None, 0, 1, 1, 2, 2, 3, 3)) if rng.random() < 0.95 else -1 for _ in _COLUMNS)
        rows += [{"t": t, "x": x, "y": y}] * (2 if rng.random() < 0.05 else 1)
    return rows


def _pattern(rng: random.Random, depth: int) -> Any:
    kind = rng.random()
    if depth == 0 or kind < 0.2:
        return Var(rng.choice("abc"))
    if kind < 0.5:
        return Seq(tuple(_pattern(rng, depth - 1) for _ in range(rng.randint(2, 3))))
    if kind < 0.7:
        return Alt(tuple(_pattern(rng, depth - 1) for _ in range(2)))
    sign, least, most = rng.choice(_SIGNS)
    return Rep(_pattern(rng, depth - 1), least, most, sign)


def _condition(rng: random.Random, own: str, names: list[str] | None, depth: int) -> Any:
    if depth and rng.random() < 0.3:
        word = rng.choice(("and", "or", "or"))
        return Logic(word, *(_condition(rng, own, names, depth - 1) for _ in range(2)))
    if rng.random() < 0.1:
        return IsNull(_value(rng, own, names))
    sign = rng.choice(("<", ">", "=", "<>", "<>", ">=", ">="))
    left = _value(rng, own, names)
    right = Const(rng.randint(0, 2)) if rng.random() < 0.6 else _value(rng, own, names)
    return Compare(sign, left, right)


def _value(rng: random.Random, own: str, names: list[str] | None) -> Any:
    """Mostly of the row that is tried; without ``names`` of it and its neighbours alone."""
    if names is None:
        offset = rng.choice((0, 0, -1, -1, -2, 1, 2))
        return Nav(rng.choice((own, None)), rng.choice(_COLUMNS), offset=offset, is_plain=rng.random() < 0.5)
    variable = rng.choice((own, own, None, rng.choice(names)))
    if rng.random() < 0.5:
        return Nav(variable, rng.choice(_COLUMNS))
    return _over_rows(rng, variable)


def _over_rows(rng: random.Random, variable: str | None) -> Any:
    if rng.random() < 0.5:
        function = rng.choice(("count", "count", "sum", "min", "max", "avg"))
        return Agg(
            function, variable, None if function == "count" and rng.random() < 0.6 else rng.choice(_COLUMNS)
        )
    is_first = rng.random() < 0.4
    offset = rng.choice((0, 0, -1, -1, -2, 1, 2))
    return Nav(variable, rng.choice(_COLUMNS), is_first, offset, is_plain=rng.random() < 0.5)


def _measure(rng: random.Random, names: list[str]) -> Any:
    kind = rng.random()
    if kind < 0.1:
        return Classifier()
    if kind < 0.2:
        return MatchNumber()
    variable = rng.choice((None, *names))
    if kind < 0.35:
        return Plus(_over_rows(rng, variable), rng.choice((MatchNumber(), Const(1), _over_rows(rng, None))))
    return _over_rows(rng, variable)
