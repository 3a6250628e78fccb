"""``python -m benchmarks.project``: a whole dbt project through batches of changes, by fivm models and by tables.

The project is a brokerage's: histories of customers, accounts, companies and securities, orders that look up what was
known when they were placed, balances, prices, watches, and reports over them. After each batch `dbt run` brings all
models up to date, and `dbt run` of the same project with `materialized: table` computes them all again. Every model is
then compared with its table, as bags.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import click
from demo.dbt_runs import DbtError
from demo.progress import Progress
from demo.session import open_session

from benchmarks.conclude import conclude
from benchmarks.project.paths import HOME
from benchmarks.project.report import of_models, of_runs
from benchmarks.project.rounds import Playing, Round, play, project
from benchmarks.project.sizes import Sizes
from fivm_dbt.engines.spark.delta_lake.jars import find_java


@click.command()
@click.option("--scale", default=1.0, show_default=True, help="Scale factor; 1 is a million orders.")
@click.option(
    "--batches",
    default=3,
    show_default=True,
    type=click.IntRange(0, 20),
    help="How many weeks of changes, each about a hundredth of everything.",
)
@click.option(
    "--select", "selected", multiple=True, help="Only these models, as dbt selects them: +fact_trades."
)
@click.option("--keep", is_flag=True, help=f"Leave the tables in {HOME.relative_to(HOME.parent.parent)}.")
@click.option(
    "--report", type=click.Path(dir_okay=False, path_type=Path), help="Write the figures as JSON too."
)
def main(scale: float, batches: int, selected: tuple[str, ...], keep: bool, report: Path | None) -> None:
    """A dbt project by fivm models and by tables. Exits with 1 if a model differs from its table after any batch."""
    find_java()
    progress = Progress()
    dbt = project()
    with progress.doing("starting Spark"):
        spark = open_session(dbt)
    playing = Playing(spark, dbt, Sizes(scale), progress, selected)
    rounds: list[Round] = []
    try:
        for number in range(batches + 1):
            progress.heading(f"batch {number}/{batches}" if number else f"loading, scale {scale:g}")
            rounds.append(play(playing, number))
            of_models(rounds[-1], progress.console)
    except DbtError as error:
        raise click.ClickException(str(error)) from error
    finally:
        spark.stop()
        if rounds:
            progress.heading("whole runs of dbt")
            of_runs(rounds, progress.console)
        if not keep:
            shutil.rmtree(HOME, ignore_errors=True)
    conclude(rounds, report)


if __name__ == "__main__":
    main()
