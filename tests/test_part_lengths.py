"""Lengths of time parts: numbers of parts and instants, calendars with daylight saving, what divides what."""

from __future__ import annotations

import random
from datetime import datetime, timedelta, timezone

import pytest

from fivm_dbt.errors import FivmError
from fivm_dbt.parts.length import UNKNOWN_ZONE, Length

VIENNA = "Europe/Vienna"
LENGTHS = (
    Length.of(1),
    Length.of("minute"),
    Length.of("3 hours"),
    Length.of("day"),
    Length.of("day", VIENNA),
    Length.of("week", "America/New_York"),
    Length.of("month", "Asia/Kolkata"),
    Length.of("quarter", VIENNA),
    Length.of("year", "Pacific/Auckland"),
    Length.of("2 days", "America/Havana"),
)


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=timezone.utc)  # type: ignore[misc, arg-type]


def test_the_paper_numbers() -> None:
    """Section 2: the part of 2015 has 23667840 as a minute and 394464 as an hour."""
    midnight = utc(2015, 1, 1)
    assert (Length.of(60).part_of(midnight), Length.of("hour").part_of(midnight)) == (23667840, 394464)


@pytest.mark.parametrize("length", LENGTHS, ids=str)
def test_parts_follow_each_other_without_a_gap(length: Length) -> None:
    rng = random.Random(str(length))
    for _ in range(300):
        instant = utc(1965, 1, 1) + timedelta(
            seconds=rng.randrange(80 * 365 * 86_400), microseconds=rng.randrange(10**6)
        )
        part = length.part_of(instant)
        assert length.start_of(part) <= instant < length.end_of(part)
        assert length.part_of(length.start_of(part)) == part
        assert length.part_of(length.end_of(part) - timedelta(microseconds=1)) == part


def test_days_on_which_clocks_change() -> None:
    day, hour = Length.of("day", VIENNA), Length.of("hour")
    sizes = {
        name: len(hour.within(day, day.part_of(utc(*date, 12))))
        for name, date in {
            "spring": (2024, 3, 31),
            "autumn": (2024, 10, 27),
            "leap day": (2024, 2, 29),
        }.items()
    }
    assert sizes == {"spring": 23, "autumn": 25, "leap day": 24}
    assert day.start_of(day.part_of(utc(2024, 3, 31, 12))) == utc(2024, 3, 30, 23)


def test_a_day_that_begins_at_one_o_clock() -> None:
    """In Havana clocks go from midnight to one: there is no midnight on that day."""
    day = Length.of("day", "America/Havana")
    part = day.part_of(utc(2024, 3, 10, 12))
    assert day.start_of(part) == utc(2024, 3, 10, 5)
    assert len(Length.of("hour").within(day, part)) == 23


def test_months_and_leap_years() -> None:
    month, day, year = (Length.of(u, VIENNA) for u in ("month", "day", "year"))
    assert [len(day.within(month, month.part_of(utc(y, 2, 15)))) for y in (2023, 2024, 2100)] == [28, 29, 28]
    assert len(month.within(year, 54)) == 12 and len(day.within(year, 54)) == 366
    assert year.start_of(54) == utc(2023, 12, 31, 23)


@pytest.mark.parametrize(
    ("finer", "coarser", "divides"),
    [
        ("minute", "hour", True),
        ("7 minutes", "hour", False),
        ("hour", "day", True),
        ("2 hours", "day", False),
        ("15 minutes", "month", True),
        ("day", "month", True),
        ("day", "week", True),
        ("week", "month", False),
        ("month", "quarter", True),
        ("quarter", "year", True),
        ("2 months", "quarter", False),
        ("month", "day", False),
        ("day", "hour", False),
    ],
)
def test_what_divides_what(finer: str, coarser: str, divides: bool) -> None:
    one, other = Length.of(finer, VIENNA), Length.of(coarser, VIENNA)
    assert one.divides(other) == divides
    if divides:
        for part in range(100, 700, 7):
            parts = one.within(other, part)
            assert one.start_of(parts[0]) == other.start_of(part) and one.end_of(parts[-1]) == other.end_of(
                part
            )
    elif one.start_of(3) != other.start_of(3):
        with pytest.raises(FivmError, match="FIVM205"):
            for part in range(100, 2000):
                one.within(other, part)


def test_hours_of_zones_that_are_half_an_hour_off() -> None:
    assert not Length.of("hour").divides(Length.of("day", "Asia/Kolkata"))
    assert Length.of("30 minutes").divides(Length.of("day", "Asia/Kolkata"))
    assert Length.of("15 minutes").divides(Length.of("day", "Asia/Kolkata"))
    assert not Length.of("30 minutes").divides(Length.of("day", "Asia/Kathmandu")), "5:30 and later 5:45"


@pytest.mark.parametrize("finer", ["hour", "2 hours", "3 hours", "6 hours", "12 hours", "24 hours"])
@pytest.mark.parametrize(
    ("zone", "most"),
    [
        ("UTC", 24),
        ("Africa/Abidjan", 24),
        ("Asia/Dubai", 4),
        ("Asia/Tokyo", 3),
        (VIENNA, 1),
        ("Asia/Kolkata", 0),
    ],
)
def test_hours_that_divide_days_as_far_as_clocks_let_them(finer: str, zone: str, most: int) -> None:
    """An exact rule: of a zone without changes those that divide both the day and how far it is from UTC."""
    fixed, hours = Length.of(finer), Length.of(finer).many // 3600
    for coarse in ("day", "week", "2 days", "month"):
        calendar = Length.of(coarse, zone)
        assert fixed.divides(calendar) == (most > 0 and most % hours == 0), coarse
        if fixed.divides(calendar):
            for part in range(calendar.part_of(utc(2020, 1, 1)), calendar.part_of(utc(2021, 1, 1))):
                fixed.within(calendar, part)


def test_sixteen_hours_divide_two_days_and_no_day() -> None:
    sixteen = Length.of("16 hours")
    assert sixteen.divides(Length.of("2 days")) and not sixteen.divides(Length.of("day"))


def test_what_a_clock_shows_is_counted_as_if_it_were_in_utc() -> None:
    hour = Length.of("hour").of_clock(VIENNA)
    assert hour.is_of_clock and Length.read(hour.text) == hour
    assert hour.part_of(hour.on_clock(utc(2024, 6, 1, 8))) == Length.of("hour").part_of(utc(2024, 6, 1, 10))
    assert Length.of("hour").on_clock(utc(2024, 6, 1, 8)) == utc(2024, 6, 1, 8)
    assert Length.of("hour").of_clock("Etc/UTC") == Length.of("hour").of_clock("Z") == Length.of("hour")


def test_a_zone_that_nobody_knows_yet_may_be_any() -> None:
    unknown, vienna = Length.of("day", UNKNOWN_ZONE), Length.of("day", VIENNA)
    assert unknown.ratio(vienna) == vienna.ratio(unknown) == (1, 1)
    assert unknown.divides(vienna) and unknown.divides(Length.of("month", VIENNA))
    assert Length.of("6 hours").divides(unknown) and not Length.of("7 hours").divides(unknown)


def test_offsets_are_zones_as_sessions_have_them() -> None:
    assert Length.of("day", "+02:00").start_of(0) == utc(1969, 12, 31, 22)
    assert Length.of("hour").divides(Length.of("day", "+02:00"))


@pytest.mark.parametrize(
    "text", ["", "0", "fortnight", "-1 day", "2 years", "500 days", "1.5 hours", "13 months"]
)
def test_what_is_no_length(text: str) -> None:
    with pytest.raises(FivmError, match="FIVM201"):
        Length.of(text)


def test_a_year_is_the_longest() -> None:
    year = Length.of("year")
    for text in ("12 months", "4 quarters", "52 weeks", "366 days"):
        assert Length.of(text).start_of(0).year in (1969, 1970)
    assert [Length.of(t).start_of(54) for t in ("12 months", "4 quarters")] == [year.start_of(54)] * 2


def test_a_zone_that_there_is_not() -> None:
    with pytest.raises(FivmError, match=r"FIVM201 .*Mars/Olympus is no time zone"):
        Length.of("day", "Mars/Olympus")
