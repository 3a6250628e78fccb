"""The demo from loading to verdict; `python -m demo` after `python -m demo.environment`."""

from __future__ import annotations

import shutil
from pathlib import Path

import click
from pyspark.sql import SparkSession

from demo.again import again_table, build_again
from demo.batches import BATCHES, Batch
from demo.checks import MOST_SECONDS, failures, remarks
from demo.dbt_runs import DEMO
from demo.load import load_raw
from demo.paths import HOME, LOGS, METASTORE, WAREHOUSE
from demo.progress import Progress
from demo.readme import write_table
from demo.report import reasons, round_table, summary_table, write_json
from demo.rounds import Round, play
from demo.session import open_session

FIRST_RUN = Batch("the first dbt run builds every model", frozenset(), ())


@click.command()
@click.option(
    "--years", default=10, show_default=True, type=click.IntRange(1, 50), help="Years of flights to load."
)
@click.option(
    "--again",
    multiple=True,
    metavar="MODEL",
    help="In the end, build this model anew and recompute it, three times by turns, when everything is warm.",
)
@click.option("--keep", is_flag=True, help="Leave the tables for a look around; they are removed otherwise.")
@click.option(
    "--report", type=click.Path(dir_okay=False, path_type=Path), help="Write all figures to this JSON file."
)
@click.option(
    "--readme",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Write the table of seconds into this file, between its two comments.",
)
def main(years: int, again: tuple[str, ...], keep: bool, report: Path | None, readme: Path | None) -> None:
    """Ten years of New York flights: change the raw data, refresh, and compare with a full recompute."""
    progress = Progress()
    _forget_last_time()
    with progress.doing("starting Spark"):
        spark = open_session(DEMO)
    progress.line("Spark and Delta are up")
    try:
        built, rounds = _play_all(spark, years, progress)
        elapsed = progress.elapsed
        if again:
            progress.console.print(again_table([build_again(spark, model, progress) for model in again]))
    finally:
        spark.stop()
    problems = failures(built, rounds)
    if report:
        write_json(report, built, rounds, problems, elapsed)
    if readme:
        write_table(readme, rounds, elapsed)
    if not keep:
        _forget_last_time()
    for remark in remarks(rounds):
        progress.line(f"[yellow]more than {MOST_SECONDS} of a recompute:[/] {remark}")
    _verdict(problems, progress)


def _play_all(spark: SparkSession, years: int, progress: Progress) -> tuple[Round, list[Round]]:
    progress.heading(f"Loading {years} years of flights, up to the end of November 2013")
    with progress.doing("loading"):
        load_raw(spark, years, progress.line)
    progress.heading(FIRST_RUN.title)
    built = play(spark, FIRST_RUN, progress)
    progress.console.print(round_table(built))
    rounds = []
    for number, batch in enumerate(BATCHES, start=1):
        touched = f" ({', '.join(sorted(batch.touches))})" if batch.touches else ""
        progress.heading(f"{number}/{len(BATCHES)}  {batch.title}{touched}")
        rounds.append(play(spark, batch, progress, rounds[-1] if rounds else built))
        _show(rounds[-1], progress)
    progress.heading("dbt test: fivm_exact on every model")
    with progress.doing("dbt test"):
        DEMO.test(lambda name, status, seconds: progress.line(f"{name:<52}{status}  {seconds:6.1f} s"))
    progress.heading("All batches together")
    progress.console.print(summary_table(rounds))
    return built, rounds


def _show(each: Round, progress: Progress) -> None:
    progress.console.print(round_table(each))
    if each.batch.touches and not each.batch.is_flights_only:
        for line in reasons(each):
            progress.console.print(f"  scanned for {line}", highlight=False)
    if not each.batch.touches:
        progress.line(f"tables written: {', '.join(each.written) or 'none'}")


def _verdict(problems: list[str], progress: Progress) -> None:
    progress.console.print()
    if problems:
        for problem in problems:
            progress.line(f"[bold red]failed:[/] {problem}")
        raise SystemExit(1)
    progress.line("every model equal to its recompute after every batch")


def _forget_last_time() -> None:
    """Every run starts from nothing: the tables and their metastore go, the environment stays."""
    for path in (WAREHOUSE, METASTORE):
        shutil.rmtree(path, ignore_errors=True)
    LOGS.mkdir(parents=True, exist_ok=True)
    (HOME / "derby.log").unlink(missing_ok=True)
