"""The Spark session of the demo: the one that dbt opens, so that it is configured in one place, the profile."""

from __future__ import annotations

from pyspark.sql import SparkSession

from demo.dbt_runs import dbt_debug


def open_session() -> SparkSession:
    """Let dbt connect, then join its session: there is one JVM and one session per process."""
    dbt_debug()
    return SparkSession.builder.getOrCreate()


if __name__ == "__main__":  # setting up: the first session fetches the Delta jars
    open_session().stop()
