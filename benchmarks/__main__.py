"""``make bench``: milliseconds of the planner, and seconds of refresh against recompute for the demo's models.

The second part reads the report that ``make demo`` leaves, so that its figures are those of one run.
"""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from benchmarks import planner

REPORT = Path(__file__).parent.parent / ".demo" / "report.json"


@click.command()
@click.option("--report", type=click.Path(path_type=Path), default=REPORT, help="The demo's report.")
def main(report: Path) -> None:
    """Print the planner's time, and what `make demo` measured."""
    planner.main()
    if not report.exists():
        click.echo(f"\nno {report}: run `make demo` first for refresh against recompute")
        return
    _print_refreshes(json.loads(report.read_text(encoding="utf-8")))


def _print_refreshes(report: dict[str, Any]) -> None:
    by_model: dict[str, list[tuple[dict[str, Any], dict[str, Any]]]] = {}
    for outcome in (o for each in report["rounds"] for o in each["outcomes"]):
        if outcome["run"]["action"] == "refreshed":
            by_model.setdefault(outcome["run"]["model"], []).append((outcome["run"], outcome["recomputed"]))
    table = Table("model", "refreshes", "median s", "recompute s", "median share of rows read", box=None)
    for name, pairs in by_model.items():
        seconds, recompute = (
            median(run["seconds"] for run, _ in pairs),
            median(again["seconds"] for _, again in pairs),
        )
        shares = [run["rows_read"] / again["rows_read"] for run, again in pairs if again["rows_read"]]
        table.add_row(name, str(len(pairs)), f"{seconds:.1f}", f"{recompute:.1f}", f"{median(shares):.2%}")
    Console().print(table)


if __name__ == "__main__":
    main()
