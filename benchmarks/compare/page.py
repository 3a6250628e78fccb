"""A run as a page that works offline: ratios, seconds by the size of a change, choices, and which rows were wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from benchmarks.compare.measured import NEAR_THE_BEST, Measured, Regret, Results, regrets
from benchmarks.compare.report import DEARER_MEANS, bars, line_of
from benchmarks.compare.ways import BESIDE, FIVM, TABLE
from benchmarks.plots import Line, drawn

_SIZE = re.compile(r"recent ([\d.]+) %")


@dataclass(frozen=True)
class Cell:
    """A ratio as it is shown; nothing where there is none."""

    text: str
    colour: str
    title: str


@dataclass(frozen=True)
class Heat:
    """The ratios of a way: a row for each query, a column for each change."""

    way: str
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]


@dataclass(frozen=True)
class Plot:
    """Seconds of one query by the share of new and changed facts."""

    query: str
    beside: str
    own: str


@dataclass(frozen=True)
class Wrong:
    """A way that had wrong rows of a query after some changes, and most so many."""

    way: str
    query: str
    changes: str
    rows: int


def write_page(directory: Path, results: Results) -> Path:
    """Write ``index.html``. The same results give the same page."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined
    )
    text = environment.get_template("page.html.j2").render(
        results=results,
        near=NEAR_THE_BEST,
        dearer=DEARER_MEANS,
        lines=[line for way in results.ways if (line := line_of(way, results)) is not None],
        bars=bars(results),
        heats=heats(results),
        plots=[*_plots(results)],
        regrets=sorted(regrets(results.measured), key=lambda r: -r.times),
        expected=_expected,
        wrong=wrong(results),
    )
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "index.html"
    path.write_text(text, encoding="utf-8")
    return path


def _expected(regret: Regret) -> str:
    """What the refresh and the build were expected to take."""
    expected = regret.chosen.expected
    return "not known" if expected is None else " / ".join(f"{s:.1f}" for s in expected)


# Ratios


def heats(results: Results) -> list[Heat]:
    """A table for each way, the one of this package first."""
    ways = sorted(results.ways, key=lambda way: way != FIVM)
    return [Heat(way, tuple(_rows(way, results))) for way in ways]


def _rows(way: str, results: Results) -> Iterator[tuple[str, tuple[Cell, ...]]]:
    for query in results.queries:
        if results.of(way, query):
            yield query, tuple(cell(results.of(way, query, change)) for change in results.changes)


def cell(found: Sequence[Measured]) -> Cell:
    """The median ratio of some rounds: green below one, red above it, on a logarithmic scale."""
    if not found:
        return Cell("", "transparent", "not run")
    ratio = median(m.ratio for m in found)
    seconds, recompute = (
        median(values) for values in zip(*((m.seconds, m.recompute_seconds) for m in found), strict=True)
    )
    rows = max(m.wrong for m in found)
    title = f"{seconds:.2f} s of {recompute:.2f} s" + (f", {rows:,} rows wrong" if rows else "")
    return Cell(f"{ratio:.2f}" + (" ✗" if rows else ""), _colour(ratio), title)


def _colour(ratio: float) -> str:
    """
    >>> _colour(0.1), _colour(1.0), _colour(10.0)
    ('hsl(140 65% 45% / 0.75)', 'hsl(140 65% 45% / 0.00)', 'hsl(8 75% 50% / 0.75)')
    """
    from math import log10

    strength = min(1.0, abs(log10(ratio))) * 0.75
    return f"hsl({'140 65% 45%' if ratio <= 1 else '8 75% 50%'} / {strength:.2f})"


# Seconds by size


def _plots(results: Results) -> Iterator[Plot]:
    """For queries with several sizes: beside what users would do, and the ways of this package by themselves."""
    own = [way for way in results.ways if way not in BESIDE]
    for query in results.queries:
        table = _line_of_recompute(query, results)
        if len(table.xs) < 2:
            continue
        beside = [table, *(_line(way, query, results) for way in (*BESIDE, FIVM))]
        inner = [table, *(_line(way, query, results) for way in own)]
        yield Plot(query, _drawn(beside), _drawn(inner) if len(own) > 1 else "")


def _drawn(lines: Sequence[Line]) -> str:
    known = [line for line in lines if line.xs]
    return drawn(known, "new and changed facts, %", "seconds")


def _line(way: str, query: str, results: Results) -> Line:
    found = _by_size(results.of(way, query))
    return Line(way, tuple(found), tuple(median(m.seconds for m in same) for same in found.values()))


def _line_of_recompute(query: str, results: Results) -> Line:
    found = _by_size(results.of(query=query))
    return Line(TABLE, tuple(found), tuple(median(m.recompute_seconds for m in s) for s in found.values()))


def _by_size(measured: Sequence[Measured]) -> dict[float, list[Measured]]:
    found: dict[float, list[Measured]] = {}
    for m in measured:
        size = _SIZE.fullmatch(m.change)
        if size is not None:
            found.setdefault(float(size[1]), []).append(m)
    return dict(sorted(found.items()))


# Rows


def wrong(results: Results) -> list[Wrong]:
    """Which ways had wrong rows of which queries, and after what."""
    found = []
    for way in results.ways:
        for query in results.queries:
            bad = [m for m in results.of(way, query) if m.wrong]
            if bad:
                changes = ", ".join(dict.fromkeys(m.change for m in bad))
                found.append(Wrong(way, query, changes, max(m.wrong for m in bad)))
    return found
