"""States of which a partition has many time parts: one more part leaves those before it alone."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
import sqlglot
from sqlglot import exp

from fivm_dbt.ir.dialect import SparkText
from fivm_dbt.ir.scalar import conjuncts
from fixtures.models import Bench, Interrupted, Interrupting
from fixtures.runs import by_run

START = datetime(2024, 1, 1, 8)
SQL = """
select k, at, n, total from r match_recognize (
  partition by k order by at measures count(*) as n, sum(x) as total one row per part
  pattern (a b+) define a as a.x > 1, b as b.x > 1)
"""


def _minute(number: int, *, keys: int = 4) -> list[tuple[int, datetime, int]]:
    return [(k, START + timedelta(minutes=number), (number + k) % 5) for k in range(keys)]


def _bench(minutes: int, **meta: object) -> Bench:
    rows = [row for number in range(minutes) for row in _minute(number)]
    meta = {"fivm_part_length": "minute", "fivm_apply": "auto", **meta}
    bench = Bench.of(SQL, {"r": ("k int, at timestamp, x int", rows)}, meta)
    bench.refresh()
    return bench


def _written(statements: tuple[str, ...], view: str) -> list[str]:
    """The conditions on the places of a view in the statement that writes."""
    (text,) = (s for s in statements if s.startswith(("INSERT INTO", "MERGE INTO")))
    write = sqlglot.parse_one(text, dialect=SparkText)
    condition = write.args["where"] if isinstance(write, exp.Insert) else write.args["on"]
    places = condition.unnest().flatten() if isinstance(condition.unnest(), exp.Or) else [condition]
    if isinstance(write, exp.Merge):
        places = [p for c in conjuncts(condition) for p in (c.unnest().flatten() if c.find(exp.Or) else [c])]
    texts = [place.sql(dialect="spark") for place in places]
    return [text for text in texts if f"__fivm_view = '{view}" in text]


def test_one_more_part_reads_and_writes_itself() -> None:
    reads = []
    for minutes in (20, 320):
        bench = _bench(minutes)
        bench.engine.change("r", insert=_minute(minutes))
        report = bench.refresh()
        bench.check()
        (rows,) = _written(report.statements, "view_1")
        assert " >= " in rows
        last, before = _written(report.statements, "view_2")
        assert " >= " not in last and " >= " in before, "last marks move, the others only come"
        (found,) = _written(report.statements, "root")
        assert "`at` >=" in found
        scans = dict(report.scans)
        reads.append({name: n for name, n in scans.items() if "view_" in name or "root" in name})
    assert reads[0] == reads[1], "whatever has been in the day before"


MATCHES = """
select k, began, n from r match_recognize (
  partition by k order by at measures first(a.at) as began, count(*) as n one row per match
  pattern (a b+) define a as a.x > 1 or a.at is null, b as b.x > 1)
"""


@pytest.mark.parametrize("apply", by_run(more=["auto"], long=["replace", "merge"]))
def test_matches_lie_by_their_time_also_those_that_have_none(apply: str) -> None:
    """A match that begins with a row without a time has no bounds, and is in a partition of its own."""
    rows = [row for number in range(10) for row in _minute(number)]
    meta = {"fivm_part_length": "minute", "fivm_apply": apply}
    bench = Bench.of(MATCHES, {"r": ("k int, at timestamp, x int", rows)}, meta)
    assert bench.plan.root.bounded_by == "began"
    bench.refresh()
    bench.check()
    without: list[tuple[int, datetime | None, int]] = [(k, None, 3) for k in (0, 1, 8)]
    next_day = [(k, START + timedelta(days=1, minutes=m), 4) for k in range(3) for m in range(3)]
    steps: list[tuple[list[tuple[int, datetime | None, int]], list[tuple[int, datetime | None, int]]]] = [
        ([*_minute(10)], []),
        ([*without, *_minute(11)], []),
        ([(8, START, 4), *next_day], []),
        ([], [*without[:1], *_minute(3)[:2]]),
        ([*without], [*next_day[:4]]),
        ([], [*without, *without[1:]]),
    ]
    for insert, delete in steps:
        bench.engine.change("r", insert=insert, delete=delete)
        bench.refresh()
        bench.check()
    assert bench.engine.query("select count(*) from analytics.m where began is null") == [(0,)]


def test_what_goes_is_found_in_its_partition() -> None:
    bench = _bench(30)
    late = START + timedelta(minutes=12)
    bench.engine.change("r", insert=[(2, late, 9)], delete=[(2, late, (12 + 2) % 5)])
    report = bench.refresh()
    bench.check()
    (rows,) = _written(report.statements, "view_1")
    assert " >= " not in rows, "a row goes: the day is small, and written anew"
    bench = _bench(30, fivm_apply="merge")
    bench.engine.change("r", insert=[(2, late, 9)], delete=[(2, late, (12 + 2) % 5)])
    report = bench.refresh()
    bench.check()
    (rows,) = _written(report.statements, "view_1")
    assert " >= " in rows


@pytest.mark.parametrize(
    ("apply", "step"),
    [
        pytest.param("auto", 4, marks=pytest.mark.more),
        *(pytest.param(way, 1, marks=pytest.mark.long) for way in ("auto", "replace", "merge")),
    ],
)
def test_a_refresh_that_is_interrupted_anywhere(apply: str, step: int) -> None:
    """Two statements bring a change into the marks: what the first has done is not done again."""
    number, was_interrupted = 1 - step, True
    while was_interrupted:
        number += step
        bench = _bench(10, fivm_apply=apply)
        bench.engine.change("r", insert=[*_minute(10), (7, START, 3)], delete=_minute(4)[:1])
        try:
            bench.refresh(Interrupting(bench.engine, number, after=True))
            was_interrupted = False
        except Interrupted:
            bench.refresh()
        bench.check()
        bench.engine.change("r", insert=_minute(11))
        bench.refresh()
        bench.check()
    assert number > 10


def test_more_partitions_than_are_written_into_a_statement(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = _bench(10)
    monkeypatch.setattr("fivm_dbt.refresh.writes.MAX_LITERALS", 2)
    bench.engine.change("r", insert=[(1, START + timedelta(days=d), 4) for d in range(1, 5)])
    report = bench.refresh()
    bench.check()
    assert len(_written(report.statements, "view_2")) == 1
