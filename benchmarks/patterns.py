"""Seconds of one more part of a pattern on local Spark, as in ViewDF, section 7.1: ``python -m benchmarks.patterns``.

The stream has one row per key and minute, a share of them with a loss above ten, and the query is that of section 2:
keys with such a loss in four parts in a row, with count and sum. Three ways to bring the view up to date by a part:

* naive: the pattern over the last parts of the stream, ``scope`` many, of which the newest part is shown;
* by hand: INSERT of a part into a helper, joined with the part before, and of the answer into the view;
* fivm: a refresh of the model, its capture, journal and all.

One point of a figure is a stream of its own; the first part after its history is not counted.
"""

from __future__ import annotations

import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table

from benchmarks.timed import Timed
from fivm_dbt.catalog import Catalog, Relation
from fivm_dbt.config import Config
from fivm_dbt.engines.session import local_session
from fivm_dbt.engines.spark import SparkEngine, on_session
from fivm_dbt.plan.plan import Plan
from fivm_dbt.plan.planner import ModelRequest, plan_model
from fivm_dbt.refresh.executor import refresh
from fivm_dbt.refresh.journal import SqlJournal
from fivm_dbt.refresh.oracle import runnable_sql
from fivm_dbt.sql.splice import splice_inputs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERY = """
select key, at, ct, sum_loss from raw.m match_recognize (
  partition by key order by at measures count(*) as ct, sum(loss) as sum_loss
  one row per part pattern (a b c d+)
  define a as a.loss > 10, b as b.loss > 10, c as c.loss > 10, d as d.loss > 10
) as lossy
"""
_START = 1_420_106_400
"""The first minute, in unix time."""


@dataclass(frozen=True)
class Point:
    """A stream: keys in a part, the share of rows that match, parts of history, and how far back naive looks."""

    keys: int = 20_000
    share: float = 0.1
    history: int = 20
    scope: int = 20


FIGURES: dict[str, tuple[str, Callable[[Point], Iterator[tuple[float, Point]]]]] = {
    "size": (
        "rows in a part",
        lambda p: ((n, replace(p, keys=n)) for n in (p.keys // 8, p.keys // 4, p.keys // 2, p.keys)),
    ),
    "scope": (
        "scope of the naive way, parts",
        lambda p: ((n, replace(p, scope=n, history=100)) for n in (5, 20, 50, 100)),
    ),
    "share": (
        "matching rows, %",
        lambda p: ((100 * s, replace(p, share=s, scope=4)) for s in (0.1, 0.4, 0.7, 1.0)),
    ),
    "history": (
        "parts of history",
        lambda p: ((n, replace(p, history=n, scope=n)) for n in (10, 50, 200)),
    ),
}


@click.command()
@click.option("--figure", "names", multiple=True, type=click.Choice(list(FIGURES)), help="Not all of them.")
@click.option("--keys", default=20_000, show_default=True, help="Rows in a part.")
@click.option("--parts", default=3, show_default=True, help="Parts that are added and measured.")
@click.option("--images", type=click.Path(path_type=Path), help="Where plots are written to, as SVG.")
@click.option("--statements", is_flag=True, help="Show the seconds of each statement of the last refresh.")
def main(names: Sequence[str], keys: int, parts: int, images: Path | None, statements: bool) -> None:
    """Print the seconds of a part by figure and way, and plot them."""
    with tempfile.TemporaryDirectory() as directory:
        session = local_session(Path(directory))
        try:
            for name in names or FIGURES:
                label, points = FIGURES[name]
                found = {}
                for x, point in points(Point(keys)):
                    found[x] = Stream(session, point).measured(parts, shows=statements)
                    seconds = ", ".join(f"{way} {s:.2f} s" for way, s in found[x].items())
                    click.echo(f"{name} {x:g}: {seconds}")
                _print(name, label, found)
                if images is not None:
                    _plot(images / f"patterns_{name}.svg", label, found)
        finally:
            session.stop()


class Stream:
    """The tables of one point."""

    def __init__(self, session: SparkSession, point: Point) -> None:
        self.session, self.point, self.number = session, point, point.history
        for schema in ("raw", "shop"):
            session.sql(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
            session.sql(f"CREATE SCHEMA {schema}")
        feed = "USING DELTA TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
        rows = self._rows(f"explode(sequence(0, {point.history - 1}))")
        session.sql(f"CREATE TABLE raw.m {feed} AS {rows}")
        self.timed = Timed(on_session(session))
        self.engine = SparkEngine(self.timed, session)
        self.plan = self._plan()
        self.journal = SqlJournal(self.engine, "shop.fivm_journal")
        refresh(self.plan, self.engine, self.journal)
        self._begin_by_hand()

    def measured(self, parts: int, *, shows: bool) -> dict[str, float]:
        """Mean seconds of a part by way."""
        seconds: defaultdict[str, list[float]] = defaultdict(list)
        for _ in range(parts + 1):
            self.session.sql(f"INSERT INTO raw.m {self._rows(str(self.number))}")
            for way, run in (("naive", self._naive), ("by hand", self._by_hand), ("fivm", self._fivm)):
                started = time.perf_counter()
                run()
                seconds[way].append(time.perf_counter() - started)
            self.number += 1
        self._check()
        if shows:
            for timing in self.timed.taken():
                click.echo(f"{timing.seconds:6.2f} s  {timing.statement}")
        return {way: mean(those[1:]) for way, those in seconds.items()}

    def _rows(self, part: str) -> str:
        """The rows of parts; whether a row matches follows from its key and part."""
        p = self.point
        chance = f"pmod(xxhash64(id, part), 1000) < {round(1000 * p.share)}"
        return (
            f"SELECT id AS key, timestamp_seconds({_START} + 60 * part) AS at, "
            f"CAST(CASE WHEN {chance} THEN 11 + pmod(id, 30) ELSE 5 END AS int) AS loss "
            f"FROM (SELECT id, {part} AS part FROM range({p.keys}))"
        )

    def _plan(self) -> Plan:
        relation = Relation("raw.m", self.engine.describe("SELECT * FROM raw.m"))
        config = Config(fivm_part_length="minute")
        return plan_model(
            ModelRequest("shop.lossy", QUERY, Catalog.of([relation]), config), self.engine.describe
        )

    # The ways

    def _fivm(self) -> None:
        self.timed.taken()
        refresh(self.plan, self.engine, self.journal)

    def _naive(self) -> None:
        since = f"(SELECT * FROM raw.m WHERE at > {self._at(self.number - self.point.scope)})"
        text = splice_inputs(runnable_sql(self.plan), {"raw.m": since})
        query = f"SELECT * FROM ({text}) WHERE at = {self._at(self.number)}"
        self.session.sql(query).write.format("noop").mode("overwrite").save()

    def _at(self, part: int) -> str:
        return f"timestamp_seconds({_START + 60 * part})"

    def _begin_by_hand(self) -> None:
        """The helper as it is after the history."""
        last = self.point.history - 1
        low = "coalesce(max(at) FILTER (WHERE loss <= 10), timestamp_seconds(0))"
        runs = (
            f"SELECT m.key, count(*) AS ct, sum(m.loss) AS sum_loss FROM raw.m JOIN "
            f"(SELECT key, {low} AS low FROM raw.m GROUP BY key) AS l ON l.key = m.key AND m.at > l.low GROUP BY m.key"
        )
        self.session.sql(
            f"CREATE TABLE shop.helper USING DELTA PARTITIONED BY (part) AS SELECT *, {last} AS part FROM ({runs})"
        )
        self.session.sql(
            "CREATE TABLE shop.view USING DELTA PARTITIONED BY (part) AS SELECT * FROM shop.helper WHERE ct >= 4"
        )

    def _by_hand(self) -> None:
        new = f"(SELECT * FROM raw.m WHERE at = {self._at(self.number)})"
        self.session.sql(
            "INSERT INTO shop.helper SELECT n.key, coalesce(p.ct, 0) + 1, coalesce(p.sum_loss, 0) + n.loss, "
            f"{self.number} FROM {new} AS n LEFT JOIN "
            f"(SELECT * FROM shop.helper WHERE part = {self.number - 1}) AS p ON p.key = n.key WHERE n.loss > 10"
        )
        self.session.sql(
            f"INSERT INTO shop.view SELECT * FROM shop.helper WHERE part = {self.number} AND ct >= 4"
        )

    def _check(self) -> None:
        """The ways agree about the newest part."""
        last = self.number - 1
        hand = f"SELECT key, ct, sum_loss FROM shop.view WHERE part = {last}"
        ours = f"SELECT key, ct, sum_loss FROM shop.lossy WHERE at = {self._at(last)}"
        for one, other in ((hand, ours), (ours, hand)):
            if self.session.sql(f"{one} EXCEPT ALL {other}").count():
                raise SystemExit(f"the ways differ for {self.point}")


def _print(name: str, label: str, found: dict[float, dict[str, float]]) -> None:
    table = Table(label, *next(iter(found.values())), title=name, box=None)
    for x, seconds in found.items():
        table.add_row(f"{x:g}", *(f"{s:.2f}" for s in seconds.values()))
    Console().print(table)


def _plot(path: Path, label: str, found: dict[float, dict[str, float]]) -> None:
    """A line per way, readable on dark pages too."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "fivm"
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(5, 3))
    axes_: Any = axes
    for way in next(iter(found.values())):
        axes_.plot(list(found), [seconds[way] for seconds in found.values()], marker="o", label=way)
    axes_.set_xlabel(label)
    axes_.set_ylabel("seconds per part")
    axes_.set_ylim(bottom=0)
    axes_.legend()
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, facecolor="white", metadata={"Date": None})
    pyplot.close(figure)


if __name__ == "__main__":
    main()
