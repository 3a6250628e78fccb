"""Shared by all tests: one Spark session for each process, and nothing collected that the run leaves out."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cached_statements import skip_statement_checks
from fixtures.left_out import LeftOut
from fixtures.two_units import TwoUnits, write_down

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# Trees of SQL are many small objects without circles: to look for garbage after each seven hundred takes a third of
# the time of tests without Java.
gc.set_threshold(200_000, 20, 100)


LEFT_OUT = pytest.StashKey[LeftOut]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[LEFT_OUT] = LeftOut.by(config.getoption("markexpr"))


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector: pytest.Collector, obj: object) -> list[pytest.Item] | None:
    """No items of what the run leaves out: two thirds of all tests are long."""
    left_out = collector.config.stash[LEFT_OUT]
    return [] if left_out.has(collector) or left_out.all_of(obj) else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    write_down(session.config, session.items)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> TwoUnits | None:
    return TwoUnits(config, log) if config.getoption("dist") == "loadgroup" else None


MOST_SECONDS = 15.0
"""Of the processor, for a test that every run takes and that needs no Java: what is longer is marked.

Five are what a test should take. Machines differ, and so does what runs beside."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    before = time.process_time()
    yield
    seconds = time.process_time() - before
    if seconds > MOST_SECONDS and not any(map(item.get_closest_marker, ("spark", "more", "long"))):
        pytest.fail(f"{seconds:.1f} s of the processor: take less, or mark it as more or long", pytrace=False)


JAVA_OPTIONS = "spark.driver.extraJavaOptions"
QUICK_JAVA = "-XX:TieredStopAtLevel=1"
"""Thousands of statements over ten rows each: what Java's second compiler takes for them they never give back."""


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Local Spark with Delta. Without Java its tests fail, with FIVM501: a skipped test proves nothing."""
    from fivm_dbt.engines.spark.session import local_config, local_session

    directory = tmp_path_factory.mktemp("spark")
    options = local_config(directory)[JAVA_OPTIONS]
    session = local_session(directory, settings={JAVA_OPTIONS: f"{options} {QUICK_JAVA}"})
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
