"""Seconds per statement of a small refresh on local Spark: ``python -m benchmarks.statements [--conf KEY=VALUE]``.

A model over two tables of a few rows, both changed before every refresh: what is measured is what a refresh costs
however little there is to do. The first refreshes of a session are slower, because Java compiles while it runs; the
table shows the mean of the second half.
"""

from __future__ import annotations

import itertools
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.table import Table

from benchmarks.timed import TimedEngine, Timing
from fivm_dbt.catalog import Catalog, Relation
from fivm_dbt.config import Config
from fivm_dbt.engines.session import local_session
from fivm_dbt.plan.planner import ModelRequest, plan_model
from fivm_dbt.refresh.executor import refresh
from fivm_dbt.refresh.journal import SqlJournal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERY = """
    select o.day, c.segment, count(*) as orders, sum(o.amount) as total, avg(o.amount) as mean
    from raw.orders o join raw.customers c on o.customer_id = c.customer_id
    group by o.day, c.segment
"""


@click.command()
@click.option("--refreshes", default=12, show_default=True, type=click.IntRange(2), help="How many to run.")
@click.option(
    "--conf", "settings", multiple=True, metavar="KEY=VALUE", help="A setting of the Spark session."
)
def main(refreshes: int, settings: tuple[str, ...]) -> None:
    """Print the seconds of every refresh, and of the statements in them."""
    with tempfile.TemporaryDirectory() as directory:
        session = local_session(Path(directory), settings=dict(s.split("=", 1) for s in settings))
        try:
            _measure(session, refreshes)
        finally:
            session.stop()


def _measure(session: SparkSession, refreshes: int) -> None:
    _create_inputs(session)
    engine = TimedEngine(session)
    relations = [
        Relation(name, engine.describe(f"SELECT * FROM {name}")) for name in ("raw.orders", "raw.customers")
    ]
    plan = plan_model(ModelRequest("shop.revenue", QUERY, Catalog.of(relations), Config()), engine.describe)
    journal = SqlJournal(engine, "shop.fivm_journal")
    refresh(plan, engine, journal)
    totals, timings = [], []
    for number in range(1, refreshes + 1):
        _change_inputs(session, number)
        engine.taken()
        started = time.perf_counter()
        refresh(plan, engine, journal)
        totals.append(time.perf_counter() - started)
        timings.append(engine.taken())
        click.echo(f"refresh {number:>3}: {totals[-1]:6.2f} s")
    since = refreshes // 2
    _print(timings[since:], totals[since:])


def _create_inputs(session: SparkSession) -> None:
    feed = "USING DELTA TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
    for statement in (
        "CREATE SCHEMA raw",
        "CREATE SCHEMA shop",
        f"CREATE TABLE raw.orders {feed} AS SELECT id, id % 50 AS customer_id, "
        "date_add(date'2024-01-01', cast(id % 200 AS int)) AS day, cast(id % 90 AS decimal(10,2)) AS amount "
        "FROM range(5000)",
        f"CREATE TABLE raw.customers {feed} AS SELECT id AS customer_id, concat('s', id % 5) AS segment FROM range(50)",
    ):
        session.sql(statement)


def _change_inputs(session: SparkSession, number: int) -> None:
    day = f"date_add(date'2024-05-01', {number % 100})"
    session.sql(f"INSERT INTO raw.orders VALUES ({9000 + number}, {number % 50}, {day}, 7.5)")
    session.sql(f"UPDATE raw.customers SET segment = 'x{number}' WHERE customer_id = {number % 50}")


def _print(timings: list[list[Timing]], totals: list[float]) -> None:
    table = Table("statement", "seconds", box=None)
    rows: defaultdict[str, float] = defaultdict(float)
    for timing in itertools.chain(*timings):
        rows[timing.statement] += timing.seconds / len(timings)
    for statement, seconds in sorted(rows.items(), key=lambda row: -row[1]):
        table.add_row(statement, f"{seconds:.2f}")
    whole = mean(totals)
    table.add_row("outside of statements", f"{whole - sum(rows.values()):.2f}")
    table.add_row("whole refresh", f"{whole:.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
