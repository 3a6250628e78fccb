"""Moments of a join kept up to date in several ways: ``python -m benchmarks.learning``.

Tables in the shapes of Retailer, Housing and Favorita (F-IVM, section 9.1: their relations and join variables) hold
random numbers. One covariance over all variables of their join has 820, 378 or 136 aggregates. Batches change the
relations in turn: to facts rows come, and some go; of a dimension some rows get other values. The ways:

* ``one tree``: one view tree, whose views have the moments of the variables below them (``factorized``);
* ``first order``: one delta query with all its sums over the change and the other relations (``first_order``);
* ``recompute``: the model's SQL, as a table.

Of ``mixed`` variables some are categorical, and of ``categorical`` ones all: their moments are grouped by value. A
``sum`` is that of one variable, as in chapter 6 of the thesis about SQL and M3. It is kept by ``recursive`` maps too. A
pass is what a way reads of its inputs and states. (F-IVM, sections 9.2 and 9.3.)
"""

from __future__ import annotations

import json
import tempfile
from contextlib import closing
from pathlib import Path

import click

from benchmarks.conclude import conclude
from benchmarks.learning.data import Data
from benchmarks.learning.kept import Kept, Measured
from benchmarks.learning.report import draw, show, together
from benchmarks.learning.shapes import KINDS, SHAPES, Shape
from benchmarks.queries.command import ENGINES, opener


@click.command()
@click.option(
    "--shape", "shapes", multiple=True, type=click.Choice([*SHAPES]), help="All, unless told otherwise."
)
@click.option("--kind", "kinds", multiple=True, type=click.Choice(KINDS), help="All, unless told otherwise.")
@click.option(
    "--scale", default=1.0, show_default=True, type=click.FloatRange(0, min_open=True), help="Of the facts."
)
@click.option("--size", default=1_000, show_default=True, type=click.IntRange(2), help="Rows of a batch.")
@click.option("--batches", default=3, show_default=True, type=click.IntRange(1), help="Of each relation.")
@click.option("--seed", default=1, show_default=True)
@click.option("--engine", type=click.Choice(ENGINES), default="spark", show_default=True)
@click.option("--report", type=click.Path(path_type=Path), help="Write the figures as JSON too.")
@click.option(
    "--from",
    "reports",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Show and draw the figures of these reports, and measure nothing.",
)
@click.option("--images", type=click.Path(path_type=Path), help="Draw plots into a directory.")
def main(
    shapes: tuple[str, ...],
    kinds: tuple[str, ...],
    scale: float,
    size: int,
    batches: int,
    seed: int,
    engine: str,
    report: Path | None,
    reports: tuple[Path, ...],
    images: Path | None,
) -> None:
    """Keep the moments of joins in several ways. Exits with 1 if they differ from a recompute."""
    if reports:
        measured = [Measured(**m) for known in reports for m in json.loads(known.read_text(encoding="utf-8"))]
    else:
        cases = [(SHAPES[name], kind) for name in shapes or SHAPES for kind in kinds or KINDS]
        measured = together(_measured(cases, engine, scale, size, batches, seed))
    show(measured)
    if images is not None:
        draw(measured, images)
    conclude(measured, report)


def _measured(
    cases: list[tuple[Shape, str]], engine: str, scale: float, size: int, batches: int, seed: int
) -> list[Measured]:
    measured: list[Measured] = []
    with tempfile.TemporaryDirectory() as directory:
        open_workbench = opener(engine, Path(directory))
        for shape, kind in cases:
            click.echo(f"{shape.name}, {kind}", err=True)
            data = Data(shape, kind, scale, seed)
            with closing(open_workbench()) as workbench:
                measured += Kept(workbench, shape, kind, data, Path(directory)).follow(batches, size)
    return measured


if __name__ == "__main__":
    main()
