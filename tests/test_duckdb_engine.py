"""The DuckDB engine: versions, change feeds, atomic writes, and Spark's meaning of what it transpiles."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest

from fivm_dbt.catalog import Column
from fivm_dbt.engines.duckdb.engine import DuckDbEngine
from fivm_dbt.engines.duckdb.unsupported import UnsupportedStatement
from fivm_dbt.spark.formats import ChangeFeedUnavailable, MissingRelation, NotVersioned, VersionUnavailable

COLUMNS = (Column.of("a", "int"), Column.of("b", "decimal(10,2)"), Column.of("s", "string"))
FIRST = [(1, Decimal("2.50"), "x"), (1, Decimal("2.50"), "x"), (None, None, None)]

MERGE = """
MERGE INTO db.state AS target USING delta AS delta
ON target.a <=> delta.a AND target.__fivm_partition IN (0, 1)
WHEN MATCHED AND target.n + delta.n = 0 THEN DELETE
WHEN MATCHED THEN UPDATE SET target.n = CASE WHEN target.n + delta.n < 0
    THEN CAST(RAISE_ERROR('below zero') AS BIGINT) ELSE target.n + delta.n END
WHEN NOT MATCHED THEN INSERT (a, n, __fivm_partition) VALUES (
    delta.a, CASE WHEN delta.n <= 0 THEN CAST(RAISE_ERROR('not there') AS BIGINT) ELSE delta.n END, 0)
"""


@pytest.fixture
def engine() -> DuckDbEngine:
    engine = DuckDbEngine()
    engine.create_table("raw.r", COLUMNS, FIRST)
    return engine


@pytest.fixture
def state(engine: DuckDbEngine) -> DuckDbEngine:
    feed = "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
    query = "SELECT a, COUNT(*) AS n, CAST(0 AS INT) AS __fivm_partition FROM raw.r GROUP BY a"
    engine.run(
        f"CREATE OR REPLACE TABLE db.state USING DELTA PARTITIONED BY (__fivm_partition) {feed} AS {query}"
    )
    return engine


def one(engine: DuckDbEngine, expression: str) -> object:
    ((value,),) = engine.query(f"SELECT {expression}")
    return value


class TestVersions:
    def test_rows_of_a_parquet_file(self, engine: DuckDbEngine, tmp_path: Path) -> None:
        file = tmp_path / "it's.parquet"
        duckdb.execute("COPY (SELECT 'y' AS s, 7.5 AS b, 3::BIGINT AS a) TO $file", {"file": str(file)})
        engine.load_table("raw.loaded", COLUMNS, file)
        assert engine.query("SELECT * FROM raw.loaded VERSION AS OF 0") == [(3, Decimal("7.50"), "y")]
        assert [c.type for c in engine.describe("SELECT * FROM raw.loaded")] == [c.type for c in COLUMNS]
        engine.change("raw.loaded", insert=[(4, "1", "z")])
        assert len(engine.query("SELECT * FROM table_changes('raw.loaded', 1)")) == 1

    def test_old_versions_stay_readable(self, engine: DuckDbEngine) -> None:
        engine.change("raw.r", insert=[(2, "7", "y")], delete=[(1, "2.50", "x")])
        old = engine.query("SELECT * FROM raw.r VERSION AS OF 0 ORDER BY a NULLS FIRST")
        assert sorted(old, key=str) == sorted(FIRST, key=str)
        assert sorted(engine.query("SELECT a FROM raw.r"), key=str) == [(1,), (2,), (None,)]

    def test_versions_of_one_table_in_one_statement(self, engine: DuckDbEngine) -> None:
        engine.change("raw.r", insert=[(2, "7", "y")])
        query = "SELECT a FROM raw.r VERSION AS OF 1 EXCEPT ALL SELECT a FROM raw.r VERSION AS OF 0"
        assert engine.query(query) == [(2,)]

    def test_a_row_that_is_not_there_cannot_be_deleted(self, engine: DuckDbEngine) -> None:
        for missing in ((1, "2.50", "y"), (2, None, None)):
            with pytest.raises(ValueError, match="not there"):
                engine.change("raw.r", delete=[missing])
        with pytest.raises(ValueError, match="not there"):
            engine.change("raw.r", delete=[(None, None, None)] * 2)
        assert engine.commits("raw.r", None)[0].version == 0

    def test_replace_goes_on_and_recreate_starts_anew(self, engine: DuckDbEngine) -> None:
        engine.replace("raw.r", [(5, "1", "q")])
        (commit,) = engine.commits("raw.r", None)
        assert (commit.version, commit.operation) == (1, "CREATE OR REPLACE TABLE AS SELECT")
        first = engine.commits("raw.r", 0)[-1]
        engine.recreate("raw.r", FIRST)
        (again,) = engine.commits("raw.r", 1)
        assert again.version == 0 and again.timestamp != first.timestamp
        with pytest.raises(VersionUnavailable):
            engine.query("SELECT * FROM raw.r VERSION AS OF 1")

    def test_commits_since(self, engine: DuckDbEngine) -> None:
        for number in range(3):
            engine.change("raw.r", insert=[(number, None, None)])
        assert [c.version for c in engine.commits("raw.r", 2)] == [3, 2]
        assert [c.version for c in engine.commits("raw.r", None)] == [3]
        assert [c.version for c in engine.commits("raw.r", 9)] == [3]

    def test_what_is_not_a_table(self, engine: DuckDbEngine) -> None:
        engine.run("CREATE OR REPLACE VIEW raw.v AS SELECT a FROM raw.r")
        with pytest.raises(NotVersioned):
            engine.commits("raw.v", None)
        with pytest.raises(MissingRelation):
            engine.commits("raw.nothing", None)
        with pytest.raises(MissingRelation):
            engine.query("SELECT * FROM raw.nothing")

    def test_kept_versions(self) -> None:
        engine = DuckDbEngine(keep=1)
        engine.create_table("r", COLUMNS)
        for number in range(3):
            engine.change("r", insert=[(number, None, None)])
        assert len(engine.query("SELECT * FROM r VERSION AS OF 2")) == 2
        with pytest.raises(VersionUnavailable):
            engine.stage("old", "SELECT * FROM r VERSION AS OF 1")

    def test_vacuum(self, engine: DuckDbEngine) -> None:
        engine.change("raw.r", insert=FIRST)
        engine.vacuum("raw.r")
        with pytest.raises(VersionUnavailable):
            engine.query("SELECT * FROM raw.r VERSION AS OF 0")
        assert len(engine.query("SELECT * FROM raw.r")) == 6


class TestChangeFeed:
    def test_updates_have_images(self, engine: DuckDbEngine) -> None:
        engine.change("raw.r", insert=[(2, "7", "y"), (3, None, None)], delete=[(None, None, None)])
        query = "SELECT a, _change_type FROM table_changes('raw.r', 1, 1) ORDER BY 2, 1"
        assert engine.query(query) == [(3, "insert"), (2, "update_postimage"), (None, "update_preimage")]

    def test_a_range_of_versions(self, engine: DuckDbEngine) -> None:
        engine.change("raw.r", insert=[(2, "7", "y")])
        engine.change("raw.r", delete=[(2, "7", "y")])
        query = "SELECT _change_type FROM table_changes('raw.r', 1, 2) AS c WHERE c.a = 2 ORDER BY 1"
        assert engine.query(query) == [("delete",), ("insert",)]
        assert len(engine.query("SELECT * FROM table_changes('raw.r', 2)")) == 1

    def test_replace_lists_every_row(self, engine: DuckDbEngine) -> None:
        engine.replace("raw.r", FIRST)
        query = "SELECT _change_type, COUNT(*) FROM table_changes('raw.r', 1, 1) GROUP BY 1 ORDER BY 1"
        assert engine.query(query) == [("delete", 3), ("insert", 3)]

    def test_of_a_merge(self, state: DuckDbEngine) -> None:
        state.stage("delta", "SELECT 1 AS a, CAST(-1 AS BIGINT) AS n UNION ALL SELECT 7, 2")
        state.run(MERGE)
        query = "SELECT a, n, _change_type FROM table_changes('db.state', 1, 1) ORDER BY 1, 2"
        assert state.query(query) == [(1, 1, "insert"), (1, 2, "delete"), (7, 2, "insert")]

    def test_unavailable(self, engine: DuckDbEngine) -> None:
        engine.create_table("quiet", COLUMNS, change_feed=False)
        engine.change("quiet", insert=FIRST)
        assert engine.has_change_feed("raw.r") and not engine.has_change_feed("quiet")
        for sql in (
            "table_changes('quiet', 1, 1)",
            "table_changes('raw.r', 1, 1)",
            "table_changes('raw.r', 1, 0)",
        ):
            with pytest.raises(ChangeFeedUnavailable):
                engine.stage("changes", f"SELECT * FROM {sql}")


class TestWrites:
    def test_merge(self, state: DuckDbEngine) -> None:
        delta = "SELECT 1 AS a, CAST(-2 AS BIGINT) AS n UNION ALL SELECT NULL, 1 UNION ALL SELECT 3, 4"
        state.stage("delta", delta)
        state.run(MERGE)
        assert sorted(state.query("SELECT a, n FROM db.state"), key=str) == [(3, 4), (None, 2)]
        assert [c.operation for c in state.commits("db.state", None)] == ["MERGE"]

    def test_other_partitions_are_out_of_reach(self, state: DuckDbEngine) -> None:
        state.stage("delta", "SELECT 1 AS a, CAST(1 AS BIGINT) AS n")
        state.run(MERGE.replace("IN (0, 1)", "IN (7, 8, 9)"))
        assert sorted(state.query("SELECT a, n FROM db.state"), key=str) == [(1, 1), (1, 2), (None, 1)]

    @pytest.mark.parametrize(
        ("change", "message"), [("1 AS a, -5", "below zero"), ("9 AS a, -1", "not there")]
    )
    def test_an_error_writes_nothing(self, state: DuckDbEngine, change: str, message: str) -> None:
        state.stage("delta", f"SELECT {change} AS n UNION ALL SELECT NULL, 1")
        with pytest.raises(duckdb.Error, match=message):
            state.run(MERGE)
        assert state.commits("db.state", None)[0].version == 0
        assert sorted(state.query("SELECT a, n FROM db.state"), key=str) == [(1, 2), (None, 1)]

    def test_merge_of_nothing_is_no_commit(self, state: DuckDbEngine) -> None:
        state.stage("delta", "SELECT 1 AS a, CAST(1 AS BIGINT) AS n WHERE FALSE")
        state.run(MERGE)
        assert state.commits("db.state", None)[0].version == 0

    @pytest.mark.parametrize(
        "statement",
        [
            "INSERT INTO db.state SELECT * FROM db.state WHERE a = 99",
            "INSERT INTO db.state REPLACE WHERE a = 99 SELECT * FROM db.state WHERE a = 99",
            "DELETE FROM db.state WHERE a = 99",
            "UPDATE db.state SET n = n + 1 WHERE a = 99",
        ],
    )
    def test_what_changes_nothing_is_no_commit(self, state: DuckDbEngine, statement: str) -> None:
        state.run(statement)
        assert state.commits("db.state", None)[0].version == 0

    def test_ambiguous_merge_fails(self, state: DuckDbEngine) -> None:
        state.stage("delta", "SELECT 1 AS a, CAST(1 AS BIGINT) AS n UNION ALL SELECT 1, 1")
        with pytest.raises(duckdb.Error):
            state.run(MERGE)

    def test_insert_overwrite_delete_update(self, state: DuckDbEngine) -> None:
        state.run("INSERT INTO db.state (a, n, __fivm_partition) VALUES (8, 1, 0)")
        state.run("UPDATE db.state SET n = n + 1 WHERE a = 8")
        state.run("DELETE FROM db.state WHERE a IS NULL")
        assert sorted(state.query("SELECT a, n FROM db.state")) == [(1, 2), (8, 2)]
        state.run("INSERT OVERWRITE db.state SELECT * FROM db.state VERSION AS OF 0 WHERE a = 1")
        assert state.query("SELECT a, n FROM db.state") == [(1, 2)]
        state.run("INSERT INTO db.state REPLACE WHERE n > 1 SELECT a, n + 1, 0 FROM db.state VERSION AS OF 3")
        assert sorted(state.query("SELECT a, n FROM db.state")) == [(1, 3), (8, 3)]
        assert state.commits("db.state", None)[0].version == 5

    def test_a_view_shows_the_newest_version(self, state: DuckDbEngine) -> None:
        state.run("CREATE OR REPLACE VIEW db.v AS SELECT a, n * 10 AS n FROM db.state WHERE a IS NOT NULL")
        assert state.query("SELECT v.n FROM db.v") == [(20,)]
        state.run("DELETE FROM db.state WHERE a = 1")
        assert state.query("SELECT * FROM db.v") == []
        state.run("CREATE OR REPLACE VIEW db.v AS SELECT n FROM db.state")
        assert state.query("SELECT * FROM db.v AS w") == [(1,)]
        assert state.exists("db.v") and state.exists("db.state") and not state.exists("db.w")

    def test_create_and_drop(self, engine: DuckDbEngine) -> None:
        engine.run("CREATE TABLE IF NOT EXISTS db.t (a INT, t TIMESTAMP) USING DELTA")
        engine.run("CREATE TABLE IF NOT EXISTS db.t (b STRING) USING DELTA")
        assert [c.name for c in engine.describe("SELECT * FROM db.t")] == ["a", "t"]
        with pytest.raises(duckdb.Error, match="exists"):
            engine.run("CREATE TABLE db.t USING DELTA AS SELECT 1 AS a")
        with pytest.raises(duckdb.Error):
            engine.run("CREATE TABLE db.failing USING DELTA AS SELECT missing FROM raw.r")
        assert not engine.exists("db.failing")
        engine.run("DROP TABLE db.t")
        engine.run("DROP TABLE IF EXISTS db.t")
        with pytest.raises(MissingRelation):
            engine.run("DROP TABLE db.t")

    def test_sums_of_integers_are_stored_as_bigint(self, engine: DuckDbEngine) -> None:
        engine.run(
            "CREATE OR REPLACE TABLE db.t USING DELTA AS SELECT SUM(a) AS s, SUM(b) AS d, AVG(a) AS m FROM raw.r"
        )
        types = [str(c.type) for c in engine.describe("SELECT * FROM db.t")]
        assert types == ["bigint", "decimal(38,2)", "double"]

    def test_sums_keep_the_type_of_their_own_table(self, engine: DuckDbEngine) -> None:
        engine.create_table("db.i", (Column.of("x", "int"),), [(1,)])
        engine.create_table("dc.i", (Column.of("x", "decimal(4,2)"),), [("1.25",)])
        for schema in ("db", "dc"):
            engine.stage(f"sum_{schema}", f"SELECT SUM(x) AS s FROM {schema}.i")
        assert engine.query("SELECT a.s, b.s FROM sum_db a, sum_dc b") == [(1, Decimal("1.25"))]

    def test_an_unknown_statement_is_an_error(self, engine: DuckDbEngine) -> None:
        with pytest.raises(UnsupportedStatement):
            engine.run("TRUNCATE TABLE raw.r")


class TestStaging:
    def test_staged_rows_stay_as_they_were(self, engine: DuckDbEngine) -> None:
        engine.stage("kept", "SELECT a FROM raw.r")
        engine.change("raw.r", delete=FIRST)
        assert len(engine.query("SELECT * FROM kept")) == 3
        engine.stage("kept", "SELECT a FROM kept WHERE a IS NULL")
        assert engine.query("SELECT * FROM kept") == [(None,)]
        engine.unstage("kept")
        engine.unstage("kept")
        with pytest.raises(MissingRelation):
            engine.query("SELECT * FROM kept")

    def test_measuring_counts_every_table_in_full(self, engine: DuckDbEngine) -> None:
        engine.query("SELECT * FROM raw.r")
        engine.start_measuring("refresh")
        engine.stage("kept", "SELECT a FROM raw.r VERSION AS OF 0 WHERE a = 1")
        engine.query("SELECT * FROM kept JOIN raw.r ON kept.a = r.a")
        metrics = engine.measured("refresh")
        assert metrics.scans == (("kept", 2), ("raw.r", 6))
        assert metrics.rows_read == 8


class TestMeaning:
    """Each expression has Spark's value (ANSI off)."""

    @pytest.mark.parametrize(
        ("expression", "value"),
        [
            ("NULL <=> NULL", True),
            ("1 IS NOT DISTINCT FROM NULL", False),
            ("5 / 2", 2.5),
            ("5 / 0", None),
            ("-7 DIV 2", -3),
            ("-7 % 3", -1),
            ("5 % 0", None),
            ("PMOD(-7, 3)", 2),
            ("CAST(2.5 AS INT)", 2),
            ("CAST(-2.5 AS BIGINT)", -2),
            ("CAST('2.7' AS INT)", 2),
            ("CAST('x' AS INT)", None),
            ("CAST(2.675 AS DECIMAL(10,2))", Decimal("2.68")),
            ("CAST(-2.675 AS DECIMAL(10,2))", Decimal("-2.68")),
            ("2.50BD + 1", Decimal("3.50")),
            ("TRUNC(DATE '2024-05-31', 'MM')", date(2024, 5, 1)),
            ("TRUNC(DATE '2024-05-31', 'YEAR')", date(2024, 1, 1)),
            ("DATE_TRUNC('HOUR', TIMESTAMP '2024-05-31 10:20:30')", datetime(2024, 5, 31, 10)),
            ("DATE_ADD(DATE '2024-02-28', 2)", date(2024, 3, 1)),
            ("DATE_SUB(DATE '2024-03-01', 1)", date(2024, 2, 29)),
            ("ADD_MONTHS(DATE '2024-01-31', 1)", date(2024, 2, 29)),
            ("IF(NULL, 1, 2)", 2),
            ("NVL(NULL, 3)", 3),
            ("CONCAT('a', NULL)", None),
            ("'a' || 'b'", "ab"),
            ("AGGREGATE(ARRAY_REPEAT(2.5, 3), CAST(0 AS DECIMAL(10,1)), (t, i) -> t + i)", Decimal("7.5")),
            ("XXHASH64(1, NULL) = XXHASH64(CAST(1 AS BIGINT), NULL)", True),
            ("PMOD(XXHASH64(NULL), 16) BETWEEN 0 AND 15", True),
            ("TO_DATE('2024-01-05', 'yyyy-MM-dd')", date(2024, 1, 5)),
            ("TO_DATE('2024-1-5', 'yyyy-MM-dd')", None),
            ("TO_DATE('2024-1-5', 'yyyy-M-d')", date(2024, 1, 5)),
            ("TO_DATE('2024-13-05', 'yyyy-MM-dd')", None),
            ("TO_DATE('5 at 2024/01', \"d 'at' yyyy/MM\")", date(2024, 1, 5)),
            (
                "TO_TIMESTAMP('20240105101112345', 'yyyyMMddHHmmssSSS')",
                datetime(2024, 1, 5, 10, 11, 12, 345000),
            ),
            ("TO_TIMESTAMP('2024-01-05 10', 'yyyy-MM-dd')", None),
            ("DATE_FORMAT(TIMESTAMP '2024-01-05 10:11:12.345', 'H:m:s.SSS d/M/yy')", "10:11:12.345 5/1/24"),
            ("DATE_FORMAT(DATE '2024-01-05', 'EEE dd MMM')", "Fri 05 Jan"),
            ("DATE '2024-01-05' + INTERVAL '1-2' YEAR TO MONTH", datetime(2025, 3, 5)),
            (
                "TIMESTAMP '2024-01-05 10:00:00' - INTERVAL '-1 2:03:04.5' DAY TO SECOND",
                datetime(2024, 1, 6, 12, 3, 4, 500000),
            ),
            (
                "TIMESTAMP '2024-01-05 10:00:00' + INTERVAL -'2:03' HOUR TO MINUTE",
                datetime(2024, 1, 5, 7, 57),
            ),
            ("EXISTS(ARRAY(1, NULL), x -> x > 0)", True),
            ("EXISTS(ARRAY(1, NULL), x -> x > 1)", None),
            ("EXISTS(ARRAY(1, 2), x -> x > 2)", False),
            ("EXISTS(CAST(NULL AS ARRAY<INT>), x -> x > 2)", None),
            ("FORALL(ARRAY(1, NULL), x -> x > 1)", False),
            ("FORALL(ARRAY(1, NULL), x -> x > 0)", None),
            ("FORALL(ARRAY(1, 2), x -> x > 0)", True),
            ("SORT_ARRAY(ARRAY(1, NULL, 2))", [None, 1, 2]),
            ("SORT_ARRAY(ARRAY(1, NULL, 2), FALSE)", [2, 1, None]),
            ("ARRAY_SORT(ARRAY(2, NULL, 1))", [1, 2, None]),
            ("1 IN (SELECT CAST(NULL AS INT))", False),
            ("(1 IN (SELECT CAST(NULL AS INT))) IS NULL", False),
            ("1 NOT IN (SELECT CAST(NULL AS INT))", False),
            ("NOT (1 IN (SELECT CAST(NULL AS INT)) OR FALSE)", False),
            ("(1 IN (SELECT CAST(NULL AS INT))) = FALSE", False),
            ("CAST(NULL AS INT) NOT IN (SELECT 1 WHERE FALSE)", True),
            ("COALESCE(2 NOT IN (SELECT 1), FALSE)", True),
        ],
    )
    def test_expression(self, engine: DuckDbEngine, expression: str, value: object) -> None:
        result = one(engine, expression)
        assert result == value
        assert type(result) is type(value)

    @pytest.mark.parametrize(
        ("call", "values", "value"),
        [
            ("CORR(x, y)", "(1, 1)", None),
            ("CORR(x, y)", "(1, 1), (2, 1)", None),
            ("CORR(x, y) FILTER (WHERE x < 3)", "(1, 1), (2, 2), (3, 3)", 1.0),
            ("CORR(x, y)", "(1, NULL), (NULL, 1)", None),
            ("REGR_SLOPE(y, x)", "(1, 1), (1, 2)", None),
            ("REGR_SLOPE(y, x)", "(1, 1), (2, 1)", 0.0),
            ("REGR_INTERCEPT(y, x)", "(1, 1), (1, 2)", None),
            ("SKEWNESS(x)", "(1, 0), (2, 0)", 0.0),
            ("SKEWNESS(x) OVER ()", "(7, 0)", None),
            ("SKEWNESS(x)", "(0.1, 0), (0.1, 0), (0.1, 0)", None),
            ("KURTOSIS(x)", "(1, 0), (2, 0), (NULL, 0)", -2.0),
            ("KURTOSIS(x)", "(NULL, 0)", None),
        ],
    )
    def test_statistics(self, engine: DuckDbEngine, call: str, values: str, value: float | None) -> None:
        ((result,),) = engine.query(f"SELECT {call} FROM VALUES {values} AS t(x, y)")
        assert result == (value if value is None else pytest.approx(value))

    @pytest.mark.parametrize(
        ("clause", "rows"),
        [
            ("raw.r PIVOT (COUNT(b) FOR a IN (1, 2))", [(None, None, None), ("x", 2, None)]),
            ("raw.r VERSION AS OF 0 AS q PIVOT (SUM(q.b) AS t, MAX(s) FOR a IN (1 AS one)) AS p", [(5, "x")]),
            (
                "(SELECT a, s FROM raw.r) PIVOT (COUNT(*) FOR (a, s) IN ((1, 'x') AS x, (2, 'x')))",
                [(2, None)],
            ),
            ("raw.r UNPIVOT (v FOR k IN (A))", [(Decimal("2.50"), "x", "A", 1)] * 2),
            (
                "(SELECT a FROM raw.r) UNPIVOT INCLUDE NULLS (v FOR k IN (a AS n)) AS u",
                [("n", None), *[("n", 1)] * 2],
            ),
        ],
    )
    def test_pivots(self, engine: DuckDbEngine, clause: str, rows: list[object]) -> None:
        found = engine.query(f"SELECT * FROM {clause}")
        assert sorted(found, key=str) == sorted(rows, key=str)

    def test_names_of_cells(self, engine: DuckDbEngine) -> None:
        names = "PIVOT (SUM(b) AS t, COUNT(b) FOR a IN (1 AS one, 2, NULL))"
        found = [c.name for c in engine.describe(f"SELECT * FROM raw.r {names}")]
        assert found == ["s", "one_t", "one_count(b)", "2_t", "2_count(b)", "null_t", "null_count(b)"]

    def test_stack_beside_other_columns(self, engine: DuckDbEngine) -> None:
        query = "SELECT *, STACK(2, a, 'a', 7) AS (s, a) FROM raw.r WHERE a IS NULL"
        assert set(engine.query(query)) == {(None, None, None, None, "a"), (None, None, None, 7, None)}

    def test_groupings_of_nothing(self, engine: DuckDbEngine) -> None:
        query = "SELECT COUNT(*) FROM raw.r WHERE a > 9 GROUP BY {}"
        assert engine.query(query.format("GROUPING SETS (())")) == [(0,)]
        assert engine.query(query.format("GROUPING SETS ((), ())")) == []
        assert engine.query(query.format("ROLLUP (a)")) == []

    def test_an_order_that_cannot_be_had_is_an_error(self, engine: DuckDbEngine) -> None:
        with pytest.raises(UnsupportedStatement, match="ARRAY_SORT"):
            engine.query("SELECT ARRAY_SORT(ARRAY(1, 2), (x, y) -> y - x)")

    def test_raise_error_only_where_it_is_reached(self, engine: DuckDbEngine) -> None:
        query = "SELECT CASE WHEN a > {} THEN CAST(RAISE_ERROR('too large') AS INT) ELSE a END FROM raw.r"
        assert len(engine.query(query.format(1))) == 3
        with pytest.raises(duckdb.Error, match="too large"):
            engine.query(query.format(0))

    def test_exploding_copies(self, engine: DuckDbEngine) -> None:
        copies = "LATERAL VIEW EXPLODE(SEQUENCE(1, n)) u AS i"
        query = f"SELECT a FROM (SELECT a, COUNT(*) AS n FROM raw.r GROUP BY a) q {copies}"
        assert sorted(engine.query(query), key=str) == [(1,), (1,), (None,)]

    def test_a_sequence_goes_towards_its_end_or_stops(self, engine: DuckDbEngine) -> None:
        query = (
            "SELECT DISTINCT SEQUENCE(a, 3, 1), SEQUENCE(-1, a - 3), SEQUENCE(a, a, 0) FROM raw.r WHERE a = 1"
        )
        assert engine.query(query) == [([1, 2, 3], [-1, -2], [1])]
        with pytest.raises(duckdb.Error, match="Illegal sequence boundaries"):
            engine.query("SELECT SEQUENCE(a, 3, -1) FROM raw.r")

    def test_semi_join(self, engine: DuckDbEngine) -> None:
        query = (
            "SELECT r.a FROM raw.r AS r LEFT SEMI JOIN (SELECT CAST(NULL AS INT) AS k) AS d ON r.a <=> d.k"
        )
        assert engine.query(query) == [(None,)]

    def test_a_cte_hides_a_table_but_not_in_its_own_body(self, engine: DuckDbEngine) -> None:
        ctes = "WITH r AS (SELECT a FROM r WHERE a = 1), s AS (SELECT a FROM r)"
        query = f"{ctes} SELECT COUNT(*) FROM s JOIN r USING (a)"
        engine.create_table("r", COLUMNS, FIRST)
        assert engine.query(query) == [(4,)]

    def test_global_aggregates_over_nothing(self, engine: DuckDbEngine) -> None:
        query = "SELECT COUNT(*), SUM(a), AVG(b) FROM raw.r WHERE a > 100"
        assert engine.query(query) == [(0, None, None)]

    def test_literals_that_look_like_versions(self, engine: DuckDbEngine) -> None:
        assert one(engine, "'VERSION AS OF 3'") == "VERSION AS OF 3"
