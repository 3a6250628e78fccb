"""Time zones of viewdf models: columns with and without a zone, parts of fixed length and of a calendar."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta, timezone
from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest

from fivm_dbt.bridge.methods.refresh import _instant
from fivm_dbt.errors import FivmError
from fivm_dbt.features.viewdf.bridge.checks import check_viewdf_models
from fivm_dbt.parts.length import Length
from fivm_dbt.parts.parted import TimeParts
from fivm_dbt.project.manifest import Nodes
from fixtures.runs import by_run, fast_only
from viewdf_bench import Bench, Model, Row, Table

OLDEST = {"fivm_start": "oldest"}
ZONES = ("UTC", "Europe/Vienna", "Asia/Kolkata")
BEGINS = datetime(2024, 3, 29)
"""Two days before clocks change in Europe; the autumn's are at OCTOBER."""
OCTOBER = datetime(2024, 10, 26)


@contextmanager
def bench(tables: list[Table], models: list[Model], zone: str) -> Iterator[Bench]:
    made = Bench(tables, models, zone)
    try:
        yield made
    finally:
        made.close()


@dataclass(frozen=True)
class Clock:
    """What a viewdf model over a source has to show, by the clock alone: counts by hour, day or month."""

    rows: list[Row]

    def counts(self, unit: str) -> list[int]:
        patterns = {"hour": "%Y%m%d%H", "day": "%Y%m%d", "month": "%Y%m"}
        found: dict[str, int] = {}
        for row in self.rows:
            name = row[0].strftime(patterns[unit])
            found[name] = found.get(name, 0) + 1
        return [found[name] for name in sorted(found)]


def source(type_: str, length: str, zone: str, begins: datetime, hours: int = 120) -> Table:
    """An hour of rows each; of dates a day of them, which are at midnight."""
    times: list[Any] = [begins + timedelta(hours=i) for i in range(hours)]
    if type_ == "date":
        times = [t.date() for t in times]
    parts = TimeParts("ts", Length.of(length, zone), timedelta())
    return Table("m", [("ts", type_), ("x", "int")], [(t, i) for i, t in enumerate(times)], parts)


def counted(reference: str, length: str) -> Model:
    query = f"select count(*) as n, sum(x) as s from {{m:{reference}}} having count(*) > 0"
    return Model("counted", query, None, {**OLDEST, "fivm_part_length": length})


LOCAL = [
    (type_, own, reference, length)
    for type_ in ("timestamp_ntz", "date")
    for own, reference, length in (
        ("hour", "j", "hour"),
        ("hour", "span j", "day"),
        ("6 hours", "span j", "day"),
        ("24 hours", "span j", "month"),
        ("day", "j", "day"),
        ("day", "span j", "month"),
        ("hour", "j*24..j*24+23", "24 hours"),
    )
]


FAST = [(*case, ZONES[number % 3]) for number, case in enumerate(LOCAL) if number < 7 or case[1] == "day"]
"""Times by each length, and days of dates, in one zone each."""


@pytest.mark.parametrize("begins", by_run([BEGINS], long=[OCTOBER]), ids=["spring", "autumn"])
@pytest.mark.parametrize(
    ("type_", "own", "reference", "length", "zone"),
    fast_only(FAST, [(*case, zone) for case, zone in product(LOCAL, ZONES)]),
)
def test_columns_without_a_zone_are_divided_by_their_clock(
    type_: str, own: str, reference: str, length: str, zone: str, begins: datetime
) -> None:
    """Also late rows in the last hour of days, and in the hour that clocks skip or repeat."""
    if length == "month":
        begins = begins.replace(day=1)
    table = source(type_, own, zone, begins, 33 * 24 if length == "month" else 120)
    unit = {"24 hours": "day"}.get(length, length)
    with bench([table], [counted(reference, length)], zone) as b:
        b.run()
        check(b, table, unit)
        for hours in (23, 50, 71):
            late = begins + timedelta(hours=hours, minutes=30)
            b.change("m", [(late.date() if type_ == "date" else late, 1000)])
            b.run()
            check(b, table, unit)
        kept = b.rows("counted")
        b.run(full_refresh=True)
        assert b.rows("counted") == kept


def check(b: Bench, table: Table, unit: str) -> None:
    """All parts but the last one, which may not be over, against a computation that knows no parts."""
    b.check_catalog()
    shown = [row[0] for row in sorted(b.rows("counted").elements(), key=lambda r: r[-1])]
    expected = Clock(table.rows).counts(unit)
    assert len(shown) >= len(expected) - 1
    assert shown == expected[: len(shown)]


SEASONS = {"spring": BEGINS, "autumn": OCTOBER}


@pytest.mark.parametrize(
    ("own", "zone", "season"),
    fast_only(
        [
            ("day", "UTC", "spring"),
            ("day", "Europe/Vienna", "spring"),
            ("hour", "Asia/Kolkata", "spring"),
            ("15 minutes", "Europe/Vienna", "autumn"),
        ],
        product(["hour", "15 minutes", "day"], ZONES, SEASONS),
    ),
)
def test_instants_are_divided_by_the_zone(own: str, zone: str, season: str) -> None:
    begins = SEASONS[season]
    if own == "hour" and zone == "Asia/Kolkata":
        own = "30 minutes"
    table = source("timestamp", own, zone, begins)
    reference = "j" if own == "day" else "span j"
    with bench([table], [counted(reference, "day")], zone) as b:
        b.run()
        b.check()
        for hours in (0, 22, 23, 50, 71):
            b.change("m", [(begins + timedelta(hours=hours, minutes=30), 1000)])
            b.run()
            b.check()
            b.check_catalog()


def test_a_late_row_before_midnight_is_of_the_day_that_its_clock_shows() -> None:
    table = source("timestamp_ntz", "hour", "Europe/Vienna", datetime(2024, 6, 1), 72)
    table.parts = TimeParts("ts", Length.of("hour"))
    with bench([table], [counted("span j", "day")], "Europe/Vienna") as b:
        b.run()
        b.change("m", [(datetime(2024, 6, 2, 23, 30), 0)])
        done = b.run()["counted"].parts
        assert done is not None and done.again == "19876", "the second of June"
        days = {row[-1]: row[0] for row in b.rows("counted")}
        assert days == {
            datetime(2024, 5, 31, 22): 24,
            datetime(2024, 6, 1, 22): 25,
            datetime(2024, 6, 2, 22): 24,
        }


def test_a_day_is_ready_when_the_last_hour_of_its_clock_is_there() -> None:
    table = source("timestamp_ntz", "hour", "Europe/Vienna", datetime(2024, 6, 1), 47)
    table.parts = TimeParts("ts", Length.of("hour"))
    with bench([table], [counted("span j", "day")], "Europe/Vienna") as b:
        b.run()
        assert b.known("counted")["computed"] == "19875"
        b.change("m", [(datetime(2024, 6, 2, 23), 0)])
        b.run()
        assert b.known("counted")["computed"] == "19875..19876"


def test_hours_of_a_clock_make_up_its_days_in_another_model_too() -> None:
    table = source("timestamp_ntz", "hour", "Europe/Vienna", BEGINS)
    hourly = Model("hourly", "select count(*) as n from {m:j}", None, OLDEST)
    daily = Model(
        "counted", "select sum(n) as n from {hourly:span j}", None, {**OLDEST, "fivm_part_length": "day"}
    )
    with bench([table], [hourly, daily], "Europe/Vienna") as b:
        b.run()
        for hours in (0, 23, 47, 50, 71, 90):
            b.change("m", [(BEGINS + timedelta(hours=hours, minutes=30), 1000)])
            b.run()
            assert sorted(b.rows("counted", "part_timestamp, n")) == [
                (_midnight(day), n)
                for day, n in enumerate(Clock(table.rows).counts("day"))
                if day < len(b.rows("counted"))
            ]
        assert len(b.rows("counted")) == 5


def _midnight(day: int) -> datetime:
    local = Length.of("day", "Europe/Vienna")
    first = local.part_of(datetime(2024, 3, 29, 12, tzinfo=timezone.utc))
    return local.start_of(first + day).replace(tzinfo=None)


@pytest.mark.parametrize(("zone", "meta"), [("UTC", {}), ("Europe/Vienna", {"fivm_time_zone": "UTC"})])
def test_hours_of_a_clock_are_no_hours_of_instants_but_in_utc(zone: str, meta: dict[str, str]) -> None:
    local = source("timestamp_ntz", "hour", zone, BEGINS, 5)
    instants = replace(source("timestamp", "hour", zone, BEGINS, 5), name="o")
    joined = Model("joined", "select a.x from {m:j} a join {o:j} b on a.x = b.x", None, {**OLDEST, **meta})
    with bench([local, instants], [joined], zone) as b:
        b.run()
        b.check()
        assert len(b.rows("joined")) == 5
    with pytest.raises(FivmError, match=r"FIVM205 .*times of m have no zone and those of o are instants"):
        Bench([local, instants], [replace(joined, meta=OLDEST)], "Europe/Vienna")


# The first part, and the range of a run


@pytest.mark.parametrize(
    ("zone", "length", "start", "first"),
    [
        ("America/New_York", "month", "2024-02-01", datetime(2024, 2, 1, 5)),
        ("America/New_York", "day", "2024-01-31", datetime(2024, 1, 31, 5)),
        ("Europe/Vienna", "day", "2024-01-31", datetime(2024, 1, 30, 23)),
        ("Europe/Vienna", "hour", "2024-01-31T00:00:00", datetime(2024, 1, 30, 23)),
        ("Europe/Vienna", "hour", "2024-01-31T00:00:00+00:00", datetime(2024, 1, 31)),
        ("UTC", "day", "2024-01-31", datetime(2024, 1, 31)),
    ],
)
def test_a_start_is_a_time_of_the_zone_of_the_model(
    zone: str, length: str, start: str, first: datetime
) -> None:
    table = source("timestamp", "hour", zone, datetime(2023, 12, 31), 24 * (33 if length == "hour" else 64))
    by_config = {"fivm_start": start, "fivm_part_length": length, "fivm_time_zone": zone}
    model = replace(counted("span j", length), meta=by_config)
    for session in (zone, "Asia/Tokyo"):
        with bench([table], [model], session) as b:
            b.run()
            b.check()
            assert min(row[-1] for row in b.rows("counted")) == first


def test_a_start_of_what_a_clock_shows_is_a_time_of_that_clock() -> None:
    table = source("timestamp_ntz", "hour", "Europe/Vienna", BEGINS)
    model = replace(counted("j", "hour"), meta={"fivm_start": "2024-03-30T10:00:00"})
    with bench([table], [model], "Europe/Vienna") as b:
        b.run()
        assert min(row[1] for row in b.rows("counted")) == 34, "the row of ten o'clock"


def test_a_range_of_the_command_line_is_in_utc_unless_it_says_otherwise() -> None:
    assert _instant("2024-02-01") == datetime(2024, 2, 1, tzinfo=timezone.utc)
    assert _instant(datetime(2024, 2, 1)) == datetime(2024, 2, 1, tzinfo=timezone.utc)
    assert _instant("2024-02-01T00:00:00-05:00") == datetime(2024, 2, 1, 5, tzinfo=timezone.utc)


# What is said while dbt parses


def project(source_meta: dict[str, str], model_meta: dict[str, str], hint: str) -> Nodes:
    """A source and a viewdf model over it, as a manifest has them."""
    m = SimpleNamespace(
        name="m",
        unique_id="source.shop.m",
        resource_type="source",
        relation_name="s.m",
        columns={},
        config=SimpleNamespace(event_time="ts", meta=source_meta),
        meta={},
    )
    daily = SimpleNamespace(
        name="daily",
        unique_id="model.shop.daily",
        resource_type="model",
        relation_name="s.daily",
        columns={},
        constraints=[],
        depends_on=SimpleNamespace(nodes=["source.shop.m"]),
        config=SimpleNamespace(materialized="viewdf", event_time=None, meta=model_meta),
        compiled=f"select count(*) as n from (select /*+ {hint} */ * from s.m)",
    )
    return Nodes(SimpleNamespace(nodes={daily.unique_id: daily}, sources={m.unique_id: m}))


@pytest.mark.parametrize(
    ("source_meta", "hint"),
    [
        ({"fivm_part_length": "day"}, "fivm_part('j')"),
        ({"fivm_part_length": "day"}, "fivm_span('j')"),
        ({"fivm_part_length": "hour"}, "fivm_span('j')"),
        # Of a column of dates zones do not matter, and its type is not known yet.
        ({"fivm_part_length": "day", "fivm_time_zone": "Asia/Tokyo"}, "fivm_part('j')"),
    ],
)
def test_a_zone_that_is_not_known_while_dbt_parses_is_no_other_one(
    source_meta: dict[str, str], hint: str
) -> None:
    meta = {**OLDEST, "fivm_part_length": "day", "fivm_time_zone": "Europe/Vienna"}
    check_viewdf_models(project(source_meta, meta, hint), lambda node: str(node.compiled))


def test_what_fits_in_no_zone_is_refused_while_dbt_parses() -> None:
    meta = {**OLDEST, "fivm_part_length": "day"}
    for length, hint in (
        ("week", "fivm_part('j')"),
        ("7 hours", "fivm_span('j')"),
        ("hour", "fivm_part('j')"),
    ):
        with pytest.raises(Exception, match="FIVM205"):
            nodes = project({"fivm_part_length": length}, meta, hint)
            check_viewdf_models(nodes, lambda node: str(node.compiled))


def test_a_zone_that_is_another_one_is_refused_when_the_model_runs() -> None:
    table = source("timestamp", "day", "Asia/Tokyo", BEGINS)
    with pytest.raises(FivmError, match="FIVM205"):
        Bench([table], [counted("j", "day")], "Europe/Vienna")


def test_dates_are_days_of_every_zone() -> None:
    table = source("date", "day", "Asia/Tokyo", BEGINS)
    with bench([table], [counted("j", "day")], "Europe/Vienna") as b:
        b.run()
        assert len(b.rows("counted")) == 5
        assert date(2024, 3, 31) in {row[0] for row in table.rows}
