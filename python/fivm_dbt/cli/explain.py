"""``fivm explain`` shows how a query is maintained."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click

from fivm_dbt.cli.group import DIRECTORY, FILE, errors_shown
from fivm_dbt.config import Pass

if TYPE_CHECKING:
    from fivm_dbt.plan.model.plan import Plan


@click.command()
@click.argument("what")
@click.option("--project-dir", type=DIRECTORY, help="dbt project in which WHAT is a model's name.")
@click.option("--profiles-dir", type=DIRECTORY, help="Where profiles.yml is, as for dbt.")
@click.option("--target", help="Target of the profile, as for dbt.")
@click.option("--order", type=FILE, help="Variable order for the query of a file, in F-IVM's text format.")
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
@errors_shown
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
