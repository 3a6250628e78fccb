"""Patterns that are found again between the rows which no match has: what is read, and that it is exact."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from fivm_dbt.catalog import Catalog, KeyRange, TableStatistics
from fivm_dbt.catalog.statistics import days_of
from fivm_dbt.config import load_config
from fivm_dbt.explain.operators import maintenance
from fivm_dbt.features.match.ir.separated import Separated
from fivm_dbt.plan.planner import plan_model
from fivm_dbt.plan.request import ModelRequest
from fivm_dbt.refresh.engine import Row
from fivm_dbt.refresh.report import Report
from fixtures.models import Bench, plan_of, relation

COLUMNS = "k string, at timestamp, x int"
KEYS = ("a", "b", "c", None)
CONDITIONS = {"late": "late.x > 5", "high": "high.x > 7", "low": "low.x = 2"}


def _sql(pattern: str, more: str = "", by: str = "partition by k", define: str = "") -> str:
    define = define or ", ".join(f"{v} as {c}" for v, c in CONDITIONS.items() if v in pattern)
    key = "k, " if by else ""
    measures = "count(*) as n, sum(x) as total, first(at) as since, last(x) as until"
    return f"""select {key}n, total, since, until from m match_recognize (
      {by} order by at, x measures {measures} {more} pattern ({pattern}) define {define}) as found"""


LATE = _sql("late{3,}")
QUERIES = {
    "a loop": LATE,
    "each start": _sql("high late* low", "after match skip to next row"),
    "alternatives": _sql("high late+ | low low"),
    "one sequence": _sql("late{2,}", by=""),
    "a part of a condition": _sql("high late+", define="high as high.x > 7, late as late.x > 4 and mod(x, 2) = 0"),
    "all rows": """select k, at, x, m from m match_recognize (partition by k order by at, x
      measures classifier() as m all rows per match pattern (high late+) define high as high.x > 7, late as late.x > 4
      ) as found""",
    "grouped": f"select k, count(*) as many, sum(n) as rows_in_them from ({LATE}) as l group by k",
}  # fmt: skip


def _is_separated(bench: Bench) -> bool:
    return any(isinstance(n, Separated) for view in bench.plan.views for n in view.core.walk())


def _row(key: str | None, day: int, x: int | None, hour: int = 6) -> Row:
    return (key, dt.datetime(2024, 1, 1, hour) + dt.timedelta(days=day), x)


def _bench(
    rows: Sequence[Row], sql: str = LATE, measured: TableStatistics | None = None, **meta: object
) -> Bench:
    plan = plan_of(sql, [relation("m", COLUMNS)], meta, measured, "UTC")
    return Bench.built(plan, {"m": rows}, is_counted=True)


def _changed(bench: Bench, insert: Sequence[Row] = (), delete: Sequence[Row] = ()) -> Report:
    return bench.changed("m", insert, delete)


def _random_row(rng: random.Random, day: int | None = None) -> Row:
    time = None if rng.random() < 0.03 else _row(None, 0, 0, rng.randrange(24))[1]
    if isinstance(time, dt.datetime):
        time += dt.timedelta(days=rng.randrange(40) if day is None else day)
    return (rng.choice(KEYS), time, rng.choice((None, *range(10))))


IN_ORDER = TableStatistics.of({"m": 30_000_000}, ranges={("m", "at"): KeyRange(0, 10**15, 30_000_000)})
_KEPT = ((None, 2), (TableStatistics.of({"m": 100}), 0), (IN_ORDER, 1))
"""What was measured, and how many inner views there are of it."""


def _random_changes(seed: int, steps: int) -> None:
    rng = random.Random(seed)
    name = sorted(QUERIES)[seed % len(QUERIES)]
    rows = [_random_row(rng) for _ in range(rng.randrange(160))]
    if rng.random() < 0.3:
        # Matches of many days, and keys without a separator.
        rows = [(k, at, 8) if x is not None and x % 4 else (k, at, x) for k, at, x in rows]
    measured, many = _KEPT[seed % 3]
    bench = _bench(rows, QUERIES[name], measured)
    assert _is_separated(bench)
    assert len(bench.plan.helpers) == many + (name == "grouped")
    for step in range(steps):
        gone = rng.sample(rows, min(len(rows), rng.randrange(6)))
        come = [_random_row(rng, None if rng.random() < 0.5 else 40 + step) for _ in range(rng.randrange(8))]
        for row in gone:
            rows.remove(row)
        rows += come
        _changed(bench, come, gone)


@pytest.mark.parametrize("seed", range(len(QUERIES)))
def test_random_changes(seed: int) -> None:
    _random_changes(seed, 3)


@pytest.mark.more
@pytest.mark.parametrize("seed", range(100, 120))
def test_more_random_changes(seed: int) -> None:
    _random_changes(seed, 6)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1000, 1040))
def test_many_random_changes(seed: int) -> None:
    _random_changes(seed, 8)


def _days(many: int) -> list[Row]:
    """Two late rows of each key on a day, and one that is none between them."""
    xs = ((6, 8), (1, 12), (9, 22))
    return [_row(key, day, x, hour) for key in KEYS for day in range(many) for x, hour in xs]


def test_what_is_read_does_not_depend_on_the_history() -> None:
    found, statements = [], []
    for many in (10, 40):
        bench = _bench(_days(many))
        appended = _changed(bench, [_row(key, many, 9) for key in KEYS])
        late = _changed(bench, [_row("a", many - 5, 8, 23)], [_row("a", many - 6, 1, 12)])
        found.append([sum(n for name, n in r.scans if name.endswith("view_1_m")) for r in (appended, late)])
        statements.append([len(r.statements) for r in (appended, late)])
    assert statements[0] == statements[1] and max(statements[0]) <= 10
    assert found[0] == found[1] and all(0 < n < 150 for n in found[0])


@pytest.mark.parametrize("length", [None, "month", "hour"])
def test_of_rows_in_the_order_of_time_those_near_the_change_are_read(length: str | None) -> None:
    """No copy is kept of them, and what is read does not depend on the history, nor on how far back a late row is.

    Where separators are counted by month it is a few months.
    """
    meta = {} if length is None else {"fivm_part_length": length}
    found = []
    for many in (100, 400):
        bench = _bench(_days(many), LATE, IN_ORDER, **meta)
        assert [view.reason for view in bench.plan.helpers] == [
            "how many rows of a key no match has, in each period"
        ]
        appended = _changed(bench, [_row(key, many, 9) for key in KEYS])
        late = _changed(bench, [_row("a", many // 2, 8, 23)], [_row("a", many // 2 - 1, 1, 12)])
        found.append([dict(report.scans)["m"] for report in (appended, late)])
    assert length == "month" or found[0] == found[1]
    most = 3 * 31 * len(_days(1)) if length == "month" else 10 * len(_days(1))
    assert all(0 < n <= 2 * most + 4 for n in found[0]), found[0]


def test_a_separator_that_comes_or_goes_parts_and_joins_matches() -> None:
    rows = [_row("a", day, 1 if day == 10 else 9) for day in range(1, 20)]
    bench = _bench([_row("a", 0, 1), *rows, _row("a", 20, 1)])
    assert [row[1] for row in sorted(bench.shown(), key=str)] == [9, 9]
    _changed(bench, delete=[_row("a", 10, 1)])
    assert [row[1] for row in bench.shown()] == [18]
    _changed(bench, [_row("a", 15, 0, hour=7)])
    assert sorted(row[1] for row in bench.shown()) == [4, 14]
    _changed(bench, [_row("a", 0, 9, hour=7)], [_row("a", 20, 1), _row("a", 15, 0, hour=7)])
    assert [row[1] for row in bench.shown()] == [19]


@pytest.mark.parametrize(
    "sql",
    [
        _sql("late any_row"),
        _sql("^late+"),
        _sql("late+$"),
        _sql("high late+", define="high as high.x > 7, late as late.x > prev(late.x)"),
        _sql("late+", define="late as late.x > 5 and sum(late.x) < 100"),
        _sql("late+").replace("count(*) as n", "match_number() as n"),
        _sql("late+").replace("last(x)", "prev(first(x))"),
        _sql("late+", "one row per part").replace("first(at)", "min(at)"),
    ],
)
def test_what_keeps_its_marks(sql: str) -> None:
    bench = _bench(
        [_row(key, day, (day * 7 + ord((key or "d")[0])) % 10) for key in KEYS for day in range(9)], sql
    )
    assert not _is_separated(bench)
    _changed(bench, [_row(key, 9, 9) for key in KEYS])


def test_left_out() -> None:
    bench = _bench(_days(5), fivm_without="separators")
    assert not _is_separated(bench)
    _changed(bench, [_row("a", 5, 9)])


@pytest.mark.parametrize(("with_one", "is_separated"), [(250, True), (249, False), (0, False)])
def test_rare_separators_are_left_to_marks(with_one: int, is_separated: bool) -> None:
    request = ModelRequest("analytics.m", LATE, Catalog.of([relation("m", COLUMNS)]), load_config({}))
    ((name, columns),) = plan_model(request).measurable
    pairs = sorted((c for c in columns if c.startswith("=")), key=lambda c: c.startswith("=CASE"))
    assert len(pairs) == 2
    distinct = {(name, pairs[0]): 1000, (name, pairs[1]): with_one}
    plan = plan_model(replace(request, measured=TableStatistics.of({"m": 9000}, distinct)))
    assert any(isinstance(n, Separated) for v in plan.views for n in v.core.walk()) is is_separated


@pytest.mark.parametrize(("a_day", "length"), [(5, "day"), (0.5, "month"), (0.01, "year")])
def test_parts_are_as_long_as_a_key_has_some_rows(a_day: float, length: str) -> None:
    """Of a row a week there would be as many counts as rows, by day."""
    keys, days = 10**6, 1000
    distinct = {("m", "k"): keys, ("m", days_of("at")): days}
    bench = _bench(_days(3), LATE, TableStatistics.of({"m": round(a_day * keys * days)}, distinct))
    separated = next(n for v in bench.plan.views for n in v.core.walk() if isinstance(n, Separated))
    assert separated.stored is not None
    counted = next(k.value.sql for k in bench.plan.helpers[0].state.keys if k.name == "period")
    assert ("year" if "/ 12)" in counted else "month" if "MONTH(" in counted else "day") == length
    _changed(bench, [_row("a", 2, 9, 23), _row("a", 70, 9)], [_row("b", 1, 9, 22)])


def test_it_is_told() -> None:
    told = "\n".join(maintenance(_bench(_days(2)).plan))
    assert "how many rows of a key no match has, in each period" in told
    assert "from the last rows before the change that no match has to the first ones behind it" in told
