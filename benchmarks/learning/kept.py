"""One model of a join kept in all ways: what its batches take, and what is kept for them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

import click

from benchmarks.learning.data import Data
from benchmarks.learning.shapes import CONTINUOUS, SUM, Shape
from benchmarks.streams import as_file
from fivm_dbt.config import load_config
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.plan.planner import plan_model
from fivm_dbt.plan.request import ModelRequest
from fivm_dbt.refresh.compare import difference_sql
from fivm_dbt.refresh.executor import refresh
from fivm_dbt.refresh.oracle import runnable_sql
from fivm_dbt.testing.workbench import Workbench

TREE, RECURSIVE, FIRST_ORDER, RECOMPUTE = WAYS = ("one tree", "recursive", "first order", "recompute")
_STRATEGIES = {TREE: "factorized", RECURSIVE: "recursive", FIRST_ORDER: "first_order"}

_Told = tuple[int, int | None]
"""Statements of a refresh, and rows read."""


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


def ways_of(kind: str) -> tuple[str, ...]:
    """A sum is kept by recursive maps too. Moments would have one for each of their numbers."""
    return WAYS if kind == SUM else (TREE, FIRST_ORDER, RECOMPUTE)


class Kept:
    """What a kind computes over the join of a shape, kept in all ways."""

    def __init__(self, workbench: Workbench, shape: Shape, kind: str, data: Data, directory: Path) -> None:
        self._workbench, self._engine, self._shape, self._kind = workbench, workbench.engine, shape, kind
        self._data = data
        for table in shape.tables:
            rows = data.rows[table.name]
            workbench.load(table.spec, as_file(table.spec, rows, directory / f"{table.name}.parquet"))
        self._plans: dict[str, Plan] = {}
        for way in ways_of(kind)[:-1]:
            self._plans[way] = self._built(way)
        workbench.make_room("recomputed")
        started = time.perf_counter()
        self._recompute()
        click.echo(f"  {RECOMPUTE}: {time.perf_counter() - started:.1f} s", err=True)

    def _built(self, way: str) -> Plan:
        meta: dict[str, object] = {"fivm_strategy": _STRATEGIES[way]}
        # Moments of mixed variables and their categories have a tree each, which one order does not fit.
        if way == TREE and self._shape.order is not None and self._kind in (CONTINUOUS, SUM):
            meta["fivm_variable_order"] = self._shape.order
        name = f"kept_{_STRATEGIES[way]}"
        self._workbench.make_room(name)
        request = ModelRequest(name, self._shape.sql(self._kind), self._shape.catalog, load_config(meta))
        started = time.perf_counter()
        plan = plan_model(request, self._workbench.describe)
        refresh(plan, self._engine)
        click.echo(f"  {way}: built in {time.perf_counter() - started:.1f} s", err=True)
        return plan

    def follow(self, batches: int, size: int) -> Iterator[Measured]:
        """After ``batches`` changes of each relation, in turn, one more of each before to warm up."""
        seconds: dict[tuple[str, str], list[float]] = {}
        told: dict[tuple[str, str], _Told] = {}
        changed = {table.name: 0 for table in self._shape.tables}
        for number in range(batches + 1):
            for table in self._shape.tables:
                come, gone = self._data.batch(table, size)
                self._workbench.change(table.spec, come, gone)
                changed[table.name] = len(come) + len(gone)
                click.echo(f"  {number} of {batches}: {table.name}", err=True)
                for way, run in self._runs().items():
                    started = time.perf_counter()
                    found = run()
                    duration = time.perf_counter() - started
                    click.echo(f"    {way}: {duration:.2f} s", err=True)
                    if number:
                        seconds.setdefault((table.name, way), []).append(duration)
                        told[table.name, way] = found
        wrong = {
            way: len(self._engine.query(difference_sql(p, self._engine))) for way, p in self._plans.items()
        }
        kept = {way: self._rows_of(p) for way, p in self._plans.items()}
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
                state_rows=kept.get(way, 0),
                differing=wrong.get(way, 0),
            )

    def _runs(self) -> dict[str, Callable[[], _Told]]:
        runs = {way: partial(self._refresh, plan) for way, plan in self._plans.items()}
        return {**runs, RECOMPUTE: self._recompute}

    def _refresh(self, plan: Plan) -> _Told:
        report = refresh(plan, self._engine)
        return len(report.statements), report.rows_read

    def _recompute(self) -> _Told:
        text = runnable_sql(self._plans[TREE])
        self._engine.run(f"CREATE OR REPLACE TABLE recomputed USING DELTA AS {text}")
        return 1, None

    def _rows_of(self, plan: Plan) -> int:
        ((rows,),) = self._engine.query(f"SELECT COUNT(*) FROM {plan.state_relation}")
        return int(str(rows))
