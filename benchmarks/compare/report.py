"""What a comparison prints: a row for each query and change, and what holds for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from benchmarks.compare.__main__ import Measured

NEAR_THE_BEST = 1.15
"""A choice is as good as the best one up to so many times its seconds."""


def summary(measured: Sequence[Measured]) -> None:
    """Print seconds and ratios, then medians and regret."""
    table = Table("query", "change", "way", "did", "s", "recompute s", "ratio", "expected", "rows", box=None)
    for m in measured:
        expected = "" if m.expected is None else " / ".join(f"{s:.1f}" for s in m.expected)
        rows = f"{m.wrong} differ" if m.wrong else "equal"
        figures = (f"{m.seconds:.2f}", f"{m.recompute_seconds:.2f}", f"{m.ratio:.2f}")
        table.add_row(m.query, m.change, m.way, m.action, *figures, expected, rows)
    console = Console(width=160)
    console.print(table)
    for name in dict.fromkeys(m.way for m in measured):
        own = [m for m in measured if m.way == name]
        changed = [m for m in own if m.change != "none"]
        if changed:
            worst = max(changed, key=lambda m: m.ratio)
            middle = median(m.ratio for m in changed)
            console.print(
                f"{name}: median {middle:.2f} of the recompute over {len(changed)} cases, at most {worst.ratio:.2f} "
                f"({worst.query}, {worst.change}); as good as the best in {share_near_the_best(own, measured):.0%}"
            )


def share_near_the_best(own: Sequence[Measured], measured: Sequence[Measured]) -> float:
    """Of how many cases a way is the best one that was run, the recompute included, or nearly as good."""
    best = {(m.query, m.change, m.round): m.recompute_seconds for m in measured}
    for m in measured:
        case = (m.query, m.change, m.round)
        if not m.wrong:
            best[case] = min(best[case], m.seconds)
    near = [m.seconds <= NEAR_THE_BEST * best[(m.query, m.change, m.round)] for m in own]
    return sum(near) / len(near)
