"""TPC-H's queries kept up to date through a stream of changes: ``python -m benchmarks.tpch [--queries 1,3,5]``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from benchmarks.queries.command import common_options, run_command
from benchmarks.queries.tpch_suite import NUMBERS, tpch_suite


def _numbers(context: click.Context, option: click.Parameter, text: str | None) -> tuple[int, ...]:
    if text is None:
        return NUMBERS
    try:
        found = tuple(int(part) for part in text.split(","))
    except ValueError:
        raise click.BadParameter(f"{text} is not a list of numbers, such as 1,3,5") from None
    if not set(found) <= set(NUMBERS):
        raise click.BadParameter(f"the queries are 1 to {NUMBERS[-1]}")
    return found


@click.command()
@click.option("--queries", "numbers", callback=_numbers, metavar="1,3,5", help="Only these queries.")
@common_options
def main(
    numbers: tuple[int, ...],
    engine: str,
    strategy: str,
    batches: int | None,
    scale: float,
    report: Path | None,
) -> None:
    """Refresh TPC-H's 22 queries after every batch of changes, and compare each with its full recompute.

    Exits with 1 if a query differs or breaks. A refused query is shown with its code.
    """
    sys.exit(run_command(engine, strategy, lambda: [tpch_suite(numbers, batches, scale)], report))


if __name__ == "__main__":
    main()
