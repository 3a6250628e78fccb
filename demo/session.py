"""The Spark session of the demo: the one that dbt opens, so that it is configured in one place, the profile."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from demo.dbt_runs import dbt_debug
from demo.paths import LOGS


def open_session() -> SparkSession:
    """Let dbt connect, then join its session: there is one JVM and one session per process."""
    LOGS.mkdir(parents=True, exist_ok=True)
    with _errors_to_a_file():
        dbt_debug()
    # pyspark prints every failed analysis, also of a statement that only asks whether a table exists.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    return SparkSession.builder.getOrCreate()


@contextmanager
def _errors_to_a_file() -> Iterator[None]:
    """The JVM inherits the standard error of this moment, and is talkative: let it talk to a file."""
    sys.stderr.flush()
    terminal = os.dup(sys.stderr.fileno())
    with open(LOGS / "jvm.log", "w") as log:
        os.dup2(log.fileno(), sys.stderr.fileno())
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(terminal, sys.stderr.fileno())
        os.close(terminal)


if __name__ == "__main__":  # setting up: the first session fetches the Delta jars
    open_session().stop()
