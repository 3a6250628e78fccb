"""The Spark session of a project: the one that dbt opens, so that it is configured in one place, the profile."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from demo.dbt_runs import DEMO, DbtProject


def open_session(project: DbtProject) -> SparkSession:
    """Let dbt connect, then join its session: there is one JVM and one session per process."""
    project.logs.mkdir(parents=True, exist_ok=True)
    with _errors_to_a_file(project.logs / "jvm.log"):
        project.debug()
    # pyspark prints every failed analysis, also of a statement that only asks whether a table exists.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    return SparkSession.builder.getOrCreate()


@contextmanager
def _errors_to_a_file(path: Path) -> Iterator[None]:
    """The JVM inherits the standard error of this moment, and is talkative: let it talk to a file."""
    sys.stderr.flush()
    terminal = os.dup(sys.stderr.fileno())
    with open(path, "w") as log:
        os.dup2(log.fileno(), sys.stderr.fileno())
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(terminal, sys.stderr.fileno())
        os.close(terminal)


if __name__ == "__main__":  # setting up: the first session fetches the Delta jars
    open_session(DEMO).stop()
