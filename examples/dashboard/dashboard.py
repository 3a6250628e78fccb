"""Write a page about the fivm models of a project, from what ``fivm_models`` and ``fivm_refreshes`` say.

It needs click, jinja2 and matplotlib, and no database: it reads what ``dbt show --output json`` has printed.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import click
import matplotlib
from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup

matplotlib.use("svg")
from matplotlib import pyplot

Row = Mapping[str, Any]

REBUILT = "rebuilt"
COLOURS = {"refreshed": "#2a78a8", "built": "#8a8f98", "rebuilt": "#c8502d", "recomputed": "#b58b1b"}


@click.command()
@click.argument("models", type=click.File())
@click.argument("refreshes", type=click.File())
@click.option("--out", type=click.Path(path_type=Path), default=Path("fivm.html"), show_default=True)
def main(models: io.TextIOBase, refreshes: io.TextIOBase, out: Path) -> None:
    """Write a page from the rows of fivm_models and fivm_refreshes, as dbt show prints them."""
    page = page_of(shown_rows(models.read()), shown_rows(refreshes.read()))
    out.write_text(page, encoding="utf-8")
    click.echo(f"wrote {out}")


def shown_rows(text: str) -> list[Row]:
    """The rows in the output of ``dbt show --output json``, whatever dbt has written before them."""
    begin = text.find("{")
    if begin < 0:
        raise click.ClickException("no JSON: run dbt --quiet show --output json")
    rows: list[Row] = json.loads(text[begin:])["show"]
    return rows


def page_of(models: Sequence[Row], refreshes: Sequence[Row]) -> str:
    """The page as HTML."""
    of_model = {
        m["model"]: sorted((r for r in refreshes if r["model"] == m["model"]), key=_at) for m in models
    }
    rebuilds = sorted((r for r in refreshes if r["action"] == REBUILT), key=_at, reverse=True)
    applied = [r for r in refreshes if r["action"] == "refreshed" and r["seconds"] is not None]
    built = {m["model"]: m["build_seconds"] for m in models}
    environment = Environment(loader=FileSystemLoader(Path(__file__).parent), autoescape=True)
    environment.filters |= {"size": _size, "seconds": _seconds, "minute": _minute}
    return environment.get_template("dashboard.html.j2").render(
        models=models,
        rebuilds=rebuilds,
        plots={name: Markup(plot_of(found)) for name, found in of_model.items() if found},
        refreshed=len(applied),
        took=sum(r["seconds"] for r in applied),
        instead=sum(built.get(r["model"]) or 0.0 for r in applied),
        colours=COLOURS,
    )


def plot_of(refreshes: Sequence[Row]) -> str:
    """An SVG of the seconds of one model's refreshes, oldest first: a point for each, in the colour of what it did."""
    figure, axes = pyplot.subplots(figsize=(4.2, 1.6))
    known = [r for r in refreshes if r["seconds"] is not None]
    axes.plot([_at(r) for r in known], [r["seconds"] for r in known], color="#c9ced6", linewidth=1, zorder=1)
    for action, colour in COLOURS.items():
        those = [r for r in known if r["action"] == action]
        axes.scatter([_at(r) for r in those], [r["seconds"] for r in those], color=colour, s=14, zorder=2)
    axes.set_ylim(bottom=0)
    axes.set_ylabel("seconds")
    axes.spines[["top", "right"]].set_visible(False)
    axes.xaxis.set_major_formatter(matplotlib.dates.ConciseDateFormatter(axes.xaxis.get_major_locator()))
    axes.tick_params(labelsize=8)
    drawn = io.StringIO()
    figure.savefig(drawn, format="svg", bbox_inches="tight")
    pyplot.close(figure)
    text = drawn.getvalue()
    return text[text.index("<svg") :]


def _at(row: Row) -> datetime:
    return datetime.fromisoformat(str(row["recorded_at"]))


def _minute(at: object) -> str:
    return "" if at is None else str(at)[:16].replace("T", " ")


def _seconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds:,.1f} s"


def _size(count: float | None) -> str:
    if count is None:
        return ""
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:,.1f} TB"


if __name__ == "__main__":
    main()
