"""``make bench``: refreshes by every way beside what users would do instead, in one run on one machine.

All models are over the same tables of TPC-H. After each change each of them is brought up to date, in turns, and
compared with the table that dbt would have computed anew. A ratio is that to the seconds of this table, after the same
change.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from benchmarks.compare.queries import queries
from benchmarks.compare.report import summary
from benchmarks.compare.tables import Change, changes, load
from benchmarks.compare.ways import MODELS, WAYS, Ran, Way, way
from benchmarks.conclude import conclude
from fivm_dbt.engines.spark.session import local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUICK = ("by_orderdate", "q01", "q03", "q12")
QUICK_CHANGES = ("none", "recent 0.1 %", "recent 1 %", "customers 1 %")
"""What ``--quick`` takes."""


@dataclass(frozen=True)
class Measured:
    """One run of one way after a change, beside the recompute of the same query; ``differing`` counts for our own.

    ``wrong`` are rows that only one of the two has, of any way. ``expected`` were seconds of a refresh, and of a build.
    """

    query: str
    change: str
    round: int
    way: str
    action: str
    seconds: float
    recompute_seconds: float
    wrong: int
    expected: tuple[float, float] | None

    @property
    def ratio(self) -> float:
        return self.seconds / self.recompute_seconds

    @property
    def differing(self) -> int:
        return 0 if self.way == "incremental" else self.wrong


@click.command()
@click.option("--scale", default=1.0, show_default=True, help="Scale factor; 1 is six million lineitems.")
@click.option("--quick", is_flag=True, help="Four queries and four changes at a tenth of the scale.")
@click.option("--query", "chosen", multiple=True, help="Only queries of this name.")
@click.option("--change", "changed", multiple=True, help="Only changes of this name, as 'recent 1 %'.")
@click.option(
    "--way", "by", multiple=True, type=click.Choice(WAYS), help="Ways beside 'table'; default: fivm."
)
@click.option("--rounds", default=1, show_default=True, help="How often all changes are made.")
@click.option("--report", type=click.Path(path_type=Path), help="Write the figures as JSON too.")
def main(
    scale: float,
    quick: bool,
    chosen: tuple[str, ...],
    changed: tuple[str, ...],
    by: tuple[str, ...],
    rounds: int,
    report: Path | None,
) -> None:
    """Compare ways to keep queries up to date. Exits with 1 if one of ours differs from the recompute."""
    scale, chosen, changed = (
        (scale / 10, chosen or QUICK, changed or QUICK_CHANGES) if quick else (scale, chosen, changed)
    )
    kinds = [c for c in changes() if not changed or c.name in changed]
    measured: list[Measured] = []
    with tempfile.TemporaryDirectory() as directory:
        session = local_session(Path(directory), settings={"spark.driver.memory": "6g"})
        try:
            click.echo("loading the tables", err=True)
            load(session, scale)
            session.sql(f"CREATE SCHEMA {MODELS}")
            models = list(_built(session, chosen, by or ("fivm",)))
            for round_ in range(1, rounds + 1):
                for change in kinds:
                    measured += _after(session, models, change, round_)
        finally:
            session.stop()
    summary(measured)
    conclude(measured, report)


def _built(session: SparkSession, chosen: Sequence[str], by: Sequence[str]) -> Iterator[list[Way]]:
    """Each query by its ways, the recompute first."""
    for compared in queries():
        if chosen and compared.name not in chosen:
            continue
        ways = [w for name in ("table", *by) if (w := way(session, compared, name)) is not None]
        for each in ways:
            seconds, ran = _timed(each)
            click.echo(f"{compared.name}, {each.name}: {ran} in {seconds:.1f} s", err=True)
        yield ways


def _after(
    session: SparkSession, models: Sequence[list[Way]], change: Change, round_: int
) -> Iterator[Measured]:
    change.make(session, round_)
    for number, ways in enumerate(models):
        # Who comes first finds the tables' files cold, so it is another one each time.
        first = (number + round_) % len(ways)
        found = {each.name: (each, *_timed(each)) for each in (*ways[first:], *ways[:first])}
        reference, recompute_seconds, _ = found["table"]
        for name, (each, seconds, ran) in found.items():
            if name == "table":
                continue
            wrong = _differing(session, each.relation, reference.relation)
            one = Measured(
                each.compared.name,
                change.name,
                round_,
                name,
                action=ran.action,
                seconds=seconds,
                recompute_seconds=recompute_seconds,
                wrong=wrong,
                expected=ran.expected,
            )
            click.echo(
                f"{one.change}, {one.query}, {name}: {ran.action} {seconds:.1f} s of {recompute_seconds:.1f} s"
                + (f", {wrong} ROWS DIFFER" if wrong else ""),
                err=True,
            )
            yield one


def _timed(each: Way) -> tuple[float, Ran]:
    started = time.perf_counter()
    ran = each.run()
    return time.perf_counter() - started, ran


def _differing(session: SparkSession, one: str, other: str) -> int:
    """Rows that only one of two relations has, as bags."""
    both = (f"(SELECT * FROM {a} EXCEPT ALL SELECT * FROM {b})" for a, b in ((one, other), (other, one)))
    return int(session.sql(" UNION ALL ".join(both)).count())


if __name__ == "__main__":
    main()
