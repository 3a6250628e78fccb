"""Paths of growing length over a graph under batches of edges: ``python -m benchmarks.paths [--lengths 4,8,20]``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from benchmarks.queries.command import ENGINES, run_command
from benchmarks.queries.graph import EDGES, path_query, paths_suite
from fivm_dbt.catalog import Catalog, Relation
from fivm_dbt.config import load_config
from fivm_dbt.plan.planner import ModelRequest, plan_model
from fivm_dbt.testing.replay_files import STRATEGIES


def _lengths(context: click.Context, option: click.Parameter, text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise click.BadParameter(f"{text}: numbers with commas between them are expected") from None


@click.command()
@click.option("--lengths", default="4,8,20", show_default=True, callback=_lengths, help="Edges of a path.")
@click.option(
    "--edges", default=10_000, show_default=True, type=click.IntRange(2), help="Edges of the graph."
)
@click.option("--changes", default=1_000, show_default=True, type=click.IntRange(2), help="Edges per batch.")
@click.option("--batches", default=3, show_default=True, type=click.IntRange(1), help="How many batches.")
@click.option("--strategy", type=click.Choice(STRATEGIES), default="factorized", show_default=True)
@click.option("--engine", type=click.Choice(ENGINES), default="duckdb", show_default=True)
@click.option("--report", type=click.Path(path_type=Path), help="Write everything as JSON.")
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
    views = {path_query(n).name: f"{_inner_views(n, strategy)} inner views" for n in lengths}
    suite = paths_suite(lengths, edges, changes, batches)
    sys.exit(run_command(engine, strategy, lambda: [suite], report, ("kept", views.__getitem__)))


def _inner_views(length: int, strategy: str) -> int:
    catalog = Catalog.of([Relation(EDGES.name, EDGES.columns)])
    config = load_config({"fivm_strategy": strategy})
    return len(plan_model(ModelRequest("paths", path_query(length).sql, catalog, config)).helpers)


if __name__ == "__main__":
    main()
