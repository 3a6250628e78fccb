"""Lines and bars over logarithmic axes as SVG, readable on a light page and on a dark one."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_DARK = "<style>@media (prefers-color-scheme: dark) { svg { filter: invert(1) hue-rotate(180deg); } }</style>"
_MARKS = "osD^vP"


@dataclass(frozen=True)
class Line:
    """A name, and points."""

    name: str
    xs: tuple[float, ...]
    ys: tuple[float, ...]


def plot(path: Path, lines: Sequence[Line], x: str, y: str) -> None:
    """Draw ``lines`` into a file. The same lines give the same file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(drawn(lines, x, y, css=_DARK), encoding="utf-8")


def drawn(lines: Sequence[Line], x: str, y: str, *, css: str = "") -> str:
    """The text of an SVG of ``lines``, for a page."""
    import matplotlib

    figure, axes = _figure()
    for number, line in enumerate(lines):
        style = {"marker": _MARKS[number % len(_MARKS)], "linestyle": ("-", "--")[number >= len(lines) // 2]}
        axes.plot(line.xs, line.ys, label=line.name, **style)
    axes.set_xscale("log")
    axes.set_xticks(sorted({x_ for line in lines for x_ in line.xs}))
    axes.get_xaxis().set_major_formatter(matplotlib.ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    axes.get_xaxis().set_minor_formatter(matplotlib.ticker.NullFormatter())
    axes.set_xlabel(x)
    axes.grid(alpha=0.3)
    return _finished(figure, axes, y, css)


@dataclass(frozen=True)
class Group:
    """A name, and a figure for each label; None where there is none."""

    name: str
    figures: tuple[float | None, ...]


def plot_groups(path: Path, labels: Sequence[str], groups: Sequence[Group], y: str) -> None:
    """Draw into a file, for each label, a bar of each group."""
    figure, axes = _figure(max(6.4, 0.8 * len(labels)))
    width = 0.8 / len(groups)
    for number, group in enumerate(groups):
        places = [n + (number - (len(groups) - 1) / 2) * width for n in range(len(labels))]
        heights = [float("nan") if f is None else f for f in group.figures]
        axes.bar(places, heights, width * 0.9, label=group.name)
    axes.set_xticks(range(len(labels)), labels, fontsize=7)
    axes.grid(alpha=0.3, axis="y")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_finished(figure, axes, y, _DARK), encoding="utf-8")


def _figure(width: float = 6.4) -> tuple[Any, Any]:
    """An empty figure of so many inches, and its axes, of which the vertical one is logarithmic."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    pyplot.rcParams.update({"svg.hashsalt": "fivm", "svg.fonttype": "none", "font.size": 10})
    figure, axes = pyplot.subplots(figsize=(width, 4.0))
    axes.set_yscale("log")
    return figure, axes


def _finished(figure: Any, axes: Any, y: str, css: str) -> str:
    """The text of its SVG. The same figure gives the same text."""
    from matplotlib import pyplot

    axes.set_ylabel(y)
    axes.legend(frameon=False, fontsize=8)
    figure.tight_layout()
    stream = io.StringIO()
    figure.savefig(stream, format="svg", transparent=True, metadata={"Date": None})
    pyplot.close(figure)
    text = stream.getvalue()
    start = text.index("<svg")
    end = text.index(">", start) + 1
    return f"{text[:end]}\n {css}{text[end:]}"
