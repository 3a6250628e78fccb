"""What the commands ``python -m benchmarks.tpch`` and ``python -m benchmarks.papers`` have in common."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import click
from demo.progress import Progress

from benchmarks.queries.report import Extra, print_results, write_report
from benchmarks.queries.run import Followed, run_suite
from benchmarks.queries.suite import Suite
from fivm_dbt.testing.replay import OpenWorkbench
from fivm_dbt.testing.replay_files import STRATEGIES
from fivm_dbt.testing.workbench import DuckDbWorkbench

ENGINES = ("duckdb", "spark")


def common_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of both commands."""
    for option in (
        click.option("--report", type=click.Path(path_type=Path), help="Write everything as JSON."),
        click.option("--scale", default=0.01, show_default=True, help="Scale factor of TPC-H; 1 is 1 GB."),
        click.option("--batches", type=click.IntRange(0), help="How many batches; all if not given."),
        click.option("--strategy", type=click.Choice(STRATEGIES), default="auto", help="fivm_strategy."),
        click.option("--engine", type=click.Choice(ENGINES), default="duckdb", show_default=True),
    ):
        command = option(command)
    return command


def run_command(
    engine: str,
    strategy: str,
    make_suites: Callable[[], Sequence[Suite]],
    report: Path | None,
    extra: tuple[str, Extra] | None = None,
) -> int:
    """Run suites with progress, print the results; the exit code."""
    progress = Progress()
    progress.line("generating tables and batches")
    suites = make_suites()
    results: list[Followed] = []
    with tempfile.TemporaryDirectory(prefix="fivm-queries-") as directory:
        open_workbench = opener(engine, Path(directory))
        for suite in suites:
            progress.heading(f"{suite.name}: {len(suite.queries)} queries, {len(suite.batches)} batches")
            with closing(open_workbench()) as workbench, progress.console.status("") as status:
                results += run_suite(suite, workbench, progress.line, status.update, strategy)
    code = print_results(progress.console, results, extra)
    if report is not None:
        write_report(report, results)
    return code


def opener(engine: str, directory: Path) -> OpenWorkbench:
    """How to open a workbench on an engine; what it writes is below ``directory``.

    Spark has its own settings: those of tests, for tables of a few rows, compile nothing and use one core.
    """
    if engine == "duckdb":
        return DuckDbWorkbench
    from fivm_dbt.testing.spark_workbench import spark_workbenches

    return spark_workbenches(directory, settings={})
