"""One round of the demo: a batch is applied, dbt refreshes, everything is recomputed and compared."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from pyspark.sql import SparkSession

from demo.batches import Batch, apply
from demo.dbt_runs import DEMO, ModelRun
from demo.differences import Differences
from demo.progress import Progress
from demo.recompute import Recompute, compare, recompute
from demo.versions import moved, versions

_AT_ONCE = 4
"""Comparisons, which are not timed."""


@dataclass(frozen=True)
class Outcome:
    """What fivm did for one model, what a full recompute costs, and how the two compare."""

    run: ModelRun
    recomputed: Recompute
    found: Differences

    @property
    def share_read(self) -> float | None:
        """Rows that the refresh read, as a share of those that the recompute reads; None if not measured."""
        if self.run.rows_read is None or not self.recomputed.rows_read:
            return None
        return self.run.rows_read / self.recomputed.rows_read


@dataclass(frozen=True)
class Round:
    """The outcome for every model; `written` are the tables that `dbt run` gave a new version."""

    batch: Batch
    apply_seconds: float
    dbt_seconds: float
    written: tuple[str, ...]
    outcomes: tuple[Outcome, ...]


class WrongBatchError(Exception):
    """A batch changed other tables than it says."""


def play(spark: SparkSession, batch: Batch, progress: Progress, before_it: Round | None = None) -> Round:
    """Apply, refresh, recompute, compare.

    What the round ``before_it`` recomputed stands for models that read nothing of what the batch touches: they are
    compared with it once more.
    """
    before = versions()
    with progress.doing("changing the raw data") as changing:
        apply(spark, batch)
    start = versions()
    _check_touched(batch, moved(before, start))
    started = time.perf_counter()
    with progress.doing("dbt run"):
        runs = DEMO.run(lambda run: progress.line(f"{run.model:<24}{run.action:<14}{run.seconds:6.1f} s"))
    dbt_seconds = time.perf_counter() - started
    written = moved(start, versions())
    again = reached(batch.touches, runs)
    stands = {o.run.model: o for o in before_it.outcomes if o.run.model not in again} if before_it else {}
    outcomes = _outcomes(spark, runs, stands, progress)
    return Round(batch, changing.seconds, dbt_seconds, tuple(written), outcomes)


def reached(touches: frozenset[str], runs: Sequence[ModelRun]) -> frozenset[str]:
    """The models that read what has been touched, also by way of other models."""
    found = touches
    for _ in runs:
        found |= {run.model for run in runs if not found.isdisjoint(run.reads)}
    return found - touches


def _check_touched(batch: Batch, changed: list[str]) -> None:
    if {name.removeprefix("raw.") for name in changed} != batch.touches:
        raise WrongBatchError(
            f"batch {batch.title!r} says it touches {sorted(batch.touches)}, but changed {changed}"
        )


def _outcomes(
    spark: SparkSession, runs: Sequence[ModelRun], stands: Mapping[str, Outcome], progress: Progress
) -> tuple[Outcome, ...]:
    """What is timed runs one after the other, what compares side by side."""
    known: list[Recompute] = []
    for run in runs:
        with progress.doing(f"full recompute of {run.model}"):
            before = stands.get(run.model)
            known.append(recompute(spark, run) if before is None else before.recomputed)
    outcomes = []
    with progress.doing("comparing"), ThreadPoolExecutor(_AT_ONCE) as pool:
        compared = pool.map(partial(compare, spark), (run.model for run in runs))
        for run, recomputed, found in zip(runs, known, compared, strict=True):
            verdict = "equal" if found.is_equal else "[bold red]NOT EQUAL[/]"
            how = "of before" if run.model in stands else f"{recomputed.seconds:6.1f} s"
            progress.line(f"{run.model:<24}{'recompute':<14}{how:>8}  {found.rows:>9,} rows  {verdict}")
            outcomes.append(Outcome(run, recomputed, found))
    return tuple(outcomes)
