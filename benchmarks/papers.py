"""The multilevel IVM paper's queries kept up to date: ``python -m benchmarks.papers [--queries vwap,mst]``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from benchmarks.queries.command import common_options, run_command
from benchmarks.queries.papers_suite import IN_PAPER, papers_suites
from benchmarks.queries.servers import FULL_CHANGES, FULL_RACKS
from benchmarks.queries.suite import Suite


def _names(context: click.Context, option: click.Parameter, text: str | None) -> tuple[str, ...]:
    found = tuple(IN_PAPER) if text is None else tuple(text.lower().split(","))
    if unknown := set(found) - set(IN_PAPER):
        known = ", ".join(IN_PAPER)
        raise click.BadParameter(f"no {', '.join(sorted(unknown))} (expected some of {known})")
    return found


def _in_paper(name: str) -> str:
    known = IN_PAPER[name.removesuffix("_coalesced")]
    return f"{known.how}: {known.note}"


@click.command()
@click.option("--queries", "names", callback=_names, metavar="vwap,mst", help="Only these queries.")
@click.option("--orders", default=200, show_default=True, help="Orders on each side of the order book.")
@click.option(
    "--racks", default=50, show_default=True, help=f"Racks of 20 servers for SVL; the paper's: {FULL_RACKS}."
)
@click.option(
    "--changes",
    default=2_000,
    show_default=True,
    help=f"Changes of loads for SVL; the paper's: {FULL_CHANGES}.",
)
@common_options
def main(
    names: tuple[str, ...],
    orders: int,
    racks: int,
    changes: int,
    engine: str,
    strategy: str,
    batches: int | None,
    scale: float,
    report: Path | None,
) -> None:
    """Refresh the paper's queries after every batch of changes, and compare each with its full recompute.

    Exits with 1 if a query differs or breaks. A refused query is shown with its code, beside what the paper does.
    """

    def suites() -> tuple[Suite, ...]:
        return papers_suites(names, batches, orders=orders, racks=racks, changes=changes, scale=scale)

    sys.exit(run_command(engine, strategy, suites, report, ("in the paper", _in_paper)))


if __name__ == "__main__":
    main()
