"""A pattern beside what an engineer writes by hand: ``python -m benchmarks.in_a_row``.

A stream of measurements has so many rows a day, of some keys, a part of them with a loss above ten. They come day by
day. The query: where a
key has three such rows or more in a row, with their count, their sum, the first and the last time. The ways:

* ``fivm``: the model with MATCH_RECOGNIZE, built, and refreshed after each day;
* ``recompute``: its SQL, as a table;
* ``by hand``: gaps and islands, by two ROW_NUMBERs, as a table; kept up to date for rows that are never late, by a
  table of the run at the end of each key, a MERGE of the runs of the new day, and that table again.

One more day arrives several times, the first of them to warm up. Then a few rows of an early day are corrected, which
what is kept by hand cannot follow. (Bars of the project: a build takes at most 1.5 of the table by hand, a day 1.5 of
the MERGE and 0.3 of a recompute.)
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Literal

import click
import duckdb
from rich.console import Console
from rich.table import Table

from benchmarks.bars import Bar, bars_table
from benchmarks.conclude import conclude
from benchmarks.queries.command import ENGINES, opener
from benchmarks.streams import arrive
from fivm_dbt.catalog import Catalog, Column, Relation
from fivm_dbt.config import load_config
from fivm_dbt.plan.model.plan import MaintainedPlan
from fivm_dbt.plan.planner import plan_model
from fivm_dbt.plan.request import ModelRequest
from fivm_dbt.refresh.compare import difference_sql
from fivm_dbt.refresh.executor import refresh
from fivm_dbt.refresh.measure import measure
from fivm_dbt.refresh.oracle import runnable_sql
from fivm_dbt.testing.workbench import TableSpec, Workbench

START = datetime(2015, 1, 1)
STREAM = TableSpec(
    "losses", tuple(Column.of(n, t) for n, t in (("k", "bigint"), ("at", "timestamp"), ("loss", "int")))
)
QUERY = """
select k, since, until, n, total from losses match_recognize (
  partition by k order by at
  measures first(lossy.at) as since, last(lossy.at) as until, count(*) as n, sum(lossy.loss) as total
  pattern (lossy{3,}) define lossy as lossy.loss > 10
) as in_a_row
"""
_COLUMNS = "k, since, until, n, total"
_RUNS = """
SELECT k, MIN(at) AS since, MAX(at) AS until, COUNT(*) AS n, SUM(loss) AS total, MIN(place) AS first, MAX(place) AS last
FROM (
  SELECT *, place - ROW_NUMBER() OVER (PARTITION BY k, loss > 10 ORDER BY place) AS run
  FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY at) AS place FROM {rows})
)
WHERE loss > 10 GROUP BY k, run"""
"""The runs in some rows; ``first`` and ``last`` are their places among the rows of their key."""

Event = Literal["build", "one more day", "corrected"]


@dataclass(frozen=True)
class Measured:
    """One way at one event: wall-clock seconds, of several runs the median."""

    event: Event
    way: str
    seconds: float
    statements: int | None
    rows_read: int | None
    differing: int


@dataclass(frozen=True)
class Size:
    """``rows`` a day of so many ``keys`` through ``days`` days, a ``share`` of them above ten."""

    rows: int
    keys: int
    days: int
    share: float

    def between(self, first: int, end: int) -> str:
        """The rows of some days, as a query for DuckDB."""
        numbers = f"SELECT UNNEST(range({first * self.rows}, {end * self.rows})) AS n"
        micros = f"n // {self.rows} * 86400000000 + n % {self.rows} * (86400000000 // {self.rows})"
        loss = f"hash(n, 3) % 1000 < {round(1000 * self.share)} THEN 11 + n % 30 ELSE n % 11"
        return (
            f"SELECT CAST(hash(n, 7) % {self.keys} AS BIGINT) AS k, "
            f"TIMESTAMPTZ '{START}+00' + to_microseconds(CAST({micros} AS BIGINT)) AS at, "
            f"CAST(CASE WHEN {loss} END AS INTEGER) "
            f"AS loss FROM ({numbers})"
        )


class _Stream:
    """The measurements so far, a model of them, and what is kept by hand."""

    def __init__(self, workbench: Workbench, size: Size, directory: Path) -> None:
        self._workbench, self._engine, self._size = workbench, workbench.engine, size
        self._directory, self._days = directory, 1
        file = directory / "history.parquet"
        duckdb.sql(size.between(0, 1)).write_parquet(str(file))
        workbench.load(STREAM, file)
        while self._days < size.days:
            self._next_day()
        for name in ("in_a_row", "by_hand", "recomputed", "open_runs"):
            workbench.make_room(name)
        catalog, session = Catalog.of([Relation(STREAM.name, STREAM.columns)]), (("timezone", "UTC"),)
        request = ModelRequest("in_a_row", QUERY, catalog, load_config({}), session)
        plan = plan_model(request, workbench.describe)
        if isinstance(plan, MaintainedPlan) and plan.measurable:
            plan = plan_model(replace(request, measured=measure(plan, self._engine)), workbench.describe)
        self._plan = plan

    def built(self) -> list[Measured]:
        """All ways from nothing, each twice: the second one counts."""
        found = []
        for way, build in (
            ("by hand", self._table_by_hand),
            ("recompute", self._recompute),
            ("fivm", lambda: self._refresh(full_refresh=True)),
        ):
            build()
            found.append(self._timed("build", way, build))
        self._keep_open()
        return [*found[:2], replace(found[2], differing=self._differing())]

    def days(self, more: int) -> list[Measured]:
        """So many more days after one to warm up; what each way takes in the middle."""
        every: list[list[Measured]] = []
        for _ in range(more + 1):
            self._next_day()
            every.append(
                [
                    self._timed("one more day", "by hand", self._advance_by_hand),
                    self._timed("one more day", "recompute", self._recompute),
                    self._timed("one more day", "fivm", self._refresh),
                ]
            )
        wrong = self._differing() + self._differing_by_hand()
        middle = [
            replace(those[0], seconds=median(m.seconds for m in those))
            for those in zip(*every[1:], strict=True)
        ]
        return [*middle[:2], replace(middle[2], differing=wrong)]

    def corrected(self) -> list[Measured]:
        """Of an early day one key in fifty has a loss in all rows."""
        day = START + timedelta(days=self._size.days // 4)
        where = f"k % 50 = 3 AND at >= TIMESTAMP '{day}' AND at < TIMESTAMP '{day + timedelta(days=1)}'"
        if self._engine.name == "spark":
            self._engine.run(f"UPDATE losses SET loss = 99 WHERE {where}")
        else:
            gone = self._engine.query(f"SELECT k, at, loss FROM losses WHERE {where}")
            self._workbench.change(STREAM, [(k, at, 99) for k, at, _ in gone], gone)
        found = [
            self._timed("corrected", "recompute", self._recompute),
            self._timed("corrected", "fivm", self._refresh),
        ]
        return [found[0], replace(found[1], differing=self._differing())]

    def _timed(self, event: Event, way: str, run: Callable[[], tuple[int, int | None] | None]) -> Measured:
        started = time.perf_counter()
        told = run()
        seconds = time.perf_counter() - started
        statements, rows = told if told is not None else (None, None)
        return Measured(event, way, seconds, statements, rows, 0)

    # The stream

    def _next_day(self) -> None:
        coming = self._size.between(self._days, self._days + 1)
        query = f'SELECT k, "at" AT TIME ZONE \'UTC\' AS "at", loss FROM ({coming})'
        arrive(self._workbench, STREAM, query, self._directory / "day.parquet")
        self._days += 1

    # The ways

    def _refresh(self, *, full_refresh: bool = False) -> tuple[int, int | None]:
        report = refresh(self._plan, self._engine, full_refresh=full_refresh)
        return len(report.statements), report.rows_read

    def _recompute(self) -> None:
        text = runnable_sql(self._plan)
        self._engine.run(f"CREATE OR REPLACE TABLE recomputed USING DELTA AS {text}")

    def _table_by_hand(self) -> None:
        query = f"SELECT {_COLUMNS} FROM ({_RUNS.format(rows='losses')}) WHERE n >= 3"
        self._engine.run(f"CREATE OR REPLACE TABLE by_hand USING DELTA AS {query}")

    def _keep_open(self) -> None:
        """The run at the end of each key, where there is one."""
        counts = "SELECT k AS of, COUNT(*) AS many FROM losses GROUP BY k"
        query = f"SELECT {_COLUMNS} FROM ({_RUNS.format(rows='losses')}) JOIN ({counts}) ON of = k AND many = last"
        self._engine.run(f"CREATE OR REPLACE TABLE open_runs USING DELTA AS {query}")

    def _advance_by_hand(self) -> None:
        day = START + timedelta(days=self._days - 1)
        rows = f"(SELECT * FROM losses WHERE at >= TIMESTAMP '{day}')"
        counts = f"SELECT k AS of, COUNT(*) AS many FROM {rows} GROUP BY k"
        longer = (
            "SELECT r.k, COALESCE(o.since, r.since) AS since, r.until, r.n + COALESCE(o.n, 0) AS n, "
            "r.total + COALESCE(o.total, 0) AS total, r.last "
            f"FROM ({_RUNS.format(rows=rows)}) AS r LEFT JOIN open_runs AS o ON o.k = r.k AND r.first = 1"
        )
        self._engine.run(
            f"MERGE INTO by_hand AS target USING (SELECT * FROM ({longer}) WHERE n >= 3) AS run "
            "ON target.k = run.k AND target.since = run.since "
            "WHEN MATCHED THEN UPDATE SET until = run.until, n = run.n, total = run.total "
            f"WHEN NOT MATCHED THEN INSERT ({_COLUMNS}) VALUES (run.k, run.since, run.until, run.n, run.total)"
        )
        now = f"SELECT {_COLUMNS} FROM ({longer}) JOIN ({counts}) ON of = k AND many = last"
        silent = f"SELECT {_COLUMNS} FROM open_runs WHERE k NOT IN (SELECT k FROM {rows})"
        self._engine.run(f"CREATE OR REPLACE TABLE open_next USING DELTA AS {now} UNION ALL {silent}")
        self._engine.run("CREATE OR REPLACE TABLE open_runs USING DELTA AS SELECT * FROM open_next")

    # What is right

    def _differing(self) -> int:
        return len(self._engine.query(difference_sql(self._plan, self._engine)))

    def _differing_by_hand(self) -> int:
        one, other = (f"SELECT {_COLUMNS} FROM {name}" for name in ("in_a_row", "by_hand"))
        return len(self._engine.query(f"({one} EXCEPT ALL {other}) UNION ALL ({other} EXCEPT ALL {one})"))


@click.command()
@click.option("--rows", default=5_000, show_default=True, type=click.IntRange(1), help="Of a day.")
@click.option("--keys", default=400, show_default=True, type=click.IntRange(1), help="That rows are of.")
@click.option("--days", default=20, show_default=True, type=click.IntRange(4), help="Of history.")
@click.option("--share", default=0.2, show_default=True, type=click.FloatRange(0, 1), help="Above ten.")
@click.option("--more", default=5, show_default=True, type=click.IntRange(1), help="Days that arrive.")
@click.option("--engine", type=click.Choice(ENGINES), default="duckdb", show_default=True)
@click.option("--report", type=click.Path(path_type=Path), help="Write the figures as JSON too.")
def main(rows: int, keys: int, days: int, share: float, more: int, engine: str, report: Path | None) -> None:
    """Build, let days arrive, and correct one, in each way. Exits with 1 if rows differ from a recompute."""
    with tempfile.TemporaryDirectory() as directory, closing(opener(engine, Path(directory))()) as workbench:
        stream = _Stream(workbench, Size(rows, keys, days, share), Path(directory))
        measured = []
        for part in (stream.built, lambda: stream.days(more), stream.corrected):
            measured += part()
            click.echo(f"{measured[-1].event}: {measured[-1].seconds:.1f} s by fivm", err=True)
    _print(measured)
    conclude(measured, report)


def _print(measured: Sequence[Measured]) -> None:
    table = Table(
        "event", "way", "seconds", "of by hand", "of recompute", "statements", "rows read", "equal", box=None
    )
    known = {(m.event, m.way): m.seconds for m in measured}
    for m in measured:
        ratios = (known.get((m.event, way)) for way in ("by hand", "recompute"))
        shown = ("" if s is None else f"{m.seconds / s:.2f}" for s in ratios)
        counts = ("" if n is None else f"{n:,}" for n in (m.statements, m.rows_read))
        table.add_row(m.event, m.way, f"{m.seconds:.2f}", *shown, *counts, "NO" if m.differing else "yes")
    console = Console(width=140)
    console.print(table)
    console.print(bars_table(bars(measured)))


def bars(measured: Sequence[Measured]) -> list[Bar]:
    """The ratios that there is a bar for."""
    known = {(m.event, m.way): m.seconds for m in measured}
    build, day = known["build", "fivm"], known["one more day", "fivm"]
    recompute = min(known["one more day", "recompute"], known["build", "by hand"])
    return [
        Bar("build / by hand", build / known["build", "by hand"], 1.5),
        Bar("one more day / by hand", day / known["one more day", "by hand"], 1.5),
        Bar("one more day / recompute", day / recompute, 0.3),
    ]


if __name__ == "__main__":
    main()
