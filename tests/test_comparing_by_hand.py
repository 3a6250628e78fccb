"""The sums by hand of ``python -m benchmarks.compare``: after any change they are what the query says, on DuckDB."""

from __future__ import annotations

import random
from collections.abc import Iterator
from decimal import Decimal

import duckdb
import pytest
import sqlglot
from benchmarks.compare.by_hand import CHANGED, ByHand
from benchmarks.compare.cases import Compared, cases

BY_HAND = [(c, c.by_hand) for c in cases() if c.by_hand is not None]

TABLES = {
    "nation": "SELECT n AS n_nationkey, 'N' || n AS n_name FROM range(3) t(n)",
    "customer": "SELECT n AS c_custkey, n % 3 AS c_nationkey, 'S' || n % 2 AS c_mktsegment FROM range(9) t(n)",
    "orders": "SELECT n AS o_orderkey, n % 9 AS o_custkey, DATE '1994-01-01' + CAST(n % 5 AS INT) AS o_orderdate, "
    "CASE n % 3 WHEN 0 THEN '1-URGENT' ELSE '5-LOW' END AS o_orderpriority FROM range(40) t(n)",
    "lineitem": "SELECT n % 40 AS l_orderkey, n AS l_linenumber, CAST(n % 7 AS DECIMAL(15, 2)) AS l_quantity, "
    "CAST(100 + n AS DECIMAL(15, 2)) AS l_extendedprice, CAST(n % 9 / 100 AS DECIMAL(15, 2)) AS l_discount, "
    "CAST(n % 4 / 100 AS DECIMAL(15, 2)) AS l_tax, chr(CAST(65 + n % 2 AS INT)) AS l_returnflag, "
    "chr(CAST(70 + n % 3 AS INT)) AS l_linestatus, DATE '1994-01-05' AS l_shipdate, "
    "DATE '1994-01-09' AS l_commitdate, "
    "DATE '1994-01-08' + CAST(n % 9 AS INT) AS l_receiptdate, "
    "CASE n % 2 WHEN 0 THEN 'MAIL' ELSE 'AIR' END AS l_shipmode "
    "FROM range(120) t(n)",
    "airports": "SELECT * FROM (VALUES ('JFK', 'Kennedy'), ('LGA', 'La Guardia')) t(faa, name)",
    "airlines": "SELECT 'C' || n AS carrier, 'Airline ' || n AS name FROM range(3) t(n)",
    "flights": "SELECT n AS flight_id, DATE '2013-01-01' + CAST(n % 4 AS INT) AS flight_date, 'C' || n % 3 AS carrier, "
    "CASE n % 2 WHEN 0 THEN 'JFK' ELSE 'LGA' END AS origin, n AS distance, "
    "CASE WHEN n % 5 > 0 THEN n % 50 - 10 END AS dep_delay, CASE WHEN n % 5 > 0 THEN n % 60 - 9 END AS arr_delay "
    "FROM range(90) t(n)",
}
KEYS = {"lineitem": "l_linenumber", "customer": "c_custkey", "flights": "flight_id"}
OTHERS = {
    "lineitem": "l_discount = 0.07, l_extendedprice = l_extendedprice + 1",
    "customer": "c_mktsegment = 'S2'",
    "flights": "dep_delay = 3, arr_delay = NULL",
}


def _duck(sql: str) -> str:
    return sqlglot.transpile(sql, read="spark", write="duckdb")[0]


class Kept:
    """The parts as tables, and a change of one input at a time."""

    def __init__(self, compared: Compared, by_hand: ByHand) -> None:
        self.db = duckdb.connect(":memory:")
        self.sql, self.by_hand = compared.models[-1].sql, by_hand
        for name, rows in TABLES.items():
            self.db.execute(f"CREATE TABLE {name} AS {rows}")
        for part in by_hand.parts:
            self.db.execute(f"CREATE TABLE {part.name} AS {_duck(part.rows)}")

    def change(self, table: str, statement: str) -> None:
        """Run a statement, and append what it changes to all parts."""
        self.db.execute(f"CREATE OR REPLACE TABLE before AS SELECT * FROM {table}")
        self.db.execute(statement)
        feed = (
            f"(SELECT *, 1 AS sign FROM {table} UNION ALL SELECT *, -1 FROM before) "
            if table != "customer"
            else f"(SELECT *, 1 AS sign FROM (SELECT * FROM {table} EXCEPT ALL SELECT * FROM before) UNION ALL "
            f"SELECT *, -1 FROM (SELECT * FROM before EXCEPT ALL SELECT * FROM {table}))"
        )
        changed = {table: feed}
        for part in self.by_hand.parts:
            for source, delta in part.deltas.items():
                if source in changed:
                    self.db.execute(f"CREATE OR REPLACE TABLE {CHANGED} AS SELECT * FROM {changed[source]}")
                    self.db.execute(f"CREATE OR REPLACE TABLE d_{part.name} AS {_duck(delta)}")
                    changed[part.name] = f"d_{part.name}"
        for part in self.by_hand.parts:
            if part.name in changed:
                self.db.execute(f"INSERT INTO {part.name} SELECT * FROM d_{part.name}")

    def rows(self, sql: str) -> list[tuple[object, ...]]:
        """In some order; numbers as floats that may differ a little, as a mean of DuckDB's is one."""
        found = self.db.execute(_duck(sql)).fetchall()
        plain = [tuple(float(v) if isinstance(v, int | float | Decimal) else v for v in row) for row in found]
        return sorted(plain, key=lambda row: [f"{v:.2f}" if isinstance(v, float) else str(v) for v in row])


def _changes(compared: Compared, by_hand: ByHand) -> Iterator[tuple[str, str]]:
    some = random.Random(compared.name)
    for _ in range(4):
        for table in by_hand.inputs:
            key, which = KEYS[table], some.randrange(4)
            yield table, f"UPDATE {table} SET {OTHERS[table]} WHERE {key} % 4 = {which}"
            if table != "customer":
                yield (
                    table,
                    f"INSERT INTO {table} SELECT * FROM {table} WHERE {key} % 4 = {some.randrange(4)}",
                )
                yield table, f"DELETE FROM {table} WHERE {key} % 7 = {some.randrange(7)}"


@pytest.mark.parametrize("compared, by_hand", BY_HAND, ids=[c.name for c, _ in BY_HAND])
def test_sums_by_hand_follow_changes(compared: Compared, by_hand: ByHand) -> None:
    kept = Kept(compared, by_hand)
    first = kept.rows(kept.sql)
    for table, statement in _changes(compared, by_hand):
        kept.change(table, statement)
        shown, wanted = kept.rows(by_hand.shown), kept.rows(kept.sql)
        assert len(shown) == len(wanted)
        for one, other in zip(shown, wanted, strict=True):
            assert one == pytest.approx(other, abs=1e-5), statement
    assert kept.rows(kept.sql) != first
