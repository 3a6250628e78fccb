"""Shared by all tests: one Spark session for each process, because starting one costs more than a test."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cached_statements import skip_statement_checks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# Trees of SQL are many small objects without circles: to look for garbage after each seven hundred takes a third of
# the time of tests without Java.
gc.set_threshold(200_000, 20, 100)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Local Spark with Delta. Without Java its tests fail, with FIVM501: a skipped test proves nothing."""
    from fivm_dbt.engines.spark.session import local_session

    session = local_session(tmp_path_factory.mktemp("spark"))
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def _no_checks_of_builds(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """On Spark, at length and where a test says so builds check every statement of their plan: a fifth of the time."""
    if not any(request.node.get_closest_marker(run) for run in ("spark", "long")):
        skip_statement_checks(monkeypatch)


@pytest.fixture(scope="session")
def repository() -> Path:
    return Path(__file__).parent.parent
