"""The optimum that somebody would write by hand: sums in one table, to which deltas of them are appended.

A job of one's own knows more than a planner may: that orders never change, that lines come with their orders, and
which of the inputs change at all. It keeps versions in memory, and checks nothing.
So it is what a refresh is held against, and not what anybody should run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

CHANGED, SIGN = "changed", "sign"
"""The net or gross change of an input: its rows with a column that is 1 or -1."""


@dataclass(frozen=True)
class Part:
    """Rows of the table: sums by some keys, in columns of their own.

    ``rows`` are those of a build. ``deltas`` say by input, or by an earlier part, what its change adds. They read the
    change as ``changed``, with ``sign`` where it is one of a table, inputs as they are now, and parts as they were.
    """

    name: str
    rows: str
    deltas: Mapping[str, str]


@dataclass(frozen=True)
class ByHand:
    """The parts in their order, and the query that shows the result of them and of inputs. All names are bare."""

    parts: tuple[Part, ...]
    shown: str

    @property
    def inputs(self) -> tuple[str, ...]:
        """The tables whose changes are read."""
        own = {part.name for part in self.parts}
        return tuple(sorted({name for part in self.parts for name in part.deltas if name not in own}))


def feed(table: str, before: int, now: int) -> str:
    """The change of a table between two versions."""
    return (
        f"(SELECT *, CASE WHEN _change_type IN ('insert', 'update_postimage') THEN 1 ELSE -1 END AS {SIGN} "
        f"FROM table_changes('{table}', {before + 1}, {now}))"
    )


_REVENUE = "l_extendedprice * (1 - l_discount)"

_BY_ORDERDATE = ByHand(
    (
        Part(
            "customer_days",
            f"""
            SELECT o_custkey, o_orderdate, count(*) AS lines, sum({_REVENUE}) AS revenue
            FROM lineitem JOIN orders ON l_orderkey = o_orderkey GROUP BY o_custkey, o_orderdate
            """,
            {
                "lineitem": f"""
                SELECT o_custkey, o_orderdate, sum(sign) AS lines, sum(sign * {_REVENUE}) AS revenue
                FROM changed JOIN orders ON l_orderkey = o_orderkey GROUP BY o_custkey, o_orderdate
                """
            },
        ),
        Part(
            "days",
            """
            SELECT o_orderdate, n_name, c_mktsegment, sum(lines) AS lines, sum(revenue) AS revenue
            FROM customer_days JOIN customer ON o_custkey = c_custkey JOIN nation ON c_nationkey = n_nationkey
            GROUP BY o_orderdate, n_name, c_mktsegment
            """,
            {
                "customer_days": """
                SELECT o_orderdate, n_name, c_mktsegment, sum(lines) AS lines, sum(revenue) AS revenue
                FROM changed JOIN customer ON o_custkey = c_custkey JOIN nation ON c_nationkey = n_nationkey
                GROUP BY o_orderdate, n_name, c_mktsegment
                """,
                "customer": """
                SELECT o_orderdate, n_name, c_mktsegment, sum(sign * lines) AS lines, sum(sign * revenue) AS revenue
                FROM customer_days JOIN changed ON o_custkey = c_custkey JOIN nation ON c_nationkey = n_nationkey
                GROUP BY o_orderdate, n_name, c_mktsegment
                """,
            },
        ),
    ),
    """
    SELECT o_orderdate, n_name, c_mktsegment, sum(lines) AS lines, sum(revenue) AS revenue
    FROM days GROUP BY o_orderdate, n_name, c_mktsegment HAVING sum(lines) <> 0
    """,
)
"""A change of a customer meets the sums of its days, not its orders and their lines."""

_Q01_SUMS = {
    "quantity": "l_quantity",
    "base_price": "l_extendedprice",
    "disc_price": _REVENUE,
    "charge": f"{_REVENUE} * (1 + l_tax)",
    "discount": "l_discount",
}
_Q01_WHERE = "l_shipdate <= date '1998-09-02'"


def _q01_rows(source: str, sign: str) -> str:
    sums = ", ".join(f"sum({sign} * {value}) AS {name}" for name, value in _Q01_SUMS.items())
    return (
        f"SELECT l_returnflag, l_linestatus, {sums}, sum({sign}) AS lines "
        f"FROM {source} WHERE {_Q01_WHERE} GROUP BY l_returnflag, l_linestatus"
    )


def _average(name: str) -> str:
    """As AVG of a decimal(15,2) has it."""
    return f"cast(sum({name}) / sum(lines) AS decimal(19, 6))"


_Q01 = ByHand(
    (Part("flags", _q01_rows("lineitem", "1"), {"lineitem": _q01_rows(CHANGED, SIGN)}),),
    f"""
    SELECT l_returnflag, l_linestatus, sum(quantity) AS sum_qty, sum(base_price) AS sum_base_price,
        sum(disc_price) AS sum_disc_price, sum(charge) AS sum_charge, {_average("quantity")} AS avg_qty,
        {_average("base_price")} AS avg_price, {_average("discount")} AS avg_disc, sum(lines) AS count_order
    FROM flags GROUP BY l_returnflag, l_linestatus HAVING sum(lines) <> 0
    """,
)

_URGENT = "CASE WHEN o_orderpriority IN ('1-URGENT', '2-HIGH') THEN 1 ELSE 0 END"


def _q12_rows(source: str, sign: str) -> str:
    return f"""
        SELECT l_shipmode, sum({sign} * {_URGENT}) AS high, sum({sign} * (1 - {_URGENT})) AS low, sum({sign}) AS lines
        FROM {source} JOIN orders ON l_orderkey = o_orderkey
        WHERE l_shipmode IN ('MAIL', 'SHIP') AND l_commitdate < l_receiptdate AND l_shipdate < l_commitdate
            AND l_receiptdate >= date '1994-01-01' AND l_receiptdate < date '1995-01-01'
        GROUP BY l_shipmode
        """


_Q12 = ByHand(
    (Part("modes", _q12_rows("lineitem", "1"), {"lineitem": _q12_rows(CHANGED, SIGN)}),),
    """
    SELECT l_shipmode, sum(high) AS high_line_count, sum(low) AS low_line_count
    FROM modes GROUP BY l_shipmode HAVING sum(lines) <> 0
    """,
)

_DELAY_SUMS = {
    "flights": "1",
    "departed": "CASE WHEN dep_delay IS NULL THEN 0 ELSE 1 END",
    "arrived": "CASE WHEN arr_delay IS NULL THEN 0 ELSE 1 END",
    "dep_delay": "coalesce(dep_delay, 0)",
    "arr_delay": "coalesce(arr_delay, 0)",
    "arrived_late": "CASE WHEN arr_delay > 15 THEN 1 ELSE 0 END",
    "miles": "distance",
}


def _delay_rows(source: str, sign: str) -> str:
    sums = ", ".join(f"sum({sign} * {value}) AS sum_{name}" for name, value in _DELAY_SUMS.items())
    return f"SELECT flight_date, carrier, origin, {sums} FROM {source} GROUP BY flight_date, carrier, origin"


def _delay_sum(name: str, number: str) -> str:
    """NULL where nothing was added up."""
    return f"CASE WHEN sum(sum_{number}) <> 0 THEN sum(sum_{name}) END AS {name}"


def _delay_mean(name: str, number: str) -> str:
    return f"CASE WHEN sum(sum_{number}) <> 0 THEN sum(sum_{name}) / sum(sum_{number}) END AS avg_{name}"


_DELAYS_DAILY = ByHand(
    (Part("days", _delay_rows("flights", "1"), {"flights": _delay_rows(CHANGED, SIGN)}),),
    f"""
    SELECT flight_date, l.name AS carrier, a.name AS origin, sum(sum_flights) AS flights,
        sum(sum_departed) AS departed, sum(sum_arrived) AS arrived,
        {_delay_sum("dep_delay", "departed")}, {_delay_sum("arr_delay", "arrived")},
        sum(sum_arrived_late) AS arrived_late, sum(sum_miles) AS miles,
        {_delay_mean("dep_delay", "departed")}, {_delay_mean("arr_delay", "arrived")}
    FROM days d JOIN airports a ON d.origin = a.faa JOIN airlines l ON d.carrier = l.carrier
    GROUP BY flight_date, l.name, a.name HAVING sum(sum_flights) <> 0
    """,
)
"""Names are looked up when somebody reads: those of an airport may change for nothing."""

BY_HAND = {
    "by_orderdate": _BY_ORDERDATE,
    "q01": _Q01,
    "q12": _Q12,
    "delays_daily": _DELAYS_DAILY,
}
