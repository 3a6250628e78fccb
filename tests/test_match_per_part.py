"""ONE ROW PER PART against an automaton of its own: a state per key, taken from part to part."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import pytest

from fivm_dbt.errors import FivmError
from fixtures.models import Bench, plan_of, relation
from fixtures.runs import by_run

COLUMNS = "k int, at timestamp, x int, y int"
KEYS = (1, 2, None)
Stored = tuple[Any, ...]


@dataclass(frozen=True)
class Chain:
    """Variables, each with a plus sign or without, and conditions over a row, the row before, and the first row of a.

    ``tests`` are SQL and what it means of the rows so far: a list of (variable, row).
    """

    variables: tuple[tuple[str, bool], ...]
    tests: tuple[str, ...]

    @property
    def sql(self) -> str:
        pattern = " ".join(f"{name}{'+' * plus}" for name, plus in self.variables)
        define = ", ".join(
            f"{name} as {_SQL[test].format(v=name, w=self.variables[max(n - 1, 0)][0])}"
            for n, ((name, _), test) in enumerate(zip(self.variables, self.tests, strict=True))
        )
        return (
            "select k, at, ct, total, low, was from m match_recognize (partition by k order by at "
            "measures count(*) as ct, sum(x) as total, min(y) as low, first(x) as was "
            f"one row per part pattern ({pattern}) define {define}) as f"
        )

    def reported(self, rows: list[Stored]) -> list[Stored]:
        """What holds in the parts of one key, whose rows are (key, part, x, y)."""
        result = []
        taken: list[tuple[int, Stored]] = []
        before = None
        for row in sorted(rows, key=lambda r: r[1]):
            if before is None or row[1] != before + 1:
                taken = []
            before = row[1]
            taken = self._next(taken, row)
            if taken and taken[-1][0] == len(self.variables):
                xs = [r[2] for _, r in taken if r[2] is not None]
                ys = [r[3] for _, r in taken if r[3] is not None]
                shown = (len(taken), sum(xs) if xs else None, min(ys) if ys else None, taken[0][1][2])
                result.append((row[0], row[1], *shown))
        return result

    def _next(self, taken: list[tuple[int, Stored]], row: Stored) -> list[tuple[int, Stored]]:
        state = taken[-1][0] if taken else 0
        if state and self.variables[state - 1][1] and self._holds(state, taken, row):
            return [*taken, (state, row)]
        if 0 < state < len(self.variables) and self._holds(state + 1, taken, row):
            return [*taken, (state + 1, row)]
        return [(1, row)] if self._holds(1, [], row) else []

    def _holds(self, state: int, taken: list[tuple[int, Stored]], row: Stored) -> bool:
        test = self.tests[state - 1]
        x = row[2]
        if test == "any":
            return True
        if test in ("high", "low"):
            return x is not None and (x > 1 if test == "high" else x < 2)
        before = [r for s, r in taken if s == max(state - 1, 1)]
        y = (row if state == 1 and test == "rise" else before[-1] if before else (None,) * 4)[2]
        return x is not None and y is not None and x > y


_SQL = {"any": "true", "high": "{v}.x > 1", "low": "{v}.x < 2", "rise": "{v}.x > {w}.x"}


def _random_chain(rng: random.Random) -> Chain:
    names = "abcd"[: rng.randint(1, 4)]
    variables = tuple((name, rng.random() < 0.4) for name in names)
    tests = [rng.choice(("any", "high", "high", "low"))]
    tests += [rng.choice(("any", "high", "low", "rise", "rise")) for _ in names[1:]]
    return Chain(variables, tuple(tests))


def _time(part: int) -> str:
    return f"2024-01-01 {10 + part // 60:02}:{part % 60:02}:07"


def _shown(row: Stored) -> Stored:
    import datetime as dt

    return (row[0], dt.datetime.fromisoformat(_time(row[1])), *row[2:])


def _bench(sql: str, rows: list[Stored], length: str = "minute", strategy: str = "auto") -> Bench:
    meta: dict[str, object] = {"fivm_part_length": length, "fivm_strategy": strategy}
    bench = Bench(plan_of(sql, [relation("m", COLUMNS)], meta))
    bench.engine.create_table(
        "m", relation("m", COLUMNS).columns, [_shown(r) for r in rows], change_feed=True
    )
    bench.refresh()
    return bench


def _check(bench: Bench, chain: Chain, rows: list[Stored]) -> int:
    expected = [_shown(r) for key in KEYS for r in chain.reported([row for row in rows if row[0] == key])]
    assert sorted(bench.shown().elements(), key=repr) == sorted(expected, key=repr), chain.sql
    bench.check()
    return len(expected)


@pytest.mark.parametrize(
    "seed",
    by_run([2], more=[0, 1, 3, 4, 5], long=range(6, 50)),
)
def test_random_chains(seed: int) -> None:
    """Keys that are absent from parts, rows that come late, go, or change."""
    rng = random.Random(seed)
    chain = _random_chain(rng)
    rows: list[Stored] = [
        (key, part, rng.choice((None, 0, 1, 2, 3, 4)), rng.randint(0, 3))
        for key in KEYS
        for part in range(12)
        if rng.random() < 0.8
    ]
    # Without helper views all rows of a key are looked at.
    bench = _bench(chain.sql, rows, strategy="first_order" if seed % 4 == 1 else "auto")
    _check(bench, chain, rows)
    for step in range(5):
        gone = rng.sample(rows, rng.randint(0, 2))
        rows = [r for r in rows if r not in gone]
        places = [(k, p) for k in KEYS for p in range(13 + step) if not any((k, p) == r[:2] for r in rows)]
        came = [
            (*place, rng.choice((None, 0, 2, 3, 4)), rng.randint(0, 3))
            for place in rng.sample(places, min(len(places), rng.randint(0, 3)))
        ]
        rows += came
        bench.engine.change("m", insert=[_shown(r) for r in came], delete=[_shown(r) for r in gone])
        bench.refresh()
        _check(bench, chain, rows)


def test_random_chains_report_something() -> None:
    found = 0
    for seed in range(40):
        rng = random.Random(seed)
        chain = _random_chain(rng)
        rows = [(1, part, rng.choice((None, 0, 1, 2, 3, 4)), 0) for part in range(12) if rng.random() < 0.8]
        found += bool(chain.reported(rows))
    assert found > 12


class TestTheRule:
    def test_the_row_that_ends_a_match_may_begin_another(self) -> None:
        chain = Chain((("a", False), ("b", False)), ("high", "rise"))
        rows: list[Stored] = [(1, part, x, 0) for part, x in enumerate((20, 15, 18))]
        assert _check(_bench(chain.sql, rows), chain, rows) == 1

    def test_a_key_that_is_absent_from_a_part_begins_again(self) -> None:
        chain = Chain((("a", False), ("b", True)), ("high", "high"))
        rows: list[Stored] = [(1, part, 9, 0) for part in (0, 1, 3, 4)]
        assert _check(_bench(chain.sql, rows), chain, rows) == 2

    def test_two_rows_of_a_key_in_one_part_are_an_error(self) -> None:
        chain = Chain((("a", True),), ("high",))
        with pytest.raises(Exception, match="a key has several rows in one part"):
            _bench(chain.sql, [(1, 0, 9, 0), (1, 1, 9, 0)], "hour")
        bench = _bench(chain.sql, [(1, 0, 9, 0)], "hour")
        bench.engine.change("m", insert=[_shown((1, 1, 9, 0))])
        with pytest.raises(Exception, match="a key has several rows in one part"):
            bench.refresh()


@pytest.mark.parametrize(
    ("clause", "what"),
    [
        ("order by at measures count(*) as n one row per part pattern (a | b)", "variables in a row"),
        ("order by at measures count(*) as n one row per part pattern (a b $)", "variables in a row"),
        ("order by at measures count(*) as n one row per part pattern (a b{2})", "variables in a row"),
        ("order by x measures count(*) as n one row per part pattern (a b)", "does not begin with a time"),
        ("order by at measures match_number() as n one row per part pattern (a b)", "MATCH_NUMBER()"),
        (
            "order by at measures count(*) as n one row per part after match skip to next row pattern (a b)",
            "AFTER MATCH",
        ),
    ],
)
def test_refused(clause: str, what: str) -> None:
    with pytest.raises(FivmError, match="FIVM105") as caught:
        plan_of(f"select * from m match_recognize (partition by k {clause}) as f", [relation("m", COLUMNS)])
    assert what in str(caught.value)
