"""What one more part costs a pattern that is kept in several ways: ``python -m benchmarks.patterns``.

A stream of measurements has a row per key and minute, some with a loss above ten; a key that loses packets does so for
a while. The query is that of section 2: which keys have such a loss in four parts in a row, with their count and sum.
One more minute arrives. Four sweeps: over the rows of a part, the parts of history, the parts that a match spans and
the naive way looks back, and the share of rows that match. The ways:

* ``viewdf``: two viewdf models, View2, the helper, and View1 over it, as the paper writes them, refreshed;
* ``fivm``: the model with MATCH_RECOGNIZE, ONE ROW PER PART, refreshed;
* ``by hand``: what an engineer would write for rows that only come and are never late, a table with the state of each
  key, advanced by a MERGE per part, and an INSERT of what holds;
* ``naive``: the pattern again over the last parts, as many as the sweep says, of which the newest is asked for; it
  forgets what is older;
* ``recompute``: the pattern again over all history.

Each sweep has streams of its own; the first minute after a model is built is not counted. (ViewDF, section 7.1,
figures 6 to 8.)
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

import click
import duckdb
from rich.console import Console
from rich.table import Table

from benchmarks.conclude import conclude
from benchmarks.part_models import PartModels, initialize, part
from benchmarks.plots import Line, plot
from benchmarks.queries.command import ENGINES, opener
from benchmarks.streams import arrive
from fivm_dbt.catalog import Catalog, Column, Relation
from fivm_dbt.config import load_config
from fivm_dbt.plan.planner import plan_model
from fivm_dbt.plan.request import ModelRequest
from fivm_dbt.refresh.compare import difference_sql
from fivm_dbt.refresh.executor import refresh
from fivm_dbt.refresh.oracle import runnable_sql
from fivm_dbt.sql.splice import splice_inputs
from fivm_dbt.testing.workbench import TableSpec, Workbench

_WIDTH, _START = 140, datetime(2015, 1, 1)
WAYS = ("viewdf", "fivm", "by hand", "naive", "recompute")
STREAM = TableSpec(
    "losses", tuple(Column.of(n, t) for n, t in (("k", "bigint"), ("at", "timestamp"), ("loss", "int")))
)
QUERY = """
select k, at, ct, sum_loss from losses match_recognize (
  partition by k order by at measures count(*) as ct, sum(loss) as sum_loss
  one row per part pattern (a b c d+)
  define a as a.loss > 10, b as b.loss > 10, c as c.loss > 10, d as d.loss > 10
) as lossy
"""
_M, _I = part(STREAM.name), part(STREAM.name, "'i'")
MODELS = {
    "view2": initialize(f"select k, 1 as ct, loss as sum_loss from {_I} where loss > 10")
    + f"""select new.k, coalesce(prev.ct, 0) + 1 as ct, coalesce(prev.sum_loss, 0) + new.loss as sum_loss
        from {_M} as new left join {part("view2", "'j-1'")} as prev on new.k = prev.k where new.loss > 10""",
    "view1": f"select k, ct, sum_loss from {part('view2')} where ct >= 4",
}


@dataclass(frozen=True)
class Case:
    """``keys`` have a row in each of ``history`` parts, ``share`` of them above ten for ``scope`` parts in a row."""

    sweep: str
    keys: int
    history: int
    scope: int
    share: float

    def of(self, sweep: str) -> float:
        """What grows in a sweep."""
        sizes = {"batch": self.keys, "history": self.history, "scope": self.scope, "share": 100 * self.share}
        return sizes[sweep]


@dataclass(frozen=True)
class Measured:
    """One way after one more part, on the average; seconds are wall-clock."""

    case: Case
    way: str
    rows_read: int
    seconds: float
    differing: int


def _cases(
    keys: Sequence[int], parts: Sequence[int], scopes: Sequence[int], shares: Sequence[float]
) -> Iterator[Case]:
    base = Case("", keys[0], parts[0], 20, shares[0])
    yield from (replace(base, sweep="batch", keys=n) for n in keys)
    yield from (replace(base, sweep="history", history=n) for n in parts)
    yield from (replace(base, sweep="scope", scope=n, history=max(scopes)) for n in scopes)
    yield from (replace(base, sweep="share", share=s, scope=4) for s in shares)


@click.command()
@click.option("--keys", multiple=True, default=(500, 2_000, 8_000), show_default=True, help="Rows of a part.")
@click.option("--parts", multiple=True, default=(20, 80, 320), show_default=True, help="History.")
@click.option("--scopes", multiple=True, default=(5, 20, 50, 100), show_default=True, help="Of a match.")
@click.option("--shares", multiple=True, default=(0.1, 0.4, 0.7, 1.0), show_default=True, help="Above ten.")
@click.option(
    "--ways", default=",".join(WAYS), show_default=True, help="Which ways; by hand is always there."
)
@click.option("--more", default=5, show_default=True, type=click.IntRange(1), help="Parts that arrive.")
@click.option("--engine", type=click.Choice(ENGINES), default="duckdb", show_default=True)
@click.option("--report", type=click.Path(path_type=Path), help="Write the figures as JSON too.")
@click.option(
    "--images", type=click.Path(path_type=Path), help="Draw a picture of each sweep into a directory."
)
def main(
    keys: tuple[int, ...],
    parts: tuple[int, ...],
    scopes: tuple[int, ...],
    shares: tuple[float, ...],
    ways: str,
    more: int,
    engine: str,
    report: Path | None,
    images: Path | None,
) -> None:
    """Let parts arrive, in each way. Exits with 1 if fivm or what is written by hand differs from a recompute."""
    chosen = [way for way in WAYS if way in (*ways.split(","), "by hand")]
    unknown = sorted(set(ways.split(",")) - set(WAYS))
    if unknown:
        raise click.BadParameter(f"{', '.join(unknown)}: expected some of {', '.join(WAYS)}")
    measured: list[Measured] = []
    with tempfile.TemporaryDirectory() as directory:
        open_workbench = opener(engine, Path(directory))
        for case in _cases(keys, parts, scopes, shares):
            click.echo(str(case), err=True)
            with closing(open_workbench()) as workbench:
                measured += _Stream(workbench, case, chosen, Path(directory)).follow(more)
    _print(measured)
    if images is not None:
        _draw(measured, images)
    conclude(measured, report)


class _Stream:
    """The measurements so far, a model of them, and what is kept by hand."""

    def __init__(self, workbench: Workbench, case: Case, ways: Sequence[str], directory: Path) -> None:
        self._workbench, self._engine, self._case, self._parts = (
            workbench,
            workbench.engine,
            case,
            case.history,
        )
        self._ways, self._directory = ways, directory
        file = directory / "history.parquet"
        duckdb.sql(self._measurements(0, case.history)).write_parquet(str(file))
        workbench.load(STREAM, file)
        workbench.make_room("lossy")
        catalog = Catalog.of([Relation(STREAM.name, STREAM.columns)])
        config = load_config({"fivm_part_length": "minute"})
        self._plan = plan_model(ModelRequest("lossy", QUERY, catalog, config), workbench.describe)
        if "fivm" in ways:
            refresh(self._plan, self._engine)
        self._models = PartModels(workbench, STREAM, "at")
        if "viewdf" in ways:
            for name, sql in MODELS.items():
                self._models.add(name, sql)
                self._models.refresh(name)
        self._begin_by_hand()

    def follow(self, more: int) -> list[Measured]:
        """Let so many parts arrive, after one to warm up; each is taken in every way."""
        ways: dict[str, Callable[[], int | None]] = {
            "viewdf": self._both_refreshed,
            "fivm": self._refreshed,
            "by hand": self._by_hand,
            "naive": lambda: self._again(self._case.scope),
            "recompute": lambda: self._again(None),
        }
        read, seconds = dict.fromkeys(self._ways, 0), dict.fromkeys(self._ways, 0.0)
        for number in range(more + 1):
            self._next_part()
            for way in self._ways:
                self._engine.start_measuring(way)
                started = time.perf_counter()
                rows = ways[way]()
                if number:
                    seconds[way] += time.perf_counter() - started
                    read[way] += rows if rows is not None else self._engine.measured(way).rows_read or 0
        differing = self._differing()
        return [
            Measured(self._case, way, read[way] // more, seconds[way] / more, differing.get(way, 0))
            for way in self._ways
        ]

    # The stream

    def _measurements(self, first: int, end: int) -> str:
        """The rows of some parts, as a query for DuckDB: a key is above ten, or not, for ``scope`` parts."""
        chance = f"hash(k, (part + k) // {self._case.scope}) % 1000 < {round(1000 * self._case.share)}"
        return (
            f"SELECT k, TIMESTAMPTZ '{_START}+00' + part * INTERVAL 1 MINUTE AS at, "
            f"CAST(CASE WHEN {chance} THEN 11 + k % 30 ELSE 5 END AS INTEGER) AS loss "
            f"FROM (SELECT UNNEST(range({self._case.keys})) AS k), (SELECT UNNEST(range({first}, {end})) AS part)"
        )

    def _next_part(self) -> None:
        coming = self._measurements(self._parts, self._parts + 1)
        query = f'SELECT k, "at" AT TIME ZONE \'UTC\' AS "at", loss FROM ({coming})'
        arrive(self._workbench, STREAM, query, self._directory / "part.parquet")
        self._parts += 1

    def _at(self, part: int) -> str:
        return f"TIMESTAMP '{_START + timedelta(minutes=part)}'"

    # The ways

    def _refreshed(self) -> int | None:
        return refresh(self._plan, self._engine).rows_read

    def _both_refreshed(self) -> int:
        return sum(self._models.refresh(name).rows_read or 0 for name in MODELS)

    def _again(self, scope: int | None) -> None:
        """The pattern over the last parts, or all: what it finds in the newest one."""
        text = runnable_sql(self._plan)
        if scope is not None:
            since = f"(SELECT * FROM losses WHERE at >= {self._at(self._parts - scope)})"
            text = splice_inputs(text, {STREAM.name: since})
        self._engine.query(f"SELECT * FROM ({text}) AS f WHERE at = {self._at(self._parts - 1)}")

    def _begin_by_hand(self) -> None:
        """The state of each key after the history."""
        low = "COALESCE(MAX(CASE WHEN loss <= 10 THEN at END), TIMESTAMP '1970-01-01')"
        runs = (
            "SELECT s.k, MAX(s.at) AS at, COUNT(*) AS ct, CAST(SUM(s.loss) AS BIGINT) AS sum_loss FROM losses AS s "
            f"JOIN (SELECT k, {low} AS low FROM losses GROUP BY k) AS l ON l.k = s.k AND s.at > l.low GROUP BY s.k"
        )
        for name, query in (("helper", runs), ("by_hand", "SELECT * FROM helper WHERE ct >= 4")):
            self._workbench.make_room(name)
            self._engine.run(f"CREATE OR REPLACE TABLE {name} USING DELTA AS {query}")

    def _by_hand(self) -> None:
        now, before = self._at(self._parts - 1), self._at(self._parts - 2)
        again = "at = delta.at, ct = 1, sum_loss = delta.loss"
        self._engine.run(
            f"MERGE INTO helper AS target USING (SELECT * FROM losses WHERE at = {now}) AS delta ON target.k = delta.k "
            "WHEN MATCHED AND delta.loss <= 10 THEN DELETE "
            f"WHEN MATCHED AND target.at = {before} THEN UPDATE SET at = delta.at, ct = target.ct + 1, "
            "sum_loss = target.sum_loss + delta.loss "
            f"WHEN MATCHED THEN UPDATE SET {again} "
            "WHEN NOT MATCHED AND delta.loss > 10 THEN INSERT (k, at, ct, sum_loss) "
            "VALUES (delta.k, delta.at, 1, delta.loss)"
        )
        self._engine.run(f"INSERT INTO by_hand SELECT * FROM helper WHERE at = {now} AND ct >= 4")

    def _differing(self) -> dict[str, int]:
        """Of the models all rows, of what is written by hand those of the newest part."""
        engine = self._engine
        now = self._at(self._parts - 1)
        by_hand = f"SELECT k, at, ct, sum_loss FROM by_hand WHERE at = {now}"
        shown = {
            "fivm": f"SELECT k, at, ct, sum_loss FROM lossy WHERE at = {now}",
            "viewdf": f"SELECT k, part_timestamp, ct, sum_loss FROM view1 WHERE part_timestamp = {now}",
        }
        plans = {"fivm": [self._plan], "viewdf": [*self._models.plans.values()]}
        differing = {"by hand": 0}
        for way in (w for w in self._ways if w in shown):
            other = shown[way]
            both_ways = f"({other} EXCEPT ALL {by_hand}) UNION ALL ({by_hand} EXCEPT ALL {other})"
            differing["by hand"] += len(engine.query(both_ways))
            differing[way] = sum(len(engine.query(difference_sql(plan, engine))) for plan in plans[way])
        return differing


def _print(measured: Sequence[Measured]) -> None:
    table = Table(box=None, pad_edge=False)
    for heading in ("sweep", "rows", "history", "scope", "above ten", "way"):
        table.add_column(heading)
    for heading in ("rows read", "seconds", "of by hand"):
        table.add_column(heading, justify="right")
    table.add_column("equal")
    by_hand = {m.case: m.seconds for m in measured if m.way == "by hand"}
    for m in measured:
        c = m.case
        place = (c.sweep, f"{c.keys:,}", str(c.history), str(c.scope), f"{c.share:.0%}", m.way)
        figures = (f"{m.rows_read:,}", f"{m.seconds:.3f}", f"{m.seconds / by_hand[c]:.1f}")
        table.add_row(*place, *figures, "yes" if m.differing == 0 else "NO")
    Console(width=_WIDTH, soft_wrap=True).print(table)


_SWEEPS = {
    "batch": "rows of a part",
    "history": "parts of history",
    "scope": "parts that a match spans, and the naive way looks back",
    "share": "rows above ten, %",
}


def _draw(measured: Sequence[Measured], images: Path) -> None:
    for sweep, label in _SWEEPS.items():
        lines = []
        for way in WAYS:
            points = [m for m in measured if (m.case.sweep, m.way) == (sweep, way)]
            if not points:
                continue
            xs = tuple(m.case.of(sweep) for m in points)
            lines.append(Line(way, xs, tuple(m.seconds for m in points)))
        plot(images / f"patterns_{sweep}.svg", lines, label, "seconds of one more part")


if __name__ == "__main__":
    main()
