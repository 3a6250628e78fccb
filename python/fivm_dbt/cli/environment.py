"""``fivm doctor``, ``fivm init`` and ``fivm jars`` are about what is installed, and what is to be."""

from __future__ import annotations

import sys
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from fivm_dbt.cli.group import DIRECTORY, EXIT_FINDINGS, errors_shown

_STYLES = {"ok": "green", "missing": "yellow", "error": "red"}


@click.command()
@click.option("--project-dir", type=DIRECTORY, help="Check this project and its models' inputs too.")
@click.option("--profiles-dir", type=DIRECTORY, help="Where profiles.yml is, as for dbt.")
@click.option("--target", help="Target of the profile, as for dbt.")
@errors_shown
def doctor(project_dir: Path | None, profiles_dir: Path | None, target: str | None) -> None:
    """Say what is missing here, and what to do about it.

    Checks packages, the dbt plug-in, Java, Spark and Delta. With --project-dir also whether each input of a fivm
    model is a Delta table with a change feed. Nothing is changed. Exit code 1 when something has to be done.
    """
    from fivm_dbt.operations.doctor import check_environment, check_project
    from fivm_dbt.operations.profiles import profiles_file

    profiles = None if project_dir is None else profiles_file(project_dir, profiles_dir)
    checks = check_environment(profiles)
    if project_dir is not None:
        checks += check_project(project_dir)
    table = Table("check", "", "found", box=None, pad_edge=False)
    for check in checks:
        table.add_row(check.name, f"[{_STYLES[check.level]}]{check.level}[/]", check.found)
    Console(soft_wrap=True).print(table)
    for check in checks:
        if check.remedy:
            click.echo(f"\n{check.name}: {check.remedy}")
    healthy = all(check.level != "error" for check in checks)
    if healthy and project_dir is not None:
        from fivm_dbt.bridge.commands import Project, check_inputs

        click.echo("\ninputs of the project's models:")
        healthy = check_inputs(Project(project_dir, profiles_dir, target))
    sys.exit(0 if healthy else EXIT_FINDINGS)


@click.command()
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path), default=".")
@click.option("--package", help="Where the dbt package fivm is: the directory of a clone, or its git URL.")
@errors_shown
def init(directory: Path, package: str | None) -> None:
    """Write into DIRECTORY what a first hour with fivm needs: a dbt project, new or not.

    That is dbt_project.yml, a profile for a local Spark with the Delta jars that are fetched once, packages.yml,
    and a seed with a first model over it. A file that is there already is left as it is. No profile is written
    where dbt finds one of this name elsewhere.

    \b
    Examples:
      fivm init shop
      fivm init . --package ../fivm_dbt
    """
    from fivm_dbt.operations.init import init_project, told

    for line in told(directory, init_project(directory, package)):
        click.echo(line)


@click.command()
@errors_shown
def jars() -> None:
    """Fetch Delta's jars for the installed pyspark.

    Prints their paths. The line is a value for `spark.jars`, which starts faster than `spark.jars.packages`. The jars
    are fetched once.
    """
    from fivm_dbt.engines.spark.delta_lake.jars import delta_jars

    click.echo(",".join(str(jar) for jar in delta_jars()))
