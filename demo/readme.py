"""The table of the README, written by the run that it is of: ``python -m demo --readme README.md``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from demo.checks import ordinary
from demo.report import kinds, totals
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
    batches = sum(bool(each.batch.touches) for each in rounds)
    told = f"{batches} batches of changes, everything with its recomputes took {seconds / 60:.0f} minutes."
    content = "\n".join(["", *table_lines(rounds), "", told, ""])
    filled, count = _PLACE.subn(lambda found: found[1] + content + found[2], text)
    if count != 1:
        raise NoPlaceError(
            f"{path} has no lines <!-- demo-table --> and <!-- /demo-table --> for the table, or several"
        )
    path.write_text(filled, encoding="utf-8")


def table_lines(rounds: Sequence[Round]) -> list[str]:
    """Seconds and rows read of each ordinary model, summed over the batches of flights alone, and over the others."""
    lines = [f"| {' | '.join(_COLUMNS)} |", "|---|---" + "|--:" * (len(_COLUMNS) - 2) + "|"]
    changing = [each for each in rounds if each.batch.touches]
    for title, chosen in kinds(changing).items():
        for model in ordinary(rounds) if chosen else ():
            found = totals(model, chosen)
            cells = (
                *(model, f"{len(chosen)} {title}", found.rows, found.rows_read, found.share),
                *(found.seconds, found.recompute_seconds, found.ratio),
            )
            lines.append(f"| {' | '.join(cells)} |")
    return lines
