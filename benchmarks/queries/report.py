"""What a run prints: a table with one row per query, then what went wrong or was refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

from benchmarks.queries.run import Followed

Extra = Callable[[str], str]
"""One more cell for a query, by its name."""


def print_results(
    console: Console, results: Sequence[Followed], extra: tuple[str, Extra] | None = None
) -> int:
    """Print the table, refusals and failures; the exit code: 1 if a query has failed.

    ``extra`` is the heading of one more column, and what stands in it.
    """
    table = Table(box=None, pad_edge=False)
    table.add_column("query")
    table.add_column("result")
    for heading in ("rows", "kept rows", "largest", "refresh s", "recompute s"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("changed rows per batch")
    if extra is not None:
        table.add_column(extra[0])
    for followed in results:
        cells = [followed.query.name, _verdict(followed), *_figures(followed)]
        table.add_row(*cells, *([extra[1](followed.query.name)] if extra is not None else []))
    console.print()
    console.print(table)
    console.print("\nSeconds are medians over the batches; a refused query is only recomputed.")
    for followed in results:
        for line in _explained(followed):
            console.print(line, markup=False, highlight=False, soft_wrap=True)
    counts = [
        f"{sum(f.verdict == v for f in results)} {v}"
        for v in ("maintained", "recomputed", "refused", "FAILED")
    ]
    console.print(f"\n{len(results)} queries: {', '.join(counts)}", highlight=False)
    return int(any(f.verdict == "FAILED" for f in results))


def _verdict(followed: Followed) -> str:
    if followed.verdict == "refused":
        return f"refused ({followed.code})"
    if followed.verdict == "recomputed":
        rebuilds = sum(s.action == "rebuilt" for s in followed.steps[1:])
        return f"recomputed ({rebuilds} of {len(followed.steps) - 1})"
    return followed.verdict


def _figures(followed: Followed) -> list[str]:
    """Rows of the last result and of what is kept, medians of the two times, and changed rows per batch."""
    if not followed.steps:
        return [""] * 6
    after = followed.steps[1:] or followed.steps
    refreshes = [s.seconds for s in after if s.seconds is not None]
    refresh = f"{median(refreshes):.3f}" if refreshes else "-"
    recompute = f"{median(s.recompute_seconds for s in after):.3f}"
    changed = " ".join(f"{s.changed}" for s in followed.steps[1:])
    states = followed.states.values()
    kept = [f"{sum(states):,}", f"{max(states):,}"] if states else ["-", "-"]
    return [f"{followed.steps[-1].rows:,}", *kept, refresh, recompute, changed]


def _explained(followed: Followed) -> list[str]:
    if followed.message is None:
        return []
    lines = [f"\n{followed.query.name} {followed.verdict}: {followed.message}"]
    if followed.verdict == "refused":
        lines = [lines[0].split("\n")[1]]
    if followed.difference is not None:
        lines += followed.difference.lines("maintained", "recomputed")
    return lines


def write_report(path: Path, results: Sequence[Followed]) -> None:
    """Everything as JSON: per query the verdict, and per batch rows, changed rows, action and seconds."""
    data = [
        {
            "query": f.query.name,
            "verdict": f.verdict,
            "code": f.code,
            "message": f.message,
            "states": f.states,
            "steps": [asdict(step) for step in f.steps],
        }
        for f in results
    ]
    path.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
