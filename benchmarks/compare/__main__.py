"""``make bench``: refreshes by every way beside what users would do instead, in one run on one machine.

Models are over the tables of TPC-H, and over flights. After each change each of them is brought up to date, in turns,
and compared with the table that dbt would have computed anew. A ratio is that to the seconds of this table, after the
same change. What was measured can be shown again without another run (``--from``).
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from benchmarks.compare.docs import write_docs
from benchmarks.compare.measured import Results
from benchmarks.compare.page import write_page
from benchmarks.compare.report import summary
from benchmarks.compare.room import DATA_GB, WAY_GB
from benchmarks.compare.run import run
from benchmarks.compare.wanted import ALL, LARGE, QUICK, Wanted
from benchmarks.compare.ways import WAYS


@click.command(
    epilog="Exits with 1 if a row differs that must not, or a way failed, whatever the bars say. "
    f"For each scale factor a run needs some {DATA_GB:g} GB of disk, and {WAY_GB:g} for each way, among temporary "
    "files; scale factor 10 needs 12 GB of memory for Java, on a machine of 16."
)
@click.option(
    "--quick", "size", flag_value="quick", help="Five queries, some changes and ways at a tenth of the scale."
)
@click.option(
    "--large",
    "size",
    flag_value="large",
    help="Four queries and two changes at scale factor 10, three rounds.",
)
@click.option("--scale", type=float, help="Scale factor; 1, of six million lineitems, unless told otherwise.")
@click.option("--query", "queries", multiple=True, help="Only queries of this name.")
@click.option("--change", "changes", multiple=True, help="Only changes of this name, as 'recent 1 %'.")
@click.option(
    "--way", "ways", multiple=True, type=click.Choice(WAYS[1:]), help="Only these ways, beside 'table'."
)
@click.option(
    "--rounds", type=click.IntRange(1), help="How often all changes are made; once unless told otherwise."
)
@click.option("--memory", help="Of the Java process, as 6g.")
@click.option("--report", type=click.Path(path_type=Path), help="Write the figures as JSON too.")
@click.option(
    "--page", type=click.Path(path_type=Path, file_okay=False), help="Write index.html with plots here."
)
@click.option(
    "--docs",
    type=click.Path(path_type=Path, exists=True),
    help="Write the tables of this page, by its comments.",
)
@click.option(
    "--from",
    "earlier",
    multiple=True,
    type=click.Path(path_type=Path, exists=True),
    help="Run nothing: show such a report again, or several of other queries as one.",
)
def main(
    size: str | None,
    report: Path | None,
    page: Path | None,
    docs: Path | None,
    earlier: tuple[Path, ...],
    **chosen: Any,
) -> None:
    """Compare ways to keep queries up to date."""
    try:
        results = Results.together([Results.read(path) for path in earlier]) if earlier else None
        wanted = _wanted(size, chosen)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if results is None:
        results = run(wanted, lambda text: click.echo(text, err=True), report)
    if page is not None:
        click.echo(f"wrote {write_page(page, results)}", err=True)
    if docs is not None:
        write_docs(docs, results)
    summary(results)
    if results.failures or any(m.differing for m in results.measured):
        raise SystemExit(1)


def _wanted(size: str | None, chosen: dict[str, Any]) -> Wanted:
    """What belongs to a size, and what was chosen otherwise."""
    usual = {None: ALL, "quick": QUICK, "large": LARGE}[size]
    return replace(usual, **{name: value for name, value in chosen.items() if value})


if __name__ == "__main__":
    main()
