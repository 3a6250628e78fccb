"""How many maps recursive maintenance needs for moments: ``python -m benchmarks.learning.maps``.

Each moment is an aggregate of its own, with maps of its own for the changes of each relation. They are planned one
after the other, and equal maps of several moments are counted once. A covariance has the views of one tree. (F-IVM
article, figure 18: DBToaster has 626 views for Housing, where F-IVM has seven.)
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import click
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.learning.shapes import CONTINUOUS, SHAPES, Shape
from fivm_dbt.config import load_config
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.plan.planner import plan_model
from fivm_dbt.plan.request import ModelRequest


@dataclass(frozen=True)
class Counted:
    """The views of a shape's moments: of one tree, and the maps below their results, of each moment by itself."""

    shape: str
    moments: int
    tree: int
    maps: int


def planned(shape: Shape, sql: str, strategy: str) -> Plan:
    """The plan of a text over a shape."""
    meta: dict[str, object] = {"fivm_strategy": strategy}
    return plan_model(ModelRequest("moments", sql, shape.catalog, load_config(meta)))


def count_views(shape: Shape, moments: Iterable[str]) -> Counted:
    """Plan a covariance, and each of its moments by recursive maps."""
    maps: set[str] = set()
    number = 0
    for moment in moments:
        number += 1
        maps |= maps_of(planned(shape, f"select {moment} as moment from {shape.join}", "recursive"))
    tree = planned(shape, shape.sql(CONTINUOUS), "factorized")
    return Counted(shape.name, number, len(tree.views), len(maps))


def maps_of(plan: Plan) -> set[str]:
    """What the maps below the result are, by their definitions over the inputs."""
    names: dict[str, str] = {}
    for view in plan.views[:-1]:
        text = repr((view.core, view.columns, view.state.keys, view.state.payload))
        for name, meaning in names.items():
            text = text.replace(name, meaning)
        names[view.name] = f"({re.sub(r'kept_[0-9]+', 'kept', text)})"
    return set(names.values())


@click.command()
@click.option(
    "--shape", "shapes", multiple=True, type=click.Choice([*SHAPES]), help="All, unless told otherwise."
)
@click.option("--variables", type=click.IntRange(1), help="Only the moments of so many variables.")
def main(shapes: tuple[str, ...], variables: int | None) -> None:
    """Count the views of moments by one tree, and by maps of each."""
    table = Table("shape", "moments", "views of one tree", "maps", "maps and results", box=None)
    console = Console(width=110)
    for name in shapes or SHAPES:
        moments = SHAPES[name].sums(variables)
        counted = count_views(SHAPES[name], track(moments, f"planning {name}", console=Console(stderr=True)))
        figures = (counted.moments, counted.tree, counted.maps, counted.maps + counted.moments)
        table.add_row(name, *(f"{n:,}" for n in figures))
    console.print(table)


if __name__ == "__main__":
    main()
