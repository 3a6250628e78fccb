"""Rank-1 updates of a product of three matrices: ``python -m benchmarks.matrices``.

A matrix is a table of row, column and value, and their product a join with a sum. Adding ``u vᵀ`` to one of them
changes all its p² values. As a list each of these meets p values of the next matrix, p³ rows in all; as factors u and
v meet it by themselves, p² rows (F-IVM article, example 22). Rows processed are those that all operators of all
statements of a refresh put out, by DuckDB's profiles. The recompute goes through p⁴ rows, as its SQL is one join of
all three.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from benchmarks.conclude import conclude
from benchmarks.factors import numbers
from fivm_dbt.catalog import Catalog, Column, Relation
from fivm_dbt.config import load_config
from fivm_dbt.engines.duckdb.engine import DuckDbEngine
from fivm_dbt.plan.planner import plan_model
from fivm_dbt.plan.request import ModelRequest
from fivm_dbt.refresh.compare import difference_sql
from fivm_dbt.refresh.engine import Row
from fivm_dbt.refresh.executor import refresh

MATRICES = {"a": ("i", "j"), "b": ("j", "k"), "c": ("k", "l")}
QUERY = """
    select a.i, c.l, sum(a.v * b.v * c.v) as v
    from a join b on a.j = b.j join c on b.k = c.k
    group by a.i, c.l
"""


@dataclass(frozen=True)
class Measured:
    """The refresh after one rank-1 update of the matrix ``changed``, as factors or as the list of its values."""

    size: int
    changed: str
    way: str
    rows_processed: int
    seconds: float
    recompute_rows: int
    recompute_seconds: float
    differing: int


@click.command()
@click.option(
    "--sizes", default="30,60,120", show_default=True, callback=numbers, help="Rows of the matrices."
)
@click.option("--rank", default=1, show_default=True, type=click.IntRange(1), help="Products per update.")
@click.option("--report", type=click.Path(path_type=Path), help="Write the figures as JSON too.")
def main(sizes: tuple[int, ...], rank: int, report: Path | None) -> None:
    """Update each matrix once, at each size and in both ways. Exits with 1 if a result differs from its recompute."""
    measured = []
    for size in sizes:
        for way in ("factors", "list"):
            click.echo(f"{size} × {size}: {way}", err=True)
            measured += _Matrices(size, rank).follow(way)
    _print(measured)
    conclude(measured, report)


class CountingEngine(DuckDbEngine):
    """Counts what the operators of its statements put out, after each statement by the profile that DuckDB writes."""

    def __init__(self, profile: Path) -> None:
        super().__init__()
        connection = self._reads.connection
        connection.execute("SET enable_profiling = 'json'")
        connection.execute(f"SET profiling_output = '{profile}'")
        self._counting = self._reads.connection = _Counting(connection, profile)

    def processed(self) -> int:
        """Rows since this was last asked."""
        return self._counting.take()


class _Counting:
    """A connection of which the last statement's profile is read before the next one overwrites it."""

    def __init__(self, connection: Any, profile: Path) -> None:
        self._inner = connection
        self._profile = profile
        self._rows = 0

    def execute(self, *arguments: Any) -> Any:
        self._read()
        return self._inner.execute(*arguments)

    def take(self) -> int:
        self._read()
        rows, self._rows = self._rows, 0
        return rows

    def _read(self) -> None:
        if self._profile.exists():
            text = self._profile.read_text(encoding="utf-8")
            self._profile.unlink()
            # A statement that only sets something has no operators.
            self._rows += sum(_rows(operator) for operator in json.loads(text).get("operator", ()))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def _rows(operator: dict[str, Any]) -> int:
    return int(operator["intermediate_rows"]) + sum(_rows(child) for child in operator.get("children", ()))


class _Matrices:
    """Three square matrices of small numbers and a model of their product."""

    def __init__(self, size: int, rank: int) -> None:
        self._size, self._rank = size, rank
        self._random = Random(11)
        self._cells = {name: self._matrix() for name in MATRICES}

    def _matrix(self) -> list[list[int]]:
        return [[self._random.randint(-9, 9) for _ in range(self._size)] for _ in range(self._size)]

    def follow(self, way: str) -> list[Measured]:
        """Build the model, then update one matrix after the other."""
        with (
            tempfile.TemporaryDirectory() as directory,
            closing(CountingEngine(Path(directory) / "profile.json")) as engine,
        ):
            relations = []
            for name, keys in MATRICES.items():
                columns = (*(Column.of(key, "int") for key in keys), Column.of("v", "bigint"))
                relations.append(Relation(name, columns))
                engine.create_table(name, columns, _listed(self._cells[name]))
            meta = {"fivm_strategy": "factorized", "fivm_product_rows": 1}
            config = load_config(meta | ({} if way == "factors" else {"fivm_without": "products"}))
            plan = plan_model(ModelRequest("product", QUERY, Catalog.of(relations), config))
            refresh(plan, engine)
            return [self._update(name, way, plan, engine) for name in MATRICES]

    def _update(self, name: str, way: str, plan: Any, engine: CountingEngine) -> Measured:
        old = self._cells[name]
        new = [list(row) for row in old]
        for _ in range(self._rank):
            u, v = ([self._random.choice((-3, -2, 2, 3, 5)) for _ in range(self._size)] for _ in range(2))
            new = [[value + u[x] * v[y] for y, value in enumerate(row)] for x, row in enumerate(new)]
        self._cells[name] = new
        engine.change(name, insert=_listed(new), delete=_listed(old))
        engine.processed()
        started = time.perf_counter()
        refresh(plan, engine)
        seconds, rows = time.perf_counter() - started, engine.processed()
        started = time.perf_counter()
        engine.query(f"SELECT COUNT(*), SUM(v) FROM ({QUERY}) AS recomputed")
        recomputed, recompute_rows = time.perf_counter() - started, engine.processed()
        differing = len(engine.query(difference_sql(plan, engine)))
        return Measured(self._size, name, way, rows, seconds, recompute_rows, recomputed, differing)


def _listed(matrix: list[list[int]]) -> list[Row]:
    return [(x, y, value) for x, row in enumerate(matrix) for y, value in enumerate(row)]


def _print(measured: Sequence[Measured]) -> None:
    table = Table(box=None, pad_edge=False)
    table.add_column("changed")
    table.add_column("met as")
    for heading in ("p", "rows processed", "per p²", "per p³", "seconds", "recompute rows", "seconds"):
        table.add_column(heading, justify="right")
    table.add_column("equal")
    for m in sorted(measured, key=lambda m: (m.changed, m.way, m.size)):
        per = [f"{m.rows_processed / m.size**power:.1f}" for power in (2, 3)]
        again = (f"{m.recompute_rows:,}", f"{m.recompute_seconds:.2f}")
        figures = (f"{m.size}", f"{m.rows_processed:,}", *per, f"{m.seconds:.2f}", *again)
        table.add_row(m.changed, m.way, *figures, "yes" if m.differing == 0 else "NO")
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
