"""The oracle: every model's own SQL run from scratch, timed, and compared with what fivm maintained."""

from __future__ import annotations

import time
from dataclasses import dataclass

from pyspark.sql import SparkSession

from demo.dbt_runs import ModelRun
from demo.differences import Differences, differences
from demo.metrics import rows_read

SCHEMA = "recomputed"

_DECEMBER = "timestamp'2013-12-01 00:00:00+00:00'"

WRITTEN_BY_HAND = {
    "hourly_departures": f"""
        select origin, count(*) as flights, count(dep_time) as departed, sum(dep_delay) as dep_delay,
            time_hour as part_timestamp
        from raw.flights where time_hour >= {_DECEMBER} group by origin, time_hour
    """,
    "delays_3h": f"""
        select origin, sum(flights) as flights, sum(dep_delay) as dep_delay,
            cast(sum(dep_delay) as double) / nullif(sum(departed), 0) as avg_dep_delay, part_timestamp
        from (
            select origin, 1L as flights, if(dep_time is null, 0L, 1L) as departed, dep_delay,
                explode(array(time_hour, time_hour + interval 1 hour, time_hour + interval 2 hours)) as part_timestamp
            from raw.flights where time_hour >= {_DECEMBER}
        )
        where part_timestamp >= {_DECEMBER} + interval 2 hours
            and part_timestamp <= (select max(time_hour) from raw.flights)
        group by origin, part_timestamp
    """,
    "daily_departures": f"""
        select origin, count(*) as flights, count(dep_time) as departed, sum(dep_delay) as dep_delay,
            date_trunc('day', time_hour) as part_timestamp
        from raw.flights
        where time_hour >= {_DECEMBER}
            and date_trunc('day', time_hour) + interval 23 hours <= (select max(time_hour) from raw.flights)
        group by origin, date_trunc('day', time_hour)
    """,
    "late_planes": """
        select tailnum, min(time_hour) as first_hour, max(time_hour) as last_hour, count(*) as departures,
            sum(dep_delay) as total_delay
        from (
            select *, position - row_number() over (
                partition by tailnum, is_late order by position) as run
            from (
                select *, dep_delay > 60 as is_late, row_number() over (
                    partition by tailnum order by time_hour, sched_dep_time, carrier, flight, dep_delay) as position
                from raw.flights
                where tailnum is not null and time_hour is not null and dep_delay is not null
            )
        )
        where is_late group by tailnum, run having count(*) >= 3
    """,
}
"""What models that Spark cannot run as they are written mean: the parts of a viewdf model, a row pattern."""


@dataclass(frozen=True)
class Recompute:
    """What a full recompute of a model took."""

    model: str
    seconds: float
    rows_read: int


def recompute(spark: SparkSession, run: ModelRun) -> Recompute:
    """Build the model as a table would be built: one statement, over the same inputs, into a Delta table."""
    spark.sql(f"create schema if not exists {SCHEMA}")
    started = time.perf_counter()
    with rows_read(spark, f"recompute {run.model}") as read:
        sql = WRITTEN_BY_HAND.get(run.model, run.compiled_sql)
        spark.sql(f"create or replace table {SCHEMA}.{run.model} using delta as {sql}")
        seconds = time.perf_counter() - started
    return Recompute(run.model, seconds, read.total)


def compare(spark: SparkSession, model: str) -> Differences:
    """The model as it is now, compared with its last recompute."""
    return differences(spark, f"{SCHEMA}.{model}", f"analytics.{model}")
