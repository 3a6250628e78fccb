"""``python -m fivm_dbt.testing``: random scenarios of one's own choice, with the tables of what they covered."""

from __future__ import annotations

import click

from fivm_dbt.testing.alone import Alone, run_alone
from fivm_dbt.testing.constructs import CONSTRUCTS, Menu
from fivm_dbt.testing.coverage import Coverage
from fivm_dbt.testing.differential import run_random


@click.command()
@click.option("--first", default=1, help="The first seed.")
@click.option("--seeds", default=20, help="How many seeds.")
@click.option("--only", multiple=True, help="Only these constructs, and the little that is always needed.")
@click.option("--weight", multiple=True, metavar="NAME=W", help="Another weight for a construct.")
@click.option("--everything", is_flag=True, help="Also what the planner is said to refuse.")
@click.option("--alone", is_flag=True, help="Only run the queries; do not maintain them.")
def main(
    first: int, seeds: int, only: tuple[str, ...], weight: tuple[str, ...], everything: bool, alone: bool
) -> None:
    """Random queries over random changes, compared with full recompute after each step."""
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
    coverage = Coverage()
    for seed in range(first, first + seeds):
        verdict = run_random(seed, menu=menu)
        coverage += verdict.coverage
        if verdict.failure is not None:
            click.echo(verdict.failure)
    click.echo(f"{coverage.tables()}\n\n{coverage}")


if __name__ == "__main__":
    main()
