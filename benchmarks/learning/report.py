"""Figures of all ways as a table, against their bars, and as plots beside the article's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.bars import Bar, bars_table
from benchmarks.learning.kept import FIRST_ORDER, RECOMPUTE, TREE, Measured
from benchmarks.learning.shapes import CATEGORICAL, CONTINUOUS, MIXED, SUM
from benchmarks.plots import Group, plot_groups

ALL = "all"
ARTICLE = {
    ("retailer", CONTINUOUS): 132.0,
    ("retailer", MIXED): 58.0,
    ("retailer", CATEGORICAL): 28.0,
    ("favorita", CONTINUOUS): 7.8,
    ("favorita", MIXED): 4.1,
    ("favorita", CATEGORICAL): 2.1,
    ("housing", CATEGORICAL): 2.8,
}
"""How often the throughput of first-order maintenance one tree has: single tuples, in memory (sections 9.2, 9.3)."""
_HEADINGS = (
    "shape",
    "variables",
    "changes of",
    "way",
    "seconds",
    "of recompute",
    "rows/s",
    "views",
    "state rows",
    "statements",
    "rows read",
    "equal",
)


def together(measured: Sequence[Measured]) -> list[Measured]:
    """With a line for each way over all relations: a batch of each, one after the other."""
    found = list(measured)
    cases = dict.fromkeys((m.shape, m.kind, m.way) for m in measured)
    for case in cases:
        own = [m for m in measured if (m.shape, m.kind, m.way) == case]
        found.append(
            replace(
                own[0],
                relation=ALL,
                seconds=sum(m.seconds for m in own),
                changed=sum(m.changed for m in own),
                statements=None,
                rows_read=None,
            )
        )
    return found


def bars(measured: Sequence[Measured]) -> list[Bar]:
    """Of moments by one tree, over all relations: at most a fifth of the recompute, and no more than first order."""
    every = {(m.shape, m.kind, m.way): m.seconds for m in measured if m.relation == ALL}
    held = []
    for shape, kind in dict.fromkeys((m.shape, m.kind) for m in measured if m.kind != SUM):
        tree = every[shape, kind, TREE]
        for other, most in ((RECOMPUTE, 0.2), (FIRST_ORDER, 1.0)):
            held.append(Bar(f"{shape}, {kind}: one tree / {other}", tree / every[shape, kind, other], most))
    return held


def show(measured: Sequence[Measured]) -> None:
    """A row for each relation and way, and the bars."""
    table = Table(*_HEADINGS, box=None)
    known = {(m.shape, m.kind, m.relation): m.seconds for m in measured if m.way == RECOMPUTE}
    for m in measured:
        counts = ("" if n is None else f"{n:,}" for n in (m.statements, m.rows_read))
        kept = ("", "") if m.way == RECOMPUTE else (str(m.views), f"{m.state_rows:,}")
        ratio = m.seconds / known[m.shape, m.kind, m.relation]
        figures = (f"{m.seconds:.2f}", f"{ratio:.2f}", f"{m.throughput:,.0f}")
        equal = "NO" if m.differing else "yes"
        table.add_row(m.shape, m.kind, m.relation, m.way, *figures, *kept, *counts, equal)
    console = Console(width=150)
    console.print(table)
    console.print(bars_table(bars(measured)))


def draw(measured: Sequence[Measured], images: Path) -> None:
    """Throughput, its ratio to first-order maintenance beside the article's, and the rows that are kept."""
    every = [m for m in measured if m.relation == ALL]
    cases = list(dict.fromkeys((m.shape, m.kind) for m in every))
    labels = [f"{shape}\n{kind}" for shape, kind in cases]

    def series(way: str, figure: str) -> Group:
        own = {(m.shape, m.kind): float(getattr(m, figure)) for m in every if m.way == way}
        return Group(way, tuple(own.get(case) for case in cases))

    ways = list(dict.fromkeys(m.way for m in every))
    throughput = [series(way, "throughput") for way in ways]
    plot_groups(images / "learning_throughput.svg", labels, throughput, "changed rows in a second")
    kept = [series(way, "state_rows") for way in ways if way != RECOMPUTE]
    plot_groups(images / "learning_state.svg", labels, kept, "rows that are kept")
    seconds = {(m.shape, m.kind, m.way): m.seconds for m in every}
    ratios = [
        Group("here", tuple(seconds[s, k, FIRST_ORDER] / seconds[s, k, TREE] for s, k in cases)),
        Group("the article", tuple(ARTICLE.get(case) for case in cases)),
    ]
    plot_groups(images / "learning_ratios.svg", labels, ratios, "throughput / first order")
