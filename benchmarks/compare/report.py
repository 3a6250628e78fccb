"""What a comparison prints: a row for each run, what holds for all of them, and bars."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from rich.console import Console
from rich.table import Table

from benchmarks.bars import Bar, bars_table
from benchmarks.compare.data import PERCENTS
from benchmarks.compare.measured import (
    DEARER,
    LONG,
    LONGER,
    NEAR_THE_BEST,
    NOTHING,
    Measured,
    Results,
    middle,
    regrets,
)
from benchmarks.compare.ways import FIVM

MEDIAN, WORST = 0.35, 0.70
"""Bars of the ratios after changes of about a hundredth."""

LARGE, LARGE_MEDIAN, LARGE_WORST = 10, 0.10, 0.25
"""The same from this scale factor on, of changes of a thousandth."""

ABOVE, REGRETTED = 0, 0.1
"""Bars: cases dearer than the recompute, and the share of choices that another one would have beaten."""

NO_CHANGE_SECONDS = 0.3
"""The bar of the median run with nothing to do."""

OTHER_SHARES = tuple(f" {percent:g} %" for percent in PERCENTS if percent != 1)
"""What the names of changes by other shares than a hundredth end with."""

DEARER_MEANS = (
    f"Dearer: more than {DEARER:.2f} times a recompute of {LONG:g} s or longer, "
    f"or {LONGER:g} s more than a shorter one."
)


def summary(results: Results) -> None:
    """Print seconds and ratios, then medians and regret, then the bars of what this package chooses."""
    console = Console(width=170)
    console.print(_runs(results.measured))
    for name in results.ways:
        line = line_of(name, results)
        if line is not None:
            console.print(line, highlight=False)
    console.print(DEARER_MEANS, highlight=False)
    for failure in results.failures:
        console.print(f"FAILED: {failure}", highlight=False, markup=False)
    held = bars(results)
    if held:
        console.print(bars_table(held))


def _runs(measured: Sequence[Measured]) -> Table:
    table = Table("query", "change", "way", "did", "s", "recompute s", "ratio", "expected", "rows", box=None)
    for m in measured:
        expected = "" if m.expected is None else " / ".join(f"{s:.1f}" for s in m.expected)
        rows = f"{m.wrong} differ" if m.wrong else "equal"
        figures = (f"{m.seconds:.2f}", f"{m.recompute_seconds:.2f}", f"{m.ratio:.2f}")
        table.add_row(m.query, m.change, m.way, m.action, *figures, expected, rows)
    return table


def line_of(way: str, results: Results) -> str | None:
    """What holds for a way over all its cases that have changed something; None without any."""
    changed = [m for m in results.of(way=way) if m.change != NOTHING]
    if not changed:
        return None
    worst = max(changed, key=lambda m: m.ratio)
    above = [m for m in changed if m.is_above]
    wrong = [m for m in changed if m.wrong]
    texts = [
        f"{way}: median {middle(changed):.2f} of the recompute over {len(changed)} cases",
        f"at most {worst.ratio:.2f} ({worst.query}, {worst.change})",
        f"{len(above) or 'none'} dearer",
    ]
    if wrong:
        texts.append(f"WRONG in {len(wrong)}")
    if way == FIVM:
        texts.append(regret_text(results))
    return "; ".join(texts)


def regret_text(results: Results) -> str:
    """How often the choice was as good as the best one."""
    found = regrets(results.measured)
    near = sum(r.is_near for r in found)
    return f"the choice was within {NEAR_THE_BEST:g} of the best one in {near} of {len(found)}"


def bars(results: Results) -> list[Bar]:
    """Of what this package chooses by itself; nothing where that was not run."""
    own = results.of(way=FIVM)
    changed = [m for m in own if m.change != NOTHING]
    held = []
    if changed:
        found = regrets(results.measured)
        held = [
            Bar("rows that differ", sum(m.wrong for m in own), 0),
            *_ratios(results.scale, changed),
            Bar("cases dearer than the recompute", sum(m.is_above for m in changed), ABOVE),
            Bar("share of regretted choices", sum(not r.is_near for r in found) / len(found), REGRETTED),
        ]
    idle = sorted(m.seconds for m in own if m.change == NOTHING)
    if idle:
        held.append(Bar("no change: median seconds", idle[len(idle) // 2], NO_CHANGE_SECONDS))
    return held


def _ratios(scale: float, changed: Sequence[Measured]) -> list[Bar]:
    """The middle and the worst ratio of the changes that there is a bar for, of several rounds by their median."""
    if scale >= LARGE:
        few = [m for m in changed if m.change.endswith(" 0.1 %")]
        most = LARGE_MEDIAN, LARGE_WORST
    else:
        few = [m for m in changed if not m.change.endswith(OTHER_SHARES)]
        most = MEDIAN, WORST
    if not few:
        return []
    names = ("median ratio", "worst ratio")
    cases = dict.fromkeys((m.query, m.change) for m in few)
    ratios = [middle([m for m in few if (m.query, m.change) == case]) for case in cases]
    figures = (median(ratios), max(ratios))
    return [Bar(name, figure, bar) for name, figure, bar in zip(names, figures, most, strict=True)]
