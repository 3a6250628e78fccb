"""Attack the one table that holds a model's state, and measure it: ``python -m benchmarks.one_state_table [CHECK...]``.

Statements are written by hand: the evidence of ADR 0028, beside which the product's own refreshes can be measured. Each
check prints what it found and its seconds; one that does not find what must be makes the exit code 1.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import click

from benchmarks.one_state_table import costs, folds, races, ranges, versions
from benchmarks.one_state_table.bench import Bench, Check
from fivm_dbt.engines.spark.session import local_session

CHECKS: dict[str, Check] = {
    "races": races.races,
    "zombies": races.zombies,
    "restored": races.restored,
    "analysed": races.analysed,
    "cached": races.cached,
    "holes": races.holes,
    "crowd": races.crowd,
    "folds": folds.folds,
    "partly": folds.partly,
    "merges": folds.merges,
    "own_version": versions.own_version,
    "feed": versions.feed,
    "others": versions.others,
    "rebuilds": versions.rebuilds,
    "encoding": ranges.encoding,
    "appends": costs.appends,
    "heads": costs.heads,
    "wide": costs.wide,
}

_SLOTS = {"spark.master": "local[8]"}
"""Who waits at a gate takes the slots of his tasks, and others must go on."""


@click.command(epilog=f"Checks: {', '.join(CHECKS)}.")
@click.argument("names", nargs=-1, type=click.Choice(list(CHECKS)), metavar="[CHECK]...")
@click.option("--rounds", default=4, show_default=True, type=click.IntRange(1), help="How often to measure.")
@click.option("--rows", default=1_000_000, show_default=True, help="Of the large helper.")
@click.option(
    "--conf", "settings", multiple=True, metavar="KEY=VALUE", help="A setting of the Spark session."
)
def main(names: tuple[str, ...], rounds: int, rows: int, settings: tuple[str, ...]) -> None:
    """Run the checks, all if none is named. Exits with 1 if one finds what must not be."""
    failed = 0
    with tempfile.TemporaryDirectory() as directory:
        session = local_session(
            Path(directory), settings={**_SLOTS, **dict(s.split("=", 1) for s in settings)}
        )
        try:
            bench = Bench(session, Path(directory), rounds=rounds, rows=rows)
            for name in names or CHECKS:
                failed += _run(name, bench)
        finally:
            session.stop()
    raise SystemExit(1 if failed else 0)


def _run(name: str, bench: Bench) -> int:
    started, failed = time.perf_counter(), 0
    for finding in CHECKS[name](bench):
        click.echo(f"{'pass' if finding.ok else 'FAIL'}  {name}: {finding.text}")
        failed += not finding.ok
    seconds = time.perf_counter() - started
    click.echo(f"{'FAIL' if failed else 'pass'}  {name} in {seconds:.1f} s")
    return failed


if __name__ == "__main__":
    main()
