"""Partitions that are written anew with what has changed in them as their change feed, by a transaction of Delta's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from fivm_dbt.catalog import Catalog, Relation
from fivm_dbt.config import load_config
from fivm_dbt.engines.spark.delta_lake.log import DeltaLogs, OpenedTable
from fivm_dbt.engines.spark.delta_lake.write import write
from fivm_dbt.engines.spark.engine import SparkEngine
from fivm_dbt.naming import COUNT
from fivm_dbt.plan.model.head import Note, Written
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.plan.planner import plan_model
from fivm_dbt.plan.request import ModelRequest
from fivm_dbt.refresh.decide import raised_alarm
from fivm_dbt.refresh.engine import Row
from fivm_dbt.refresh.executor import refresh
from fivm_dbt.spark.alarms import NEGATIVE
from fivm_dbt.spark.formats import FORMAT, Touched
from fivm_dbt.steps import applying, deletion_vectors

pytestmark = pytest.mark.spark

TABLE = "told.t"
QUERY = "SELECT 1 AS k, 'new' AS x, 'a' AS p UNION ALL SELECT 2, 'kept', 'a'"
TOLD = (
    f"SELECT *, CAST(NULL AS STRING) AS _change_type FROM ({QUERY}) "
    "UNION ALL SELECT 1, 'old', 'a', 'delete' UNION ALL SELECT 1, 'new', 'a', 'insert'"
)
STATEMENT = f"INSERT INTO {TABLE} REPLACE WHERE p = 'a' {QUERY}"


@pytest.fixture(scope="module")
def engine(spark: SparkSession) -> Iterator[SparkEngine]:
    spark.sql("CREATE SCHEMA told")
    yield SparkEngine.of_session(spark)
    spark.sql("DROP SCHEMA told CASCADE")


@pytest.fixture
def table(engine: SparkEngine) -> None:
    engine.run(
        f"CREATE OR REPLACE TABLE {TABLE} USING DELTA PARTITIONED BY (p) "
        "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true') AS "
        "SELECT * FROM VALUES (1, 'old', 'a'), (2, 'kept', 'a'), (3, 'other', 'b') AS v(k, x, p)"
    )


def _note(engine: SparkEngine, number: int, text: str = "told") -> Note:
    [newest] = engine.commits(TABLE, None)
    return Note(TABLE, number, text, Written(TOLD, newest.version, "p = 'a'", tells_changes=True))


@pytest.mark.usefixtures("table")
def test_the_feed_has_what_is_told(engine: SparkEngine) -> None:
    """One commit: the rows, the feed, the note, and metrics by which nobody takes it for an append."""
    engine.commit(STATEMENT, _note(engine, 5))
    [newest] = engine.commits(TABLE, None)
    assert (newest.operation, newest.note, newest.appended) == ("WRITE", "told", None)
    assert FORMAT.touched(newest) is Touched.ROWS and newest.written == 2
    assert set(engine.query(f"SELECT * FROM {TABLE}")) == {
        (1, "new", "a"),
        (2, "kept", "a"),
        (3, "other", "b"),
    }
    feed = f"SELECT k, x, p, _change_type FROM table_changes('{TABLE}', {newest.version}, {newest.version})"
    assert set(engine.query(feed)) == {(1, "old", "a", "delete"), (1, "new", "a", "insert")}
    engine.commit(STATEMENT, Note(TABLE, 5, "of the same number"))
    assert engine.commits(TABLE, None)[0].note == "told"


@pytest.mark.parametrize(
    "other",
    [
        f"INSERT INTO {TABLE} VALUES (9, 'nine', 'b')",
        f"INSERT INTO {TABLE} REPLACE WHERE p = 'b' SELECT 9 AS k, 'nine' AS x, 'b' AS p",
        f"DELETE FROM {TABLE} WHERE k = 3",
        f"RESTORE TABLE {TABLE} TO VERSION AS OF 0",
        f"CREATE OR REPLACE TABLE {TABLE} USING DELTA PARTITIONED BY (p) AS SELECT 1 AS k, 'x' AS x, 'a' AS p",
    ],
    ids=["INSERT", "REPLACE", "DELETE", "RESTORE", "CREATE"],
)
@pytest.mark.usefixtures("table")
def test_nothing_is_written_behind_another_commit(
    other: str, engine: SparkEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.run(f"INSERT INTO {TABLE} VALUES (4, 'four', 'b')")
    note, opened = _note(engine, 5), DeltaLogs.opened

    def other_first(logs: DeltaLogs, relation: str) -> OpenedTable | None:
        found = opened(logs, relation)
        engine.run(other)
        return found

    monkeypatch.setattr(DeltaLogs, "opened", other_first)
    with pytest.raises(Exception) as raised:
        engine.commit(STATEMENT, note)
    assert FORMAT.is_conflict(raised.value)
    assert not engine.query(f"SELECT * FROM {TABLE} WHERE x = 'new'")


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize(
    ("first", "where"),
    [
        ("SELECT 1", "p = 'a' AND k <= 2"),
        (f"ALTER TABLE {TABLE} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'false')", "p = 'a'"),
    ],
    ids=["rows of files", "no feed"],
)
def test_a_statement_writes_what_is_not_whole_files_or_has_no_feed(
    first: str, where: str, engine: SparkEngine
) -> None:
    """Rows that are told would be rows of the table without a feed, and a file has rows that stay."""
    engine.run(first)
    [newest] = engine.commits(TABLE, None)
    written = Written(TOLD, newest.version, where, tells_changes=True)
    note = Note(
        TABLE, 100 + newest.version, "told", written
    )  # a table that is made anew keeps the last number
    assert engine._session is not None
    assert not write(engine._session, engine._logs, engine._files, note, written)
    assert engine.commits(TABLE, None) == (newest,)
    engine.commit(f"INSERT INTO {TABLE} REPLACE WHERE {where} {QUERY}", note)
    assert set(engine.query(f"SELECT * FROM {TABLE}")) == {
        (1, "new", "a"),
        (2, "kept", "a"),
        (3, "other", "b"),
    }


@pytest.mark.parametrize("of", ["rows", "changes"])
@pytest.mark.usefixtures("table")
def test_an_alarm_leaves_everything_as_it_was(of: str, engine: SparkEngine) -> None:
    """What a query raises while it is written is the error, and the next commit has its number."""
    before = set(engine.query(f"SELECT * FROM {TABLE}"))
    [newest] = engine.commits(TABLE, None)
    raised = (
        f"CASE WHEN id = 1 THEN raise_error('{NEGATIVE} of these {of}') ELSE 1 END AS k, 'x' AS x, 'a' AS p"
    )
    kind = "CAST(NULL AS STRING)" if of == "rows" else "'insert'"
    told = f"{TOLD} UNION ALL SELECT {raised}, {kind} FROM range(2)"
    written = Written(told, newest.version, "p = 'a'", tells_changes=True)
    with pytest.raises(Exception) as error:
        engine.commit(STATEMENT, Note(TABLE, 5, "raised", written))
    assert raised_alarm(error.value) == NEGATIVE
    assert engine.commits(TABLE, None) == (newest,)
    assert set(engine.query(f"SELECT * FROM {TABLE}")) == before
    engine.commit(STATEMENT, _note(engine, 5))
    assert engine.commits(TABLE, None)[0].note == "told"


SQL = """
    SELECT o.day, c.segment, count(*) AS orders, sum(o.amount) AS total FROM told.orders o
    JOIN told.customers c ON o.customer <=> c.customer GROUP BY o.day, c.segment
"""
STEPS = (
    "INSERT INTO told.orders VALUES (50, NULL, DATE'2024-01-02', 7.50), (51, 1, NULL, NULL), (51, 1, NULL, NULL)",
    "DELETE FROM told.orders WHERE id < 10",
    "UPDATE told.customers SET segment = NULL WHERE customer = 1",
    "UPDATE told.orders SET day = DATE'2023-12-31' WHERE id IN (20, 51)",
    "DELETE FROM told.orders",
    "INSERT INTO told.orders VALUES (1, 1, DATE'2024-01-02', 7.50)",
)


def _plan(engine: SparkEngine, spark: SparkSession, **meta: object) -> Plan:
    feed = "USING DELTA TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
    spark.sql(
        f"CREATE OR REPLACE TABLE told.customers {feed} AS SELECT nullif(id, 3) AS customer, "
        "concat('s', id % 2) AS segment FROM range(4)"
    )
    spark.sql(
        f"CREATE OR REPLACE TABLE told.orders {feed} AS SELECT id, nullif(id % 4, 3) AS customer, "
        "date_add(DATE'2024-01-01', CAST(id % 5 AS INT)) AS day, CAST(id AS DECIMAL(10,2)) AS amount FROM range(40)"
    )
    names = ("told.orders", "told.customers")
    relations = [Relation(name, engine.describe(f"SELECT * FROM {name}")) for name in names]
    request = ModelRequest("told.m", SQL, Catalog.of(relations), load_config(meta), is_read=True)
    return plan_model(request, engine.describe)


@pytest.fixture(params=["anew", "deleted"])
def is_deleting(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether rows that change are deleted, whatever that costs."""
    is_deleting = bool(request.param == "deleted")
    if is_deleting:
        monkeypatch.setattr(applying, "ONE_TASK_ROWS", 0)
        monkeypatch.setattr(deletion_vectors, "DELETED_SHARE", 1e9)
        monkeypatch.setattr(deletion_vectors, "CHANGED_SHARE", 1e9)
    return is_deleting


def test_the_feed_of_a_model_that_is_read_has_its_changes_alone(
    engine: SparkEngine, spark: SparkSession, is_deleting: bool
) -> None:
    """Exact after every step, and what its readers take from its feed is what has changed of it, row by row."""
    plan = _plan(engine, spark)
    refresh(plan, engine, full_refresh=True)
    before, seen = _rows(engine, plan), 0
    for step in STEPS:
        spark.sql(step)
        report = refresh(plan, engine)
        [written] = [
            s for s in report.statements if not s.startswith(("CACHE", "CREATE TEMPORARY", "SELECT"))
        ]
        assert written.startswith(f"INSERT INTO {plan.state_relation} REPLACE WHERE")
        after = _rows(engine, plan)
        model, recompute = f"SELECT * FROM {plan.relation}", f"SELECT * FROM ({plan.sql})"
        for one, other in ((model, recompute), (recompute, model)):
            assert not engine.query(f"({one}) EXCEPT ALL ({other})")
        version = engine.commits(plan.state_relation, None)[0].version
        came, went = _told(engine, plan, version)
        assert (came, went) == (after - before, before - after)
        assert any("_metadata.row_index" in s for s in report.statements) is is_deleting
        before, seen = after, seen + 1
    assert seen == len(STEPS)
    assert _has_vectors(engine, plan) is is_deleting


def test_rows_are_deleted_until_their_partition_is_written_anew(
    engine: SparkEngine, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files stay, whoever reads them reads what is not deleted, and a MERGE goes on from there."""
    monkeypatch.setattr(applying, "ONE_TASK_ROWS", 0)
    monkeypatch.setattr(applying, "APPENDED_ROWS", 0)
    sql = "SELECT id % 997 AS k, sum(x) AS s, count(*) AS n FROM told.r GROUP BY id % 997"
    feed = "USING DELTA TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
    spark.sql(f"CREATE OR REPLACE TABLE told.r {feed} AS SELECT id, CAST(id AS DOUBLE) AS x FROM range(5000)")
    relations = [Relation("told.r", engine.describe("SELECT * FROM told.r"))]

    def plan(**meta: object) -> Plan:
        config = load_config({"fivm_fold_after": 2, "fivm_float": "approximate", **meta})
        return plan_model(ModelRequest("told.n", sql, Catalog.of(relations), config), engine.describe)

    deleting_plan, left = plan(), []
    refresh(deleting_plan, engine, full_refresh=True)
    files = _files(engine, deleting_plan)
    for number in range(4):
        spark.sql(f"UPDATE told.r SET x = x + 1 WHERE id % 997 IN ({number}, 50) OR id IS NULL")
        spark.sql(f"INSERT INTO told.r VALUES ({5000 + number}, 1), (NULL, 2)")
        refresh(deleting_plan, engine)
        _check(engine, deleting_plan)
        left.append(files <= _files(engine, deleting_plan))
    assert left == [True, True, False, False]
    assert _has_vectors(engine, deleting_plan)
    newest = engine.commits(deleting_plan.state_relation, None)[0]
    assert newest.rows_written is None, "it has not only added rows"
    spark.sql("DELETE FROM told.r WHERE id % 997 < 7")
    merging = plan(fivm_apply="merge")
    report = refresh(merging, engine)
    assert any(s.startswith("MERGE") for s in report.statements)
    _check(engine, merging)


def _check(engine: SparkEngine, plan: Plan) -> None:
    model, recompute = f"SELECT * FROM {plan.relation}", f"SELECT * FROM ({plan.sql})"
    for one, other in ((model, recompute), (recompute, model)):
        assert not engine.query(f"({one}) EXCEPT ALL ({other})")


def _files(engine: SparkEngine, plan: Plan) -> set[str]:
    """The files with rows of the root."""
    found = engine.query(
        f"SELECT DISTINCT _metadata.file_name FROM {plan.state_relation} WHERE __fivm_view <> 'tail'"
    )
    return {str(name) for (name,) in found}


def _has_vectors(engine: SparkEngine, plan: Plan) -> bool:
    key = "delta.enableDeletionVectors"
    [(_, value)] = engine.query(f"SHOW TBLPROPERTIES {plan.state_relation} ('{key}')")
    return value == "true"


def _columns(plan: Plan) -> str:
    names = plan.layout.stored_as(plan.top)
    return ", ".join(f"`{names[n]}`" for n in (*(k.name for k in plan.top.state.keys), COUNT))


def _rows(engine: SparkEngine, plan: Plan) -> Counter[Row]:
    return Counter(
        engine.query(f"SELECT {_columns(plan)} FROM {plan.state_relation} WHERE __fivm_view <> 'tail'")
    )


def _told(engine: SparkEngine, plan: Plan, version: int) -> tuple[Counter[Row], Counter[Row]]:
    """What the feed of a version says: the rows that came, and those that went."""
    feed = f"table_changes('{plan.state_relation}', {version}, {version})"
    rows = engine.query(f"SELECT {_columns(plan)}, _change_type FROM {feed} WHERE __fivm_view <> 'tail'")
    came, went = (Counter(row[:-1] for row in rows if row[-1] == kind) for kind in ("insert", "delete"))
    assert came.total() + went.total() == len(rows)
    return came, went
