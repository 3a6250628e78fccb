"""Runs a suite: tables, models, batches; after each batch a refresh of every model, compared with its recompute."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Literal

from benchmarks.queries.suite import Query, Suite
from fivm_dbt.catalog import Catalog, Column, Relation
from fivm_dbt.config import Config, load_config
from fivm_dbt.errors import FivmError
from fivm_dbt.plan.model.plan import MaintainedPlan, Plan
from fivm_dbt.plan.planner import plan_model
from fivm_dbt.plan.request import ModelRequest
from fivm_dbt.refresh.engine import Row
from fivm_dbt.refresh.executor import refresh
from fivm_dbt.refresh.oracle import recompute_sql
from fivm_dbt.refresh.report import Action
from fivm_dbt.spark.states import stored
from fivm_dbt.testing.compare import Difference, compare_rows
from fivm_dbt.testing.workbench import Workbench

Verdict = Literal["maintained", "recomputed", "refused", "FAILED"]
Echo = Callable[[str], None]


@dataclass(frozen=True)
class Step:
    """One query after one batch; the first is the build. Seconds are wall-clock, ``changed`` counts rows of the result
    that went or came. A refused query has no action and no seconds of a refresh.
    """

    rows: int
    changed: int
    recompute_seconds: float
    action: Action | None = None
    seconds: float | None = None


@dataclass
class Followed:
    """A query on its way through the stream: its plan, or why there is none, and what happened."""

    query: Query
    plan: Plan | None = None
    code: str | None = None
    message: str | None = None
    difference: Difference | None = None
    has_failed: bool = False
    steps: list[Step] = field(default_factory=list)
    shown: Sequence[Row] = ()
    columns: tuple[Column, ...] = ()
    states: dict[str, int] = field(default_factory=dict)
    """Rows of each state table after the last batch."""

    @property
    def verdict(self) -> Verdict:
        """``recomputed`` as soon as one refresh was a rebuild."""
        if self.has_failed:
            return "FAILED"
        if self.plan is None:
            return "refused"
        return "recomputed" if any(s.action == "rebuilt" for s in self.steps[1:]) else "maintained"

    def fail(self, error: Exception) -> None:
        is_known = isinstance(error, FivmError)
        self.message = str(error) if is_known else f"{type(error).__name__}: {error}"
        self.code = error.code.number if isinstance(error, FivmError) else None
        self.has_failed = True


def run_suite(
    suite: Suite,
    workbench: Workbench,
    echo: Echo,
    doing: Echo = lambda text: None,
    strategy: str = "auto",
) -> tuple[Followed, ...]:
    """Follow every query of a suite through all its batches; the caller closes the workbench.

    A query that is refused is only recomputed, one that fails is left alone from then on: neither ends the run.
    ``echo`` gets a line per batch, ``doing`` what is being done now.
    """
    runner = _Runner(suite, workbench, echo, doing, load_config({"fivm_strategy": strategy}))
    runner.build()
    for number, batch in enumerate(suite.batches, start=1):
        started = perf_counter()
        for name, change in batch.changes.items():
            workbench.change(runner.specs[name], change.insert, change.delete)
        applied = perf_counter() - started
        runner.follow(f"batch {number} of {len(suite.batches)}, {batch.title}: {batch.summary()}", applied)
    runner.count_states()
    return tuple(runner.queries)


class _Runner:
    def __init__(self, suite: Suite, workbench: Workbench, echo: Echo, doing: Echo, config: Config) -> None:
        self.suite = suite
        self.workbench = workbench
        self.echo = echo
        self.doing = doing
        self.config = config
        self.specs = {table.name: table for table in suite.tables}
        catalog = Catalog.of(Relation(t.name, t.columns) for t in suite.tables)
        self.queries = [self._planned(query, catalog) for query in suite.queries]

    def _planned(self, query: Query, catalog: Catalog) -> Followed:
        followed = Followed(query)
        try:
            request = ModelRequest(query.name, query.sql, catalog, self.config)
            followed.plan = plan_model(request, self.workbench.describe)
        except FivmError as error:
            followed.fail(error)
            followed.has_failed = error.code.fault not in ("query", "config")
        except Exception as error:  # whatever the planner raises is a failure of this query alone
            followed.fail(error)
        return followed

    def build(self) -> None:
        """Create the tables, then build every model."""
        started = perf_counter()
        for table in self.suite.tables:
            contents = self.suite.contents[table.name]
            if isinstance(contents, Path):
                self.workbench.load(table, contents)
            else:
                self.workbench.create(table, contents)
        for followed in self.queries:
            if followed.plan is not None:
                self.workbench.make_room(followed.plan.relation)
        self.follow(f"{self.suite.name}: tables and models", perf_counter() - started)

    def follow(self, what: str, applied: float) -> None:
        """Refresh and compare every query, and say so in one line."""
        started = perf_counter()
        failed: list[str] = []
        for followed in self.queries:
            if followed.has_failed:
                continue
            self.doing(f"{followed.query.name}, {what}")
            try:
                followed.steps.append(self._step(followed))
            except Exception as error:  # an engine's error is a failure of this query alone
                followed.fail(error)
            if followed.has_failed:
                failed.append(followed.query.name)
        refreshes = [f.steps[-1].seconds or 0.0 for f in self.queries if f.plan and not f.has_failed]
        seconds = f"{applied:.1f} s to apply, {sum(refreshes):.1f} s to refresh {len(refreshes)} queries"
        wrong = f"; FAILED: {', '.join(failed)}" if failed else ""
        self.echo(f"{what} ({seconds}, {perf_counter() - started:.1f} s in all){wrong}")

    def count_states(self) -> None:
        """What is kept of each query at the end."""
        for followed in self.queries:
            plan = followed.plan
            if plan is None or followed.has_failed:
                continue
            for view in plan.stored:
                kept = (
                    stored(plan, view, None).sql(dialect="spark")
                    if isinstance(plan, MaintainedPlan)
                    else view.name
                )
                ((rows,),) = self.workbench.engine.query(f"SELECT COUNT(*) FROM {kept}")
                followed.states[view.name] = int(str(rows))

    def _step(self, followed: Followed) -> Step:
        engine = self.workbench.engine
        plan, before, is_first = followed.plan, followed.shown, not followed.steps
        if plan is None:
            if is_first:
                followed.columns = engine.describe(followed.query.sql)
            started = perf_counter()
            followed.shown = engine.query(followed.query.sql)
            seconds = perf_counter() - started
            return Step(len(followed.shown), self._changed(followed, before, is_first), seconds)
        followed.columns = plan.output
        started = perf_counter()
        report = refresh(plan, engine)
        refreshed = perf_counter()
        followed.shown = engine.query(f"SELECT * FROM {plan.relation}")
        versions = {i.name: engine.commits(i.name, None)[0].version for i in plan.inputs}
        recompute = recompute_sql(plan, versions)
        restarted = perf_counter()
        recomputed = engine.query(recompute)
        seconds = perf_counter() - restarted
        difference = compare_rows(followed.shown, recomputed, [c.type for c in plan.output])
        if difference:
            followed.difference, followed.has_failed = difference, True
            followed.message = f"differs from the recompute after {len(followed.steps)} batches"
        changed = self._changed(followed, before, is_first)
        return Step(len(followed.shown), changed, seconds, report.action, refreshed - started)

    def _changed(self, followed: Followed, before: Sequence[Row], is_first: bool) -> int:
        if is_first:
            return len(followed.shown)
        difference = compare_rows(before, followed.shown, [c.type for c in followed.columns])
        return len(difference.only_left) + len(difference.only_right)
