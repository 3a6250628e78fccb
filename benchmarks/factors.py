"""A star join of which the result has many times more rows than its inputs: ``python -m benchmarks.factors``.

Its result is kept as rows and as factors, and changes are applied at once (eager) or only when somebody reads (lazy),
as in section 9.4 of the F-IVM article. The more rows there are per key, the longer the list, at the same size of the
inputs.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from random import Random

import click
from rich.console import Console
from rich.table import Table

from benchmarks.conclude import conclude
from benchmarks.queries.command import ENGINES, opener
from fivm_dbt.catalog import Catalog, Column, Relation
from fivm_dbt.config import load_config
from fivm_dbt.plan.planner import plan_model
from fivm_dbt.plan.request import ModelRequest
from fivm_dbt.refresh.compare import difference_sql
from fivm_dbt.refresh.engine import Row
from fivm_dbt.refresh.executor import refresh
from fivm_dbt.testing.workbench import TableSpec, Workbench

TABLES = ("house", "shop", "restaurant")
QUERY = """
    select h.postcode, h.house, s.shop, r.restaurant
    from house h join shop s on h.postcode = s.postcode join restaurant r on r.postcode = h.postcode
"""
READ = "SELECT COUNT(*), MAX(house + shop + restaurant) FROM star"
WAYS = tuple((result, when) for result in ("listing", "factorized") for when in ("eager", "lazy"))


@dataclass(frozen=True)
class Measured:
    """One way through all batches, with a reader after each ``every`` of them. Seconds are wall-clock, in all."""

    inputs: int
    listed: int
    result: str
    refresh: str
    every: int
    batches: int
    state_rows: int
    refresh_seconds: float
    read_seconds: float
    slowest_refresh: float
    differing: int


def numbers(context: click.Context, option: click.Parameter, text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise click.BadParameter(f"{text}: numbers with commas between them are expected") from None


@click.command()
@click.option(
    "--per-key", default="5,17", show_default=True, callback=numbers, help="Rows of each table per key."
)
@click.option("--rows", default=30_000, show_default=True, help="Rows of the three tables together.")
@click.option("--changes", default=100, show_default=True, help="Rows that come and go per batch.")
@click.option("--batches", default=10, show_default=True, type=click.IntRange(1), help="How many batches.")
@click.option(
    "--every",
    default="1,10",
    show_default=True,
    callback=numbers,
    help="The result is read after each so many batches.",
)
@click.option("--only", type=click.Choice(["eager", "lazy"]), help="Only with this refresh.")
@click.option("--engine", type=click.Choice(ENGINES), default="duckdb", show_default=True)
@click.option("--report", type=click.Path(path_type=Path), help="Write the figures as JSON too.")
def main(
    per_key: tuple[int, ...],
    rows: int,
    changes: int,
    batches: int,
    every: tuple[int, ...],
    only: str | None,
    engine: str,
    report: Path | None,
) -> None:
    """Take the star through the same batches in each way. Exits with 1 if one differs from its recompute."""
    measured = []
    with tempfile.TemporaryDirectory() as directory:
        open_workbench = opener(engine, Path(directory))
        for many in per_key:
            for interval in every:
                for result, when in (way for way in WAYS if only in (None, way[1])):
                    click.echo(f"{many} rows per key, read every {interval}: {result}, {when}", err=True)
                    with closing(open_workbench()) as workbench:
                        star = _Star(workbench, rows, many, changes)
                        measured.append(star.follow(result, when, interval, batches))
    _print(measured)
    conclude(measured, report)


class _Star:
    """Three tables with ``many`` rows for each postcode."""

    def __init__(self, workbench: Workbench, rows: int, many: int, changes: int) -> None:
        self._workbench = workbench
        self._random = Random(7)
        self._changes = changes
        self._postcodes = max(1, rows // (len(TABLES) * many))
        self._rows = {
            name: [(postcode, i) for postcode in range(self._postcodes) for i in range(many)]
            for name in TABLES
        }
        self._specs = {
            name: TableSpec(name, (Column.of("postcode", "int"), Column.of(name, "int"))) for name in TABLES
        }

    def follow(self, result: str, when: str, every: int, batches: int) -> Measured:
        """Build the model, apply all batches, and read it after each ``every`` of them."""
        workbench, engine = self._workbench, self._workbench.engine
        for name, spec in self._specs.items():
            workbench.create(spec, tuple(self._rows[name]))
        workbench.make_room("star")
        catalog = Catalog.of(Relation(s.name, s.columns) for s in self._specs.values())
        config = load_config({"fivm_result": result, "fivm_refresh": when})
        plan = plan_model(ModelRequest("star", QUERY, catalog, config), workbench.describe)
        refresh(plan, engine)
        seconds, reading = [], 0.0
        for number in range(1, batches + 1):
            for name in TABLES:
                self._change(name)
            is_read = number % every == 0 or number == batches
            started = time.perf_counter()
            refresh(plan, engine, propagate=is_read)
            seconds.append(time.perf_counter() - started)
            if is_read:
                started = time.perf_counter()
                ((listed, _),) = engine.query(READ)
                reading += time.perf_counter() - started
        kept = [engine.query(f"SELECT COUNT(*) FROM {view.name}")[0][0] for view in plan.stored]
        return Measured(
            inputs=sum(map(len, self._rows.values())),
            listed=int(str(listed)),
            result=result,
            refresh=when,
            every=every,
            batches=batches,
            state_rows=sum(int(str(n)) for n in kept),
            refresh_seconds=sum(seconds),
            read_seconds=reading,
            slowest_refresh=max(seconds),
            differing=len(engine.query(difference_sql(plan, engine))),
        )

    def _change(self, name: str) -> None:
        """As many rows go as come."""
        many = max(1, self._changes // (2 * len(TABLES)))
        rows = self._rows[name]
        gone: Sequence[Row] = [rows.pop(self._random.randrange(len(rows))) for _ in range(many)]
        came = [(self._random.randrange(self._postcodes), 1000 + self._random.randrange(1000)) for _ in gone]
        rows += came
        self._workbench.change(self._specs[name], came, gone)


def _print(measured: Sequence[Measured]) -> None:
    table = Table(box=None, pad_edge=False)
    for heading in ("result", "refresh"):
        table.add_column(heading)
    for heading in (
        "read every",
        "input rows",
        "listed rows",
        "state rows",
        "refresh s",
        "slowest",
        "read s",
    ):
        table.add_column(heading, justify="right")
    table.add_column("equal")
    for m in measured:
        figures = (f"{m.every}", f"{m.inputs:,}", f"{m.listed:,}", f"{m.state_rows:,}")
        seconds = (f"{m.refresh_seconds:.2f}", f"{m.slowest_refresh:.2f}", f"{m.read_seconds:.2f}")
        table.add_row(m.result, m.refresh, *figures, *seconds, "yes" if m.differing == 0 else "NO")
    Console(soft_wrap=True).print(table)


if __name__ == "__main__":
    main()
