"""Orders of customers, how they change, and models over both: what ``python -m benchmarks.statements`` measures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Changes = Literal["facts", "customers", "both"]
Shape = Literal["stacked", "joined"]

TABLES = ("raw.orders", "raw.customers")

REVENUE = """
    select o.day, c.segment, count(*) as orders, sum(o.amount) as total, avg(o.amount) as mean
    from raw.orders o join raw.customers c on o.customer_id = c.customer_id
    group by o.day, c.segment
"""


def model_sql(helpers: int, shape: Shape) -> str:
    """The two-table model, or one over as many inner views, each the orders of at least some amount.

    They are *stacked* by UNION ALL below an aggregate, or *joined* by their keys.
    """
    if helpers == 0:
        return REVENUE
    return _joined(helpers) if shape == "joined" else _stacked(helpers)


def _of_at_least(amount: int, count: str, total: str) -> str:
    return (
        f"select o.day, c.segment, count(*) as {count}, sum(o.amount) as {total} "
        "from raw.orders o join raw.customers c on o.customer_id = c.customer_id "
        f"where o.amount >= {amount} group by o.day, c.segment"
    )


def _stacked(helpers: int) -> str:
    stack = "\nunion all\n".join(_of_at_least(i, "orders", "total") for i in range(helpers))
    return (
        "select day, segment, count(*) as levels, sum(orders) as orders, sum(total) as total, avg(total) as mean\n"
        f"from (\n{stack}\n) group by day, segment"
    )


def _joined(helpers: int) -> str:
    parts = ",\n".join(f"p{i} as ({_of_at_least(i, f'orders_{i}', f'total_{i}')})" for i in range(helpers))
    columns = ", ".join(f"orders_{i}, total_{i}" for i in range(helpers))
    joins = "\n".join(
        f"join p{i} on p{i}.day = p0.day and p{i}.segment = p0.segment" for i in range(1, helpers)
    )
    return f"with {parts}\nselect p0.day, p0.segment, {columns} from p0\n{joins}"


@dataclass(frozen=True)
class Inputs:
    """Two tables: so many orders of so many customers, who are of segments, from ``first_day`` on."""

    orders: int
    customers: int
    segments: int
    first_day: str
    days: int
    is_partitioned: bool
    """Whether orders are partitioned by their year."""

    @staticmethod
    def tiny() -> Inputs:
        """What is measured is what a refresh costs however little there is to do."""
        return Inputs(5_000, 50, 5, "2024-01-01", 200, is_partitioned=False)

    @staticmethod
    def facts(orders: int) -> Inputs:
        """Ten years in as many partitions; with enough orders there are some 90,000 days of segments."""
        return Inputs(orders, 5_000, 25, "2015-01-01", 3_650, is_partitioned=True)

    def create(self, session: SparkSession) -> None:
        """The tables, with change feeds; their rows are the same in each run."""
        feed = "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
        layout, hint = (
            ("PARTITIONED BY (year)", "/*+ REBALANCE(year) */") if self.is_partitioned else ("", "")
        )
        day = f"date_add(date'{self.first_day}', cast({_hashed('day', self.days)} AS int))"
        segment = f"concat('s', id % {self.segments}) AS segment"
        for statement in (
            "CREATE SCHEMA raw",
            f"CREATE TABLE raw.orders USING DELTA {layout} {feed} AS "
            f"SELECT {hint} * FROM ({self._select(f'range({self.orders})', day)})",
            f"CREATE TABLE raw.customers USING DELTA {feed} AS "
            f"SELECT id AS customer_id, {segment} FROM range({self.customers})",
        ):
            session.sql(statement)

    def change(self, session: SparkSession, number: int, changes: Changes) -> None:
        """Ten orders: seven of the last week come, two of any day get another amount, one goes. One customer moves."""
        if changes != "customers":
            first, old = self.orders + 7 * number, 3 * number
            day = f"date_add(date'{self.first_day}', cast({self.days - 7} + id % 7 AS int))"
            session.sql(f"INSERT INTO raw.orders {self._select(f'range({first}, {first + 7})', day)}")
            session.sql(f"UPDATE raw.orders SET amount = amount + 1 WHERE id IN ({old}, {old + 1})")
            session.sql(f"DELETE FROM raw.orders WHERE id = {old + 2}")
        if changes != "facts":
            segment = f"concat('s', (cast(substring(segment, 2) AS int) + 1) % {self.segments})"
            who = 7 * number % self.customers
            session.sql(f"UPDATE raw.customers SET segment = {segment} WHERE customer_id = {who}")

    def _select(self, ids: str, day: str) -> str:
        amount = f"cast(10 + {_hashed('amount', 99_000)} / 100 AS decimal(10,2)) AS amount"
        rows = f"SELECT id, {_hashed('customer', self.customers)} AS customer_id, {day} AS day, {amount} FROM {ids}"
        return f"SELECT id, customer_id, day, year(day) AS year, amount FROM ({rows})"


def _hashed(of: str, values: int) -> str:
    return f"pmod(xxhash64(id, '{of}'), {values})"
