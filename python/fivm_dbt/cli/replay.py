"""``fivm replay`` compares models with a recompute."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import get_args

import click

from fivm_dbt.cli.group import FILE, errors_shown
from fivm_dbt.config import Inequality


@click.command()
@click.argument("files", nargs=-1, required=True, type=FILE)
@click.option("--engine", type=click.Choice(["duckdb", "spark"]), default="duckdb", show_default=True)
@click.option(
    "--strategy",
    help="Replay every model with this fivm_strategy; `all` with each in turn. "
    "`auto` chooses as if some tables were large.",
)
@click.option(
    "--result",
    type=click.Choice(["factorized"]),
    help="Keep the results of all models as factors that can be kept so.",
)
@click.option(
    "--inequality",
    type=click.Choice([way for way in get_args(Inequality) if way != "auto"]),
    help="Keep all aggregates that are correlated by an inequality in this way, where it applies.",
)
@click.option(
    "--refresh",
    type=click.Choice(["lazy"]),
    help="Apply changes at every second step and the last, and see that nothing moves in between.",
)
@click.option(
    "--apply",
    "way",
    type=click.Choice(["merge", "replace", "append", "all"]),
    help="Write the deltas of all models in this way; `all` in each in turn.",
)
@click.option("--strict", is_flag=True, help="A refused model or a full recompute is a failure too.")
@click.option("--report", type=click.Path(dir_okay=False, path_type=Path), help="Write the results as JSON.")
@click.option("--only", multiple=True, metavar="ID", help="Replay only this scenario; may be repeated.")
@click.option(
    "--second-oracle",
    is_flag=True,
    help="Compare with an interpreter of Spark's semantics too; it is for few rows.",
)
@errors_shown
def replay(
    files: tuple[Path, ...],
    engine: str,
    strategy: str | None,
    result: str | None,
    inequality: str | None,
    refresh: str | None,
    way: str | None,
    strict: bool,
    report: Path | None,
    only: tuple[str, ...],
    second_oracle: bool,
) -> None:
    """Compare models with a full recompute, on data of your own.

    Builds the models of scenario FILES, changes their tables step by step, and compares after each step. Each
    refresh uses the same plan and executor as `dbt run`. Exit code 1 when anything differs. docs/replay.md has the
    format of the files. The engine duckdb needs the package duckdb; spark needs Java.

    \b
    Examples:
      fivm replay scenarios.jsonl
      fivm replay mine.yml --engine spark --strict --report result.json
    """
    from fivm_dbt.testing.replay_files import replay_files
    from fivm_dbt.testing.scenario_plans import Forced

    forced = Forced(result is not None, refresh is not None, inequality, apply=way)
    sys.exit(
        replay_files(
            files,
            engine,
            strategy=strategy,
            strict=strict,
            report=report,
            only=only,
            echo=click.echo,
            forced=forced,
            interprets=second_oracle,
        )
    )
