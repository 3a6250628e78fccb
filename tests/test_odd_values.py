"""DuckDB gives the answers that Spark gave to a thousand questions about odd values, or refuses by name.

``FIVM_UPDATE=1 pytest -m spark tests/test_odd_values.py`` asks Spark again and writes what it says;
``FIVM_UPDATE=1 pytest -m "not spark" tests/test_odd_values.py`` writes what is refused.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pytest

from fivm_dbt.catalog import Catalog, Column, Relation
from fivm_dbt.config import load_config
from fivm_dbt.engines.duckdb.engine import DuckDbEngine
from fivm_dbt.engines.duckdb.meaning import check_columns, check_meaning
from fivm_dbt.errors import FivmError
from fivm_dbt.plan.planner import plan_model
from fivm_dbt.plan.request import ModelRequest
from fivm_dbt.testing.values import to_rows
from odd_questions import HERE, TABLES, Question, answers, questions, same, sorted_rows, table_sql, written

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUESTIONS = questions()
SECTIONS = list(dict.fromkeys(q.section for q in QUESTIONS))
REFUSED = HERE / "refused.txt"


def _columns(text: str) -> tuple[Column, ...]:
    return tuple(Column.of(*column.split(" ", 1)) for column in re.split(r", (?=[a-z]+ )", text))


CATALOG = Catalog.of([Relation(name, _columns(columns)) for name, (columns, _) in TABLES.items()])


@pytest.fixture(scope="module")
def engine() -> Iterator[DuckDbEngine]:
    engine = DuckDbEngine(tiny=True)
    for name, (text, rows) in TABLES.items():
        columns = _columns(text)
        engine.create_table(name, columns, to_rows(rows, [c.type for c in columns]))
    yield engine
    engine.close()


def answer(engine: DuckDbEngine, question: Question) -> list[list[object]]:
    """What a replay of the question as a model shows. Raises FivmError where it refuses."""
    request = ModelRequest("m", question.sql, CATALOG, load_config({}), (("timezone", "UTC"),))
    plan = plan_model(request)
    check_meaning(plan.query, plan.completed_sql)
    try:
        check_columns(plan.output, engine.describe(plan.completed_sql))
        return sorted_rows(engine.query(plan.completed_sql))
    except duckdb.Error as error:  # as in a replay: the text fails there
        raise FivmError("FIVM602", str(error)) from error


def is_equal(rows: list[list[object]], recorded: dict[str, object]) -> bool:
    """Whether two bags of rows are equal by the types that Spark gave."""
    types, rest = recorded["types"], list(rows)
    assert isinstance(types, list) and isinstance(recorded["rows"], list)
    for row in recorded["rows"]:
        equal = (r for r in rest if len(r) == len(row) and all(map(same, row, r, types)))
        found = next(equal, None)
        if found is None:
            return False
        rest.remove(found)
    return not rest


@pytest.mark.parametrize("section", SECTIONS)
def test_duckdb_answers_as_spark_or_refuses(engine: DuckDbEngine, section: str) -> None:
    recorded = answers()
    wrong, refused = [], []
    for question in (q for q in QUESTIONS if q.section == section):
        try:
            rows = answer(engine, question)
        except FivmError as error:
            refused.append(f"{error.code.number} {question.id}")
            continue
        if not is_equal(rows, recorded[question.id]):
            wrong.append(f"{question.id}\n  Spark:  {recorded[question.id]['rows']}\n  DuckDB: {rows}")
    assert not wrong, "\n".join(wrong)
    lines = REFUSED.read_text(encoding="utf-8").splitlines() if REFUSED.exists() else []
    others = [line for line in lines if not line.split(" ", 1)[1].startswith(f"{section}: ")]
    if os.environ.get("FIVM_UPDATE"):
        ordered = sorted({*others, *refused}, key=lambda line: line.split(" ", 1)[1])
        REFUSED.write_text("\n".join(ordered) + "\n", encoding="utf-8")
    else:
        assert sorted(refused) == sorted(set(lines) - set(others))


STARS = [
    q for q in QUESTIONS if q.section == "queries" and re.search(r"\*.* from .*\b(using|natural)\b", q.text)
]


@pytest.mark.parametrize("question", STARS, ids=[q.text for q in STARS])
def test_columns_that_were_merged_come_first(question: Question) -> None:
    """Also those of ``t.*``, which DuckDB has in another order."""
    try:
        columns = plan_model(ModelRequest("m", question.sql, CATALOG, load_config({}))).output
    except FivmError as error:
        assert error.code.number == "FIVM112"  # two columns of one name
        return
    assert [c.name for c in columns] == answers()[question.id]["names"]


def test_most_questions_are_answered() -> None:
    lines = REFUSED.read_text(encoding="utf-8").splitlines()
    assert len(QUESTIONS) > 1300 and len(lines) < len(QUESTIONS) / 4


def test_every_question_is_there_once_and_has_an_answer() -> None:
    ids = [q.id for q in QUESTIONS]
    assert len(ids) == len(set(ids))
    assert list(answers()) == ids


def asked(session: SparkSession) -> Iterator[dict[str, object]]:
    """Spark's answers to all questions, in their order."""
    for section in SECTIONS:
        group = [q for q in QUESTIONS if q.section == section]
        if section == "queries":
            for question in group:
                frame = session.sql(question.sql)
                fields = frame.schema.fields
                yield {
                    "question": question.id,
                    "names": [f.name for f in fields],
                    "types": [f.dataType.simpleString() for f in fields],
                    "rows": sorted_rows([tuple(row) for row in frame.collect()]),
                }
            continue
        table, _, is_whole = section.partition(" ")
        first = [] if is_whole else ["id"]
        # One at a time: a generator beside others takes rows from them, and several aggregates that sort in one
        # SELECT are more than Spark 4.2 plans (ClassCastException).
        for question in group:
            frame = session.sql(f"select {', '.join([*first, f'{question.text} as v'])} from {table}")
            yield {
                "question": question.id,
                "names": [*first, "v"],
                "types": [f.dataType.simpleString() for f in frame.schema.fields],
                "rows": sorted_rows([tuple(row) for row in frame.collect()]),
            }


DIFFERENCES = {
    "Types are derived": ("FIVM109", "doubles: ceil(y, 1)"),
    "A string beside": ("FIVM602", "ints: coalesce(i, 'none')"),
    "A float beside": ("FIVM602", "doubles: f = 0.1"),
    "Numbers that leave": ("FIVM602", "ints: i * i"),
    "The difference of": ("FIVM602", "times: cast('1' as interval day)"),
    "Numbers as texts": ("FIVM602", "doubles: concat(x, 'a')"),
    "ROUND of a": ("FIVM602", "doubles: round(2.675D, 2)"),
    "Texts with a": ("FIVM602", "texts: cast('2024-01-01 10:11:12+02:00' as timestamp)"),
    "Patterns of dates": ("FIVM602", "times: date_format(d, 'Q')"),
    "PERCENTILE_APPROX, FORMAT_STRING, TO_CHAR,": ("FIVM602", "ints all: percentile_approx(k, 0.5)"),
    "Orders of structs": ("FIVM602", "queries: select max(v) as v from (select struct(i, k) as v from ints)"),
    "NATURAL JOIN without": (
        "FIVM602",
        "queries: select * from (select id as a, i from ints) x natural join (select id as b, d from decimals) y",
    ),
    "Decimals are divided": ("", "decimals: d / 3"),
    "Hash buckets are": ("", "ints all: count(*)"),
    "Timestamps are in": ("", "times: cast(t as timestamp_ntz)"),
    "Nothing runs concurrently.": ("", "ints all: count(*)"),
}
"""The beginning of each entry of the list in the documentation, with a question that shows it."""


def test_every_difference_that_is_listed_has_a_question(repository: Path) -> None:
    page = (repository / "docs" / "limitations.md").read_text(encoding="utf-8")
    section = page[page.index("## fivm replay on DuckDB") :]
    entries = [" ".join(line[2:].split()[:3]) for line in section.splitlines() if line.startswith("* ")]
    assert entries == list(DIFFERENCES)
    refused = REFUSED.read_text(encoding="utf-8").splitlines()
    for entry, (code, question) in DIFFERENCES.items():
        assert question in {q.id for q in QUESTIONS}, entry
        assert (f"{code} {question}" in refused) is bool(code), entry


@pytest.mark.long
@pytest.mark.spark
def test_spark_still_says_what_was_recorded(spark: SparkSession) -> None:
    session = spark.newSession()
    for key, value in {
        "spark.sql.ansi.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.adaptive.enabled": "false",
    }.items():
        session.conf.set(key, value)
    for name in TABLES:
        session.sql(table_sql(name)).createOrReplaceTempView(name)
    found = list(asked(session))
    if os.environ.get("FIVM_UPDATE"):
        (HERE / "answers.jsonl").write_text(written(iter(found)), encoding="utf-8")
    recorded = answers()
    changed = [
        line["question"]
        for line in found
        if line["types"] != recorded[str(line["question"])]["types"]
        or not is_equal(line["rows"], recorded[str(line["question"])])  # type: ignore[arg-type]
    ]
    assert not changed
