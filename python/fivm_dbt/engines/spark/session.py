"""A small local Spark with Delta serves ``fivm replay`` and tests."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from fivm_dbt.engines.spark.delta_lake.jars import delta_jars, find_java
from fivm_dbt.engines.spark.delta_lake.names import LOG_TASKS, SESSION_CONFIG

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_SHUFFLE = "spark.sql.shuffle.partitions"

_SMALL = {
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
    # The default of 50 costs seconds for every MERGE on a small machine.
    LOG_TASKS: "1",
    # Delta's own queries are many and alike: compiled once, and kept by Spark and by Java.
    "spark.sql.codegen.cache.maxEntries": "5000",
    # Each hash table, of a broadcast or an aggregate, takes a page at once: 64 MB of this memory by default, so
    # that statements over ten rows fill the heap, and every second one waits half a second for a collection.
    "spark.buffer.pageSize": "1m",
}
"""For small data on a small machine."""

DEFAULTS: Mapping[str, str | None] = dict.fromkeys((_SHUFFLE, *_SMALL))
"""Settings with which a session is as dbt-spark's is, where nobody has set anything."""


def local_config(directory: Path, *, cores: int = 2) -> dict[str, str]:
    """Spark settings for small data on one machine: few partitions, tables in ``directory``."""
    return {
        **SESSION_CONFIG,
        "spark.master": f"local[{cores}]",
        "spark.app.name": "fivm",
        "spark.jars": ",".join(str(jar) for jar in delta_jars()),
        # Tables live as long as the process; no metastore has to be started.
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
        # What dbt-spark's session method forces too.
        "spark.sql.ansi.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        **_SMALL,
        _SHUFFLE: str(cores),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Metrics of one refresh are read back after it; other threads' executions must not push them out.
        "spark.sql.ui.retainedExecutions": "2000",
        "spark.driver.memory": "2g",
        # A heap and a space for classes that grow from little are collected wholly each time that they do.
        "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -Xms2g -XX:MetaspaceSize=256m "
        f"-XX:ReservedCodeCacheSize=512m {_logging(directory)}",
    }


def local_session(
    directory: Path, *, cores: int = 2, settings: Mapping[str, str | None] | None = None
) -> SparkSession:
    """A Spark session with Delta whose tables live in ``directory``.

    ``settings`` go before our own; None leaves one to Spark. Raises FIVM501, FIVM503 or FIVM505.
    """
    find_java()
    directory.mkdir(parents=True, exist_ok=True)
    config = {**local_config(directory, cores=cores), **(settings or {})}
    from pyspark.sql import SparkSession

    builder = SparkSession.builder
    for key, value in config.items():
        if value is not None:
            builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    silence_query_contexts()
    return session


def _logging(directory: Path) -> str:
    """JVM option for a log configuration of our own: errors only."""
    file = directory / LOG_FILE
    file.write_text(QUIET_LOG)
    return log_option(file)


def log_option(file: Path) -> str:
    """JVM option for a log configuration."""
    return f"-Dlog4j2.configurationFile={file.resolve().as_uri()}"


def silence_query_contexts() -> None:
    """pyspark prints every failed statement as one huge line of JSON besides raising it."""
    from pyspark.logger import PySparkLogger

    PySparkLogger.getLogger("SQLQueryContextLogger").disabled = True


LOG_FILE = "log4j2.properties"

QUIET_LOG = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n
logger.tasks.name = org.apache.spark.scheduler.TaskSetManager
logger.tasks.level = off
logger.executor.name = org.apache.spark.executor.Executor
logger.executor.level = off
"""
