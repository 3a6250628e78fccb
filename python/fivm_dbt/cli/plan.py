"""``fivm plan`` tells what the next run does."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from fivm_dbt.cli.group import DIRECTORY, EXIT_FINDINGS, errors_shown

_COLOURS = {
    "refresh": "green",
    "no change": "green",
    "rebuild": "yellow",
    "recompute": "yellow",
    "refused": "red",
}


@click.command()
@click.option("--project-dir", type=DIRECTORY, default=".", show_default=True, help="The dbt project.")
@click.option("--profiles-dir", type=DIRECTORY, help="Where profiles.yml is, as for dbt.")
@click.option("--target", help="Target of the profile, as for dbt.")
@click.option("-s", "--select", multiple=True, help="Which models, as for dbt run; may be repeated.")
@click.option("--exclude", multiple=True, help="Which ones not, as for dbt run; may be repeated.")
@click.option("--full-refresh", is_flag=True, help="What dbt run --full-refresh would do.")
@click.option("--offline", is_flag=True, help="Ask no database: what dbt's manifest can tell.")
@click.option("--strict", is_flag=True, help="Exit code 1 for a rebuild too.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@errors_shown
def plan(
    project_dir: Path,
    profiles_dir: Path | None,
    target: str | None,
    select: tuple[str, ...],
    exclude: tuple[str, ...],
    full_refresh: bool,
    offline: bool,
    strict: bool,
    form: str,
) -> None:
    """Tell what the next dbt run does, and run nothing.

    Of each fivm model: whether it is built, refreshed (from which changes), rebuilt, recomputed or refused, and why;
    its inner views; what is read in full (marked with !); and seconds, as the refreshes before took. The run itself
    decides this, and is stopped before it writes.

    With --offline no database is asked. Then nobody knows whether a model is built or refreshed. Models that
    cannot be maintained are found all the same, and inputs need a data_type for their columns.

    \b
    Exit code 0: all is well; 1: a model is refused (with --strict: or rebuilt); 2: an error.

    \b
    Examples:
      fivm plan
      fivm plan --select "marts+ tag:daily" --exclude tag:slow
      fivm plan --offline --format json
      fivm plan --strict || echo "this change rebuilds a model"
    """
    from fivm_dbt.bridge.commands import Project, next_runs
    from fivm_dbt.operations.next_run import text_of

    runs = next_runs(
        Project(project_dir, profiles_dir, target),
        select=select,
        exclude=exclude,
        full_refresh=full_refresh,
        is_offline=offline,
    )
    if form == "json":
        click.echo(json.dumps([run.as_dict() for run in runs], indent=2))
    else:
        for line in text_of(runs, lambda does: click.style(does, fg=_COLOURS.get(does))):
            click.echo(line)
    bad = {"refused", "rebuild"} if strict else {"refused"}
    sys.exit(EXIT_FINDINGS if any(run.does in bad for run in runs) else 0)
