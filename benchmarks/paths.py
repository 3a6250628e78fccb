"""Paths of growing length over a graph under batches of edges: ``python -m benchmarks.paths [--lengths 4,8,20]``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from benchmarks.queries.command import ENGINES, run_command
from benchmarks.queries.graph import EDGES, path_query, paths_suite
from benchmarks.queries.suite import Query
from fivm_dbt.catalog import Catalog, Relation
from fivm_dbt.config import load_config
from fivm_dbt.plan.planner import plan_model
from fivm_dbt.plan.request import ModelRequest
from fivm_dbt.testing.replay_files import STRATEGIES


def _lengths(context: click.Context, option: click.Parameter, text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise click.BadParameter(f"{text}: numbers with commas between them are expected") from None


def graph_options(lengths: str, edges: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The options of commands that count patterns of several lengths in a graph, with these defaults."""
    at_least_2 = click.IntRange(2)
    options = (
        click.option("--report", type=click.Path(path_type=Path), help="Write everything as JSON."),
        click.option("--engine", type=click.Choice(ENGINES), default="duckdb", show_default=True),
        click.option("--strategy", type=click.Choice(STRATEGIES), default="factorized", show_default=True),
        click.option(
            "--batches", default=3, show_default=True, type=click.IntRange(1), help="How many batches."
        ),
        click.option("--changes", default=1_000, show_default=True, type=at_least_2, help="Edges per batch."),
        click.option(
            "--edges", default=edges, show_default=True, type=at_least_2, help="Edges of the graph."
        ),
        click.option(
            "--lengths", default=lengths, show_default=True, callback=_lengths, help="Edges of a pattern."
        ),
    )

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in options:
            command = option(command)
        return command

    return decorate


@click.command()
@graph_options("4,8,20", 10_000)
def main(
    lengths: tuple[int, ...],
    edges: int,
    changes: int,
    batches: int,
    strategy: str,
    engine: str,
    report: Path | None,
) -> None:
    """Count paths after every batch, and compare each count with its full recompute. Exits with 1 if one differs."""
    views = {path_query(n).name: inner_views(path_query(n), strategy) for n in lengths}
    suite = paths_suite(lengths, edges, changes, batches)
    sys.exit(run_command(engine, strategy, lambda: [suite], report, ("kept", views.__getitem__)))


def inner_views(query: Query, strategy: str) -> str:
    """How many views are kept beside the result of a query, for people."""
    catalog = Catalog.of([Relation(EDGES.name, EDGES.columns)])
    config = load_config({"fivm_strategy": strategy})
    return f"{len(plan_model(ModelRequest('paths', query.sql, catalog, config)).helpers)} inner views"


if __name__ == "__main__":
    main()
