"""The map of interval analysis: which parts of the inputs a part of a model is computed from."""

from __future__ import annotations

import json
import random
from datetime import date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest

from fivm_dbt.catalog import Catalog, Column, EventTime, Relation
from fivm_dbt.config import load_config
from fivm_dbt.errors import FivmError
from fivm_dbt.explain.part_maps import part_map_lines
from fivm_dbt.explain.text import explain
from fivm_dbt.parts.length import Length
from fivm_dbt.plan.model.part_map import InputParts
from fivm_dbt.plan.planner import plan_model
from fivm_dbt.plan.request import ModelRequest
from fivm_dbt.refresh.engine import Row
from fixtures.models import Bench, relation
from fixtures.runs import fast_only

PINGS = Relation(
    "raw.pings",
    (Column.of("host", "string"), Column.of("ts", "timestamp"), Column.of("ms", "int")),
    event_time=EventTime("ts", "minute", "2 hours"),
)
ALERTS = relation("raw.alerts", "host string, ts timestamp, level int")
DAYS = relation("raw.days", "day date, is_holiday boolean")
HOSTS = relation("raw.hosts", "host string, region string")
CATALOG = Catalog.of([PINGS, ALERTS, DAYS, HOSTS])


def _map(sql: str, zone: str = "UTC", **config: object) -> list[str]:
    request = ModelRequest("m", sql, CATALOG, load_config(config), (("timezone", zone),))
    return [line.strip() for line in part_map_lines(plan_model(request).part_maps[:1])]


DAILY = "select date_trunc('day', ts) as day, count(*) as n from raw.pings group by 1"
LATE = "rows come at most 2 hours late: a part is final once ts has reached its end"

MAPS: dict[str, tuple[str, list[str]]] = {
    "a window": (
        "select window.start as b, count(*) as n from raw.pings group by window(ts, '5 minutes')",
        [
            "m, by b, in parts of a minute",
            "← raw.pings with ts from b to before b + 5 minutes",
            "m[j] ← pings[j .. j+4]",
            f"{LATE} + 124 minutes",
        ],
    ),
    "a sliding window": (
        "select window.end as e, max(ms) as worst from raw.pings group by window(ts, '1 hour', '15 minutes')",
        [
            "m, by e, in parts of an hour",
            "← raw.pings with ts from e - 1 hour to before e",
            "m[j] ← pings[j*60-60 .. j*60+59], in parts of a minute",
            f"{LATE} + 2 hours",
        ],
    ),
    "a window beside a band": (
        "select b, count(*) as n from (select window.start as b, sum(ms) as s from raw.pings "
        "group by window(ts, '1 hour')) as w join raw.alerts a "
        "on a.ts between w.b - interval '1' hour and w.b group by b",
        [
            "m, by b, in parts of an hour",
            "← raw.pings with ts from b to before b + 1 hour",
            "m[j] ← pings[j*60 .. j*60+59], in parts of a minute",
            f"{LATE} + 2 hours",
            "← raw.alerts as a with ts from b - 1 hour to b",
            "m[j] ← alerts[j-1 .. j]",
        ],
    ),
    "equal parts of another length": (
        DAILY,
        [
            "m, by day, in parts of a day",
            "← raw.pings with ts from day to before day + 1 day",
            "m[j] ← pings[j*1440 .. j*1440+1439], in parts of a minute",
            f"{LATE} + 2 hours",
        ],
    ),
    "a cast": (
        "select cast(ts as date) as day, max(ms) as worst from raw.alerts join raw.pings using (host, ts) group by 1",
        [
            "m, by day, in parts of a day",
            "← raw.alerts with ts from day to before day + 1 day",
            "m[j] ← alerts[j]",
            "← raw.pings with ts from day to before day + 1 day",
            "m[j] ← pings[j*1440 .. j*1440+1439], in parts of a minute",
            f"{LATE} + 2 hours",
        ],
    ),
    "shifted": (
        "select date_add(ts, 1) as day, count(*) as n from raw.alerts where ts >= '2024-01-01' group by 1",
        [
            "m, by day, in parts of a day",
            "← raw.alerts with ts from day - 1 day to before day, from 2024-01-01",
            "m[j] ← alerts[j-1]",
        ],
    ),
    "band": (
        "select a.ts, p.ms from raw.alerts a join raw.pings p on p.ts between a.ts - interval '5' minutes and a.ts",
        [
            "m, by ts, in parts of a minute",
            "← raw.alerts as a with ts = ts",
            "m[j] ← alerts[j]",
            "← raw.pings as p with ts from ts - 5 minutes to ts",
            "m[j] ← pings[j-5 .. j]",
            LATE + " + 2 hours",
        ],
    ),
    "band by the day": (
        """select date_trunc('day', a.ts) as day, sum(p.ms) as ms from raw.alerts a
        join raw.pings p on p.ts between a.ts - interval '5' minutes and a.ts group by 1""",
        [
            "m, by day, in parts of a day",
            "← raw.alerts as a with ts from day to before day + 1 day",
            "m[j] ← alerts[j]",
            "← raw.pings as p with ts from day - 5 minutes to before day + 1 day",
            "m[j] ← pings[j*1440-5 .. j*1440+1439], in parts of a minute",
            f"{LATE} + 2 hours",
        ],
    ),
    "months": (
        "select trunc(ts, 'MM') as month, count(*) as n from raw.alerts group by 1",
        [
            "m, by month, in parts of a month",
            "← raw.alerts with ts from month to before month + 1 month",
            "m[j] ← alerts[j]",
        ],
    ),
    "weeks begin on Mondays": (
        "select date_trunc('week', ts) as week, count(*) as n from raw.alerts group by 1",
        [
            "m, by week, in parts of a week",
            "← raw.alerts with ts from week to before week + 7 days",
            "m[j] ← alerts[j*7+4 .. j*7+10], in parts of a day",
        ],
    ),
    "a dimension has no time": (
        """select d.day, count(*) as n from raw.days d join raw.alerts a on cast(a.ts as date) = d.day
        left join raw.hosts h on h.host = a.host group by 1""",
        [
            "m, by day, in parts of a day",
            "← raw.days as d with day = day",
            "m[j] ← days[j]",
            "← raw.alerts as a with ts from day to before day + 1 day",
            "m[j] ← alerts[j]",
            "← raw.hosts as h, all of it",
        ],
    ),
    "a week before": (
        """with daily as (select cast(ts as date) as day, count(*) as n from raw.alerts group by 1)
        select x.day, x.n - y.n as more from daily x left join daily y on y.day = x.day - 7""",
        [
            "m, by day, in parts of a day",
            "← raw.alerts with ts from day to before day + 1 day",
            "m[j] ← alerts[j]",
            "← raw.alerts as alerts_2 with ts from day - 7 days to before day - 6 days",
            "m[j] ← alerts[j-7]",
        ],
    ),
    "running totals": (
        "select ts, sum(ms) over (partition by host order by ts, ms) as total from raw.pings",
        [
            "m, by ts, in parts of a day",
            "← raw.pings with ts up to ts: all earlier parts",
            f"{LATE} + 2 hours",
        ],
    ),
    "frames": (
        """select day, avg(n) over (order by day range between 6 preceding and 1 following) as mean
        from (select cast(ts as date) as day, count(*) as n from raw.alerts group by 1)""",
        [
            "m, by day, in parts of a day",
            "← raw.alerts with ts from day - 6 days to before day + 2 days",
            "m[j] ← alerts[j-6 .. j+1]",
        ],
    ),
    "frames that look ahead": (
        "select ts, sum(level) over (order by ts desc, level, host rows between 2 preceding and current row) as s "
        "from raw.alerts",
        ["m, by ts, in parts of a day", "← raw.alerts with ts from ts: all later parts"],
    ),
    "the clock": (
        "select ts, level from raw.alerts where ts >= now() - interval '7' days",
        [
            "m, by ts, in parts of a day",
            "← raw.alerts with ts = ts, from now - 7 days",
            "m[j] ← alerts[j]",
        ],
    ),
    "either of two": (
        "select ts, level from raw.alerts union all select ts + interval '1' minute as ts, ms from raw.pings",
        [
            "m, by ts, in parts of a minute",
            "← raw.alerts with ts = ts",
            "m[j] ← alerts[j]",
            "← raw.pings with ts = ts - 1 minute",
            "m[j] ← pings[j-1]",
            f"{LATE} + 119 minutes",
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MAPS)
def test_map(name: str) -> None:
    sql, lines = MAPS[name]
    assert _map(sql) == lines


AT_THESE_TIMES = "m[j] ← pings at these times, in parts of a minute"
HOURLY = DAILY.replace("day", "hour")


@pytest.mark.parametrize("zone", ["Europe/Vienna", "Asia/Kolkata"])
@pytest.mark.parametrize("name", MAPS)
def test_a_session_in_another_zone_has_the_same_times(zone: str, name: str) -> None:
    """But for what is counted: minutes are numbered in UTC, and days of the zone do not begin with theirs."""
    sql, lines = MAPS[name]
    if name.startswith("a window") or name == "a sliding window":
        # That they begin with whole minutes is known in UTC alone: elsewhere the numbers reach one part farther.
        assert [x for x in _map(sql, zone) if " with " in x] == [x for x in lines if " with " in x]
        return
    is_daily = lines[0].endswith("in parts of a day")
    numbered = [
        AT_THESE_TIMES if is_daily and line.endswith("in parts of a minute") else line for line in lines
    ]
    assert _map(sql, zone) == numbered


def test_numbers_that_depend_on_the_zone_are_not_told() -> None:
    """Hours of a zone may begin at half past, and two days of it are not always 2,880 minutes."""
    two_days = "select a.ts, p.ms from raw.pings a join raw.pings p on p.ts between a.ts - interval '2' days and a.ts"
    assert "m[j] ← pings[j*60 .. j*60+59], in parts of a minute" in _map(HOURLY)
    assert AT_THESE_TIMES in _map(HOURLY, "Asia/Kolkata")
    assert "m[j] ← pings[j*60-2880 .. j*60+59], in parts of a minute" in _map(two_days, batch_size="hour")
    assert AT_THESE_TIMES in _map(two_days, "Europe/Vienna", batch_size="hour")


@pytest.mark.parametrize(
    "sql",
    [
        "select host, count(*) as n from raw.pings group by 1",
        "select count(*) as n from raw.pings",
        "select max(ts) as newest from raw.hosts join raw.pings using (host)",
        "select cast(region as timestamp) as ts from raw.hosts",
    ],
)
def test_no_time_no_map(sql: str) -> None:
    assert _map(sql) == [] or not _map(sql)[0].startswith("m, by")


def test_parts_of_the_model_may_be_longer_than_its_periods() -> None:
    lines = _map(DAILY, batch_size="month")
    assert lines[:2] == ["m, by day, in parts of a month", MAPS["equal parts of another length"][1][1]]
    assert AT_THESE_TIMES in lines, "minutes of a month are no linear numbers"
    hourly = "select date_trunc('hour', ts) as hour, count(*) as n from raw.pings group by 1"
    assert "m[j] ← pings[j*1440 .. j*1440+1439], in parts of a minute" in _map(hourly, batch_size="day")
    shorter = _map(DAILY, batch_size="hour")
    assert shorter[0] == "m, by day, in parts of a day", "a day is not in parts of an hour"


def test_inner_views_have_maps_and_plans_have_them_as_json() -> None:
    sql = "select a.host, d.n from raw.alerts a join (select cast(ts as date) as day, count(*) as n from raw.pings group by 1) d on d.day = cast(a.ts as date)"  # noqa: E501
    plan = plan_model(ModelRequest("m", sql, CATALOG, load_config({}), (("timezone", "UTC"),)))
    assert [m.relation for m in plan.part_maps] == ["m__fivm_view_1_pings"]
    (first,) = json.loads(plan.to_json())["part_maps"]
    assert first["inputs"][0]["parts"]["low"] == {"class": "Bound", "factor": 1440, "offset": 0, "divisor": 1}
    assert "== which parts are computed from which\n" in explain(plan)
    without = plan_model(ModelRequest("m", "select host from raw.hosts", CATALOG, load_config({})))
    assert "which parts" not in explain(without)


def test_lengths_that_cannot_be_read() -> None:
    wrong = Relation(PINGS.name, PINGS.columns, event_time=EventTime("ts", None, "soon"))
    with pytest.raises(FivmError, match="fivm_lateness: 'soon' is no length of time") as caught:
        plan_model(ModelRequest("m", DAILY, Catalog.of([wrong]), load_config({})))
    assert caught.value.code.number == "FIVM201"
    none = Relation(PINGS.name, PINGS.columns, event_time=EventTime("ts", "0", "0"))
    with pytest.raises(FivmError, match="fivm_part_length: '0' is no length"):
        plan_model(ModelRequest("m", DAILY, Catalog.of([none]), load_config({})))


BY_PARTS = {
    "daily": (DAILY.replace("raw.pings", "raw.alerts"), 7 * 60),
    "daily from minutes": (DAILY, 7 * 60),
    "band": (
        "select a.ts, b.level from raw.alerts a join raw.alerts b on b.ts between a.ts - interval '5' minutes and a.ts",
        1,
    ),
    "week before": (MAPS["a week before"][0], 7 * 60),
    "shifted": (MAPS["shifted"][0], 7 * 60),
    "weekly": (MAPS["weeks begin on Mondays"][0], 7 * 60),
    "monthly": (MAPS["months"][0], 7 * 60),
    "window": (MAPS["a window"][0], 1),
    "sliding window": (MAPS["a sliding window"][0], 10),
    "frames": (MAPS["frames"][0], 7 * 60),
    "frames of rows that come after": (MAPS["frames that look ahead"][0], 7 * 60),
    "running totals": (MAPS["running totals"][0], 7 * 60),
}
"""Queries over one input, and how many minutes lie between rows."""


IN_ZONES = [(name, zone) for name in BY_PARTS for zone in ("UTC", "Europe/Vienna")]


@pytest.mark.parametrize(("name", "zone"), fast_only(IN_ZONES[::6] + IN_ZONES[3::6], IN_ZONES))
def test_a_part_is_computed_from_the_parts_of_the_map_alone(name: str, zone: str) -> None:
    """A change in part p of the input changes no parts of the model but those whose references have p in them.

    DuckDB's times are those that clocks of the zone show, which go forward in the middle of the rows.
    """
    sql, many = BY_PARTS[name]
    rng = random.Random(name)
    step = timedelta(minutes=many)
    start = datetime(2024, 3, 31) - 30 * step
    rows: list[Row] = [
        (rng.choice("ab"), start + step * rng.randint(0, 60), rng.randint(0, 3)) for _ in range(40)
    ]
    plan = plan_model(ModelRequest("m", sql, CATALOG, load_config({}), (("timezone", zone),)))
    (source,) = plan.inputs
    bench = Bench.built(plan, {source.name: rows})
    found, seen, kept = plan.part_maps[0], 0, 0
    column = [c.name for c in plan.output].index(found.column)
    for _ in range(12):
        row: Row = ("a", start + step * rng.randint(0, 60), 7)
        before = bench.shown()
        bench.engine.change(source.name, insert=[row])
        bench.refresh()
        after = bench.shown()
        bench.check()
        changed = {r[column] for r in (before - after) + (after - before)}
        for own in {r[column] for r in after}:
            is_among = any(_is_among(i, found.part, own, row[1], zone) for i in found.inputs)
            assert is_among or own not in changed, (own, row[1])
            kept += not is_among
        seen += bool(changed)
    assert seen and kept, "a map that says of all parts that they may change would be right too"


def _is_among(item: InputParts, part: str, own: object, time: datetime, zone: str) -> bool:
    """Whether a row of an input at this time is one of those from which the view's rows at their ``own`` come."""
    if item.parts is not None and item.part is not None:
        number = Length.of(item.part, zone).part_of(_instant(time, zone))
        return number in item.parts.parts(Length.of(part, zone).part_of(_instant(own, zone)))
    distance = _instant(time, "UTC") - _instant(own, "UTC")
    low, high = (None if s is None else timedelta(microseconds=s.micros) for s in (item.low, item.high))
    return (low is None or low <= distance) and (high is None or distance <= high)


def _instant(value: object, zone: str) -> datetime:
    """The instant of a local time."""
    if not isinstance(value, datetime):
        assert isinstance(value, date)
        value = datetime(value.year, value.month, value.day)
    return value.replace(tzinfo=ZoneInfo(zone)).astimezone(timezone.utc)
