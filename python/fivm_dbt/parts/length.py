"""Time parts of a relation have a length, and an instant lies in one part (ViewDF, sections 2 and 4).

A part of fixed length has the number ``⌊unix time / length⌋``. Months, quarters and years, and days and weeks of a time
zone, are not equally long: they are counted from 1970 in local time, so that a day on which clocks change has 23 or 25
hours and still one number.

Dates and times without a zone are what a clock shows, and their parts are those of that clock: an hour has the number
that it would have if the clock were in UTC, a day always has 24 of them, and no zone is asked for. An hour that a
zone repeats is one part of the clock, where it is two of instants: neither can be counted by the other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone, tzinfo
from functools import cache, cached_property
from math import gcd
from typing import Literal, get_args
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from fivm_dbt.errors import FivmError, expected_one_of

Unit = Literal["second", "day", "week", "month", "quarter", "year"]
"""Seconds are counted in UTC; the others are those of a calendar, in a time zone."""

_UNITS: tuple[Unit, ...] = get_args(Unit)
_SECONDS: Mapping[str, int] = {"second": 1, "minute": 60, "hour": 3600}
MONTHS: Mapping[str, int] = {"month": 1, "quarter": 3, "year": 12}
DAYS: Mapping[str, int] = {"day": 1, "week": 7}
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
FIRST_MONDAY = 4
"""The 5th of January 1970 was a Monday: weeks begin on Mondays, as Spark's do."""

_YEAR = 366 * 86_400

UNKNOWN_ZONE = "session"
"""The zone of the session where nobody has asked for it yet: it may be any, and lengths can only be compared."""


@dataclass(frozen=True)
class Length:
    """``many`` of a ``unit``; calendar units in the time zone ``zone``, an IANA name or UNKNOWN_ZONE.

    Seconds are those of instants, or, with a zone other than UTC, those that a clock there shows (:attr:`is_of_clock`).
    """

    many: int
    unit: Unit
    zone: str = "UTC"

    @staticmethod
    def of(text: str | int, zone: str = "UTC") -> Length:
        """A length as it is configured: a number of seconds, a unit, or a number of units.

        Raises FIVM201 for anything else, for lengths below a second or above a year, and for unknown zones.

        >>> Length.of("15 minutes"), Length.of("month", "Europe/Vienna").zone
        (Length(many=900, unit='second', zone='UTC'), 'Europe/Vienna')
        """
        match = re.fullmatch(r"\s*(\d+)?\s*([a-z]+?)?s?\s*", str(text).lower())
        number, unit = match.groups() if match is not None else (None, None)
        many = int(number) if number is not None else 1
        if match is None or (number is None and unit is None) or many < 1:
            raise _wrong(text)
        if unit is None or unit in _SECONDS:
            seconds = many * _SECONDS[unit or "second"]
            return _checked(text, Length(seconds, "second"), seconds)
        known = next((u for u in _UNITS if u == unit), None)
        if known is None:
            raise _wrong(text)
        if zone != UNKNOWN_ZONE:
            _zone_named(zone)
        days = many * DAYS[known] if known in DAYS else 366 * many * MONTHS[known] // 12
        return _checked(text, Length(many, known, zone), days * 86_400)

    @property
    def in_words(self) -> str:
        """The length with an article where it is one of its unit."""
        text = str(self)
        return text if text[0].isdigit() else f"{'an' if text == 'hour' else 'a'} {text}"

    @property
    def text(self) -> str:
        """The length as :meth:`read` takes it."""
        return f"{self.many} {self.unit} {self.zone}"

    @staticmethod
    def read(text: str) -> Length:
        """The length that :attr:`text` has written.

        >>> Length.read(Length.of("month", "Europe/Vienna").text) == Length.of("month", "Europe/Vienna")
        True
        """
        many, unit, zone = text.split(" ")
        return Length(int(many), next(u for u in _UNITS if u == unit), zone)

    @property
    def seconds(self) -> int:
        """How long a part is, of a calendar's the longest: what lengths are compared by."""
        if self.is_fixed:
            return self.many
        days = self.many * DAYS[self.unit] if self.unit in DAYS else self._longest_months
        return days * 86_400

    @property
    def shortest(self) -> timedelta:
        """How long a part is, of a calendar's the shortest; a day that clocks make shorter counts as a whole one.

        >>> Length.of("2 hours").shortest, Length.of("month").shortest
        (datetime.timedelta(seconds=7200), datetime.timedelta(days=28))
        """
        if self.is_fixed:
            return timedelta(seconds=self.many)
        return timedelta(days=self.many * (DAYS[self.unit] if self.unit in DAYS else 28 * MONTHS[self.unit]))

    @property
    def _longest_months(self) -> int:
        months = self.many * MONTHS[self.unit]
        return 31 * months if months < 12 else 366 * months // 12

    def ratio(self, finer: Length) -> tuple[int, int] | None:
        """How many parts of ``finer`` one of this length is, as a fraction; None where that is not always the same.

        >>> Length.of("hour").ratio(Length.of("minute")), Length.of("month").ratio(Length.of("day"))
        ((60, 1), None)
        """
        if self.is_fixed and finer.is_fixed:
            mine, theirs = self.many, finer.many
        elif self.is_fixed or finer.is_fixed or not self._may_be_of_zone(finer):
            return None
        elif self.unit == finer.unit:
            mine, theirs = self.many, finer.many
        elif self.unit in MONTHS and finer.unit in MONTHS:
            mine, theirs = self.many * MONTHS[self.unit], finer.many * MONTHS[finer.unit]
        else:
            return None
        common = gcd(mine, theirs)
        return mine // common, theirs // common

    @property
    def is_fixed(self) -> bool:
        """Whether all parts are equally long, in seconds."""
        return self.unit == "second"

    @property
    def is_of_clock(self) -> bool:
        """Whether these are seconds as a clock in the zone shows them, counted as if it were in UTC."""
        return self.is_fixed and self.zone != "UTC"

    @property
    def by_clock(self) -> Length:
        """The same length of what a clock shows, read as UTC: where every part is as long as its name says.

        Numbers are the same: the second of June is the same day of the calendar in every zone.

        >>> Length.of("day", "Europe/Vienna").by_clock
        Length(many=1, unit='day', zone='UTC')
        """
        return replace(self, zone="UTC")

    def of_clock(self, zone: str) -> Length:
        """A fixed length of what a clock in ``zone`` shows; the same as of instants where clocks show UTC.

        >>> Length.of("hour").of_clock("Europe/Vienna").is_of_clock, Length.of("hour").of_clock("UTC").is_of_clock
        (True, False)
        """
        return self if shows_utc(zone) else replace(self, zone=zone)

    def on_clock(self, instant: datetime) -> datetime:
        """The instant by which :meth:`part_of` counts: of a clock what it shows, read as UTC.

        >>> Length.of("hour").of_clock("Asia/Kolkata").on_clock(datetime(2024, 6, 1, tzinfo=timezone.utc))
        datetime.datetime(2024, 6, 1, 5, 30, tzinfo=datetime.timezone.utc)
        """
        return instant.astimezone(self._zone).replace(tzinfo=timezone.utc) if self.is_of_clock else instant

    def _may_be_of_zone(self, other: Length) -> bool:
        return self.zone == other.zone or UNKNOWN_ZONE in (self.zone, other.zone)

    @cached_property
    def _zone(self) -> tzinfo:
        return _zone_named(self.zone)

    def part_of(self, instant: datetime) -> int:
        """The number of the part in which an instant (with a time zone) lies.

        >>> Length.of("minute").part_of(datetime(2015, 1, 1, tzinfo=timezone.utc))
        23667840
        """
        if self.is_fixed:
            return (instant - _EPOCH) // timedelta(seconds=self.many)
        local = instant.astimezone(self._zone)
        if self.unit in MONTHS:
            return ((local.year - 1970) * 12 + local.month - 1) // (self.many * MONTHS[self.unit])
        days = local.date().toordinal() - _EPOCH.date().toordinal()
        return (days - self._first_day) // (self.many * DAYS[self.unit])

    def start_of(self, part: int) -> datetime:
        """When a part begins, in UTC.

        >>> Length.of("month").start_of(-1)
        datetime.datetime(1969, 12, 1, 0, 0, tzinfo=datetime.timezone.utc)
        """
        if self.is_fixed:
            return _EPOCH + timedelta(seconds=self.many * part)
        if self.unit in MONTHS:
            year, month = divmod(part * self.many * MONTHS[self.unit], 12)
            local = datetime(1970 + year, month + 1, 1)
        else:
            local = datetime(1970, 1, 1) + timedelta(
                days=part * self.many * DAYS[self.unit] + self._first_day
            )
        return _first_instant(local, self._zone)

    @property
    def _first_day(self) -> int:
        return FIRST_MONDAY if self.unit == "week" else 0

    def end_of(self, part: int) -> datetime:
        """When the next part begins, in UTC."""
        return self.start_of(part + 1)

    def within(self, coarser: Length, part: int) -> range:
        """The parts of this length that a part of a ``coarser`` one covers. They begin and end with it, or FIVM205.

        >>> list(Length.of("hour").within(Length.of("6 hours"), 1))
        [6, 7, 8, 9, 10, 11]
        """
        start, end = coarser.start_of(part), coarser.end_of(part)
        first, after = self.part_of(start), self.part_of(end)
        if self.start_of(first) != start or self.start_of(after) != end:
            raise FivmError(
                "FIVM205",
                f"parts of {self} do not divide those of {coarser}: part {part} begins within one of them",
                remedy="use lengths of which the shorter divides the longer",
            )
        return range(first, after)

    def divides(self, coarser: Length) -> bool:
        """Whether every part of ``coarser`` is made of whole parts of this length, as far as zones are known.

        >>> [Length.of("6 hours").divides(Length.of("day", zone)) for zone in ("UTC", "Europe/Vienna")]
        [True, False]
        """
        if self.is_fixed and coarser.is_fixed:
            return coarser.many % self.many == 0
        if self.is_fixed:
            return _common_divisor(coarser) % self.many == 0
        if coarser.is_fixed or not self._may_be_of_zone(coarser):
            return False
        if self.unit in DAYS:
            whole = self.many * DAYS[self.unit]
            if coarser.unit in MONTHS:
                return whole == 1
            return (coarser.many * DAYS[coarser.unit]) % whole == 0 and (
                self._first_day == coarser._first_day or whole == 1
            )
        if coarser.unit in DAYS:
            return False
        return (coarser.many * MONTHS[coarser.unit]) % (self.many * MONTHS[self.unit]) == 0

    def __str__(self) -> str:
        if not self.is_fixed:
            what = self.unit if self.many == 1 else f"{self.many} {self.unit}s"
            return what if self.zone in ("UTC", UNKNOWN_ZONE) else f"{what} in {self.zone}"
        name = next(n for n in ("hour", "minute", "second") if self.many % _SECONDS[n] == 0)
        many = self.many // _SECONDS[name]
        return name if many == 1 else f"{many} {name}s"


def duration(text: str | int) -> timedelta:
    """A span of time as it is configured, as a length is, or zero; a month of it has 31 days.

    >>> duration("2 hours"), duration(0)
    (datetime.timedelta(seconds=7200), datetime.timedelta(0))
    """
    if str(text).strip() == "0":
        return timedelta()
    match = re.fullmatch(r"\s*(\d+)\s+(\w+?)s?\s*", str(text).lower())
    # A part is a year long at most, what is kept may be many.
    one = Length.of(match.group(2)) if match is not None else Length.of(text)
    return timedelta(seconds=one.seconds * (int(match.group(1)) if match is not None else 1))


def _first_instant(local: datetime, zone: tzinfo) -> datetime:
    """The first instant of a local time: where clocks go forward over it, the instant at which they do."""
    instant = local.replace(tzinfo=zone, fold=0).astimezone(timezone.utc)
    if instant.astimezone(zone).replace(tzinfo=None) == local:
        return instant
    return _jump(local, zone)


def _jump(local: datetime, zone: tzinfo) -> datetime:
    """The instant in the day around ``local`` at which the clocks go from before it to after it."""
    low = (local - timedelta(days=1)).replace(tzinfo=timezone.utc)
    high = (local + timedelta(days=1)).replace(tzinfo=timezone.utc)
    while high - low > timedelta(seconds=1):
        middle = low + (high - low) // 2
        middle = middle.replace(microsecond=0)
        if middle.astimezone(zone).replace(tzinfo=None) < local:
            low = middle
        else:
            high = middle
    return high


@cache
def _common_divisor(calendar: Length) -> int:
    """The longest fixed length, in seconds, of which every part of a calendar is made.

    It divides the times in UTC at which parts begin. After the years that are looked at clocks change by the same rules
    each year.
    """
    known = calendar.by_clock if calendar.zone == UNKNOWN_ZONE else calendar
    first, last = (known.part_of(datetime(year, 1, 1, tzinfo=timezone.utc)) for year in (1970, 2040))
    return gcd(*((known.start_of(part) - _EPOCH) // timedelta(seconds=1) for part in range(first, last)))


def shows_utc(zone: str) -> bool:
    """Whether clocks in a zone show UTC.

    >>> shows_utc("Etc/UTC"), shows_utc("Europe/London")
    (True, False)
    """
    return zone == "UTC" or _common_divisor(Length(1, "day", zone)) == 86_400


def _zone_named(zone: str) -> tzinfo:
    """The zone of a name or, as Spark's sessions may have one, of an offset such as ``+02:00``; else FIVM201."""
    try:
        return ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError):
        if re.fullmatch(r"Z|[+-]\d\d:\d\d", zone):
            return datetime.strptime(zone, "%z").tzinfo or timezone.utc
        raise FivmError(
            "FIVM201", f"{zone} is no time zone", remedy="use a name such as Europe/Vienna"
        ) from None


def instant_of(moment: datetime, zone: str) -> datetime:
    """The instant of a time as it is configured, in UTC: local in ``zone``, unless it says how far it is from UTC.

    Of a time that clocks show twice it is the first one; of one that they pass over, when they do. FIVM201 for a zone
    that there is not.

    >>> instant_of(datetime(2024, 2, 1), "America/New_York")
    datetime.datetime(2024, 2, 1, 5, 0, tzinfo=datetime.timezone.utc)
    """
    if moment.tzinfo is not None:
        return moment.astimezone(timezone.utc)
    return _first_instant(moment, _zone_named(zone))


def _checked(text: str | int, length: Length, seconds: int) -> Length:
    if seconds > _YEAR:
        raise FivmError("FIVM201", f"{text}: a part is a year long at most", remedy="use a shorter part")
    return length


def _wrong(text: str | int) -> FivmError:
    units = [*_SECONDS, *(u for u in _UNITS if u != "second")]
    return FivmError(
        "FIVM201",
        f"{text!r} is no length of a part: a number, a unit or both are expected ({expected_one_of(units)})",
        remedy="write it as 60, 'hour' or '15 minutes'",
    )


DAY = Length(1, "day")
"""How long the time parts of patterns are where nothing is said."""
