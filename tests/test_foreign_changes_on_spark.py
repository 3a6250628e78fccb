"""One model on Spark through all that others may do to its tables, with partition values that Delta would confuse."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from fivm_dbt.engines.spark.engine import SparkEngine
from fivm_dbt.plan.model.head import Note
from fixtures.models import Interrupted
from spark_bench import SparkBench
from test_protocol_holes import Zombie

pytestmark = pytest.mark.spark

SUMS = "SELECT g, count(*) AS n, sum(x) AS x FROM meddled.r GROUP BY g"
VALUES = (
    "('', 1), (NULL, 2), ('__HIVE_DEFAULT_PARTITION__', 3), ('a=b', 4), ('a/b', 5), ('50%', 6), ('é☃', 7)"
)


class Killed(Exception):
    """Thrown in place of a killed process."""


class Killing:
    """An engine that does not come back from a statement with ``word`` in it."""

    def __init__(self, engine: SparkEngine, word: str) -> None:
        self._engine = engine
        self._word = word

    def run(self, sql: str) -> None:
        if self._word in sql:
            raise Killed
        self._engine.run(sql)

    def commit(self, sql: str, note: Note) -> None:
        if self._word in sql:
            raise Killed
        self._engine.commit(sql, note)

    def __getattr__(self, name: str) -> object:
        return getattr(self._engine, name)


def test_what_others_do_to_a_models_tables(spark: SparkSession) -> None:
    created = f"CREATE TABLE r FEED AS SELECT * FROM VALUES {VALUES} AS v(g, x)"
    meta: dict[str, object] = {"fivm_partition_by": "g", "fivm_apply": "merge"}
    bench = SparkBench.create(spark, "meddled", created, SUMS, meta)
    root, view = "meddled.m__fivm_state", "meddled.m"
    assert bench.refresh().action == "built"
    assert len(bench.check()) == 7
    assert len(bench.rows(f"SHOW PARTITIONS {root}")) == 7 + 1, "and that of the head"

    # Partition values
    for apply in ("merge", "replace"):
        bench.meta["fivm_apply"] = apply
        bench.run(f"INSERT INTO r VALUES {VALUES}")
        bench.run("DELETE FROM r WHERE g = '50%'")
        assert bench.refresh().action == "refreshed"
        assert len(bench.check()) == 6
        bench.run("INSERT INTO r VALUES ('50%', 8)")

    # States
    assert bench.refresh().action == "refreshed"
    bench.run(f"OPTIMIZE {root}")
    assert bench.refresh().action == "no change"
    for change in (f"DELETE FROM {root} WHERE __fivm_count > 1", f"RESTORE TABLE {root} TO VERSION AS OF 0"):
        bench.run(change)
        report = bench.refresh()
        assert report.action == "rebuilt"
        assert report.reason is not None
        assert report.reason.startswith(f"state table {root} was changed by somebody else")
        bench.check()

    # Views
    bench.run(f"ALTER VIEW {view} AS SELECT g, count(*) AS n, 0L AS x FROM r GROUP BY g")
    report = bench.refresh()
    assert (report.action, report.reason) == (
        "no change",
        "its view was dropped or altered, and has been put back",
    )
    bench.check()
    assert bench.refresh().reason is None

    # Inputs that are gone before a refresh that was cut off is finished
    bench.run("INSERT INTO r VALUES ('new', 1)")
    with pytest.raises(Killed):
        bench.refresh(Killing(bench.engine, "INSERT INTO meddled.m__fivm_state"))
    bench.run("DROP TABLE r; CREATE TABLE r FEED AS SELECT * FROM VALUES ('', 1) AS v(g, x)")
    for number in range(9):
        bench.run(f"INSERT INTO r VALUES ('{number % 3}', {number})")
    report = bench.refresh()
    assert report.action == "rebuilt" and report.reason is not None
    assert "r was dropped and created anew" in report.reason
    bench.check()


def test_a_killed_client_whose_write_runs_on(spark: SparkSession) -> None:
    """Its statement comes too late, and raises: the rows of its change are there once."""
    created = "CREATE TABLE r FEED AS SELECT * FROM VALUES (1, 10), (2, 5) AS v(g, x)"
    sql = "SELECT g, count(*) AS n, sum(x) AS x FROM undead.r GROUP BY g"
    bench = SparkBench.create(spark, "undead", created, sql, {"fivm_apply": "merge"})
    bench.refresh()
    bench.run("INSERT INTO r VALUES (1, 1), (3, 3)")
    zombie = Zombie(bench.engine)
    try:
        bench.refresh(zombie)
    except Interrupted:
        bench.refresh(zombie)
    assert zombie.left is not None
    bench.check()
