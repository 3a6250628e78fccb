"""The table of the README, written by the run that it is of: ``python -m demo --readme README.md``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.places import markdown_table, write_between

from demo.checks import ordinary
from demo.report import kinds, totals
from demo.rounds import Round

_COLUMNS = (
    "model",
    "batches",
    "rows",
    "rows read",
    "of a recompute's",
    "seconds",
    "recompute seconds",
    "ratio",
)


def write_table(path: Path, rounds: Sequence[Round], seconds: float) -> None:
    """Put the figures of a run between the two comments of ``path``."""
    batches = sum(bool(each.batch.touches) for each in rounds)
    told = f"{batches} batches of changes, everything with its recomputes took {seconds / 60:.0f} minutes."
    write_between(path, "demo-table", [*table_lines(rounds), "", told])


def table_lines(rounds: Sequence[Round]) -> list[str]:
    """Seconds and rows read of each ordinary model, summed over the batches of flights alone, and over the others."""
    rows = []
    changing = [each for each in rounds if each.batch.touches]
    for title, chosen in kinds(changing).items():
        for model in ordinary(rounds) if chosen else ():
            found = totals(model, chosen)
            cells = (
                *(model, f"{len(chosen)} {title}", found.rows, found.rows_read, found.share),
                *(found.seconds, found.recompute_seconds, found.ratio),
            )
            rows.append(cells)
    return markdown_table(_COLUMNS, rows, left=2)
