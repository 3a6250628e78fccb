"""Windows of time: random models against a recompute after every step, and what a refresh reads of history."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from cached_statements import cache_statements
from fivm_dbt.catalog import Catalog, KeyRange, TableStatistics
from fivm_dbt.config import load_config
from fivm_dbt.engines.duckdb.engine import DuckDbEngine
from fivm_dbt.errors import FivmError
from fivm_dbt.explain.operators import maintenance
from fivm_dbt.explain.text import explain
from fivm_dbt.ir.nodes import Map
from fivm_dbt.ir.reads import Scan
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.plan.planner import plan_model
from fivm_dbt.plan.request import ModelRequest
from fivm_dbt.refresh.engine import Row
from fivm_dbt.testing.load import load_scenarios
from fivm_dbt.testing.replay import replay_scenario
from fixtures.models import Bench, plan_of, relation
from fixtures.runs import by_run, fast_only
from generator.differential import tiny_workbench
from random_windows import (
    random_days,
    random_extremes,
    random_framed,
    random_local,
    random_mixed,
    random_row,
    random_scenario,
    random_sequence,
    random_sessions,
)

COLUMNS = "k string, ts timestamp, v int"
BY_DAY = {"batch_size": "day"}
SLIDING = "select k, window.start as b, {} as a from raw.s group by k, window(ts, '{}', '{}')"
FRAME = (
    "select k, ts, {} over (partition by k order by ts range between interval '{}' preceding and current row) as a "
    "from raw.s"
)
LAG = "select k, ts, lag(v) over (partition by k order by ts, v) as p from raw.s"
MIXED = FRAME.format("lag(v, 2) over (partition by k order by ts, v) as b, sum(v)", "1 hour")
NEAREST = "windowed: the rows of the day of the change, and of the nearest days"
LAST_ROWS = (
    "select k, ts, sum(v) over (partition by k order by ts, v rows between 30 preceding and 3 following) as p "
    "from raw.s"
)
RUNNING = "select k, ts, sum(v) over (partition by k order by ts) as s from raw.s"
SESSIONS = (
    "select k, session_window.start as b, sum(v) as s from raw.s group by k, session_window(ts, '1 minute')"
)


_SEEDS = pytest.mark.parametrize("seed", by_run(range(2), more=range(2, 14), long=range(14, 30)))


@pytest.mark.parametrize(
    "seed",
    by_run(range(1), more=range(1, 14), long=range(14, 24)),
)
def test_random_models(seed: int, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    _replay(random_scenario(seed), tmp_path, monkeypatch)


@pytest.mark.parametrize(
    "seed",
    by_run(range(1), more=range(1, 11), long=range(11, 24)),
)
def test_random_sessions(seed: int, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    _replay(random_sessions(seed), tmp_path, monkeypatch)


@pytest.mark.parametrize(
    "seed",
    by_run(range(1), more=range(1, 14), long=range(14, 30)),
)
def test_random_sequences_of_dates(seed: int, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    _replay(random_days(seed), tmp_path, monkeypatch)


@_SEEDS
def test_random_windows_of_times_without_a_zone(
    seed: int, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    _replay(random_local(seed), tmp_path, monkeypatch)


@_SEEDS
def test_random_rows_and_times(seed: int, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    _replay(random_mixed(seed), tmp_path, monkeypatch)


@_SEEDS
@pytest.mark.parametrize(
    "make",
    [
        random_mixed,
        partial(random_scenario, model=random_framed),
        partial(random_scenario, model=random_sequence, new_row=partial(random_row, days=20)),
    ],
)
def test_random_windows_over_inputs_that_are_read(seed: int, make: Callable[[int], dict[str, Any]]) -> None:
    """Where sizes are known, no copy of a small input is kept, nor of a large one that lies in the order of time."""
    scenario = make(seed)
    for model in scenario["models"]:
        _stream(model["sql"], scenario)
        plan = _stream(model["sql"], scenario, rows=30_000_000, ranges=IN_ORDER)
        assert not any(isinstance(v.core, Map) and isinstance(v.core.input, Scan) for v in plan.helpers)


@_SEEDS
def test_random_extremes_over_weeks(seed: int) -> None:
    """Blocks within a frame stand for their rows, whether these are copied, read near the change, or read at once."""
    days = (20, 60, 200)[seed % 3]
    scenario = random_scenario(seed, model=random_extremes, new_row=partial(random_row, days=days))
    for model in scenario["models"]:
        _stream(model["sql"], scenario)
        for ranges in (None, IN_ORDER):
            plan = _stream(model["sql"], scenario, rows=30_000_000, ranges=ranges)
            # A block that lies in one frame as a whole may lie in another one by half.
            has_one_frame = len(set(re.findall("range between [^)]*", model["sql"]))) == 1
            found = any(view.reason == "the blocks of each key that have rows" for view in plan.helpers)
            assert found or not has_one_frame


YEAR = """
    select k, ts, v, max(v) over (partition by k order by ts
      range between interval '364 days' preceding and current row) as high from raw.s
"""


@pytest.mark.parametrize(
    "ranges", [{}, {("raw.s", "ts"): KeyRange(0, 10**15, 30_000_000)}], ids=["copy", "near"]
)
@pytest.mark.parametrize(
    "sql", [YEAR, YEAR.replace("as high", "as high, lag(v) over (partition by k order by ts)")]
)
def test_a_year_is_read_by_the_extremes_of_its_blocks(sql: str, ranges: Any) -> None:
    """A day more reads some weeks of rows, of a year and of what has been before.

    Values fall from day to day, so that the greatest one of a frame is that of its first row.
    """
    first, read = datetime(2020, 1, 1), []
    for days in (800, 1600):
        source = relation("raw.s", "k string, ts timestamp, v int")
        measured = TableStatistics.of({"raw.s": 30_000_000}, ranges=ranges)
        bench = Bench(plan_of(sql, [source], {}, measured, "UTC"), DuckDbEngine())
        rows = [(f"k{k}", first + timedelta(days=d), -d) for d in range(days) for k in range(3)]
        bench.engine.create_table("raw.s", source.columns, rows, change_feed=True)
        bench.refresh()
        bench.check()
        bench.engine.change(
            "raw.s", insert=[(f"k{k}", first + timedelta(days=days), -days) for k in range(3)]
        )
        report = bench.refresh()
        bench.check()
        read.append(sum(n for name, n in report.scans if name == "raw.s" or "view_1_s_by" in name))
        middle = rows[3 * (days // 2)]
        bench.engine.change("raw.s", insert=[(middle[0], first + timedelta(days=90), 50)], delete=[middle])
        bench.refresh()
        bench.check()
    assert read[0] == read[1]
    assert 0 < read[0] < 3 * 6 * 32, "of three blocks, and of that of the change once more"


@pytest.mark.parametrize("order", ["ts", "ts desc"])
def test_a_block_in_which_a_frame_ends_is_read_by_its_rows(order: str) -> None:
    """Days may be longer or shorter than 24 hours: both are counted with, at either end."""
    frame = "range between interval '364 days' preceding and interval '62 days' preceding"
    listed = ", ".join(
        f"{call}(v) over (partition by k order by {order} {frame}) as {call}" for call in ("max", "min")
    )
    sql = f"select k, ts, v, {listed} from raw.s"
    source, first = relation("raw.s", "k string, ts timestamp, v int"), datetime(2020, 1, 1)
    bench = Bench(
        plan_of(sql, [source], {}, TableStatistics.of({"raw.s": 30_000_000}), "UTC"), DuckDbEngine()
    )
    rows = [("a", first + timedelta(days=d), d) for d in range(810)]
    bench.engine.create_table("raw.s", source.columns, rows, change_feed=True)
    bench.refresh()
    # At the end of what there is, and at its begin, no other block is read by its rows too.
    for day in (805, 790, 5, 25, 450):
        bench.engine.change(
            "raw.s", insert=[("a", first + timedelta(days=day, hours=1), day)], delete=[rows[day]]
        )
        bench.refresh()
        bench.check()


@_SEEDS
def test_random_sequences_in_blocks_of_weeks(seed: int) -> None:
    """Of keys with a hundred rows each a copy is kept, and it has longer blocks than days."""
    scenario = random_scenario(seed, model=random_sequence, new_row=partial(random_row, days=200))
    for model in scenario["models"]:
        _stream(model["sql"], scenario, rows=30_000_000, keys=300_000)


IN_ORDER = {("r", "ts"): KeyRange(0, 10**15, 30_000_000)}


def _stream(
    sql: str,
    scenario: dict[str, Any],
    rows: int = 1000,
    keys: int = 3,
    ranges: Mapping[tuple[str, str], KeyRange] | None = None,
) -> Plan:
    """The plan of the model, which is as its recompute after each step."""
    sources = [relation(name, ", ".join(map(" ".join, c))) for name, c in scenario["tables"].items()]
    measured = TableStatistics.of(
        {source.name: rows for source in sources}, {("r", "k"): keys}, ranges=ranges
    )
    session = (("timezone", "UTC"),) if ranges is not None else ()
    request = ModelRequest(
        "analytics.m", sql, Catalog.of(sources), load_config({}), session, measured=measured
    )
    engine = DuckDbEngine()
    plan = plan_model(request, engine.describe)
    bench = Bench(plan, engine)
    for source in sources:
        rows = [tuple(row) for row in scenario["initial"][source.name]]
        engine.create_table(source.name, source.columns, rows, change_feed=True)
    bench.refresh()
    bench.check()
    for step in scenario["steps"]:
        for name, delta in step["delta"].items():
            come, gone = ([tuple(row) for row in delta[kind]] for kind in ("insert", "delete"))
            engine.change(name, insert=come, delete=gone)
        bench.refresh()
        bench.check()
    return plan


def _replay(scenario: dict[str, Any], tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    cache_statements(monkeypatch)
    path = tmp_path / "windows.jsonl"
    path.write_text(json.dumps(scenario), encoding="utf-8")
    (located,) = load_scenarios([path])
    result = replay_scenario(located.scenario, tiny_workbench)
    assert result.outcome == "passed", "\n".join([result.line(), result.message or "", *result.details()])


def _rows(days: int, keys: int = 2, every: int = 60) -> list[Row]:
    """A row per key each ``every`` minutes of the last ``days`` before May."""
    end = datetime(2024, 5, 1)
    many = days * 24 * 60 // every
    return [
        (f"k{k}", end - timedelta(minutes=every * (n + 1)), n % 7 - 3)
        for n in range(many)
        for k in range(keys)
    ]


def _counting(sql: str, rows: list[Row], columns: str = COLUMNS, **meta: object) -> Bench:
    """A model, built, over an engine that counts what it reads."""
    source = relation("raw.s", columns)
    bench = Bench(plan_of(sql, [source], {**BY_DAY, **meta}), DuckDbEngine())
    bench.engine.create_table("raw.s", source.columns, rows, change_feed=True)
    bench.refresh()
    return bench


def _read(sql: str, days: int, change: list[Row], gone: list[Row] | None = None, **meta: object) -> int:
    """What a refresh reads for one change, after as many days."""
    bench = _counting(sql, _rows(days), **meta)
    bench.check()
    bench.engine.change("raw.s", insert=change, delete=gone or [])
    report = bench.refresh()
    bench.check()
    assert report.rows_read is not None
    return report.rows_read


LATE: list[Row] = [("k0", datetime(2024, 4, 29, 10, 30), 9)]


@pytest.mark.parametrize(
    "sql",
    fast_only(
        ["sum", "median", "session of max"],
        {
            "sum": SLIDING.format("sum(v)", "4 hours", "1 hour"),
            "max": SLIDING.format("max(v)", "4 hours", "1 hour"),
            "median": SLIDING.format("median(v)", "4 hours", "1 hour"),
            "tumbling": SLIDING.format("max(v)", "2 hours", "2 hours"),
            "session": SESSIONS,
            "session of max": SESSIONS.replace("sum(v)", "max(v)"),
            "session of median": SESSIONS.replace("sum(v)", "median(v)"),
            "frame": FRAME.format("sum(v)", "3 hours"),
            "frame of min": FRAME.format("min(v)", "3 hours"),
        },
    ),
)
def test_history_is_not_read(sql: str) -> None:
    """Twenty days or five: a late row, and a row that goes, read the same rows."""
    assert _read(sql, 5, LATE) == _read(sql, 20, LATE)
    gone: list[Row] = [r for r in _rows(5) if r[0] == "k1" and r[1] == datetime(2024, 4, 29, 11)]
    assert len(gone) == 1
    assert _read(sql, 5, [], gone) == _read(sql, 20, [], gone)


@pytest.mark.parametrize("end", ["", "session_window.end as e, "])
def test_a_row_at_the_end_of_a_session_is_written_with_the_last_one(end: str) -> None:
    """Of a session of 128 rows; all of them are only when it has become twice as long."""
    start = datetime(2024, 4, 1)
    rows: list[Row] = [("k0", start + timedelta(minutes=n), n) for n in range(100)]
    bench = _counting(SESSIONS.replace("sum(v)", f"{end}sum(v)"), rows)
    written = []
    for n in range(100, 132):
        bench.engine.change("raw.s", insert=[("k0", start + timedelta(minutes=n), n)], delete=[])
        (view,) = bench.refresh().inner_views
        written.append(view.rows_merged)
    bench.check()
    one = 3 if end else 1
    assert written == [one] * 28 + [2 * 128 + 1] + [one] * 3


SEQUENCES = [
    LAG,
    LAG.replace("lag(v)", "lag(v, 30)"),
    LAST_ROWS,
    RUNNING,
    *(RUNNING.replace("sum(v)", call) for call in ("max(v)", "avg(v)", "rank()", "sum(v * 2)")),
    RUNNING.replace("sum(v)", "first_value(v)"),
    RUNNING.replace("sum(v)", "first_value(v) ignore nulls").replace("by ts", "by ts, v"),
    RUNNING.replace("sum(v)", "last(v, true)").replace("by ts", "by ts, v rows unbounded preceding"),
    RUNNING.replace("sum(v)", "avg(v)").replace(
        " from",
        ", sum(case when v > 3 then 1 end) over (partition by k "
        "order by ts) + count(v + 1) over (partition by k order by ts) as t from",
    ),
    RUNNING.replace("partition by k ", ""),
]


@pytest.mark.parametrize(
    "sql",
    fast_only(
        ("sql0", "sql4", "sql11", "sql12"), {f"sql{number}": sql for number, sql in enumerate(SEQUENCES)}
    ),
)
def test_a_sequence_reads_near_days_and_the_list_of_days(sql: str) -> None:
    """Of the rows those of the days beside the change or behind it are read, and of each affected key a row per day."""
    found = {}
    for days in (5, 20):
        bench = _counting(sql, _rows(days))
        bench.engine.change("raw.s", insert=LATE, delete=[])
        scans = dict(bench.refresh().scans)
        bench.check()
        rows, listed = (v.name for v in bench.plan.helpers)
        found[days] = (scans[rows], scans[bench.plan.root.relation], scans[listed])
    assert found[5][:2] == found[20][:2]
    assert found[5][2] < found[20][2] <= 4 * found[5][2]


@pytest.mark.parametrize("by", ["partition by k ", ""])
def test_a_running_mean_of_bigints_goes_on_where_their_sum_has_no_bigint(by: str) -> None:
    sql = f"select k, ts, avg(v) over ({by}order by ts) as mean from raw.s"
    rows: list[Row] = [(k, at, 2**62 + 2**55 * v) for k, at, v in _rows(4, every=240)]
    bench = _counting(sql, rows, COLUMNS.replace("v int", "v bigint"))
    assert any(v.over_time and "from the day of the change on" in v.over_time.why for v in bench.plan.views)
    bench.changed("raw.s", [("k0", datetime(2024, 4, 29, 10, 30), 2**63 - 1)], rows[3:5])


@pytest.mark.parametrize("sql", [LAG, RUNNING])
def test_a_sequence_of_dates_reads_near_days(sql: str) -> None:
    """One row a day: of fifty days or of two hundred the same rows are read, but for the list of days."""
    found = set()
    for days in (50, 200):
        rows: list[Row] = [(k, at.date(), v) for k, at, v in _rows(days, every=24 * 60)]
        bench = _counting(sql, rows, COLUMNS.replace("timestamp", "date"))
        scans = dict(bench.changed("raw.s", [("k0", date(2024, 4, 29), 9)]).scans)
        helper, _ = (v.name for v in bench.plan.helpers)
        found.add((scans[helper], scans[bench.plan.root.relation]))
    ((kept, _),) = found
    assert 0 < kept < 10


def test_rows_and_times_read_blocks_around_the_change() -> None:
    """One row a day, over frames of sixty days: whatever the history has, the same rows are read, and the list."""
    sql, found = MIXED.replace("'1 hour'", "'60 days'"), set()
    for days in (200, 300):
        rows: list[Row] = [(k, at.date(), v) for k, at, v in _rows(days, every=24 * 60)]
        bench = _counting(sql, rows, COLUMNS.replace("timestamp", "date"))
        scans = dict(bench.changed("raw.s", [("k0", date(2024, 4, 29), 9)]).scans)
        helper, _ = (v.name for v in bench.plan.helpers)
        found.add((scans[helper], scans[bench.plan.root.relation]))
    ((kept, _),) = found
    assert 60 < kept < 200


@pytest.mark.parametrize("sql", [SEQUENCES[0].replace("lag(v)", "lag(v, 3)"), LAST_ROWS])
def test_a_sequence_goes_over_several_days(sql: str) -> None:
    """A row every second day: those that a changed one looks at, and that look at it, lie in several blocks."""
    rows = _rows(30, every=2 * 24 * 60)
    bench = _counting(sql, rows)
    bench.engine.change("raw.s", insert=[("k0", datetime(2024, 4, 16, 10, 30), 9)])
    bench.refresh()
    bench.check()
    bench.engine.change("raw.s", insert=[("k0", datetime(2024, 4, 17, 10, 30), 8)], delete=rows[20:21])
    bench.refresh()
    bench.check()


def test_rows_are_read_once_and_not_once_per_window() -> None:
    """A window of a day each hour: of MAX the panes are read, which are as many as the hours, whatever lies in them."""
    sql = SLIDING.format("max(v)", "1 day", "1 hour")
    found = []
    for every in (60, 10):
        bench = _counting(sql, _rows(6, keys=1, every=every))
        bench.engine.change("raw.s", insert=LATE, delete=[])
        scans = dict(bench.refresh().scans)
        bench.check()
        panes = next(v.name for v in bench.plan.stored if "per affected group" in v.reason)
        found.append(scans[panes])
    assert found[0] == found[1] > 0


def test_sums_of_windows_read_no_rows_again() -> None:
    """SUM and COUNT keep nothing but the windows; the change alone is read beside those that it is added to."""
    plan = plan_of(SLIDING.format("sum(v)", "1 day", "1 hour"), [relation("raw.s", COLUMNS)], BY_DAY)
    assert not plan.helpers
    assert "reads nothing in full" in "\n".join(maintenance(plan))


def test_every_name_of_an_aggregate_is_called_over_panes() -> None:
    for name in ("any", "some", "bool_or", "every", "bit_xor"):
        sql = SLIDING.format(f"{name}(v{'' if name == 'bit_xor' else ' > 0'})", "4 minutes", "1 minute")
        text = explain(plan_of(sql, [relation("raw.s", COLUMNS)]))
        assert f"{name.upper()}(kept.pane_" in text, name


@pytest.mark.parametrize(
    ("sql", "name"),
    [
        (SLIDING.format("sum(v)", "4 minutes", "1 minute"), "constant extra state"),
        (SLIDING.format("sum(v)", "4 minutes", "4 minutes"), "constant extra state"),
        (SLIDING.format("max(v)", "4 minutes", "1 minute"), "windowed: the panes in 3 blocks of 4 minutes"),
        (SLIDING.format("median(v)", "4 minutes", "1 minute"), "windowed: the rows in 3 blocks of 4 minutes"),
        (SLIDING.format("max(v)", "4 minutes", "4 minutes"), "windowed: the rows of an affected window"),
        (FRAME.format("sum(v)", "1 hour"), "windowed: the rows in 3 blocks of 1 hour"),
        (FRAME.format("sum(v)", "60 days"), "windowed: the rows in 9 blocks of 16 days"),
        (MIXED, "windowed: the rows in 2 blocks of 1 hour around the change, and around the nearest ones"),
        (LAG, f"{NEAREST} that have rows of the key"),
        (LAG.replace("lag(v)", "lag(v, 9)"), f"{NEAREST} that have 9 rows of the key"),
        (LAG.replace("lag(v)", "lag(v, v)"), "whole input: all rows of an affected k"),
        (RUNNING, "windowed: the rows from the day of the change on, and what the functions are over each day"),
        (RUNNING.replace("by ts", "by ts desc"), "whole input: all rows of an affected k"),
        (RUNNING.replace("sum(v)", "first_value(v)"), "windowed: the rows from the day of the change on"),
        (RUNNING.replace("sum(v)", "rank()"), "windowed: the rows from the day of the change on"),
        (RUNNING.replace("sum(v)", "avg(v + 1)"), "whole input: all rows of an affected k"),
        (RUNNING.replace("sum(v)", "dense_rank()"), "windowed: the rows from the day of the change on"),
        (RUNNING.replace("sum(v)", "percent_rank()"), "whole input: all rows of an affected k"),
        (FRAME.format("max(v)", "364 days"), "windowed: of 13 blocks of 32 days around the change the rows in 3, the"),
        (SESSIONS, "windowed: the sessions that have rows within 1 minute of the change"),
        (SESSIONS.replace("sum(v)", "max(v)"), "windowed: the rows of an affected session"),
    ],
)  # fmt: skip
def test_the_class_is_told(sql: str, name: str) -> None:
    plan = plan_of(sql, [relation("raw.s", COLUMNS)])
    lines = maintenance(plan)
    assert any(f"over time {name}" in line for line in lines), "\n".join(lines)
    classes = [view["over_time"] for view in json.loads(plan.to_json())["views"]]
    assert any(c is not None and f"{c['name']}: {c['why']}".startswith(name) for c in classes)


_FILTERED = LAG.replace("from raw.s", "from (select k as k, ts, v from raw.s where v > 0) as q")


@pytest.mark.parametrize("sql", [LAG, _FILTERED])
@pytest.mark.parametrize(
    ("keys", "what", "views"),
    [
        (20, "windowed: the rows in the block of 4 weeks of the change, and in the nearest ones", 1),
        (21, "whole input: all rows of an affected k", 0),
        (None, "whole input: all rows of an affected k", 0),
    ],
)
def test_blocks_are_listed_of_an_input_whose_keys_have_many_rows(
    sql: str, keys: int | None, what: str, views: int
) -> None:
    distinct = {} if keys is None else {("raw.s", "k"): keys}
    measured = TableStatistics.of({"raw.s": 1000}, distinct)
    catalog = Catalog.of([relation("raw.s", COLUMNS)])
    request = ModelRequest("analytics.m", sql, catalog, load_config({}), measured=measured)
    plan = plan_model(request, DuckDbEngine().describe)
    assert any(f"over time {what}" in line for line in maintenance(plan))
    assert len(plan.helpers) == views
    unmeasured = plan_model(replace(request, measured=None), DuckDbEngine().describe)
    for known in (plan, unmeasured):
        assert "k" in dict(known.measurable)["raw.s"]


@pytest.mark.parametrize(
    ("sql", "what"),
    [
        ("select count(*) as n from raw.s group by window(ts, '1 month')", "is no fixed length of time"),
        ("select count(*) as n from raw.s group by window(ts, '1 hour', '2 hours')", "the slide no longer"),
        ("select count(*) as n from raw.s group by window(ts, '1 hour', '1 hour', '2 hours')", "start within"),
        ("select count(*) as n from raw.s group by window(ts)", "with 1 arguments"),
        (
            "select count(*) as n from raw.s group by window(ts, '1 hour'), window(ts, '2 hours')",
            "a second time window in one SELECT",
        ),
        ("select count(*) as n from raw.s group by rollup(k, window(ts, '1 hour'))", "ROLLUP"),
        ("select count(*) as n from raw.s group by session_window(ts, concat(v, ' hours'))", "no fixed length"),
        (f"{SESSIONS} having session_window.start > timestamp '2024-01-01'", "before there are sessions"),
        (
            "select * from (select k, session_window.end as e from raw.s group by k, session_window(ts, '1 hour')) "
            "where k > 'a' and e < timestamp '2024-01-01'",
            "before there are sessions",
        ),
        (SESSIONS.replace("sum(v)", "count(distinct session_window.end)"), "of a row or the whole one"),
        (SESSIONS.replace("sum(v)", "max(unix_micros(session_window.end))"), "of a row or the whole one"),
        (SESSIONS.replace("sum(v)", "min(session_window.end)"), "of a row or the whole one"),
        (SESSIONS.replace("sum(v)", "max(session_window.end) filter (where v > 1)"), "of a row or the whole one"),
        (SESSIONS.replace("sum(v)", "sum(v) filter (where session_window.start < ts)"), "of a row or the whole one"),
        ("select window.begin as b, count(*) as n from raw.s group by window(ts, '1 hour')", "no begin"),
        ("select k from raw.s where window(ts, '1 hour').start > ts", "not maintained"),
    ],
)  # fmt: skip
def test_refused(sql: str, what: str) -> None:
    with pytest.raises(FivmError) as error:
        plan_of(sql, [relation("raw.s", COLUMNS)])
    assert what in error.value.message, error.value.message


@pytest.mark.parametrize(
    "sql",
    [
        "select count(*) as n from r group by window(ts, '1 hour')",
        "select window_time(w) as t from (select window as w from r group by window(x, '1 hour')) as q",
    ],
)
def test_a_time_without_a_zone_is_one_of_a_clock_in_utc(sql: str) -> None:
    """In another zone an hour that comes twice would be one window, and its bounds would be read as others."""
    local = [relation("r", "ts timestamp_ntz, x timestamp_ntz")]
    plan_of(sql, local, zone="UTC")
    with pytest.raises(FivmError) as error:
        plan_of(sql, local, zone="Europe/Vienna")
    assert error.value.code.number == "FIVM105" and "time zone to UTC" in (error.value.remedy or "")
