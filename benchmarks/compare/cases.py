"""What is compared: queries as models, and how an expert would keep some of them without this package."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import sqlglot
from sqlglot import exp

from benchmarks.compare.by_hand import BY_HAND, ByHand
from benchmarks.compare.by_time import ByTime
from benchmarks.compare.data import Data
from benchmarks.compare.flights import AIR
from benchmarks.compare.tpch import TPCH
from benchmarks.queries.tpch_suite import tpch_query

DATA = (TPCH, AIR)


@dataclass(frozen=True)
class Model:
    """A model over tables of a data set, and over models before it, all by their bare names.

    ``by_time`` is there where its rows have a time and a key, so that dbt could keep it incrementally.
    """

    name: str
    sql: str
    by_time: ByTime | None = None

    def over(self, names: Mapping[str, str]) -> str:
        """The SQL over relations by what they are called.

        >>> Model("m", "SELECT a FROM t JOIN u USING (k)").over({"t": "s.t"})
        'SELECT a FROM s.t JOIN u USING (k)'
        """
        tree = sqlglot.parse_one(self.sql, dialect="spark")
        for table in tree.find_all(exp.Table):
            if not table.db and table.name in names:
                named = exp.to_table(names[table.name])
                table.set("this", named.this)
                table.set("db", named.args.get("db"))
        return tree.sql(dialect="spark")

    @property
    def reads(self) -> tuple[str, ...]:
        """The bare names of what it reads."""
        tree = sqlglot.parse_one(self.sql, dialect="spark")
        return tuple(sorted({table.name for table in tree.find_all(exp.Table)}))


@dataclass(frozen=True)
class Compared:
    """Models that are kept up to date together, in their order: mostly one. ``by_hand`` keeps the last one."""

    name: str
    data: Data
    models: tuple[Model, ...]
    by_hand: ByHand | None = None


def cases() -> tuple[Compared, ...]:
    """A join of four tables by day, queries of TPC-H, flights, and a chain of six models."""
    four_way = (
        _one(name, TPCH, _BY_DAY.format(day=day), by_time)
        for name, day, by_time in (
            ("by_shipdate", "l_shipdate", _BY_SHIPDATE),
            ("by_orderdate", "o_orderdate", _BY_ORDERDATE),
        )
    )
    whole = (_one(f"q{n:02d}", TPCH, tpch_query(n).sql) for n in (1, 3, 5, 10, 12, 17, 18))
    flights = (
        _one("delays_daily", AIR, _DELAYS_DAILY, ByTime("flight_date", ("flight_date", "carrier", "origin"))),
        _one("makers_monthly", AIR, _MAKERS_MONTHLY, _MAKERS_BY_TIME),
    )
    return (*four_way, *whole, *flights, Compared("chain", TPCH, _CHAIN))


def _one(name: str, data: Data, sql: str, by_time: ByTime | None = None) -> Compared:
    return Compared(name, data, (Model(name, sql, by_time),), BY_HAND.get(name))


def chosen_cases(names: Iterable[str]) -> list[Compared]:
    """Those of these names, in the order of all."""
    wanted = set(names)
    return [compared for compared in cases() if compared.name in wanted]


_BY_DAY = """
    select {day}, n_name, c_mktsegment, count(*) as lines, sum(l_extendedprice * (1 - l_discount)) as revenue
    from lineitem
    join orders on l_orderkey = o_orderkey
    join customer on o_custkey = c_custkey
    join nation on c_nationkey = n_nationkey
    group by {day}, n_name, c_mktsegment
"""

_SHIPPED_WITHIN = 121
"""Days from an order to the shipping of its lines, at most: TPC-H says so, and an expert would know."""

_BY_ORDERDATE = ByTime("o_orderdate", ("o_orderdate", "n_name", "c_mktsegment"), never_before=("l_shipdate",))
_BY_SHIPDATE = ByTime(
    "l_shipdate", ("l_shipdate", "n_name", "c_mktsegment"), days=3 + _SHIPPED_WITHIN, batches=5
)

_DELAYS_DAILY = """
    select f.flight_date, l.name as carrier, a.name as origin,
        count(*) as flights, count(f.dep_delay) as departed, count(f.arr_delay) as arrived,
        sum(f.dep_delay) as dep_delay, sum(f.arr_delay) as arr_delay,
        sum(case when f.arr_delay > 15 then 1 else 0 end) as arrived_late,
        sum(f.distance) as miles,
        avg(f.dep_delay) as avg_dep_delay, avg(f.arr_delay) as avg_arr_delay
    from flights f
    join airports a on f.origin = a.faa
    join airlines l on f.carrier = l.carrier
    group by f.flight_date, l.name, a.name
"""

_MAKERS_MONTHLY = """
    select trunc(f.flight_date, 'MM') as flight_month, p.manufacturer,
        count(*) as flights, sum(f.distance) as miles, sum(f.distance * p.seats) as seat_miles,
        avg(f.arr_delay) as avg_arr_delay
    from flights f
    join planes p on f.tailnum = p.tailnum
    where f.dep_delay is not null
    group by trunc(f.flight_date, 'MM'), p.manufacturer
    having count(*) >= 10
"""

_MAKERS_BY_TIME = ByTime("flight_month", ("flight_month", "manufacturer"), never_before=("f.flight_date",))

_SUMS = "sum(orders) as orders, sum(lines) as lines, sum(revenue) as revenue"

_CHAIN = (
    Model(
        "order_values",
        """
        select o_orderkey, o_custkey, o_orderdate, count(*) as lines,
            sum(l_extendedprice * (1 - l_discount)) as revenue
        from orders join lineitem on o_orderkey = l_orderkey
        group by o_orderkey, o_custkey, o_orderdate
        """,
        ByTime("o_orderdate", ("o_orderkey",), never_before=("l_shipdate",)),
    ),
    Model(
        "segment_days",
        """
        select o_orderdate, n_name, c_mktsegment,
            count(*) as orders, sum(lines) as lines, sum(revenue) as revenue
        from order_values
        join customer on o_custkey = c_custkey
        join nation on c_nationkey = n_nationkey
        group by o_orderdate, n_name, c_mktsegment
        """,
        ByTime("o_orderdate", ("o_orderdate", "n_name", "c_mktsegment")),
    ),
    Model(
        "nation_days",
        f"select o_orderdate, n_name, {_SUMS} from segment_days group by o_orderdate, n_name",
        ByTime("o_orderdate", ("o_orderdate", "n_name")),
    ),
    Model(
        "nation_months",
        f"""
        select trunc(o_orderdate, 'MM') as order_month, n_name, {_SUMS}, max(revenue) as best_day
        from nation_days group by trunc(o_orderdate, 'MM'), n_name
        """,
        ByTime("order_month", ("order_month", "n_name")),
    ),
    Model(
        "region_months",
        f"""
        select m.order_month, r.r_name, {_SUMS}, max(m.best_day) as best_day
        from nation_months m
        join nation n on m.n_name = n.n_name
        join region r on n.n_regionkey = r.r_regionkey
        group by m.order_month, r.r_name
        """,
        ByTime("order_month", ("order_month", "r_name")),
    ),
    Model(
        "region_years",
        f"""
        select trunc(order_month, 'YEAR') as order_year, r_name, {_SUMS}, max(revenue) as best_month
        from region_months group by trunc(order_month, 'YEAR'), r_name
        """,
        ByTime("order_year", ("order_year", "r_name"), batch="YEAR"),
    ),
)
"""Each reads the one before: what is in the last one has come through all of them."""
