"""``fivm error`` says what an error means."""

from __future__ import annotations

import click
from rich.console import Console
from rich.markdown import Markdown

from fivm_dbt.cli.group import errors_shown
from fivm_dbt.errors import CODES
from fivm_dbt.operations.error_pages import about
from fivm_dbt.suggest import did_you_mean


@click.command()
@click.argument("code", required=False)
@errors_shown
def error(code: str | None) -> None:
    """Say what an error means, and what to do about it.

    CODE is the first word of its message. Without it all codes are listed.

    \b
    Examples:
      fivm error FIVM105
      fivm error
    """
    if code is None:
        for known in CODES.values():
            click.echo(f"{known.number}  {known.title}")
        return
    section = about(code)
    if section is None:
        hint = did_you_mean(code, CODES) or "`fivm error` lists all codes."
        raise click.BadParameter(f"no error is called {code}; {hint}", param_hint="CODE")
    Console(width=100).print(Markdown(section))
