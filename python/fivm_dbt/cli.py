"""The command ``fivm`` has the commands explain, plan, replay, doctor, init and jars."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Mapping
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click
from rich.console import Console
from rich.table import Table

from fivm_dbt import __version__
from fivm_dbt.config import Inequality, Pass
from fivm_dbt.errors import FivmError

if TYPE_CHECKING:
    from fivm_dbt.plan.model.plan import Plan

EXIT_FINDINGS = 1
EXIT_ERROR = 2
_DIRECTORY = click.Path(exists=True, file_okay=False, path_type=Path)
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_COLOURS = {
    "refresh": "green",
    "no change": "green",
    "rebuild": "yellow",
    "recompute": "yellow",
    "refused": "red",
}
_STYLES = {"ok": "green", "missing": "yellow", "error": "red"}


def _errors_shown(command: Callable[..., Any]) -> Callable[..., Any]:
    """Errors with a code are for reading: text on stderr and exit code 2, no traceback."""

    @wraps(command)
    def shown(*args: Any, **kwargs: Any) -> Any:
        try:
            return command(*args, **kwargs)
        except FivmError as error:
            click.echo(str(error), err=True)
            sys.exit(EXIT_ERROR)

    return shown


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="fivm")
@click.option("-v", "--verbose", count=True, help="Tell more: -v each pass, -vv the query after it.")
def main(verbose: int) -> None:
    """Keep dbt models on Spark and Delta equal to a full recompute, with work proportional to the change.

    Models are built and refreshed by `dbt run`. This command shows how they are maintained, compares them with a
    recompute on data of your own, and checks the installation. Exit code 2 is an error with a code (docs/errors.md).
    """
    level = {0: logging.WARNING, 1: logging.INFO}.get(verbose, logging.DEBUG)
    logging.basicConfig(level=logging.WARNING, format="%(name)s: %(message)s", stream=sys.stderr)
    logging.getLogger("fivm_dbt").setLevel(level)


@main.command()
@click.argument("what")
@click.option("--project-dir", type=_DIRECTORY, help="dbt project in which WHAT is a model's name.")
@click.option("--profiles-dir", type=_DIRECTORY, help="Where profiles.yml is, as for dbt.")
@click.option("--target", help="Target of the profile, as for dbt.")
@click.option("--order", type=_FILE, help="Variable order for the query of a file, in F-IVM's text format.")
@click.option("--strategy", help="The fivm_strategy for the query of a file.")
@click.option("--depth", type=int, help="The fivm_depth for the query of a file, with --strategy recursive.")
@click.option("--result", help="The fivm_result for the query of a file: listing or factorized.")
@click.option("--inequality", help="The fivm_inequality for the query of a file.")
@click.option(
    "--without",
    multiple=True,
    type=click.Choice(get_args(Pass)),
    help="Leave out a pass that makes the plan cheaper, to compare the statements; may be repeated.",
)
@click.option(
    "--rows",
    type=(str, int),
    multiple=True,
    metavar="TABLE N",
    help="Rows of a table, by which --strategy auto chooses; give it for each table.",
)
@click.option("--statements", is_flag=True, help="With the SQL of a build and of a refresh, as text.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "dot", "html", "pdf"]),
    default="text",
    show_default=True,
    help="html and pdf draw the view trees, dot is for Graphviz; pdf needs the package matplotlib.",
)
@_errors_shown
def explain(
    what: str,
    project_dir: Path | None,
    profiles_dir: Path | None,
    target: str | None,
    order: Path | None,
    strategy: str | None,
    depth: int | None,
    result: str | None,
    inequality: str | None,
    without: tuple[str, ...],
    rows: tuple[tuple[str, int], ...],
    statements: bool,
    form: str,
) -> None:
    """Show how a query is maintained.

    In words, then with its states and deltas. WHAT is a .sql file with one CREATE TABLE per input and one
    SELECT, or, with --project-dir, a model. Neither needs Java or a connection; the columns of a model's inputs
    must be declared with their data_type. (dbt run-operation fivm_explain --args '{model: NAME}' asks for them.)

    In a file with CREATE STREAM, streams change and tables are static.

    \b
    Examples:
      fivm explain query.sql
      fivm explain query.sql --statements
      fivm explain query.sql --strategy factorized --order order.txt
      fivm explain query.sql --strategy recursive --depth 2
      fivm explain query.sql --result factorized
      fivm explain query.sql --inequality ranges
      diff <(fivm explain query.sql --statements) <(fivm explain query.sql --statements --without look_ups)
      fivm explain query.sql --rows sales 80000000 --rows stores 500
      fivm explain daily_delays --project-dir . --format json
      fivm explain query.sql --strategy factorized --format dot | dot -Tsvg > query.svg
      fivm explain query.sql --strategy factorized --format html > query.html
    """
    from fivm_dbt.explain.graph import dot
    from fivm_dbt.explain.page import page
    from fivm_dbt.explain.pdf import pdf
    from fivm_dbt.explain.text import explain as as_text
    from fivm_dbt.plan.model.plan import Plan

    given = {
        "fivm_strategy": strategy,
        "fivm_depth": depth,
        "fivm_result": result,
        "fivm_inequality": inequality,
        "fivm_without": without or None,
    }
    plan = _plan(what, order, given, dict(rows), project=(project_dir, profiles_dir, target))
    formats: dict[str, Callable[[Plan], str | bytes]] = {
        "text": partial(as_text, statements=statements),
        "json": Plan.to_json,
        "dot": dot,
        "html": page,
        "pdf": pdf,
    }
    shown = formats[form](plan)
    click.echo(shown, nl=isinstance(shown, str))


def _plan(
    what: str,
    order: Path | None,
    given: Mapping[str, object],
    rows: Mapping[str, int],
    *,
    project: tuple[Path | None, Path | None, str | None],
) -> Plan:
    """The plan of a file, or of a model of a project: its directory, that of its profiles, its target."""
    from fivm_dbt.project.offline import plan_of_file

    settings = {key: value for key, value in given.items() if value is not None}
    project_dir, profiles_dir, target = project
    if project_dir is None:
        return plan_of_file(Path(what), order, settings, rows)
    if order is not None or settings or rows:
        raise click.UsageError(
            "--order, --strategy, --depth, --result, --inequality, --without and --rows are for files; a model has its "
            "own, and is measured when built"
        )
    # Only now is dbt needed.
    from fivm_dbt.bridge.commands import Project, plan_of_model

    return plan_of_model(what, Project(project_dir, profiles_dir, target))


@main.command()
@click.option("--project-dir", type=_DIRECTORY, default=".", show_default=True, help="The dbt project.")
@click.option("--profiles-dir", type=_DIRECTORY, help="Where profiles.yml is, as for dbt.")
@click.option("--target", help="Target of the profile, as for dbt.")
@click.option("-s", "--select", multiple=True, help="Which models, as for dbt run; may be repeated.")
@click.option("--exclude", multiple=True, help="Which ones not, as for dbt run; may be repeated.")
@click.option("--full-refresh", is_flag=True, help="What dbt run --full-refresh would do.")
@click.option("--offline", is_flag=True, help="Ask no database: what dbt's manifest can tell.")
@click.option("--strict", is_flag=True, help="Exit code 1 for a rebuild too.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@_errors_shown
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


@main.command()
@click.argument("files", nargs=-1, required=True, type=_FILE)
@click.option("--engine", type=click.Choice(["duckdb", "spark"]), default="duckdb", show_default=True)
@click.option(
    "--strategy",
    help="Replay every model with this fivm_strategy; `all` with each in turn. "
    "`auto` chooses as if some tables were large.",
)
@click.option(
    "--result",
    type=click.Choice(["factorized"]),
    help="Keep the results of all models as factors that can be kept so.",
)
@click.option(
    "--inequality",
    type=click.Choice([way for way in get_args(Inequality) if way != "auto"]),
    help="Keep all aggregates that are correlated by an inequality in this way, where it applies.",
)
@click.option(
    "--refresh",
    type=click.Choice(["lazy"]),
    help="Apply changes at every second step and the last, and see that nothing moves in between.",
)
@click.option(
    "--apply",
    "way",
    type=click.Choice(["merge", "replace", "append", "all"]),
    help="Write the deltas of all models in this way; `all` in each in turn.",
)
@click.option("--strict", is_flag=True, help="A refused model or a full recompute is a failure too.")
@click.option("--report", type=click.Path(dir_okay=False, path_type=Path), help="Write the results as JSON.")
@click.option("--only", multiple=True, metavar="ID", help="Replay only this scenario; may be repeated.")
@click.option(
    "--second-oracle",
    is_flag=True,
    help="Compare with an interpreter of Spark's semantics too; it is for few rows.",
)
@_errors_shown
def replay(
    files: tuple[Path, ...],
    engine: str,
    strategy: str | None,
    result: str | None,
    inequality: str | None,
    refresh: str | None,
    way: str | None,
    strict: bool,
    report: Path | None,
    only: tuple[str, ...],
    second_oracle: bool,
) -> None:
    """Compare models with a full recompute, on data of your own.

    Builds the models of scenario FILES, changes their tables step by step, and compares after each step. Each
    refresh uses the same plan and executor as `dbt run`. Exit code 1 when anything differs. docs/replay.md has the
    format of the files. The engine duckdb needs the package duckdb; spark needs Java.

    \b
    Examples:
      fivm replay scenarios.jsonl
      fivm replay mine.yml --engine spark --strict --report result.json
    """
    from fivm_dbt.testing.replay_files import replay_files
    from fivm_dbt.testing.scenario_plans import Forced

    forced = Forced(result is not None, refresh is not None, inequality, apply=way)
    sys.exit(
        replay_files(
            files,
            engine,
            strategy=strategy,
            strict=strict,
            report=report,
            only=only,
            echo=click.echo,
            forced=forced,
            interprets=second_oracle,
        )
    )


@main.command()
@click.option("--project-dir", type=_DIRECTORY, help="Check this project and its models' inputs too.")
@click.option("--profiles-dir", type=_DIRECTORY, help="Where profiles.yml is, as for dbt.")
@click.option("--target", help="Target of the profile, as for dbt.")
@_errors_shown
def doctor(project_dir: Path | None, profiles_dir: Path | None, target: str | None) -> None:
    """Say what is missing here, and what to do about it.

    Checks packages, the dbt plug-in, Java, Spark and Delta. With --project-dir also whether each input of a fivm
    model is a Delta table with a change feed. Nothing is changed. Exit code 1 when something has to be done.
    """
    from fivm_dbt.operations.doctor import check_environment, check_project

    checks = check_environment()
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


@main.command()
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path), default=".")
@click.option("--package", help="Where the dbt package fivm is: the directory of a clone, or its git URL.")
@_errors_shown
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


@main.command()
@_errors_shown
def jars() -> None:
    """Fetch Delta's jars for the installed pyspark.

    Prints their paths. The line is a value for `spark.jars`, which starts faster than `spark.jars.packages`. The jars
    are fetched once.
    """
    from fivm_dbt.engines.spark.delta_lake.jars import delta_jars

    click.echo(",".join(str(jar) for jar in delta_jars()))
