"""The table of the README, written by the run that it is of: ``python -m demo --readme README.md``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from demo.checks import ordinary
from demo.report import totals
from demo.rounds import Round

_PLACE = re.compile(r"(<!-- demo-table -->\n).*?(\n<!-- /demo-table -->)", re.DOTALL)
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


class NoPlaceError(Exception):
    """A file has no place for the table."""


def write_table(path: Path, rounds: Sequence[Round], seconds: float) -> None:
    """Put the figures of a run between the two comments of ``path``."""
    text = path.read_text(encoding="utf-8")
    lines = table_lines(rounds)
    told = (
        f"{len(rounds)} batches of changes, everything with its recomputes took {seconds / 60:.0f} minutes."
    )
    filled, count = _PLACE.subn(
        lambda found: f"{found[1]}\n{chr(10).join(lines)}\n\n{told}\n{found[2]}", text
    )
    if count != 1:
        raise NoPlaceError(
            f"{path} has no lines <!-- demo-table --> and <!-- /demo-table --> for the table, or several"
        )
    path.write_text(filled, encoding="utf-8")


def table_lines(rounds: Sequence[Round]) -> list[str]:
    """Seconds and rows read of each ordinary model, summed over the batches of flights alone, and over the others."""
    lines = [f"| {' | '.join(_COLUMNS)} |", "|---|---" + "|--:" * (len(_COLUMNS) - 2) + "|"]
    for title, chosen in (
        ("of flights alone", [each for each in rounds if each.batch.is_flights_only]),
        ("others", [each for each in rounds if each.batch.touches and not each.batch.is_flights_only]),
    ):
        for model in ordinary(rounds):
            found = totals([o for each in chosen for o in each.outcomes if o.run.model == model])
            cells = (
                *(model, f"{len(chosen)} {title}", found.rows, found.rows_read, found.share),
                *(found.seconds, found.recompute_seconds, found.ratio),
            )
            lines.append(f"| {' | '.join(cells)} |")
    return lines
