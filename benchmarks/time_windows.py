"""What one more pane costs, of sliding windows kept in several ways: ``python -m benchmarks.time_windows``.

A stream of measurements has some rows per key and minute; one more minute arrives, and the windows that contain it
change. Three sweeps: over the length of the window (at a slide of a minute, so that length is also the number of
windows that change), over the days of history, and over the rows per minute. The ways, for MAX and for SUM:

* ``fivm``: this model, by panes;
* ``by hand``: the same upkeep written by hand for this model and for rows that only come, a MERGE of the panes and one
  of the windows that contain them (SUM needs no panes);
* ``recompute``: the model's query again, over all history.

A second table is of one window per slide, as in the paper: that which ends with the new minute, summed over its panes,
or as the difference of two cumulative sums. (ViewDF, sections 5.2 and 7.2, figures 9 to 12.)
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from random import Random

import click
from rich.console import Console
from rich.table import Table

from benchmarks.conclude import conclude
from benchmarks.plots import Line, plot
from benchmarks.queries.command import ENGINES, opener
from benchmarks.streams import as_file
from fivm_dbt.catalog import Catalog, Column, Relation
from fivm_dbt.config import load_config
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.plan.planner import plan_model
from fivm_dbt.plan.request import ModelRequest
from fivm_dbt.refresh.compare import difference_sql
from fivm_dbt.refresh.engine import Row
from fivm_dbt.refresh.executor import refresh
from fivm_dbt.testing.workbench import TableSpec, Workbench

_WIDTH, _MINUTE, _START = 140, 60_000_000, datetime(2024, 3, 1)
WAYS = ("fivm", "by hand", "recompute")
_COLUMNS = tuple(Column.of(n, t) for n, t in (("k", "int"), ("ts", "timestamp"), ("v", "int")))
STREAM, BATCH = TableSpec("stream", _COLUMNS), TableSpec("batch", _COLUMNS)
_PANE = f"UNIX_MICROS(ts) - PMOD(UNIX_MICROS(ts), {_MINUTE})"


@dataclass(frozen=True)
class Case:
    """``length`` of the window in minutes, ``days`` of history, ``rows`` per key and minute."""

    sweep: str
    length: int
    days: float
    rows: int

    def of(self, sweep: str) -> float:
        """What grows in a sweep."""
        return {"length": self.length, "history": self.days, "batch": self.rows}[sweep]


@dataclass(frozen=True)
class Measured:
    """One way after one more minute, on the average; seconds are wall-clock."""

    case: Case
    call: str
    way: str
    rows_read: int
    rows_written: int
    seconds: float
    differing: int


def _cases(lengths: Sequence[int], days: Sequence[float], rows: Sequence[int]) -> Iterator[Case]:
    base = Case("", lengths[0], days[0], rows[0])
    yield from (replace(base, sweep="length", length=n) for n in lengths)
    yield from (replace(base, sweep="history", days=n) for n in days)
    yield from (replace(base, sweep="batch", rows=n) for n in rows)


@click.command()
@click.option("--lengths", multiple=True, default=(10, 60, 240, 1440), show_default=True, help="Minutes.")
@click.option(
    "--days", multiple=True, type=float, default=(0.75, 2.75, 8.75), show_default=True, help="History."
)
@click.option("--rows", multiple=True, default=(2, 10, 50), show_default=True, help="Per key and minute.")
@click.option("--keys", default=4, show_default=True, type=click.IntRange(1), help="Keys.")
@click.option("--slides", default=3, show_default=True, type=click.IntRange(1), help="Minutes that arrive.")
@click.option("--engine", type=click.Choice(ENGINES), default="duckdb", show_default=True)
@click.option("--report", type=click.Path(path_type=Path), help="Write the figures as JSON too.")
@click.option(
    "--images", type=click.Path(path_type=Path), help="Draw a picture of each sweep into a directory."
)
def main(
    lengths: tuple[int, ...],
    days: tuple[float, ...],
    rows: tuple[int, ...],
    keys: int,
    slides: int,
    engine: str,
    report: Path | None,
    images: Path | None,
) -> None:
    """Let minutes arrive, in each way. Exits with 1 if one differs from the recompute."""
    measured: list[Measured] = []
    with tempfile.TemporaryDirectory() as directory:
        open_workbench = opener(engine, Path(directory))
        known: dict[tuple[Case, str, str], Measured] = {}
        for case in _cases(lengths, days, rows):
            for call in ("max", "sum"):
                for way in WAYS:
                    # The sweeps begin with the same case.
                    same = replace(case, sweep=""), call, way
                    if same not in known:
                        click.echo(f"{case}: {call}, {way}", err=True)
                        with closing(open_workbench()) as workbench:
                            stream = _Stream(workbench, case, keys, call, Path(directory))
                            known[same] = stream.follow(way, slides)
                        click.echo(f"  {known[same].seconds:.3f} s", err=True)
                    measured.append(replace(known[same], case=case))
        ending = []
        for length in lengths:
            with closing(open_workbench()) as workbench:
                ending.append(_ending(workbench, length, keys, Path(directory)))
    _print(measured)
    _print_ending(ending)
    if images is not None:
        _draw(measured, images)
    conclude(measured, report)


class _Stream:
    """The measurements so far, and a model of windows over them."""

    def __init__(self, workbench: Workbench, case: Case, keys: int, call: str, directory: Path) -> None:
        self._workbench, self._case, self._keys, self._call = workbench, case, keys, call
        self._directory = directory
        self._random = Random(7)
        self._next = 0
        self._window = f"window(ts, '{case.length} minutes', '1 minute')"
        self.sql = f"SELECT k, window.start AS b, {call}(v) AS a, COUNT(*) AS n FROM stream GROUP BY k, {self._window}"

    def _minute(self) -> list[Row]:
        at = _START + timedelta(minutes=self._next)
        self._next += 1
        many = range(self._case.rows)
        return [
            (k, at + timedelta(microseconds=n * _MINUTE // self._case.rows), self._random.randint(-50, 50))
            for k in range(self._keys)
            for n in many
        ]

    def follow(self, way: str, slides: int) -> Measured:
        """Build the model in one way, and let so many minutes arrive, after one to warm up."""
        workbench, engine = self._workbench, self._workbench.engine
        history = [row for _ in range(round(self._case.days * 1440)) for row in self._minute()]
        workbench.load(STREAM, as_file(STREAM, history, self._directory / "history.parquet"))
        workbench.create(BATCH, ())
        workbench.make_room("m")
        build, step, differing = self._ways()[way]
        build()
        read = written = 0
        seconds = 0.0
        for number in range(slides + 1):
            rows = self._minute()
            workbench.change(STREAM, rows, ())
            workbench.recreate(BATCH, rows)
            engine.start_measuring("slide")
            started = time.perf_counter()
            touched, scanned = step()
            took = time.perf_counter() - started
            if number:
                seconds += took
                read += scanned if scanned is not None else engine.measured("slide").rows_read or 0
                written += touched
        found = len(engine.query(differing()))
        return Measured(
            self._case, self._call, way, read // slides, written // slides, seconds / slides, found
        )

    def _ways(
        self,
    ) -> dict[str, tuple[Callable[[], None], Callable[[], tuple[int, int | None]], Callable[[], str]]]:
        plan = self._plan()
        engine = self._workbench.engine

        def refreshed() -> tuple[int, int | None]:
            report = refresh(plan, engine)
            merged = report.rows_merged + sum(inner.rows_merged for inner in report.inner_views)
            return merged, report.rows_read

        def built() -> None:
            refresh(plan, engine)

        def hand_differs() -> str:
            shown, wanted = "SELECT k, b, a, n FROM by_hand", self.sql
            return f"({shown} EXCEPT ALL {wanted}) UNION ALL ({wanted} EXCEPT ALL {shown})"

        return {
            "fivm": (built, refreshed, lambda: difference_sql(plan, engine)),
            "by hand": (self._build_by_hand, self._by_hand, hand_differs),
            "recompute": (self._recompute, self._recomputed, hand_differs),
        }

    def _plan(self) -> Plan:
        catalog = Catalog.of([Relation(STREAM.name, STREAM.columns)])
        config = load_config({"batch_size": "day"})
        return plan_model(ModelRequest("m", self.sql, catalog, config), self._workbench.describe)

    # Written by hand

    def _recompute(self) -> None:
        self._workbench.make_room("by_hand")
        # A sum is of this type; without the cast DuckDB computes it twice, once to see its type.
        query = self.sql.replace("sum(v)", "CAST(sum(v) AS BIGINT)")
        self._workbench.engine.run(f"CREATE OR REPLACE TABLE by_hand USING DELTA AS {query}")

    def _recomputed(self) -> tuple[int, None]:
        self._recompute()
        return self._count("SELECT COUNT(*) FROM by_hand"), None

    def _count(self, sql: str) -> int:
        ((n,),) = self._workbench.engine.query(sql)
        return int(str(n))

    def _build_by_hand(self) -> None:
        self._recompute()
        if self._call == "sum":
            return
        self._workbench.make_room("panes")
        self._workbench.engine.run(
            f"CREATE OR REPLACE TABLE panes USING DELTA AS SELECT k, {_PANE} AS pane, MAX(v) AS a, "
            "COUNT(*) AS n FROM stream GROUP BY k, pane"
        )

    def _by_hand(self) -> tuple[int, None]:
        length = self._case.length * _MINUTE
        windows = f"LATERAL VIEW EXPLODE(SEQUENCE(pane, pane - {length} + 1, -{_MINUTE})) w AS start_us"
        changed = (
            f"SELECT k, {_PANE} AS pane, {self._call}(v) AS a, COUNT(*) AS n FROM batch GROUP BY k, pane"
        )
        engine = self._workbench.engine
        if self._call == "sum":
            source = (
                f"SELECT k, TIMESTAMP_MICROS(start_us) AS b, SUM(a) AS a, SUM(n) AS n FROM ({changed}) AS c {windows} "
                "GROUP BY k, b"
            )
            update = "a = target.a + delta.a, n = target.n + delta.n"
        else:
            engine.run(
                f"MERGE INTO panes AS target USING ({changed}) AS delta ON target.k = delta.k AND target.pane = "
                "delta.pane WHEN MATCHED THEN UPDATE SET a = GREATEST(target.a, delta.a), n = target.n + delta.n "
                "WHEN NOT MATCHED THEN INSERT (k, pane, a, n) VALUES (delta.k, delta.pane, delta.a, delta.n)"
            )
            ((low, high),) = engine.query(f"SELECT MIN(pane), MAX(pane) FROM ({changed}) AS c")
            first, last = int(str(low)) - length, int(str(high)) + length
            source = (
                f"SELECT k, TIMESTAMP_MICROS(start_us) AS b, MAX(a) AS a, SUM(n) AS n FROM (SELECT * FROM panes WHERE "
                f"pane > {first} AND pane < {last}) AS c {windows} WHERE start_us > {first} AND start_us <= {high} "
                "GROUP BY k, b"
            )
            update = "a = delta.a, n = delta.n"
        engine.run(
            f"MERGE INTO by_hand AS target USING ({source}) AS delta ON target.k = delta.k AND target.b = delta.b "
            f"WHEN MATCHED THEN UPDATE SET {update} "
            "WHEN NOT MATCHED THEN INSERT (k, b, a, n) VALUES (delta.k, delta.b, delta.a, delta.n)"
        )
        return self._keys * self._case.length, None


@dataclass(frozen=True)
class Ending:
    """The window that ends with the newest minute: rows looked at and seconds, by panes and by cumulative sums."""

    length: int
    panes: int
    cumulative: int
    seconds_of_panes: float
    seconds_of_cumulative: float
    late: int
    differing: int


def _ending(workbench: Workbench, length: int, keys: int, directory: Path) -> Ending:
    """Of as many minutes as the window has twice; ``late`` is how many cumulative rows a row of the first one moves."""
    workbench.make_room("sums")
    minutes = 2 * length
    sums = TableSpec(
        "sums", tuple(Column.of(n, t) for n, t in (("k", "int"), ("pane", "int"), ("s", "bigint")))
    )
    rows = [(k, m, (k * 31 + m * 17) % 101 - 50) for k in range(keys) for m in range(minutes)]
    workbench.load(sums, as_file(sums, rows, directory / "sums.parquet"))
    workbench.make_room("running")
    engine = workbench.engine
    engine.run(
        "CREATE OR REPLACE TABLE running USING DELTA AS "
        "SELECT k, pane, SUM(s) OVER (PARTITION BY k ORDER BY pane) AS s FROM sums"
    )
    last, before = minutes - 1, minutes - 1 - length
    by_panes = f"SELECT k, SUM(s) AS s FROM sums WHERE pane > {before} AND pane <= {last} GROUP BY k"
    by_difference = (
        f"SELECT k, SUM(CASE WHEN pane = {last} THEN s ELSE -s END) AS s FROM running "
        f"WHERE pane IN ({before}, {last}) GROUP BY k"
    )
    seconds = []
    for query in (by_panes, by_difference):
        started = time.perf_counter()
        for _ in range(5):
            engine.query(query)
        seconds.append((time.perf_counter() - started) / 5)
    differing = len(engine.query(f"({by_panes} EXCEPT ALL {by_difference})"))
    return Ending(length, length * keys, 2 * keys, seconds[0], seconds[1], minutes, differing)


def _print(measured: Sequence[Measured]) -> None:
    table = Table(box=None, pad_edge=False)
    for heading in ("sweep", "window", "days", "rows", "of", "way"):
        table.add_column(heading)
    for heading in ("rows read", "rows written", "seconds"):
        table.add_column(heading, justify="right")
    table.add_column("equal")
    for m in measured:
        c = m.case
        place = (c.sweep, f"{c.length} min", f"{c.days:g}", str(c.rows), m.call, m.way)
        figures = (f"{m.rows_read:,}", f"{m.rows_written:,}", f"{m.seconds:.3f}")
        table.add_row(*place, *figures, "yes" if m.differing == 0 else "NO")
    Console(width=_WIDTH, soft_wrap=True).print(table)


def _print_ending(ending: Sequence[Ending]) -> None:
    table = Table(box=None, pad_edge=False)
    for heading in (
        "window that ends",
        "panes",
        "cumulative",
        "s, panes",
        "s, cumulative",
        "moved by a late row",
    ):
        table.add_column(heading, justify="right")
    for e in ending:
        seconds = (f"{e.seconds_of_panes:.4f}", f"{e.seconds_of_cumulative:.4f}")
        table.add_row(f"{e.length} min", f"{e.panes:,}", f"{e.cumulative:,}", *seconds, f"{e.late:,}")
    Console(width=_WIDTH, soft_wrap=True).print(table)


_SWEEPS = {
    "length": "minutes of the window",
    "history": "days of history",
    "batch": "rows per key and minute",
}


def _draw(measured: Sequence[Measured], images: Path) -> None:
    for sweep, label in _SWEEPS.items():
        lines = []
        for call in ("max", "sum"):
            for way in WAYS:
                points = [m for m in measured if (m.case.sweep, m.call, m.way) == (sweep, call, way)]
                xs = tuple(m.case.of(sweep) for m in points)
                lines.append(Line(f"{call.upper()}, {way}", xs, tuple(float(m.rows_read) for m in points)))
        plot(images / f"time_windows_{sweep}.svg", lines, label, "rows read by one more minute")


if __name__ == "__main__":
    main()
