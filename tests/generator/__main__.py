"""``make random`` runs random scenarios of one's own choice, and tables what they covered."""

from __future__ import annotations

import click

from generator.alone import Alone, run_alone
from generator.cells.cell import each_cell_once
from generator.cells.kinds import KINDS
from generator.cells.positions import POSITIONS
from generator.cells.runs import run_cells
from generator.cells.table import table
from generator.constructs import CONSTRUCTS, Menu
from generator.coverage import Coverage
from generator.differential import run_random


@click.command()
@click.option("--first", default=1, help="The first seed.")
@click.option("--seeds", default=20, help="How many seeds.")
@click.option("--only", multiple=True, help="Only these constructs, and the little that is always needed.")
@click.option("--weight", multiple=True, metavar="NAME=W", help="Another weight for a construct.")
@click.option("--everything", is_flag=True, help="Also what the planner is said to refuse.")
@click.option("--alone", is_flag=True, help="Only run the queries; do not maintain them.")
@click.option(
    "--coverage", is_flag=True, help="Every kind of query in every position instead, and their table."
)
@click.option("--position", multiple=True, help="With --coverage: only these positions.")
@click.option("--kind", multiple=True, help="With --coverage: only these kinds of queries.")
def main(
    first: int,
    seeds: int,
    only: tuple[str, ...],
    weight: tuple[str, ...],
    everything: bool,
    alone: bool,
    coverage: bool,
    position: tuple[str, ...],
    kind: tuple[str, ...],
) -> None:
    """Random queries over random changes, compared with full recompute after each step."""
    if coverage:
        return _cells(position, kind)
    menu = Menu() if everything or alone else Menu.accepted()
    menu = Menu.only(*only) if only else menu
    given = dict(part.rpartition("=")[::2] for part in weight)
    unknown = sorted(set(given) - set(CONSTRUCTS))
    if unknown:
        raise click.BadParameter(f"{', '.join(unknown)}: expected one of {', '.join(CONSTRUCTS)}")
    menu = Menu({**menu.weights, **{name: float(text) for name, text in given.items()}})
    if alone:
        done = sum((run_alone(seed, menu) for seed in range(first, first + seeds)), Alone())
        click.echo("\n\n".join(done.failures))
        click.echo(f"{len(done.queries)} queries, {done.with_rows} with rows, {len(done.failures)} failures")
        return
    covered = Coverage()
    for seed in range(first, first + seeds):
        verdict = run_random(seed, menu=menu)
        covered += verdict.coverage
        if verdict.failure is not None:
            click.echo(verdict.failure)
    click.echo(f"{covered.tables()}\n\n{covered}")


def _cells(positions: tuple[str, ...], kinds: tuple[str, ...]) -> None:
    """Run the table of positions and kinds, or a part of it, and show it; what is wrong first."""
    for given, known in ((positions, POSITIONS), (kinds, KINDS)):
        unknown = sorted(set(given) - set(known))
        if unknown:
            raise click.BadParameter(f"{', '.join(unknown)}: expected one of {', '.join(known)}")
    wanted = [
        cell
        for cell in each_cell_once()
        if (not positions or cell.position in positions) and (not kinds or cell.kind in kinds)
    ]
    run = run_cells(wanted)
    for cell, outcome in run.outcomes.items():
        if outcome != "equal":
            click.echo(f"{cell}: {outcome}\n{cell.sql}\n{run.details.get(cell, '')}\n")
    click.echo(table(run.seen))


if __name__ == "__main__":
    main()
