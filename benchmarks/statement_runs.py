"""A model through changes, beside the same SQL by CREATE OR REPLACE TABLE: seconds, statements and commits."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from benchmarks.timed import Kind, TimedEngine, Timing
from fivm_dbt.catalog import Catalog, Relation, TableStatistics
from fivm_dbt.config import Config
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.plan.planner import plan_model
from fivm_dbt.plan.request import ModelRequest
from fivm_dbt.refresh.executor import refresh
from fivm_dbt.refresh.layout import Promises, settled_plan
from fivm_dbt.refresh.observe import State
from fivm_dbt.refresh.report import Action

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KINDS: tuple[Kind, ...] = ("staged", "queried", "written")
"""The statements that count: to forget what was staged is none."""

EACH_KEPT = Config(fivm_without=("shared_aggregates",))
"""The inner views differ in their conditions alone: one view would be kept of all."""


@dataclass(frozen=True)
class Run:
    """One refresh: what was sent, and how many commits the schema of the model has had from it.

    ``reported`` are the statements that the refresh itself counts; reading its head is among ``timings``
    alone.
    """

    seconds: float
    timings: tuple[Timing, ...]
    reported: int
    commits: int

    @property
    def sent(self) -> Counter[str]:
        """Statements by kind."""
        return Counter(timing.kind for timing in self.timings)


@dataclass(frozen=True)
class Round:
    """After one change: the refresh, another one with nothing to do, and the table anew."""

    changed: Run
    unchanged: Run
    ctas_seconds: float


@dataclass
class Followed:
    """A model and its rounds."""

    plan: Plan
    engine: TimedEngine
    session: SparkSession
    warehouse: Path
    build_seconds: float = 0.0
    rounds: list[Round] = field(default_factory=list)

    @staticmethod
    def build(
        session: SparkSession,
        warehouse: Path,
        relation: str,
        sql: str,
        inputs: tuple[str, ...],
        config: Config = EACH_KEPT,
    ) -> Followed:
        """Plan it as dbt does, by the sizes of its inputs, and build it."""
        engine = TimedEngine(session)
        relations = [Relation(name, engine.describe(f"SELECT * FROM {name}")) for name in inputs]

        def planner(measured: TableStatistics | None, promises: Promises | None = None) -> Plan:
            request = ModelRequest(relation, sql, Catalog.of(relations), config, measured=measured)
            return plan_model(request, engine.describe)

        model = Followed(settled_plan(planner, engine, State()), engine, session, warehouse)
        started = time.perf_counter()
        refresh(model.plan, engine)
        model.build_seconds = time.perf_counter() - started
        return model

    @property
    def helpers(self) -> int:
        return len(self.plan.helpers)

    def follow(self, change: Callable[[], None]) -> Round:
        """One round: bring the model up to date, then ``change`` the inputs before each thing that is timed."""
        refresh(self.plan, self.engine)
        change()
        changed, unchanged = self.refreshed(), self.refreshed("no change")
        change()
        started = time.perf_counter()
        name = self.plan.relation.split(".")[-1]
        self.session.sql(f"CREATE OR REPLACE TABLE control.{name} USING delta AS {self.plan.sql}")
        self.rounds.append(Round(changed, unchanged, time.perf_counter() - started))
        return self.rounds[-1]

    def refreshed(self, expected: Action = "refreshed") -> Run:
        """Bring the model up to date, which has to be done in this way."""
        before = self._commits()
        self.engine.taken()
        started = time.perf_counter()
        report = refresh(self.plan, self.engine)
        seconds = time.perf_counter() - started
        if report.action != expected:
            raise SystemExit(f"{self.plan.relation}: {expected!r} was expected: {report.line()}")
        return Run(seconds, tuple(self.engine.taken()), len(report.statements), self._commits() - before)

    def _commits(self) -> int:
        """Of all tables of the schema, whoever has made them."""
        schema = self.plan.relation.split(".")[0]
        return sum(1 for _ in self.warehouse.glob(f"{schema}.db/*/_delta_log/*.json"))

    def check(self, where: str = "true") -> None:
        """Exit unless the view has, as a bag, the rows of its SQL once it is up to date; those of a condition."""
        refresh(self.plan, self.engine)
        model, recompute = (
            f"SELECT * FROM {rows} WHERE {where}" for rows in (self.plan.relation, f"({self.plan.sql})")
        )
        too_many, missing = (
            self.session.sql(f"({one}) EXCEPT ALL ({other})").count()
            for one, other in ((model, recompute), (recompute, model))
        )
        if too_many or missing:
            raise SystemExit(
                f"{self.plan.relation} is not its recompute: {too_many} rows too many, {missing} missing"
            )

    @property
    def warm(self) -> list[Round]:
        """The second half of the rounds: before it, Java compiles while it runs."""
        return self.rounds[len(self.rounds) // 2 :]

    def figures(self) -> Figures:
        return Figures(
            model=self.plan.relation,
            helpers=self.helpers,
            build_seconds=self.build_seconds,
            ctas_seconds=median(round_.ctas_seconds for round_ in self.warm),
            changed=Cost.of([round_.changed for round_ in self.warm]),
            unchanged=Cost.of([round_.unchanged for round_ in self.warm]),
        )


@dataclass(frozen=True)
class Cost:
    """The median of seconds, and the most statements of each kind and commits that a refresh has had."""

    seconds: float
    staged: int
    queried: int
    written: int
    commits: int

    @staticmethod
    def of(runs: Sequence[Run]) -> Cost:
        staged, queried, written = (max(run.sent[kind] for run in runs) for kind in KINDS)
        return Cost(
            median(run.seconds for run in runs), staged, queried, written, max(run.commits for run in runs)
        )

    @property
    def statements(self) -> int:
        return self.staged + self.queried + self.written


@dataclass(frozen=True)
class Figures:
    """What a model's rounds have cost; ``ctas_seconds`` are a median too."""

    model: str
    helpers: int
    build_seconds: float
    ctas_seconds: float
    changed: Cost
    unchanged: Cost


def round_as_dict(round_: Round) -> dict[str, Any]:
    """For JSON."""
    changed, unchanged = _run_as_dict(round_.changed), _run_as_dict(round_.unchanged)
    return {"changed": changed, "unchanged": unchanged, "ctas_seconds": round_.ctas_seconds}


def _run_as_dict(run: Run) -> dict[str, Any]:
    kinds: dict[str, int] = {kind: run.sent[kind] for kind in KINDS}
    timings = [{"statement": t.statement, "seconds": t.seconds} for t in run.timings]
    return {
        "seconds": run.seconds,
        **kinds,
        "reported": run.reported,
        "commits": run.commits,
        "timings": timings,
    }
