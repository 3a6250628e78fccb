"""The session that a refresh runs in, against a real Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fivm_dbt.engines.spark.delta_lake.names import LOG_TASKS
from fivm_dbt.engines.spark.engine import SparkEngine
from fivm_dbt.engines.spark.own_session import SHUFFLE, own_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_what_decides_the_meaning_of_sql_is_copied(spark: SparkSession) -> None:
    session = spark.newSession()
    session.sql("SET TIME ZONE 'Asia/Tokyo'")
    session.sql("CREATE TEMPORARY VIEW mine AS SELECT 7 AS x")
    session.udf.register("twice", lambda x: 2 * x, "int")
    session.conf.set("spark.sql.adaptive.enabled", "true")
    session.conf.set(SHUFFLE, "200")
    copied = own_session(session)
    found = copied.sql("SELECT current_timezone(), twice(x) FROM mine").collect()
    assert [tuple(row) for row in found] == [("Asia/Tokyo", 14)]
    assert int(copied.conf.get(SHUFFLE) or 0) < 200
    assert session.conf.get(SHUFFLE) == "200", "the session itself is left alone"


def test_settings_that_somebody_has_chosen_stay(spark: SparkSession) -> None:
    session = spark.newSession()
    session.conf.set(LOG_TASKS, "17")
    session.conf.set(SHUFFLE, "200")
    session.conf.set("spark.sql.adaptive.enabled", "false")
    copied = own_session(session)
    assert (copied.conf.get(LOG_TASKS), copied.conf.get(SHUFFLE)) == ("17", "200")


def test_what_is_staged_is_not_seen_in_the_session(spark: SparkSession) -> None:
    session = spark.newSession()
    engine = SparkEngine.of_session(session)
    engine.stage("fivm_own", "SELECT 1 AS x")
    assert engine.query("SELECT x FROM fivm_own") == ((1,),)
    assert not session.catalog.tableExists("fivm_own")
    engine.unstage("fivm_own")
