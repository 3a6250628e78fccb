"""Pages have tables that a run writes: each stands between two comments with its name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path


class NoPlaceError(Exception):
    """A file has no place for a table."""


def write_between(path: Path, name: str, lines: Sequence[str]) -> None:
    """Put ``lines`` between ``<!-- name -->`` and ``<!-- /name -->``. Raises NoPlaceError without these lines."""
    text = path.read_text(encoding="utf-8")
    place = re.compile(rf"(<!-- {re.escape(name)} -->\n).*?(<!-- /{re.escape(name)} -->)", re.DOTALL)
    content = "\n".join(["", *lines, "", ""])
    filled, count = place.subn(lambda found: found[1] + content + found[2], text)
    if count != 1:
        raise NoPlaceError(
            f"{path} has no lines <!-- {name} --> and <!-- /{name} --> for the table, or several"
        )
    path.write_text(filled, encoding="utf-8")


def markdown_table(heads: Sequence[str], rows: Sequence[Sequence[str]], left: int) -> list[str]:
    """The lines of a table whose first ``left`` columns are text, and the others figures.

    >>> markdown_table(("model", "s"), [("a", "1.0")], left=1)
    ['| model | s |', '|---|--:|', '| a | 1.0 |']
    """
    rules = "|---" * left + "|--:" * (len(heads) - left) + "|"
    return [f"| {' | '.join(heads)} |", rules, *(f"| {' | '.join(cells)} |" for cells in rows)]
