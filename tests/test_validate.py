"""The last look at a statement: every read is pinned, and no table is read by two change ranges."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlglot
from sqlglot import exp

from fivm_dbt.errors import FivmError
from fivm_dbt.ir.dialect import SparkText
from fivm_dbt.project.offline import plan_of_file
from fivm_dbt.spark.check import check_statements, emitted
from fivm_dbt.spark.formats import FORMAT
from fivm_dbt.spark.pieces import table
from fivm_dbt.spark.validate import validate
from fixtures.models import plan_of, relation

STAGED = ["fivm_m__delta_raw_a"]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT k FROM raw.a VERSION AS OF 3",
        "SELECT a.k FROM raw.a VERSION AS OF 3 AS a JOIN raw.a VERSION AS OF 5 AS b ON a.k = b.k",
        "SELECT k FROM fivm_m__delta_raw_a AS a JOIN raw.b VERSION AS OF 5 AS b USING (k)",
        "SELECT k FROM table_changes('raw.a', 3, 4)",
        "SELECT k FROM table_changes('raw.a', 3, 4) UNION ALL SELECT k FROM table_changes('raw.a', 3, 4)",
        "SELECT k FROM table_changes('raw.a', 3, 4) UNION ALL SELECT k FROM table_changes('raw.b', 1, 2)",
        "MERGE INTO m AS target USING fivm_m__delta_raw_a AS delta ON target.k <=> delta.k "
        "WHEN MATCHED THEN DELETE",
        "CREATE OR REPLACE TABLE m USING DELTA AS SELECT k FROM raw.a VERSION AS OF 3",
        "INSERT INTO m SELECT k FROM raw.a VERSION AS OF 3",
    ],
)
def test_safe(sql: str) -> None:
    validate(sql, STAGED)


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT k FROM raw.a", "reads raw.a without VERSION AS OF"),
        ("SELECT k FROM raw.a, raw.b, raw.a AS c", "reads raw.a, raw.b without VERSION AS OF"),
        ("SELECT k FROM raw.a VERSION AS OF 3 AS a JOIN raw.a AS b USING (k)", "reads raw.a without"),
        ("SELECT k FROM fivm_m__delta_raw_b", "reads fivm_m__delta_raw_b without"),
        ("SELECT k FROM (SELECT k FROM raw.a) AS z", "reads raw.a without"),
        (
            "SELECT k FROM table_changes('raw.a', 3, 4) UNION ALL SELECT k FROM table_changes('RAW.A', 5, 6)",
            "two change ranges",
        ),
        ("SELECT k FROM table_changes('raw.a', 3, 4) AS c JOIN raw.a USING (k)", "reads raw.a without"),
        (
            "MERGE INTO m AS target USING raw.a AS delta ON target.k = delta.k WHEN MATCHED THEN DELETE",
            "reads raw.a",
        ),
        (
            "MERGE INTO m AS target USING m AS delta ON target.k = delta.k WHEN MATCHED THEN DELETE",
            "reads m without",
        ),
        ("CREATE OR REPLACE TABLE m USING DELTA AS SELECT k FROM raw.a", "reads raw.a without"),
        ("INSERT INTO m SELECT k FROM m", "reads m without"),
        ("SELECT k FROM raw.a VERSION AS OF 3 WHERE (", "does not parse"),
        ("SELECT k FROM table_changes('raw.a', 3, 4) WHERE k IN (SELECT k FROM raw.b)", "reads raw.b"),
    ],
)
def test_unsafe(sql: str, message: str) -> None:
    with pytest.raises(FivmError) as caught:
        validate(sql, STAGED)
    assert caught.value.code.number == "FIVM901"
    assert message in caught.value.message
    assert sql in str(caught.value)


def test_a_change_range_beside_a_pinned_reading_of_its_table() -> None:
    """Only an unpinned one is mixed up with the change range."""
    sql = "SELECT k FROM table_changes('raw.a', 3, 4) AS c JOIN raw.a VERSION AS OF 4 AS a USING (k)"
    validate(sql, STAGED)


TABLES = [relation("raw.a", "k int, v int, d date"), relation("raw.b", "k int, w bigint")]


@pytest.mark.parametrize(
    "sql",
    [
        "select k, sum(v) as s from raw.a group by k",
        "select x.k, y.v from raw.a x join raw.a y on x.k = y.v",
        "select a.k, w from raw.a join raw.b on a.k = b.k",
        "select c, count(*) as n from (select k, count(*) as c from raw.a group by k) z group by c",
        "select a.k, z.c from raw.a, (select count(*) as c from raw.b) z",
        "select k, v from raw.a union all select k, w from raw.b",
    ],
)
def test_what_plans_emit_is_safe(sql: str) -> None:
    check_statements(plan_of(sql, TABLES))


GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("name", sorted(path.stem for path in GOLDEN.glob("*.sql")))
def test_trees_read_what_their_texts_read(name: str) -> None:
    """What is checked is a tree, and what runs is its text."""

    def read(statement: exp.Expr) -> list[str]:
        return sorted(
            t.sql(dialect="spark")
            for t in statement.find_all(exp.Table)
            if not isinstance(t.parent, exp.JoinHint)
        )

    number = 0
    for statement in emitted(plan_of_file(GOLDEN / f"{name}.sql")):
        number += 1
        text = statement.sql(dialect="spark")
        assert read(statement) == read(sqlglot.parse_one(text, dialect=SparkText)), text
    assert number > 5


def test_an_unpinned_statement_of_a_plan_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of("select a.k, w from raw.a join raw.b on a.k = b.k", TABLES)
    monkeypatch.setattr(type(FORMAT), "pinned", lambda _, name, version: table(name))
    with pytest.raises(FivmError, match="without VERSION AS OF") as caught:
        check_statements(plan)
    assert caught.value.code.number == "FIVM901"
