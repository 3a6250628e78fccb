"""Patterns that are advanced part by part: what a refresh reads does not depend on how long the history is."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from fivm_dbt.catalog import Catalog, TableStatistics
from fivm_dbt.catalog.statistics import days_of
from fivm_dbt.config import load_config
from fivm_dbt.explain.operators import maintenance
from fivm_dbt.features.match.plan.measured import MeasuredKeys
from fivm_dbt.plan.planner import plan_model
from fivm_dbt.plan.request import ModelRequest
from fivm_dbt.refresh.engine import Row
from fivm_dbt.refresh.report import Report
from fixtures.models import Bench, Interrupted, Interrupting, plan_of, relation

KEYS = ("a", "b", "c", None)
SQL = """
select k, n, total, low from m match_recognize (
  partition by k order by at
  measures count(*) as n, sum(x) as total, prev(first(b.x)) as low
  pattern (b c+ d)
  define b as b.x > 10, c as c.x > prev(c.x), d as d.x < 5
) as found
"""
ALL_ROWS = """
select k, at, x, m, n, total, whole from m match_recognize (
  partition by k order by at
  measures classifier() as m, count(*) as n, sum(x) as total, final sum(x) as whole
  all rows per match pattern (b c+ d)
  define b as b.x > 10, c as c.x > prev(c.x), d as d.x < 5
) as found
"""
NEXT = """
select k, n, total, after, m from m match_recognize (
  partition by k order by at
  measures count(*) as n, sum(x) as total, next(x) as after, match_number() as m
  after match skip to next row
  pattern (b c* | b c+ d)
  define b as b.x > prev(b.x, 2) or next(b.x, 2) is null, c as c.x >= next(c.x), d as d.x < next(d.x)
) as found
"""
QUERIES = {"one row": SQL, "all rows": ALL_ROWS, "next": NEXT}
COLUMNS = "k string, at timestamp, x int"


def _row(key: str | None, day: int, x: int, hour: int = 6) -> Row:
    return (key, dt.datetime(2024, 1, 1, hour) + dt.timedelta(days=day), x)


def _bench(days: int, sql: str = SQL, *, is_counted: bool = True, **meta: object) -> Bench:
    """Every key has a row a day, and a match each three days."""
    rows = [_row(key, day, (20, 30, 1)[day % 3]) for day in range(days) for key in KEYS]
    plan = plan_of(sql, [relation("m", COLUMNS)], meta)
    return Bench.built(plan, {"m": rows}, is_counted=is_counted)


def _changed(bench: Bench, insert: Sequence[Row] = (), delete: Sequence[Row] = ()) -> Report:
    return bench.changed("m", insert, delete)


def _read(report: Report, view: str) -> int:
    return sum(n for name, n in report.scans if name.split("__fivm_")[-1].startswith(view))


def _reads(report: Report) -> dict[str, int]:
    return dict(report.scans)


def _without_root(report: Report) -> dict[str, int]:
    return {name: n for name, n in _reads(report).items() if not name.endswith("root")}


class TestWhatIsRead:
    def test_appended_rows_read_the_last_marks_alone(self) -> None:
        """Whatever the number of days before, and how long ago the last row of the key was."""
        found = []
        for days in (4, 8):
            bench = _bench(days)
            new = _changed(bench, [_row(key, days + 40, 20) for key in KEYS])
            same_day = _changed(bench, [_row("a", days + 40, 30, hour=7)])
            found.append((_reads(new), _reads(same_day)))
        assert found[0] == found[1]
        assert sum(found[0][1].values()) < 60

    @pytest.mark.long
    def test_appended_rows_read_what_is_undecided_of_all_rows_per_match(self) -> None:
        """Its rows are in the last mark, however long ago they came."""
        found = []
        for days in (20, 60):
            bench = _bench(days, ALL_ROWS)
            assert _reads(_changed(bench, [_row(key, days, 20) for key in KEYS]))
            new = _changed(bench, [_row(key, days + 40, 30) for key in KEYS])
            closing = _changed(bench, [_row("a", days + 41, 1), _row("a", days + 41, 20, hour=7)])
            # The model's own rows are not laid out by time here: the MERGE of a match reads all of them.
            found.append([_without_root(new), _without_root(closing)])
        assert found[0] == found[1]
        assert all(0 < sum(reads.values()) < 120 for reads in found[0])

    @pytest.mark.long
    def test_a_late_row_reads_the_periods_from_its_own_until_the_state_is_as_it_was(self) -> None:
        found = []
        for days in (130, 190):
            bench = _bench(days)
            report = _changed(bench, [_row("a", days - 100, 40, hour=9)])
            found.append(_reads(report))
        assert found[0] == found[1]
        assert sum(found[0].values()) < 200

    @pytest.mark.long
    def test_a_late_row_whose_effect_never_ends_reads_from_its_own_period_to_the_end(self) -> None:
        sql = (
            "select k, number, n from m match_recognize (partition by k order by at "
            "measures match_number() as number, count(*) as n pattern (a b) define b as b.x < 5) as f"
        )
        found = []
        for days in (130, 190):
            bench = _bench(days, sql)
            report = _changed(bench, [_row("a", days - 100, 40, hour=9), _row("a", days - 100, 1, hour=10)])
            # The model's own rows are not laid out by time: all numbers change, and a MERGE reads all of them.
            found.append(_without_root(report))
        assert found[0] == found[1]
        assert 100 * len(KEYS) < sum(found[0].values()) < 20 * 100 * len(KEYS)

    @pytest.mark.long
    def test_buckets_spare_the_rows_of_other_keys(self) -> None:
        late = [_row("a", 30, 40, hour=9)]
        one, many = (
            _read(_changed(_bench(130, **meta), late), "view_1_m") for meta in ({}, {"fivm_buckets": 16})
        )
        assert many < one


def _ways() -> list[Any]:
    """Every query with parts of every length, with buckets and without; most of them at length."""
    always = {
        ("one row", "day", None),
    }
    ways = list(product(QUERIES, ("day", "week", "month", "6 hours"), (None, 4)))
    assert always <= set(ways)
    return [pytest.param(*way, marks=[] if way in always else [pytest.mark.long]) for way in ways]


class TestEnds:
    """What has to be right where a rerun stops early, and where the last mark is another one."""

    @pytest.mark.long
    @pytest.mark.parametrize(("query", "length", "buckets"), _ways())
    def test_changes_here_and_there(self, query: str, length: str, buckets: int | None) -> None:
        meta: dict[str, object] = {"fivm_part_length": length}
        more = {} if buckets is None else {"fivm_buckets": buckets}
        bench = _bench(40, QUERIES[query], is_counted=False, **meta, **more)
        _changed(bench, [_row("a", 7, 40, hour=9)])  # within a period
        _changed(bench, delete=[_row("a", 7, 40, hour=9)])
        _changed(bench, [_row("a", -20, 40)])  # before everything
        _changed(
            bench, delete=[_row("b", day, (20, 30, 1)[day % 3]) for day in range(10, 20)]
        )  # periods that go
        _changed(bench, [_row("b", 15, 1)])  # one of them comes back
        _changed(bench, [_row("b", 16, 3), _row("b", 38, 2, hour=1)])  # two places at once
        _changed(
            bench, delete=[_row("c", day, (20, 30, 1)[day % 3]) for day in range(38, 40)]
        )  # the last ones
        _changed(bench, delete=[_row("c", day, (20, 30, 1)[day % 3]) for day in range(38)])  # all of a key
        _changed(bench, [_row("c", 3, 20), _row("c", 3, 20)])  # it comes again, twice the same row
        _changed(bench, [_row("c", 4, 30)])
        _changed(
            bench, [_row("d", 4, 20), _row("d", 9, 30), _row("d", 50, 1), (None, None, 5), ("a", None, 5)]
        )
        _changed(bench, [("a", None, 7), _row("d", 51, 1)], [_row("d", 50, 1)])
        _changed(bench, delete=[("a", None, 5), ("a", None, 7)])


@pytest.mark.parametrize(
    ("clause", "has_marks"),
    [
        ("partition by k order by at measures count(*) as n pattern (a b)", True),
        ("order by at measures count(*) as n pattern (a b $)", True),
        ("partition by k order by at, x desc measures count(*) as n pattern (^ a b)", True),
        (
            "partition by k order by at measures count(*) as n pattern (a b) define b as b.x > prev(b.x, 2)",
            True,
        ),
        (
            "partition by k order by at measures count(*) as n pattern (a b) define b as b.x > next(b.x)",
            True,
        ),
        ("partition by k order by at measures next(x) as n pattern (a b)", True),
        ("partition by k order by at measures next(x) as n one row per part pattern (a b)", False),
        ("partition by k order by at all rows per match pattern (a b)", True),
        ("partition by k order by at desc measures count(*) as n pattern (a b)", False),
        ("partition by k order by x measures count(*) as n pattern (a b)", False),
        ("partition by f order by at measures count(*) as n pattern (a b)", False),
    ],
)
def test_which_patterns_have_marks(clause: str, *, has_marks: bool) -> None:
    plan = plan_of(
        f"select * from m match_recognize ({clause}) as p", [relation("m", f"{COLUMNS}, f double")]
    )
    reasons = [view.reason for view in plan.helpers]
    assert ("the state of a pattern at the end of each time part" in reasons) is has_marks
    assert has_marks or reasons == ["the rows from which keys are recomputed"]


def test_patterns_of_one_model_share_their_rows() -> None:
    """Where they look at the same columns of one input; each has marks of its own."""
    clause = "partition by k order by at measures count(*) as n pattern (a b+) define b as x {} prev(x)"
    branches = [
        f"select k, n, '{sign}' as kind from m match_recognize ({clause.format(sign)}) as p_{n}"
        for n, sign in enumerate("<>")
    ]
    plan = plan_of(" union all ".join(branches), [relation("m", COLUMNS)])
    reasons = Counter(view.reason for view in plan.helpers)
    assert reasons["the rows of a pattern, by period"] == 1
    assert reasons["the state of a pattern at the end of each time part"] == 2


@pytest.mark.parametrize(
    ("sql", "kept"), [(SQL, "its state"), (NEXT, "its state"), (ALL_ROWS, "what is undecided, with its rows")]
)
def test_explain_tells_the_class(sql: str, kept: str) -> None:
    text = "\n".join(maintenance(plan_of(sql, [relation("m", COLUMNS)])))
    assert f"over time constant extra state: rows advance the pattern from {kept}" in text


def test_a_pattern_without_partition_by_is_one_key() -> None:
    sql = "select n from m match_recognize (order by at measures count(*) as n pattern (b+) define b as b.x > 10) as p"
    bench = _bench(9, sql, is_counted=False)
    _changed(bench, [_row("a", 10, 40), _row("b", 11, 2)])
    _changed(bench, [_row("z", 5, 2, hour=1)])
    _changed(bench, delete=[_row("a", 10, 40)])


def test_a_caret_is_the_first_row_of_the_key_and_not_of_a_part() -> None:
    sql = (
        "select k, n, at from m match_recognize (partition by k order by at "
        "measures count(*) as n, first(a.at) as at pattern (^ a b) define a as a.x > 10) as p"
    )
    bench = _bench(0, sql, is_counted=False)
    low, rows = _row("a", 0, 1), [_row("a", day, 20) for day in (1, 2, 3)]
    _changed(bench, [low, *rows])
    assert not bench.shown()
    _changed(bench, [_row("a", 4, 20), _row("a", 4, 20, hour=7)])
    assert not bench.shown()
    _changed(bench, delete=[low])
    assert bench.shown() == {("a", 2, rows[0][1]): 1}
    _changed(bench, [low])
    assert not bench.shown()


@pytest.mark.more
def test_a_caret_where_the_first_rows_wait() -> None:
    """With NEXT the first row of a key is taken in the part of the row that it waits for."""
    sql = (
        "select k, n, at from m match_recognize (partition by k order by at measures count(*) as n, first(a.at) as at "
        "pattern (^ a b*) define a as next(a.x, 2) > 10, b as b.x < 5) as p"
    )
    bench = _bench(0, sql, is_counted=False)
    rows = [_row("a", 0, 1), _row("a", 1, 2), _row("a", 2, 20), _row("a", 3, 30)]
    for row in rows:
        _changed(bench, [row])
    assert bench.shown() == {("a", 2, rows[0][1]): 1}
    _changed(bench, delete=rows[1:2])
    _changed(bench, delete=rows[2:])


@pytest.mark.more
@pytest.mark.parametrize("apply", ["merge", "replace"])
def test_an_interrupted_refresh_is_finished(apply: str) -> None:
    """The marks and what is shown of them are written together."""
    new = [_row("a", 3, 45, hour=12), _row("b", 14, 20), _row("b", 15, 30), _row("b", 16, 1)]
    whole = _bench(12, is_counted=False, fivm_apply=apply)
    whole.engine.change("m", insert=new, delete=[])
    seen = Interrupting(whole.engine, 0, after=False)
    whole.refresh(seen)
    writes = [
        n
        for n, s in enumerate(seen.statements, start=1)
        if s.startswith(("MERGE INTO", "INSERT INTO")) and "m__fivm_" in s[:60]
    ]
    assert len(writes) == 1
    for number in writes:
        bench = _bench(12, is_counted=False, fivm_apply=apply)
        bench.engine.change("m", insert=new, delete=[])
        with pytest.raises(Interrupted):
            bench.refresh(Interrupting(bench.engine, number, after=True))
        bench.refresh()
        bench.check()
        assert bench.shown() == whole.shown()


@pytest.mark.parametrize(("per_day", "marks"), [(4.0, 36), (3.9, 2), (0.1, 1)])
def test_parts_are_so_long_that_a_mark_stands_for_some_rows(per_day: float, marks: int) -> None:
    """By what was measured. The days are those from the first of January to the fifth of February."""
    rows = [_row(key, day, (20, 30, 1)[day % 3]) for day in range(36) for key in ("a", None)]
    measured = TableStatistics.of({"m": round(2 * 36 * per_day)}, {("m", "k"): 2, ("m", days_of("at")): 36})
    request = ModelRequest("analytics.m", SQL, Catalog.of([relation("m", COLUMNS)]), load_config({}))
    assert plan_model(request).measurable == (("m", ("at::date", "k")),)
    bench = Bench.built(plan_model(replace(request, measured=measured)), {"m": rows})
    kept = bench.plan.views[1].name
    assert bench.engine.query(f"select count(*) from {kept}") == [(2 * marks,)]
    bench.exchange("m", rows, [_row("a", 36, 3), _row(None, 15, 40, 7)], [rows[7], rows[-1]])
    bench.refresh()
    bench.check()


def test_a_length_that_is_given_is_not_chosen() -> None:
    measured = TableStatistics.of({"m": 5}, {("m", "k"): 2, ("m", days_of("at")): 36})
    request = ModelRequest("analytics.m", SQL, Catalog.of([relation("m", COLUMNS)]), load_config({}))
    given = [replace(request, config=load_config({"fivm_part_length": part})) for part in ("day", "year")]
    assert all(not plan_model(r).measurable for r in given)
    assert [plan_model(replace(r, measured=measured)).plan_hash for r in given] == [
        plan_model(r).plan_hash for r in given
    ]
    assert plan_model(replace(request, measured=measured)).plan_hash != plan_model(request).plan_hash
    few, many = (MeasuredKeys(keys, 9.0).buckets for keys in (4_000, 10**9))
    assert (few, many) == (1, 16)


def test_without_marks_whole_partitions_are_read_by_the_expression() -> None:
    bench = _bench(6, fivm_without=["marks"])
    told = "\n".join(maintenance(bench.plan))
    assert "by the regular expression" in told and "last mark" not in told
    _changed(bench, [_row(key, 6, 20) for key in KEYS], [_row("b", 2, 1)])
    _changed(bench, [_row("a", 7, 30), _row("a", 8, 1), _row(None, 3, 40, hour=9)])
    report = _changed(bench, delete=[_row("c", 0, 20), _row("a", 4, 30)])
    assert report.action == "refreshed"
