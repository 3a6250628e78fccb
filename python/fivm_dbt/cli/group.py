"""All commands share the group, kinds of options, and how errors are shown."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from fivm_dbt import __version__
from fivm_dbt.errors import FivmError

EXIT_FINDINGS = 1
EXIT_ERROR = 2
DIRECTORY = click.Path(exists=True, file_okay=False, path_type=Path)
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


def errors_shown(command: Callable[..., Any]) -> Callable[..., Any]:
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
    recompute on data of your own, and checks the installation. Exit code 2 is an error with a code, of which
    `fivm error CODE` says more.
    """
    level = {0: logging.WARNING, 1: logging.INFO}.get(verbose, logging.DEBUG)
    logging.basicConfig(level=logging.WARNING, format="%(name)s: %(message)s", stream=sys.stderr)
    logging.getLogger("fivm_dbt").setLevel(level)
