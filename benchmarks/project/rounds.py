"""One round: the raw tables change, dbt runs all models as fivm and as tables, and each is compared with the other."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from demo.dbt_runs import DbtProject, ModelRun
from demo.differences import differences
from demo.progress import Progress

from benchmarks.project.batches import batch, load
from benchmarks.project.paths import HOME, PROJECT, ROOT
from benchmarks.project.sizes import Sizes
from benchmarks.project.tables import columns, create
from fivm_dbt.engines.spark.delta_lake.jars import delta_jars

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MAINTAINED, RECOMPUTED = "marts", "recomputed"
"""The targets of the profile, and their schemas."""

_VARS = {MAINTAINED: "{materialized: fivm}", RECOMPUTED: "{materialized: table}"}


@dataclass(frozen=True)
class Measured:
    """A model after a batch: what fivm did, in how many seconds of dbt's, and how many a table took.

    ``helpers`` are its inner views, ``differing`` the rows that only one of the two has.
    """

    model: str
    action: str
    reason: str | None
    helpers: int
    seconds: float
    table_seconds: float
    statements: int
    rows_merged: int
    rows_read: int | None
    rows: int
    differing: int


@dataclass(frozen=True)
class Round:
    """All models after a batch; seconds are of whole runs of dbt, ``changed`` the rows that came and went by raw table.

    Batch 0 is the load, after which both are built.
    """

    batch: int
    changed: dict[str, tuple[int, int]]
    apply_seconds: float
    fivm_seconds: float
    table_seconds: float
    models: tuple[Measured, ...]

    @property
    def changed_rows(self) -> int:
        return sum(came + went for came, went in self.changed.values())

    @property
    def ratio(self) -> float:
        return self.fivm_seconds / self.table_seconds

    @property
    def differing(self) -> int:
        return sum(m.differing for m in self.models)


@dataclass(frozen=True)
class _Ran:
    """A run of dbt, by model."""

    seconds: float
    models: dict[str, ModelRun]


def project() -> DbtProject:
    """The project, with this repository as its package, and with nothing of an earlier run."""
    shutil.rmtree(HOME, ignore_errors=True)
    packages = HOME / "dbt_packages"
    packages.mkdir(parents=True)
    (packages / "fivm").symlink_to(ROOT)
    environment = {
        "FIVM_PROJECT_HOME": str(HOME),
        "FIVM_PROJECT_JARS": ",".join(map(str, delta_jars())),
        "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
    }
    return DbtProject(PROJECT, HOME / "logs", environment)


@dataclass(frozen=True)
class Playing:
    """What all rounds have in common; ``selected`` are models as dbt selects them, none for all."""

    spark: SparkSession
    dbt: DbtProject
    sizes: Sizes
    progress: Progress
    selected: tuple[str, ...] = ()


def play(playing: Playing, number: int) -> Round:
    """A batch, or the load, which is number 0."""
    loaded: dict[str, tuple[int, int]] = {}
    progress = playing.progress
    with progress.doing("changing the raw tables" if number else "loading the raw tables") as applied:
        if number:
            for statement in batch(playing.sizes, number):
                playing.spark.sql(statement)
        else:
            loaded = _load(playing)
    # Who comes first finds the new files cold, so it is another one each time.
    targets = (MAINTAINED, RECOMPUTED) if number % 2 else (RECOMPUTED, MAINTAINED)
    ran = {target: _run(playing, target) for target in targets}
    fivm, table = ran[MAINTAINED], ran[RECOMPUTED]
    helpers = _helpers()
    with progress.doing("comparing"):
        models = tuple(
            _measured(playing, run, table.models[name], helpers[name]) for name, run in fivm.models.items()
        )
    changed = loaded or _changed(fivm.models.values())
    return Round(number, changed, applied.seconds, fivm.seconds, table.seconds, models)


def _load(playing: Playing) -> dict[str, tuple[int, int]]:
    """Create the raw tables, and say how many rows each has."""
    playing.spark.sql("create schema raw")
    types, found = columns(), {}
    for table, rows in load(playing.sizes):
        create(playing.spark, table, types[table], rows)
        found[table] = (playing.spark.table(f"raw.{table}").count(), 0)
        playing.progress.line(f"{found[table][0]:>9,} {table}")
    return found


def _run(playing: Playing, target: str) -> _Ran:
    """All models of a target; what dbt parses stays beside what it is of, so that the next run finds it."""

    def tell(run: ModelRun) -> None:
        playing.progress.line(f"{target:<12}{run.model:<24}{run.seconds:6.1f} s")

    where = ("--target", target, "--target-path", str(HOME / f"target_{target}"), "--vars", _VARS[target])
    select = ("--select", *playing.selected) if playing.selected else ()
    started = time.perf_counter()
    with playing.progress.doing(f"dbt run of {target}"):
        runs = playing.dbt.run(tell, *where, *select)
    return _Ran(time.perf_counter() - started, {run.model: run for run in runs})


def _helpers() -> dict[str, int]:
    """How many inner views each model has been built with, as fivm remembers it for dbt."""
    found = {}
    for path in Path(HOME / f"target_{MAINTAINED}" / "fivm").glob("*.json"):
        told = json.loads(path.read_text(encoding="utf-8"))
        found[told["model"].split(".")[-1].strip("`")] = len(told["helpers"])
    return found


def _measured(playing: Playing, run: ModelRun, table: ModelRun, helpers: int) -> Measured:
    found = differences(playing.spark, f"{RECOMPUTED}.{run.model}", f"{MAINTAINED}.{run.model}")
    if found.number:
        what = (
            "other columns" if found.schema_differs else f"{found.missing} missing, {found.surplus} too many"
        )
        playing.progress.line(f"[bold red]{run.model} differs:[/] {what}")
    return Measured(
        model=run.model,
        action=run.action,
        reason=run.reason,
        helpers=helpers,
        seconds=run.seconds,
        table_seconds=table.seconds,
        statements=run.statements,
        rows_merged=run.rows_merged,
        rows_read=run.rows_read,
        rows=found.rows,
        differing=found.number,
    )


def _changed(runs: Iterable[ModelRun]) -> dict[str, tuple[int, int]]:
    """Rows that came to raw tables and went, as the models have found them."""
    inputs = (change for run in runs for change in run.inputs if change.relation.startswith("raw."))
    found = {i.relation.removeprefix("raw."): (i.inserted, i.deleted) for i in inputs}
    return {table: number for table, number in sorted(found.items()) if any(number)}
