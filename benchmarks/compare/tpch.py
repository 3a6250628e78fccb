"""TPC-H as Delta tables: facts by month, as a data team has them, and how they change."""

from __future__ import annotations

from datetime import date
from functools import partial

from benchmarks.compare.data import FEED, PERCENTS, Change, Data, Recent, Runs, moved_by, nothing
from benchmarks.queries.tpch_data import TABLES, tpch_files

SCHEMA = "tpch"

_MONTHS = {"orders": ("o_orderdate", "o_ordermonth"), "lineitem": ("l_shipdate", "l_shipmonth")}
"""Of facts the date and the column of its month, by which they are partitioned."""

LAST = date(1998, 8, 2)
_DAYS = 2406
"""The last day of TPC-H's orders, and how many there are; each has about as many orders."""


def _load(session: Runs, scale: float) -> None:
    """Create the tables, each with a change feed. Data are generated once."""
    session.sql(f"CREATE SCHEMA {SCHEMA}")
    for name, file in tpch_files(scale).items():
        source, partitioned = f"SELECT * FROM parquet.`{file.resolve()}`", ""
        if name in _MONTHS:
            day, month = _MONTHS[name]
            partitioned = f"PARTITIONED BY ({month})"
            source = f"SELECT /*+ REBALANCE({month}) */ *, date_format({day}, 'yyyy-MM') AS {month} FROM ({source})"
        session.sql(f"CREATE TABLE {SCHEMA}.{name} USING DELTA {partitioned} {FEED} AS {source}")


def _recent(percent: float, session: Runs, round_: int) -> None:
    """Half of so many percent of the orders come, with their lines, as copies of others; the lines of these get another
    discount. All are of the last days that have so many.
    """
    theirs = Recent.of(percent, LAST, _DAYS).where("o_orderkey", "o_orderdate", round_)
    chosen = f"SELECT * FROM {SCHEMA}.orders WHERE {theirs}"
    moved = moved_by(percent, round_)
    session.sql(
        f"INSERT INTO {SCHEMA}.lineitem SELECT {_copied('lineitem', 'l_orderkey', moved)} "
        f"FROM {SCHEMA}.lineitem LEFT SEMI JOIN ({chosen}) ON l_orderkey = o_orderkey"
    )
    session.sql(
        f"INSERT INTO {SCHEMA}.orders SELECT {_copied('orders', 'o_orderkey', moved)} FROM ({chosen})"
    )
    session.sql(
        f"MERGE INTO {SCHEMA}.lineitem USING ({chosen}) ON l_orderkey = o_orderkey "
        f"WHEN MATCHED THEN UPDATE SET l_discount = {_OTHER_DISCOUNT}"
    )


_OTHER_DISCOUNT = "CASE WHEN l_discount > 0.05 THEN 0.01 ELSE 0.07 END"


def _copied(table: str, key: str, moved: int) -> str:
    """The columns of a copy of rows, with other keys."""
    columns = [c.name for spec in TABLES if spec.name == table for c in spec.columns]
    return ", ".join([f"{c} + {moved}" if c == key else c for c in columns] + [_MONTHS[table][1]])


def _spread(session: Runs, round_: int) -> None:
    """A hundredth of the lines, in all months, gets another discount."""
    session.sql(
        f"UPDATE {SCHEMA}.lineitem SET l_discount = {_OTHER_DISCOUNT} WHERE pmod(l_orderkey, 100) = {round_}"
    )


def _deleted(session: Runs, round_: int) -> None:
    """A hundredth of the lines goes."""
    session.sql(f"DELETE FROM {SCHEMA}.lineitem WHERE pmod(l_orderkey + 50, 100) = {round_}")


def _customers(session: Runs, round_: int) -> None:
    """A hundredth of the customers changes its segment."""
    session.sql(
        f"UPDATE {SCHEMA}.customer SET c_mktsegment = CASE c_mktsegment WHEN 'BUILDING' THEN 'MACHINERY' "
        f"ELSE 'BUILDING' END WHERE pmod(c_custkey, 100) = {round_}"
    )


_RECENT = [Change(f"recent {p:g} %", partial(_recent, p)) for p in PERCENTS]

TPCH = Data(
    SCHEMA,
    tuple(spec.name for spec in TABLES),
    _load,
    (
        Change("none", nothing),
        *_RECENT[:3],
        Change("spread 1 %", _spread),
        Change("deletes 1 %", _deleted),
        Change("customers 1 %", _customers),
        *_RECENT[3:],
    ),
)
