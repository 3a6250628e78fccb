"""The change batches: what happened to the raw data between two runs of dbt, in real rows of December 2013.

The statements read the views `feed_*` of the loader: `feed_flights` and `feed_weather` hold the month as it
really was, `feed_reported` its flights before any cancellation was known, `feed_announced` their schedule alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Batch:
    """Changes that arrive together; `touches` names the raw tables, and the run checks that it is true."""

    title: str
    touches: frozenset[str]
    statements: tuple[str, ...]

    @property
    def is_flights_only(self) -> bool:
        return self.touches == {"flights"}


def apply(spark: SparkSession, batch: Batch) -> None:
    for statement in batch.statements:
        spark.sql(statement)


def _batch(title: str, touches: Iterable[str], *statements: str) -> Batch:
    return Batch(title, frozenset(touches), statements)


# A flight is known by its day, carrier, number and origin; year and month say in which partition to look.
_SAME_FLIGHT = """
    t.year = 2013 and t.month = 12 and t.flight_date = s.flight_date
    and t.carrier = s.carrier and t.flight = s.flight and t.origin = s.origin
"""


def _arrive(first: int, last: int, *, known_until: int) -> tuple[str, str]:
    """Flights of some days of December; of the days after `known_until` only the schedule is known."""
    insert = "insert into raw.flights by name select * from"
    return (
        f"{insert} feed_reported where day between {first} and {known_until}",
        f"{insert} feed_announced where day between {known_until + 1} and {last}",
    )


def _flown(first: int, last: int) -> str:
    """Departures and arrivals that become known after the flights themselves."""
    return f"""
        merge into raw.flights as t
        using (select * from feed_flights where day between {first} and {last} and dep_time is not null) as s
        on {_SAME_FLIGHT}
        when matched then update set
            dep_time = s.dep_time, dep_delay = s.dep_delay,
            arr_time = s.arr_time, arr_delay = s.arr_delay, air_time = s.air_time
    """


def _cancelled(first: int, last: int) -> str:
    """Flights that had been reported on time and did not leave."""
    return f"""
        merge into raw.flights as t
        using (select * from feed_flights where day between {first} and {last} and dep_time is null) as s
        on {_SAME_FLIGHT}
        when matched and t.dep_time is not null then update set
            dep_time = null, dep_delay = null, arr_time = null, arr_delay = null, air_time = null
    """


NEW_DAYS = _batch(
    "1-5 December arrive, the 4th and 5th as schedule only",
    ["flights"],
    *_arrive(1, 5, known_until=3),
)

LATE_WEATHER = _batch(
    "weather of 1-5 December arrives late, one day of one station without its hour",
    ["weather"],
    """
    insert into raw.weather by name
    select * except (time_hour), if(origin = 'EWR' and day = 3, null, time_hour) as time_hour
    from feed_weather where day between 1 and 5
    """,
)

CORRECTIONS = _batch(
    "4-5 December have flown, 1-3 December had cancellations; 6-12 December arrive, a few without their hour",
    ["flights"],
    _flown(4, 5),
    _cancelled(1, 3),
    *_arrive(6, 12, known_until=10),
    """
    update raw.flights set hour = null, minute = null, time_hour = null
    where year = 2013 and month = 12 and day between 6 and 12 and carrier in ('HA', 'YV')
    """,
)

NEW_NAMES = _batch(
    "an airport is renamed, one plane gets a new tail number, others the maker's present name",
    ["airports", "planes"],
    "update raw.airports set name = 'LaGuardia Airport' where faa = 'LGA'",
    "update raw.planes set tailnum = 'N713NY' where tailnum = 'N711MQ'",
    "update raw.planes set manufacturer = 'AIRBUS' where manufacturer = 'AIRBUS INDUSTRIE' and year = 2002",
)

DUPLICATES_REMOVED = _batch(
    "rows that had been loaded twice are removed by writing their day anew",
    ["flights"],
    """
    insert into raw.flights
    replace where year = 2013 and month = 11 and flight_date = date'2013-11-20'
    select distinct * from raw.flights
    where year = 2013 and month = 11 and flight_date = date'2013-11-20'
    """,
)

EVERYTHING = _batch(
    "all inputs at once: 13-31 December, its weather, missing hours, corrections, new names",
    ["flights", "weather", "planes", "airports", "airlines"],
    *_arrive(13, 31, known_until=31),
    _flown(11, 12),
    _cancelled(6, 31),
    f"""
    merge into raw.flights as t
    using (select * from feed_flights where day between 6 and 12 and carrier in ('HA', 'YV')) as s
    on {_SAME_FLIGHT}
    when matched then update set hour = s.hour, minute = s.minute, time_hour = s.time_hour
    """,
    """
    merge into raw.weather as t
    using (select * from feed_weather where origin = 'EWR' and day = 3) as s
    on t.origin = s.origin and t.year = s.year and t.month = s.month and t.day = s.day and t.hour = s.hour
    when matched then update set time_hour = s.time_hour
    """,
    "insert into raw.weather by name select * from feed_weather where day > 5",
    "update raw.planes set tailnum = 'N353JX' where tailnum = 'N353JB'",
    "update raw.airports set name = 'Newark Liberty International' where faa = 'EWR'",
    "update raw.airlines set name = 'ExpressJet Airlines' where carrier = 'EV'",
)

NOTHING = _batch("nothing has changed", [])

BATCHES = (
    NEW_DAYS,
    LATE_WEATHER,
    CORRECTIONS,
    NEW_NAMES,
    DUPLICATES_REMOVED,
    EVERYTHING,
    NOTHING,
)
