"""A model built anew when everything is warm, and its recompute: what a build costs beside SQL written by hand."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from pyspark.sql import SparkSession
from rich.table import Table

from demo.dbt_runs import DEMO
from demo.progress import Progress
from demo.recompute import recompute

_TIMES = 3


@dataclass(frozen=True)
class Again:
    """Seconds of building a model, and of its recompute, one time after the other."""

    model: str
    built: tuple[float, ...]
    recomputed: tuple[float, ...]

    @property
    def cells(self) -> tuple[str, ...]:
        """
        >>> Again("late_planes", (5.0, 9.0, 6.0), (4.0, 4.5, 3.0)).cells
        ('late_planes', '6.0', '4.0', '1.50')
        """
        built, recomputed = median(self.built), median(self.recomputed)
        return self.model, f"{built:.1f}", f"{recomputed:.1f}", f"{built / recomputed:.2f}"


def build_again(spark: SparkSession, model: str, progress: Progress) -> Again:
    """Build a model with ``--full-refresh`` and recompute it, by turns."""
    built, recomputed = [], []
    for number in range(1, _TIMES + 1):
        with progress.doing(f"building {model} again, {number}/{_TIMES}"):
            (run,) = DEMO.run(lambda _: None, "--full-refresh", "--select", model)
            built.append(run.seconds)
            recomputed.append(recompute(spark, run).seconds)
    return Again(model, tuple(built), tuple(recomputed))


def again_table(built: Iterable[Again]) -> Table:
    """A row for each: medians, and their ratio."""
    table = Table("built again", "seconds", "recompute seconds", "ratio", box=None)
    for each in built:
        table.add_row(*each.cells)
    return table
