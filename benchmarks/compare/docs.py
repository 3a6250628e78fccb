"""The tables of docs/performance.md, written by the run that they are of: ``python -m benchmarks.compare --docs``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.compare.measured import Results, regrets
from benchmarks.compare.page import cell
from benchmarks.compare.report import bars, line_of
from benchmarks.compare.ways import BESIDE, FIVM, TABLE
from benchmarks.places import markdown_table, write_between


def place(results: Results) -> str:
    """The name of the comments: a run at another scale has a place of its own."""
    return f"bench-scale-{results.scale:g}"


def write_docs(path: Path, results: Results) -> None:
    """Put the tables of a run between its comments. Raises NoPlaceError where there are none."""
    write_between(path, place(results), [*_lines(results)])


def _lines(results: Results) -> Iterator[str]:
    yield f"{results.machine}; {results.rounds} rounds of changes in {results.minutes:.0f} minutes."
    yield ""
    for way in (FIVM, *BESIDE):
        line = line_of(way, results)
        if line is not None:
            yield f"* {line}."
    yield ""
    yield from _table("Seconds to those of the recompute, by `fivm`", [*_ratios(FIVM, results)])
    for way in BESIDE:
        if results.of(way=way):
            yield from _table(f"The same by `{way}`; a cross where rows were wrong", [*_ratios(way, results)])
    yield from _choices(results)
    yield from _table("Bars", [("bar", "figure", "at most", ""), *(bar.cells for bar in bars(results))])


def _table(title: str, rows: list[tuple[str, ...]]) -> Iterator[str]:
    """A title, and the rows below the first one."""
    if len(rows) > 1:
        yield f"**{title}**"
        yield ""
        yield from markdown_table(rows[0], rows[1:], left=1)
        yield ""


def _ratios(way: str, results: Results) -> Iterator[tuple[str, ...]]:
    yield ("query", *results.changes)
    for query in results.queries:
        if results.of(way, query):
            yield (query, *(cell(results.of(way, query, change)).text for change in results.changes))


def _choices(results: Results) -> Iterator[str]:
    """Where another choice would have been better."""
    rows = [
        (
            r.chosen.query,
            r.chosen.change,
            r.chosen.action,
            f"{r.chosen.seconds:.1f}",
            "a build" if r.best == TABLE else r.best,
            f"{r.best_seconds:.1f}",
            f"{r.times:.2f}",
        )
        for r in regrets(results.measured)
        if not r.is_near
    ]
    heads = ("query", "change", "did", "s", "better", "its s", "times")
    yield from _table("Choices that another one would have beaten", [heads, *rows])
