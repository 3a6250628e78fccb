"""Sums over an inequality, kept in each way: ``python -m benchmarks.inequality``.

Four cases, each re-evaluated over sums by key, with a value per outer value in use, over sums per range, and as
``auto`` chooses:

* ``vwap``: the outer query is over the relation that is added up, both change;
* ``watch``: a short list of prices beside many bids, which change;
* ``limits``: the same, and the list changes too;
* ``rarely``: the list does not change, the relation changes much, and somebody reads after all batches (``lazy``).

(Multilevel IVM, section 3.3, example 3.4.)
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from random import Random

import click
from rich.console import Console
from rich.table import Table

from benchmarks.conclude import conclude
from benchmarks.queries.command import ENGINES, opener
from fivm_dbt.catalog import Catalog, Column, Relation, TableStatistics
from fivm_dbt.config import load_config
from fivm_dbt.plan.model.plan import MaintainedPlan
from fivm_dbt.plan.planner import plan_model
from fivm_dbt.plan.request import ModelRequest
from fivm_dbt.refresh.compare import difference_sql
from fivm_dbt.refresh.engine import Row
from fivm_dbt.refresh.executor import refresh
from fivm_dbt.refresh.measure import measure
from fivm_dbt.testing.workbench import TableSpec, Workbench

WAYS = ("reevaluate", "parameterised", "ranges", "auto")
_WIDTH = 140
PRICES = 3_000
"""Prices spread over so many on either side of the middle, as in the order book of the papers' queries."""


@dataclass(frozen=True)
class Case:
    """A query, the share of bids that changes per batch, and how many prices the list has, per bid and at least.

    So many of these change per batch. With ``is_lazy`` the model is refreshed once, after all batches.
    """

    sql: str
    changed: float
    listed: float
    at_least: int
    moved: int
    is_lazy: bool = False


_LISTED = """
    select l.id, l.price, (select sum(b.volume) from bids b where b.price > l.price) as above from prices l
"""
CASES = {
    "vwap": Case(
        """
        select sum(b1.price * b1.volume) as vwap from bids b1
        where 0.25 * (select sum(b3.volume) from bids b3)
            > (select sum(b2.volume) from bids b2 where b2.price > b1.price)
        """,
        changed=0.01,
        listed=0,
        at_least=0,
        moved=0,
    ),
    "watch": Case(_LISTED, changed=0.0001, listed=0, at_least=50, moved=0),
    "limits": Case(_LISTED, changed=0.0001, listed=0, at_least=50, moved=1),
    "rarely": Case(_LISTED, changed=0.1, listed=0.05, at_least=50, moved=0, is_lazy=True),
}


@dataclass(frozen=True)
class Measured:
    """One way through all batches, per refresh on the average; seconds are wall-clock."""

    case: str
    bids: int
    way: str
    chosen: str
    estimate: int
    refreshes: int
    rows_read: int
    rows_written: int
    seconds: float
    state_rows: int
    differing: int


def _among(known: Sequence[str]) -> Callable[[click.Context, click.Parameter, str], tuple[str, ...]]:
    def names(context: click.Context, option: click.Parameter, text: str) -> tuple[str, ...]:
        for name in text.split(","):
            if name not in known:
                raise click.BadParameter(f"{name}: expected one of {', '.join(known)}")
        return tuple(text.split(","))

    return names


@click.command()
@click.option(
    "--cases",
    default=",".join(CASES),
    show_default=True,
    callback=_among(tuple(CASES)),
    help="Which queries.",
)
@click.option("--ways", default=",".join(WAYS), show_default=True, callback=_among(WAYS), help="Which ways.")
@click.option(
    "--bids",
    multiple=True,
    default=(1_000, 10_000, 100_000),
    show_default=True,
    help="Rows of bids; repeatable.",
)
@click.option("--batches", default=5, show_default=True, type=click.IntRange(1), help="How many batches.")
@click.option(
    "--buckets", default=64, show_default=True, help="Hash buckets of each state: one for 32 MB, unless told."
)
@click.option("--spread", default=PRICES, show_default=True, help="Prices on either side of the middle.")
@click.option("--engine", type=click.Choice(ENGINES), default="duckdb", show_default=True)
@click.option("--report", type=click.Path(path_type=Path), help="Write the figures as JSON too.")
def main(
    cases: tuple[str, ...],
    ways: tuple[str, ...],
    bids: tuple[int, ...],
    batches: int,
    buckets: int,
    spread: int,
    engine: str,
    report: Path | None,
) -> None:
    """Take each query through the same batches in each way. Exits with 1 if one differs from its recompute."""
    measured = []
    with tempfile.TemporaryDirectory() as directory:
        open_workbench = opener(engine, Path(directory))
        for case in cases:
            for many in bids:
                for way in ways:
                    click.echo(f"{case}, {many:,} bids: {way}", err=True)
                    with closing(open_workbench()) as workbench:
                        book = _Book(workbench, case, many, spread)
                        measured.append(book.follow(way, batches, buckets))
    _print(measured)
    conclude(measured, report)


class _Book:
    """Bids, and a list of prices."""

    def __init__(self, workbench: Workbench, case: str, bids: int, spread: int) -> None:
        self._workbench = workbench
        self._name, self._case = case, CASES[case]
        self._random = Random(11)
        self._spread, self._last = spread, 0
        listed = max(self._case.at_least, round(bids * self._case.listed))
        self._rows: dict[str, list[Row]] = {
            "bids": [self._bid() for _ in range(bids)],
            "prices": [self._price() for _ in range(listed)],
        }
        self._specs = {
            name: TableSpec(name, tuple(Column.of(c, "bigint") for c in columns))
            for name, columns in {"bids": ("id", "price", "volume"), "prices": ("id", "price")}.items()
        }

    def _bid(self) -> Row:
        self._last += 1
        return (self._last, self._some_price(), self._random.randint(100, 2_000))

    def _price(self) -> Row:
        self._last += 1
        return (self._last, self._some_price())

    def _some_price(self) -> int:
        return 100 * self._spread + self._random.randint(-self._spread, self._spread)

    def follow(self, way: str, batches: int, buckets: int) -> Measured:
        """Build the model and apply all batches."""
        workbench, engine, case = self._workbench, self._workbench.engine, self._case
        for name, spec in self._specs.items():
            workbench.create(spec, tuple(self._rows[name]))
        workbench.make_room("m")
        plan = self._plan(way, buckets)
        refresh(plan, engine)
        read = written = refreshes = 0
        seconds = 0.0
        for number in range(1, batches + 1):
            self._change("bids", max(1, round(len(self._rows["bids"]) * case.changed)), self._bid)
            self._change("prices", case.moved, self._price)
            if case.is_lazy and number < batches:
                continue
            started = time.perf_counter()
            report = refresh(plan, engine, propagate=True)
            seconds += time.perf_counter() - started
            refreshes += 1
            read += report.rows_read or 0
            written += report.rows_merged + sum(inner.rows_merged for inner in report.inner_views)
        (kept,) = plan.inequalities
        rows = [engine.query(f"SELECT COUNT(*) FROM {view.name}")[0][0] for view in plan.stored]
        return Measured(
            case=self._name,
            bids=len(self._rows["bids"]),
            way=way,
            chosen=kept.way,
            estimate=dict(kept.costs)[kept.way],
            refreshes=refreshes,
            rows_read=round(read / refreshes),
            rows_written=round(written / refreshes),
            seconds=seconds / refreshes,
            state_rows=sum(int(str(n)) for n in rows),
            differing=len(engine.query(difference_sql(plan, engine))),
        )

    def _plan(self, way: str, buckets: int) -> MaintainedPlan:
        """The plan by the sizes of the tables, as a build has it."""
        refreshed = "lazy" if self._case.is_lazy else "eager"
        meta: dict[str, object] = {"fivm_buckets": buckets, "fivm_refresh": refreshed}
        catalog = Catalog.of(Relation(s.name, s.columns) for s in self._specs.values())

        def planned(sizes: TableStatistics | None, how: str) -> MaintainedPlan:
            config = load_config({**meta, "fivm_inequality": how})
            request = ModelRequest("m", self._case.sql, catalog, config, measured=sizes)
            plan = plan_model(request, self._workbench.describe)
            assert isinstance(plan, MaintainedPlan)
            return plan

        # Also what is not chosen is estimated by these sizes.
        return planned(measure(planned(None, "auto"), self._workbench.engine), way)

    def _change(self, name: str, many: int, make: Callable[[], Row]) -> None:
        """As many rows go as come."""
        rows = self._rows[name]
        gone = [rows.pop(self._random.randrange(len(rows))) for _ in range(many)]
        came = [make() for _ in range(many)]
        rows += came
        if many:
            self._workbench.change(self._specs[name], came, gone)


def _print(measured: Sequence[Measured]) -> None:
    table = Table(box=None, pad_edge=False)
    table.add_column("query")
    table.add_column("bids", justify="right")
    for heading in ("fivm_inequality", "kept as"):
        table.add_column(heading)
    for heading in ("estimate", "rows read", "rows written", "seconds", "state rows"):
        table.add_column(heading, justify="right")
    table.add_column("equal")
    for m in measured:
        figures = (f"{n:,}" for n in (m.estimate, m.rows_read, m.rows_written))
        end = (f"{m.seconds:.2f}", f"{m.state_rows:,}", "yes" if m.differing == 0 else "NO")
        table.add_row(m.case, f"{m.bids:,}", m.way, m.chosen, *figures, *end)
    Console(width=_WIDTH, soft_wrap=True).print(table)


if __name__ == "__main__":
    main()
