"""Triangles and longer cycles of a graph with hubs under batches of edges: ``python -m benchmarks.cycles``.

Shows how large the states of a view tree with indicator projections are beside the pairs of edges that meet, which a
join of two relations after the other goes through.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from benchmarks.paths import graph_options, inner_views
from benchmarks.queries.command import run_command
from benchmarks.queries.graph import cycle_query, cycles_suite, pairs


@click.command()
@graph_options("3,4", 100_000)
@click.option("--skew", default=3.0, show_default=True, help="How much larger some nodes are than others.")
def main(
    lengths: tuple[int, ...],
    edges: int,
    changes: int,
    batches: int,
    strategy: str,
    engine: str,
    skew: float,
    report: Path | None,
) -> None:
    """Count cycles after every batch, and compare each count with its full recompute. Exits with 1 if one differs."""
    views = {cycle_query(n).name: inner_views(cycle_query(n), strategy) for n in lengths}
    suite = cycles_suite(lengths, edges, changes, batches, skew)
    rows = suite.contents["edges"]
    assert not isinstance(rows, Path)
    click.echo(f"{pairs(rows):,} pairs of {len(rows):,} edges meet")
    sys.exit(run_command(engine, strategy, lambda: [suite], report, ("kept", views.__getitem__)))


if __name__ == "__main__":
    main()
