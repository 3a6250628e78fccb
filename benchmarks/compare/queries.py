"""The queries that are compared, and how an expert would keep some of them as a dbt model with ``incremental``."""

from __future__ import annotations

from dataclasses import dataclass

import sqlglot
from sqlglot import exp

from benchmarks.compare.tables import SCHEMA
from benchmarks.queries.tpch_data import TABLES
from benchmarks.queries.tpch_suite import tpch_query

_BY_DAY = """
    select {day}, n_name, c_mktsegment, count(*) as lines, sum(l_extendedprice * (1 - l_discount)) as revenue
    from lineitem
    join orders on l_orderkey = o_orderkey
    join customer on o_custkey = c_custkey
    join nation on c_nationkey = n_nationkey
    group by {day}, n_name, c_mktsegment
"""


@dataclass(frozen=True)
class ByHand:
    """An incremental model: the rows since some days before the newest ``day`` are computed and merged by ``keys``."""

    day: str
    keys: tuple[str, ...]
    days: int = 3


@dataclass(frozen=True)
class Compared:
    """A query, and how it would be kept by hand, where that can be done at all."""

    name: str
    sql: str
    by_hand: ByHand | None = None


def queries() -> tuple[Compared, ...]:
    """Those of TPC-H that the issue of benchmarks names, and a join of four tables by day."""
    four_way = (
        Compared(name, _qualified(_BY_DAY.format(day=day)), ByHand(day, (day, "n_name", "c_mktsegment")))
        for name, day in (("by_shipdate", "l_shipdate"), ("by_orderdate", "o_orderdate"))
    )
    whole = (Compared(f"q{n:02d}", _qualified(tpch_query(n).sql)) for n in (1, 3, 5, 10, 12, 17, 18))
    return (*four_way, *whole)


def _qualified(sql: str) -> str:
    """The query with the schema of its tables said."""
    names = {spec.name for spec in TABLES}
    tree = sqlglot.parse_one(sql, dialect="spark")
    for table in tree.find_all(exp.Table):
        if table.name in names:
            table.set("db", exp.to_identifier(SCHEMA))
    return tree.sql(dialect="spark")


def lookback(compared: Compared, relation: str) -> str:
    """The MERGE of an incremental model into a relation, as dbt writes it. Raises ValueError where there is none."""
    by_hand = compared.by_hand
    if by_hand is None:
        raise ValueError(f"{compared.name} has no time and no key by which it could be merged")
    query = sqlglot.parse_one(compared.sql, dialect="spark")
    assert isinstance(query, exp.Select)
    since = f"{by_hand.day} >= (SELECT date_sub(max({by_hand.day}), {by_hand.days}) FROM {relation})"
    rows = query.where(since, dialect="spark").sql(dialect="spark")
    matched = " AND ".join(f"old.{key} = new.{key}" for key in by_hand.keys)
    return (
        f"MERGE INTO {relation} AS old USING ({rows}) AS new ON {matched} "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
