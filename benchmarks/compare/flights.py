"""Flights from three airports over ten years: made up by a hash of their numbers, in the shape of the demo's."""

from __future__ import annotations

from datetime import date
from functools import partial

from benchmarks.compare.data import FEED, PERCENTS, Change, Data, Recent, Runs, moved_by, nothing

SCHEMA = "air"

FLIGHTS = 3_300_000
"""At scale factor 1: as many as the demo has."""

_FIRST, _DAYS = date(2004, 1, 1), 3653
LAST = date(2013, 12, 31)

_PLANES, _REGISTERED, _CARRIERS, _AIRPORTS = 4043, 3322, 16, 105


def _some(number: int, of: int, key: str = "flight_id") -> str:
    """A number from zero to ``of`` that the key decides, another one for each ``number``."""
    return f"pmod(xxhash64({key}, {number}), {of})"


def _few(number: int, of: int) -> str:
    """The same, but small ones are far more frequent."""
    return f"cast(floor({of} * pow({_some(number, 10_000)} / 10000, 2)) AS bigint)"


_FLIGHT = f"""
    SELECT flight_id, flight_date, year(flight_date) AS year, month(flight_date) AS month,
        concat('C', lpad({_few(1, _CARRIERS)}, 2, '0')) AS carrier,
        element_at(array('EWR', 'JFK', 'LGA'), cast({_some(2, 3)} + 1 AS int)) AS origin,
        concat('A', lpad({_few(3, _AIRPORTS)}, 3, '0')) AS dest,
        CASE WHEN {_some(4, 130)} > 0 THEN concat('N', {_few(5, _PLANES)}) END AS tailnum,
        cast(5 + {_some(6, 19)} AS int) AS hour,
        CASE WHEN {_some(7, 40)} > 0 THEN cast({_few(8, 300)} - 20 AS int) END AS dep_delay,
        CASE WHEN {_some(7, 40)} > 0 THEN cast({_few(8, 300)} - 30 + {_some(9, 21)} AS int) END AS arr_delay,
        cast(80 + 20 * {_some(10, 120)} AS int) AS distance
    FROM (SELECT id AS flight_id, date_add(date '{_FIRST}', cast(id * {_DAYS} DIV {{count}} AS int)) AS flight_date
          FROM range({{count}}))
"""
"""A flight that was cancelled has no delays, and some have no tail number."""

_TABLES = {
    "airports": f"""
        SELECT faa, concat('Airport ', faa) AS name FROM (
            SELECT explode(concat(array('EWR', 'JFK', 'LGA'),
                transform(sequence(0, {_AIRPORTS - 1}), n -> concat('A', lpad(n, 3, '0'))))) AS faa)""",
    "airlines": f"""
        SELECT concat('C', lpad(id, 2, '0')) AS carrier, concat('Airline ', id) AS name FROM range({_CARRIERS})""",
    "planes": f"""
        SELECT concat('N', id) AS tailnum, concat('Maker ', {_some(11, 35, "id")}) AS manufacturer,
            cast(20 + 10 * {_some(12, 38, "id")} AS int) AS seats
        FROM range({_PLANES}) WHERE id < {_REGISTERED}""",
}


def _load(session: Runs, scale: float) -> None:
    """Create the tables, each with a change feed."""
    session.sql(f"CREATE SCHEMA {SCHEMA}")
    for name, source in _TABLES.items():
        session.sql(f"CREATE TABLE {SCHEMA}.{name} USING DELTA {FEED} AS {source}")
    flights = _FLIGHT.format(count=max(1, round(FLIGHTS * scale)))
    session.sql(
        f"CREATE TABLE {SCHEMA}.flights USING DELTA PARTITIONED BY (year, month) {FEED} AS "
        f"SELECT /*+ REBALANCE(year, month) */ * FROM ({flights})"
    )


def _recent(percent: float, session: Runs, round_: int) -> None:
    """Half of so many percent of the flights come, as copies of others of the last days; these turn out to be later."""
    theirs = Recent.of(percent, LAST, _DAYS).where("flight_id", "flight_date", round_)
    session.sql(
        f"INSERT INTO {SCHEMA}.flights SELECT flight_id + {moved_by(percent, round_)}, * EXCEPT (flight_id) "
        f"FROM {SCHEMA}.flights WHERE {theirs}"
    )
    session.sql(f"UPDATE {SCHEMA}.flights SET {_LATER} WHERE {theirs}")


_LATER = "dep_delay = dep_delay + 7, arr_delay = arr_delay + 9"


def _spread(session: Runs, round_: int) -> None:
    """A hundredth of the flights, in all months, turns out to be later."""
    session.sql(f"UPDATE {SCHEMA}.flights SET {_LATER} WHERE pmod(flight_id, 100) = {round_}")


def _deleted(session: Runs, round_: int) -> None:
    """A hundredth of the flights goes."""
    session.sql(f"DELETE FROM {SCHEMA}.flights WHERE pmod(flight_id + 50, 100) = {round_}")


def _planes(session: Runs, round_: int) -> None:
    """A hundredth of the planes was made by somebody else."""
    session.sql(
        f"UPDATE {SCHEMA}.planes SET manufacturer = concat(manufacturer, '*') "
        f"WHERE pmod(cast(substr(tailnum, 2) AS int), 100) = {round_}"
    )


def _airport(session: Runs, round_: int) -> None:
    """One of the three airports gets another name: a third of all rows of the result changes."""
    session.sql(f"UPDATE {SCHEMA}.airports SET name = concat(name, ' {round_}') WHERE faa = 'LGA'")


_RECENT = [Change(f"recent {p:g} %", partial(_recent, p)) for p in PERCENTS]

AIR = Data(
    SCHEMA,
    (*_TABLES, "flights"),
    _load,
    (
        Change("none", nothing),
        *_RECENT[:3],
        Change("spread 1 %", _spread),
        Change("deletes 1 %", _deleted),
        Change("planes 1 %", _planes),
        Change("one airport", _airport),
        *_RECENT[3:],
    ),
)
