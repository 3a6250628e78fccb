"""Moments of a join kept up to date in three ways: ``python -m benchmarks.learning``.

Tables in the shapes of Retailer, Housing and Favorita (F-IVM, section 9.1: their relations and join variables) hold
random numbers. One covariance over all variables of their join has 820, 378 or 136 aggregates. Batches change the
relations in turn: to facts rows come, and some go; of a dimension some rows get other values. The ways:

* ``one tree``: one view tree, whose views have the moments of the variables below them (``factorized``);
* ``first order``: one delta query with all its sums over the change and the other relations (``first_order``);
* ``recompute``: the model's SQL, as a table.

Of ``mixed`` variables some are categorical, and their moments are grouped by value. A pass is what a way reads of its
inputs and states. (F-IVM, section 9.2, figure 19. Its ratios of throughput to first-order maintenance are 132 for
Retailer and 7.8 for Favorita, all continuous; of single tuples, in memory.)
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from benchmarks.bars import Bar, bars_table
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
from fivm_dbt.refresh.oracle import runnable_sql
from fivm_dbt.testing.workbench import TableSpec, Workbench

TREE, FIRST_ORDER, RECOMPUTE = WAYS = ("one tree", "first order", "recompute")
KINDS = ("continuous", "mixed")
_GOES = 0.2
"""The share of a batch of facts that goes."""
_VALUES, _CATEGORIES = 100, 8


@dataclass(frozen=True)
class Joined:
    """A relation: its join variables, and how many variables of its own it has, some of them ``categorical``.

    ``rows`` are those of facts, whose keys are drawn; None of a dimension, which has a row for each key.
    """

    name: str
    keys: tuple[str, ...]
    own: int
    categorical: int = 0
    rows: int | None = None

    @property
    def variables(self) -> tuple[str, ...]:
        return tuple(f"{self.name}_{n}" for n in range(self.own))

    @property
    def spec(self) -> TableSpec:
        return TableSpec(self.name, tuple(Column.of(c, "int") for c in (*self.keys, *self.variables)))


@dataclass(frozen=True)
class Shape:
    """A dataset of the article: its relations, how they are joined, and how many values join variables have."""

    name: str
    tables: tuple[Joined, ...]
    join: str
    domains: Mapping[str, int]
    order: Mapping[str, Any] | None = None

    def sql(self, kind: str) -> str:
        """One covariance over all variables."""
        calls = []
        for table in self.tables:
            for n, variable in enumerate(table.variables):
                is_category = kind == "mixed" and n < table.categorical
                calls.append(f"fivm_categorical({variable})" if is_category else variable)
        return f"select fivm_covariance({', '.join(calls)}) as m from {self.join}"


RETAILER = Shape(
    "retailer",
    (
        Joined("inventory", ("locn", "dateid", "ksn"), 1, rows=100_000),
        Joined("location", ("locn", "zip"), 14),
        Joined("census", ("zip",), 15),
        Joined("item", ("ksn",), 4, categorical=3),
        Joined("weather", ("locn", "dateid"), 5, categorical=2),
    ),
    "inventory join location on inventory.locn = location.locn join census on location.zip = census.zip "
    "join item on inventory.ksn = item.ksn "
    "join weather on inventory.locn = weather.locn and inventory.dateid = weather.dateid",
    {"locn": 100, "dateid": 50, "ksn": 500, "zip": 80},
    {"locn": [{"dateid": ["ksn"]}, "zip"]},
)
HOUSING = Shape(
    "housing",
    tuple(
        Joined(name, ("postcode",), own, categorical, rows)
        for name, own, categorical, rows in (
            ("house", 10, 3, 40_000),
            ("shop", 4, 2, 10_000),
            ("institution", 3, 2, 10_000),
            ("restaurant", 3, 2, 10_000),
            ("people", 3, 1, None),
            ("transport", 3, 2, None),
        )
    ),
    "house "
    + " ".join(
        f"join {n} on house.postcode = {n}.postcode"
        for n in ("shop", "institution", "restaurant", "people", "transport")
    ),
    {"postcode": 5_000},
)
FAVORITA = Shape(
    "favorita",
    (
        Joined("sales", ("date", "store", "item"), 2, categorical=1, rows=100_000),
        Joined("stores", ("store",), 4, categorical=4),
        Joined("items", ("item",), 3, categorical=3),
        Joined("transactions", ("date", "store"), 1),
        Joined("holiday", ("date",), 4, categorical=4),
        Joined("oil", ("date",), 1),
    ),
    "sales join stores on sales.store = stores.store join items on sales.item = items.item "
    "join transactions on sales.date = transactions.date and sales.store = transactions.store "
    "join holiday on sales.date = holiday.date join oil on sales.date = oil.date",
    {"date": 100, "store": 50, "item": 400},
)
SHAPES = {shape.name: shape for shape in (RETAILER, HOUSING, FAVORITA)}


@dataclass(frozen=True)
class Measured:
    """A way after batches of one relation, or of all of them: the median of seconds, and what it keeps."""

    shape: str
    kind: str
    relation: str
    way: str
    seconds: float
    changed: int
    views: int
    statements: int | None
    rows_read: int | None
    state_rows: int
    differing: int

    @property
    def throughput(self) -> float:
        """Changed rows in a second."""
        return self.changed / self.seconds


class _Data:
    """The rows of all relations, and how they change."""

    def __init__(self, shape: Shape, scale: float, seed: int) -> None:
        self._shape, self._rng = shape, random.Random(seed)
        self.rows = {table.name: [*self._filled(table, scale)] for table in shape.tables}

    def _filled(self, table: Joined, scale: float) -> Iterator[Row]:
        domains = [range(self._shape.domains[k]) for k in table.keys]
        if table.rows is not None:
            for _ in range(round(table.rows * scale)):
                yield self._row(table, [self._rng.choice(d) for d in domains])
        elif table.keys == ("locn", "zip"):
            for locn in domains[0]:
                yield self._row(table, [locn, locn % len(domains[1])])
        else:
            keys: list[list[int]] = [[]]
            for domain in domains:
                keys = [[*key, value] for key in keys for value in domain]
            for key in keys:
                yield self._row(table, key)

    def _row(self, table: Joined, key: Sequence[int]) -> Row:
        values = (
            self._rng.randrange(_CATEGORIES if n < table.categorical else _VALUES) for n in range(table.own)
        )
        return (*key, *values)

    def batch(self, table: Joined, size: int) -> tuple[list[Row], list[Row]]:
        """Rows that come, and rows that go: ``size`` of both together, or a tenth of a small dimension."""
        rows = self.rows[table.name]
        if table.rows is not None:
            gone = [self._taken(rows) for _ in range(min(len(rows), round(size * _GOES)))]
            domains = [range(self._shape.domains[k]) for k in table.keys]
            come = [self._row(table, [self._rng.choice(d) for d in domains]) for _ in range(size - len(gone))]
        else:
            gone = [self._taken(rows) for _ in range(max(1, min(size // 2, len(rows) // 10)))]
            come = [self._row(table, [int(str(v)) for v in row[: len(table.keys)]]) for row in gone]
        rows += come
        return come, gone

    def _taken(self, rows: list[Row]) -> Row:
        place = self._rng.randrange(len(rows))
        rows[place], rows[-1] = rows[-1], rows[place]
        return rows.pop()


class _Kept:
    """One covariance kept in all ways over the relations of a shape."""

    def __init__(self, workbench: Workbench, shape: Shape, kind: str, data: _Data, directory: Path) -> None:
        self._workbench, self._engine, self._shape, self._kind = workbench, workbench.engine, shape, kind
        self._data = data
        for table in shape.tables:
            rows = data.rows[table.name]
            workbench.load(table.spec, as_file(table.spec, rows, directory / f"{table.name}.parquet"))
        catalog = Catalog.of(Relation(t.name, t.spec.columns) for t in shape.tables)
        self._plans: dict[str, Plan] = {}
        for way, strategy in ((TREE, "factorized"), (FIRST_ORDER, "first_order")):
            meta: dict[str, object] = {"fivm_strategy": strategy}
            # Of mixed variables the moments and the categories have a tree each, which one order does not fit.
            if way == TREE and shape.order is not None and kind == "continuous":
                meta["fivm_variable_order"] = shape.order
            name = f"moments_{strategy}"
            workbench.make_room(name)
            request = ModelRequest(name, shape.sql(kind), catalog, load_config(meta))
            started = time.perf_counter()
            self._plans[way] = plan_model(request, workbench.describe)
            refresh(self._plans[way], self._engine)
            click.echo(f"  {way}: built in {time.perf_counter() - started:.1f} s", err=True)
        workbench.make_room("recomputed")
        started = time.perf_counter()
        self._recompute()
        click.echo(f"  {RECOMPUTE}: {time.perf_counter() - started:.1f} s", err=True)

    def follow(self, batches: int, size: int) -> Iterator[Measured]:
        """After ``batches`` changes of each relation, in turn, one more of each before to warm up."""
        seconds: dict[tuple[str, str], list[float]] = {}
        told: dict[tuple[str, str], tuple[int, int | None]] = {}
        changed = {table.name: 0 for table in self._shape.tables}
        ways: dict[str, Callable[[], tuple[int, int | None] | None]] = {
            TREE: lambda: self._refresh(TREE),
            FIRST_ORDER: lambda: self._refresh(FIRST_ORDER),
            RECOMPUTE: self._recompute,
        }
        for number in range(batches + 1):
            for table in self._shape.tables:
                come, gone = self._data.batch(table, size)
                self._workbench.change(table.spec, come, gone)
                changed[table.name] = len(come) + len(gone)
                click.echo(f"  {number} of {batches}: {table.name}", err=True)
                for way, run in ways.items():
                    started = time.perf_counter()
                    found = run()
                    duration = time.perf_counter() - started
                    click.echo(f"    {way}: {duration:.2f} s", err=True)
                    if number:
                        seconds.setdefault((table.name, way), []).append(duration)
                        told[table.name, way] = found or (1, None)
        wrong = {
            way: len(self._engine.query(difference_sql(p, self._engine))) for way, p in self._plans.items()
        }
        for (relation, way), took in seconds.items():
            plan = self._plans.get(way)
            yield Measured(
                self._shape.name,
                self._kind,
                relation,
                way,
                seconds=median(took),
                changed=changed[relation],
                views=0 if plan is None else len(plan.views),
                statements=told[relation, way][0],
                rows_read=told[relation, way][1],
                state_rows=0 if plan is None else self._rows_of(plan),
                differing=wrong.get(way, 0),
            )

    def _refresh(self, way: str) -> tuple[int, int | None]:
        report = refresh(self._plans[way], self._engine)
        return len(report.statements), report.rows_read

    def _recompute(self) -> None:
        text = runnable_sql(self._plans[TREE])
        self._engine.run(f"CREATE OR REPLACE TABLE recomputed USING DELTA AS {text}")

    def _rows_of(self, plan: Plan) -> int:
        ((rows,),) = self._engine.query(f"SELECT COUNT(*) FROM {plan.state_relation}")
        return int(str(rows))


def together(measured: Sequence[Measured]) -> list[Measured]:
    """With a line for each way over all relations: a batch of each, one after the other."""
    found = list(measured)
    cases = dict.fromkeys((m.shape, m.kind, m.way) for m in measured)
    for case in cases:
        own = [m for m in measured if (m.shape, m.kind, m.way) == case]
        found.append(
            replace(
                own[0],
                relation="all",
                seconds=sum(m.seconds for m in own),
                changed=sum(m.changed for m in own),
                statements=None,
                rows_read=None,
            )
        )
    return found


def bars(measured: Sequence[Measured]) -> list[Bar]:
    """Of one tree, over all relations: at most a fifth of the recompute, and no more than the first-order query."""
    every = {(m.shape, m.kind, m.way): m.seconds for m in measured if m.relation == "all"}
    held = []
    for shape, kind in dict.fromkeys((m.shape, m.kind) for m in measured):
        tree = every[shape, kind, TREE]
        for other, most in ((RECOMPUTE, 0.2), (FIRST_ORDER, 1.0)):
            held.append(Bar(f"{shape}, {kind}: one tree / {other}", tree / every[shape, kind, other], most))
    return held


@click.command()
@click.option(
    "--shape", "shapes", multiple=True, type=click.Choice([*SHAPES]), help="All, unless told otherwise."
)
@click.option("--kind", "kinds", multiple=True, type=click.Choice(KINDS), help="All, unless told otherwise.")
@click.option(
    "--scale", default=1.0, show_default=True, type=click.FloatRange(0, min_open=True), help="Of the facts."
)
@click.option("--size", default=1_000, show_default=True, type=click.IntRange(2), help="Rows of a batch.")
@click.option("--batches", default=3, show_default=True, type=click.IntRange(1), help="Of each relation.")
@click.option("--seed", default=1, show_default=True)
@click.option("--engine", type=click.Choice(ENGINES), default="spark", show_default=True)
@click.option("--report", type=click.Path(path_type=Path), help="Write the figures as JSON too.")
@click.option("--images", type=click.Path(path_type=Path), help="Draw throughputs into a directory.")
def main(
    shapes: tuple[str, ...],
    kinds: tuple[str, ...],
    scale: float,
    size: int,
    batches: int,
    seed: int,
    engine: str,
    report: Path | None,
    images: Path | None,
) -> None:
    """Keep the moments of joins in three ways. Exits with 1 if they differ from a recompute."""
    measured: list[Measured] = []
    with tempfile.TemporaryDirectory() as directory:
        open_workbench = opener(engine, Path(directory))
        for name in shapes or SHAPES:
            for kind in kinds or KINDS:
                click.echo(f"{name}, {kind}", err=True)
                data = _Data(SHAPES[name], scale, seed)
                with closing(open_workbench()) as workbench:
                    kept = _Kept(workbench, SHAPES[name], kind, data, Path(directory))
                    measured += kept.follow(batches, size)
    measured = together(measured)
    _print(measured)
    if images is not None:
        _draw(measured, images)
    conclude(measured, report)


def _print(measured: Sequence[Measured]) -> None:
    headings = (
        "shape",
        "variables",
        "changes of",
        "way",
        "seconds",
        "of recompute",
        "rows/s",
        "views",
        "state rows",
    )
    table = Table(*headings, "statements", "rows read", "equal", box=None)
    known = {(m.shape, m.kind, m.relation): m.seconds for m in measured if m.way == RECOMPUTE}
    for m in measured:
        counts = ("" if n is None else f"{n:,}" for n in (m.statements, m.rows_read))
        kept = ("", "") if m.way == RECOMPUTE else (str(m.views), f"{m.state_rows:,}")
        ratio = m.seconds / known[m.shape, m.kind, m.relation]
        figures = (f"{m.seconds:.2f}", f"{ratio:.2f}", f"{m.throughput:,.0f}")
        equal = "NO" if m.differing else "yes"
        table.add_row(m.shape, m.kind, m.relation, m.way, *figures, *kept, *counts, equal)
    console = Console(width=150)
    console.print(table)
    console.print(bars_table(bars(measured)))


def _draw(measured: Sequence[Measured], images: Path) -> None:
    """Throughput of each way, shape by shape."""
    every = [m for m in measured if m.relation == "all"]
    for kind in dict.fromkeys(m.kind for m in every):
        names = [*dict.fromkeys(m.shape for m in every if m.kind == kind)]
        lines = []
        for way in WAYS:
            own = {m.shape: m.throughput for m in every if m.kind == kind and m.way == way}
            lines.append(Line(way, tuple(map(float, range(1, len(names) + 1))), tuple(own[n] for n in names)))
        plot(images / f"learning_{kind}.svg", lines, ", ".join(names), "changed rows in a second")


if __name__ == "__main__":
    main()
