"""What Delta's objects say about tables is what the statements say."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from fivm_dbt.engines.spark.delta_lake.log import DeltaLogs
from fivm_dbt.engines.spark.engine import SparkEngine, on_session
from fivm_dbt.spark.formats import MissingRelation, NotVersioned

pytestmark = pytest.mark.spark

FEED = "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
COMMITS = (
    f"CREATE TABLE logs.t (k INT, p INT) USING DELTA PARTITIONED BY (p) {FEED}",
    "INSERT INTO logs.t VALUES (1, 1), (2, 2)",
    "INSERT INTO logs.t VALUES (3, NULL)",
    "UPDATE logs.t SET k = 4 WHERE k = 1",
    "DELETE FROM logs.t WHERE k = 2",
    "MERGE INTO logs.t AS t USING (SELECT 9 AS k, 9 AS p) AS s ON t.k = s.k WHEN NOT MATCHED THEN INSERT *",
    "INSERT INTO logs.t REPLACE WHERE p = 1 SELECT 7, 1",
    "INSERT OVERWRITE logs.t VALUES (5, 1), (6, 2)",
    "OPTIMIZE logs.t",
    "ALTER TABLE logs.t ADD COLUMNS (v STRING)",
    "ALTER TABLE logs.t SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'false')",
    "COMMENT ON TABLE logs.t IS 'a table'",
    "RESTORE TABLE logs.t TO VERSION AS OF 3",
    "TRUNCATE TABLE logs.t",
    "CREATE OR REPLACE TABLE logs.t USING DELTA PARTITIONED BY (p) AS SELECT 1 AS k, 2 AS p",
)


class Both:
    """The engine with objects and the one with statements alone."""

    def __init__(self, session: SparkSession) -> None:
        self.session = session
        self.logs = DeltaLogs.of(session)
        self.statements = SparkEngine(on_session(session))

    def agree(self, relation: str) -> None:
        """Each question about the table has an answer without a statement, which is that of the statement."""
        newest = self.statements.commits(relation, None)[0].version
        for since in (None, 0, newest // 2, newest, newest + 2) if newest > 9 else (None, 0, newest + 2):
            assert self.logs.commits(relation, since) == self.statements.commits(relation, since), since
        assert self.logs.has_change_feed(relation) is self.statements.has_change_feed(relation)
        assert self.logs.size(relation) == self.statements.size(relation)
        assert self.logs.exists(relation) is self.statements.exists(relation) is True

    def run(self, *statements: str) -> None:
        for statement in statements:
            self.session.sql(statement).collect()


@pytest.fixture(scope="module")
def both(spark: SparkSession) -> Iterator[Both]:
    both = Both(spark)
    both.run("CREATE SCHEMA logs")
    yield both
    both.run("DROP SCHEMA logs CASCADE")


@pytest.fixture(scope="module")
def history(both: Both) -> str:
    both.run(*COMMITS)
    return "logs.t"


def test_rows_of_the_files_that_a_commit_has_added(both: Both) -> None:
    both.run(
        "CREATE TABLE logs.placed USING DELTA PARTITIONED BY (v, p) AS "
        "SELECT k, if(k % 3 = 0, 'a', 'b\"') AS v, if(k = 7, NULL, k % 2) AS p FROM VALUES "
        + ", ".join(f"({k})" for k in range(9))
        + " AS t(k)"
    )
    counted = both.session.sql(
        "SELECT v, CAST(p AS STRING), count(*) FROM logs.placed GROUP BY ALL"
    ).collect()

    def found() -> Counter[tuple[str | None, ...]]:
        rows: Counter[tuple[str | None, ...]] = Counter()
        for file in both.logs.written("logs.placed") or ():
            rows[file.place["v"], file.place["p"]] += file.rows
        return rows

    assert found() == {(v, p): n for v, p, n in counted}
    both.run("INSERT INTO logs.placed VALUES (10, 'a', 0), (11, 'a', 0)")
    assert found() == {("a", "0"): 2}
    both.run("ALTER TABLE logs.placed SET TBLPROPERTIES ('x' = 'y')")
    assert both.logs.written("logs.placed") == ()
    both.run(
        "SET spark.databricks.delta.stats.collect = false", "INSERT INTO logs.placed VALUES (12, 'a', 0)"
    )
    both.run("RESET spark.databricks.delta.stats.collect")
    assert both.logs.written("logs.placed") is None
    assert both.statements.written("logs.placed") is None


def test_every_kind_of_commit(both: Both, history: str) -> None:
    both.agree(history)
    both.agree("`LOGS`.T")
    found = both.logs.commits(history, 0)
    assert found is not None
    assert len({commit.operation for commit in found}) >= 10


def test_without_change_feed_and_with(both: Both) -> None:
    both.run(
        "CREATE TABLE logs.silent (k INT) USING DELTA", f"CREATE TABLE logs.fed (k INT) USING DELTA {FEED}"
    )
    assert both.logs.has_change_feed("logs.silent") is False
    assert both.logs.has_change_feed("logs.fed") is True
    both.agree("logs.silent")
    both.agree("logs.fed")


def test_times_in_the_commits(both: Both) -> None:
    """From its third version on, so that the history mixes times of files and times in commits."""
    both.run(
        "CREATE TABLE logs.dated (k INT) USING DELTA",
        "INSERT INTO logs.dated VALUES (1)",
        "ALTER TABLE logs.dated SET TBLPROPERTIES ('delta.enableInCommitTimestamps' = 'true')",
        "INSERT INTO logs.dated VALUES (2)",
    )
    both.agree("logs.dated")


@pytest.mark.long
def test_clones(both: Both, history: str) -> None:
    both.run(f"CREATE TABLE logs.clone SHALLOW CLONE {history}", "INSERT INTO logs.clone VALUES (8, 8)")
    both.agree("logs.clone")


def test_clocks_that_go_back(both: Both) -> None:
    """A commit whose file is older than the one before is dated after it, as far as both are read."""
    both.run(
        "CREATE TABLE logs.late (k INT) USING DELTA",
        *(f"INSERT INTO logs.late VALUES ({k})" for k in range(4)),
    )
    for version, time in ((2, 1_600_000_000), (3, 1_600_000_000), (4, 1_500_000_000)):
        os.utime(_log(both, "logs.late") / f"{version:020}.json", (time, time))
    both.agree("logs.late")


@pytest.mark.long
def test_cleaned_logs(both: Both) -> None:
    both.run(
        "CREATE TABLE logs.cleaned (k INT) USING DELTA TBLPROPERTIES ('delta.checkpointInterval' = '2')",
        *(f"INSERT INTO logs.cleaned VALUES ({k})" for k in range(6)),
    )
    for version in range(4):
        (_log(both, "logs.cleaned") / f"{version:020}.json").unlink()
    both.agree("logs.cleaned")


def test_dropped_and_created_anew(both: Both) -> None:
    both.run("CREATE TABLE logs.again USING DELTA AS SELECT 1 AS k", "INSERT INTO logs.again VALUES (2)")
    both.agree("logs.again")
    both.run("DROP TABLE logs.again")
    assert both.logs.exists("logs.again") is False
    assert both.logs.commits("logs.again", None) is None
    both.run("CREATE TABLE logs.again USING DELTA AS SELECT 1 AS other")
    both.agree("logs.again")


def test_names(both: Both) -> None:
    both.run("CREATE TABLE logs.`select` USING DELTA AS SELECT 1 AS k")
    both.agree("logs.`select`")
    both.run("USE logs")
    try:
        both.run("CREATE TABLE here USING DELTA AS SELECT 1 AS k")
        both.agree("here")
        both.run("CREATE TEMPORARY VIEW here AS SELECT 2 AS k")
        assert both.logs.commits("here", None) is None
        assert both.logs.exists("here") is None
        both.run("DROP VIEW here")
    finally:
        both.run("USE default")


def test_what_has_no_log(both: Both, spark: SparkSession) -> None:
    """The statements say why."""
    both.run(
        "CREATE TABLE logs.parquet USING PARQUET AS SELECT 1 AS a", "CREATE VIEW logs.seen AS SELECT 1 AS a"
    )
    engine = SparkEngine.of_session(spark)
    path = _log(both, "logs.fed").parent
    others = ("logs.parquet", "logs.seen", "logs.none", "nowhere.none", "no name", f"delta.`{path}`")
    for other in (*others, "spark_catalog.logs.fed"):
        assert both.logs.commits(other, None) is None
        assert both.logs.size(other) is None
        assert both.logs.has_change_feed(other) is None
    for missing in ("logs.none", "nowhere.none"):
        assert engine.exists(missing) is False
        with pytest.raises(MissingRelation):
            engine.commits(missing, None)
    for unversioned in ("logs.parquet", "logs.seen"):
        assert engine.exists(unversioned) is True
        with pytest.raises(NotVersioned):
            engine.commits(unversioned, None)
    for same in (f"delta.`{path}`", "spark_catalog.logs.fed"):
        assert engine.commits(same, None) == engine.commits("logs.fed", None)


def test_texts_of_views(both: Both, history: str) -> None:
    query = f"SELECT k,\n  count(*) AS `n`\nFROM {history}\nWHERE 'a  b' <> 'c' GROUP BY k"
    both.run(f"CREATE VIEW logs.shown AS {query}")
    for relation, text in (("logs.shown", query), ("logs.shown", query + " "), ("logs.shown", "SELECT 1")):
        assert both.logs.is_view_of(relation, text) is both.statements.is_view_of(relation, text)
    assert both.logs.is_view_of("logs.shown", query) is True
    for other in (history, "logs.none", "nowhere.none"):
        assert both.logs.is_view_of(other, query) is both.statements.is_view_of(other, query) is False


def test_properties_of_views(both: Both, history: str) -> None:
    """Also such that Spark does not show, since they look like secrets."""
    both.run(
        f"CREATE VIEW logs.hourly__v TBLPROPERTIES ('fivm.root' = 'logs.hourly__fivm_state') AS SELECT * FROM {history}"
    )
    own = SparkEngine.of_session(both.session)
    for relation, expected in (
        ("logs.hourly__v", "logs.hourly__fivm_state"),
        (history, None),
        ("logs.nothing", None),
    ):
        assert own.view_property(relation, "fivm.root") == expected
    assert both.statements.view_property("logs.hourly__v", "other") is None
    assert both.statements.view_property(history, "fivm.root") is None
    both.run("DROP VIEW logs.hourly__v")


def test_settings(both: Both) -> None:
    own = SparkEngine.of_session(both.session)
    for key in ("spark.sql.session.timeZone", "spark.sql.ansi.enabled", "spark.sql.timestampType"):
        assert own.setting(key) == both.statements.setting(key)


def test_other_sessions_are_not_asked(spark: SparkSession) -> None:
    assert DeltaLogs.of(None).exists("logs.t") is None

    class Connect:
        """A session without objects in this process."""

    assert DeltaLogs.of(Connect()).exists("logs.t") is None  # type: ignore[arg-type]


def _log(both: Both, table: str) -> Path:
    location = both.session.sql(f"DESCRIBE DETAIL {table}").collect()[0].location
    return Path(str(location).removeprefix("file:")) / "_delta_log"
