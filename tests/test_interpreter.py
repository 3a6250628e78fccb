"""The interpreter of Spark's semantics, beside answers that Spark has given, and as the second oracle of a replay.

``tests/spark_answers/queries.sql`` has the queries. Their answers are recorded by

    FIVM_UPDATE=1 .venv/bin/pytest -m spark tests/test_interpreter.py
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cached_statements import cache_statements
from fivm_dbt.catalog import SparkType
from fivm_dbt.testing.interpreter import NotUnderstood, Table, interpret
from fivm_dbt.testing.interpreter.types import INT, parse_type
from fivm_dbt.testing.load import Located, load_scenarios
from fivm_dbt.testing.replay import replay_scenario
from fivm_dbt.testing.replay_files import replay_files, second_opinions
from fivm_dbt.testing.values import to_rows
from generator.differential import tiny_workbench

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = Path(__file__).parent
ANSWERS = HERE / "spark_answers" / "answers.jsonl"
QUERIES = [
    line
    for line in (HERE / "spark_answers" / "queries.sql").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("--")
]
TABLES: dict[str, tuple[dict[str, str], list[list[object]]]] = {
    "o": ({"id": "int", "k": "int"}, [[1, 1], [2, 2], [3, 3], [4, None], [5, 0]]),
    "s": ({"k": "int", "x": "int"}, [[1, 1], [1, 7], [3, 5], [None, 9]]),
    "q": (
        {"k": "int", "b": "int", "y": "double"},
        [[1, 10, "NaN"], [2, None, 0.0], [2, 20, -0.0], [None, 20, 1.0], [4, 50, None]],
    ),
    "r": (
        {
            "k": "int", "a": "int", "g": "string", "d": "decimal(10,2)", "x": "double", "t": "timestamp",
            "n": "timestamp_ntz", "dt": "date", "f": "boolean", "w": "bigint",
        },
        [
            [1, 10, "a", "1.50", 1.0, "2024-01-31T10:00:00", "2024-01-31T10:00:00", "2024-01-31", True, 1],
            [1, None, "A", "2.25", -0.0, "2024-02-29T23:59:59.5", "2024-02-29T23:59:59.5", "2024-02-29", False, 2],
            [2, 20, "b", None, 0.0, "2024-03-31T02:30:00", "2024-03-31T02:30:00", "2024-03-31", None, 3],
            [None, 30, None, "-3.75", "NaN", None, None, None, True, 4],
            [3, None, "a ", "1.50", "NaN", "2024-12-31T00:00:00", "2024-12-31T00:00:00", "2024-12-31", False, 5],
            [3, 20, "b", "0.01", None, "2023-02-28T12:00:00", "2023-02-28T12:00:00", "2023-02-28", True, 6],
        ],
    ),
}  # fmt: skip


def _rows(name: str) -> tuple[tuple[Any, ...], ...]:
    columns, raw = TABLES[name]
    return to_rows(raw, [SparkType.of(t) for t in columns.values()])


def _shown(value: Any) -> str:
    """One text per value: doubles to ten digits, 0.0 and -0.0 as one, lists in brackets."""
    if value is None:
        return "NULL"
    if isinstance(value, float):
        return f"{value + 0.0:.10g}" if math.isfinite(value) else str(value).replace("nan", "NaN")
    if isinstance(value, Mapping):
        value = list(value.items())
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_shown, value)) + "]"
    if isinstance(value, (date, Decimal, bool, int)):
        return str(value)
    return repr(value)


def _recorded() -> dict[str, Any]:
    lines = ANSWERS.read_text(encoding="utf-8").splitlines()
    return {found["sql"]: found for found in map(json.loads, lines)}


RECORDED = _recorded() if ANSWERS.exists() else {}


@pytest.mark.parametrize("sql", QUERIES)
def test_the_interpreter_says_what_spark_says(sql: str) -> None:
    tables = {
        name: Table(tuple((c, parse_type(t)) for c, t in columns.items()), _rows(name))
        for name, (columns, _) in TABLES.items()
    }
    answer = interpret(sql, tables)
    expected = RECORDED[sql]
    assert sorted([_shown(v) for v in row] for row in answer.rows.elements()) == expected["rows"]
    assert [str(type_) for _, type_ in answer.columns] == expected["types"]


def test_every_query_has_an_answer_and_no_other() -> None:
    assert list(RECORDED) == QUERIES
    assert len(QUERIES) > 100


@pytest.mark.long
@pytest.mark.spark
def test_spark_says_it_still(spark: SparkSession) -> None:
    from fivm_dbt.engines.spark.local_rows import local_rows

    session = spark.newSession()
    session.conf.set("spark.sql.ansi.enabled", "false")
    session.conf.set("spark.sql.session.timeZone", "UTC")
    session.conf.set("spark.sql.shuffle.partitions", "1")
    for name, (columns, _) in TABLES.items():
        schema = ", ".join(f"{c} {t}" for c, t in columns.items())
        rows = local_rows(session.createDataFrame(list(_rows(name)), schema).localCheckpoint())
        assert rows is not None, "what is read from Python's rows costs each query a job more"
        rows.createOrReplaceTempView(name)
    found = []
    for sql in QUERIES:
        frame = session.sql(sql)
        rows = sorted([_shown(v) for v in row] for row in frame.collect())
        found.append({"sql": sql, "types": [t for _, t in frame.dtypes], "rows": rows})
    if os.environ.get("FIVM_UPDATE"):
        ANSWERS.write_text("".join(json.dumps(f) + "\n" for f in found), encoding="utf-8")
    assert {f["sql"]: f for f in found} == _recorded()


@pytest.mark.parametrize(
    ("sql", "construct"),
    [
        ("select rand() as x from o", "function RAND"),
        ("select distinct on (k) id from o", "DISTINCT ON"),
        ("select id from o limit 50 percent", "LIMIT of another kind"),
        ("select max_by(id, 1) from o", "MAX_BY of tied rows"),
        ("select id from o tablesample (5 rows)", "sample in FROM"),
        ("select nothing from o", "unknown column nothing"),
    ],
)
def test_what_is_not_understood_is_said(sql: str, construct: str) -> None:
    tables = {"o": Table((("id", INT), ("k", INT)), _rows("o"))}
    with pytest.raises(NotUnderstood) as raised:
        interpret(sql, tables)
    assert raised.value.construct.startswith(construct)


@pytest.mark.parametrize(
    "call",
    [
        "sequence(k, 3, 1)",
        "sequence(k, 7, 0)",
        "sequence(date'2024-01-01', date'2024-01-03', interval -1 day)",
    ],
)
def test_a_sequence_that_leads_away_from_its_end_stops(call: str) -> None:
    """So it does on Spark."""
    tables = {"o": Table((("id", INT), ("k", INT)), ((1, 5),))}
    with pytest.raises(ArithmeticError, match="Illegal sequence boundaries"):
        interpret(f"select {call} as s from o", tables)


SAVED = load_scenarios(sorted((HERE / "saved_cases").glob("*.jsonl")))


@pytest.mark.more
@pytest.mark.parametrize("located", SAVED, ids=lambda located: str(located.scenario.id))
def test_saved_case_beside_the_interpreter(located: Located, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scenarios are replayed beside it in tests/test_scenarios.py."""
    cache_statements(monkeypatch)
    result = replay_scenario(located.scenario, tiny_workbench, interprets=True)
    assert result.outcome in ("passed", "refused"), "\n".join([result.line(), *result.details()])


WRONG: dict[str, object] = {
    "id": "wrong",
    "tables": {"r": [["a", "int"]]},
    "initial": {"r": [[1], [1]]},
    "models": [{"name": "v", "sql": "select a, count(*) as n from r group by a"}],
    "steps": [{"delta": {"r": {"insert": [[2]]}}}],
}


def _write(path: Path, content: object) -> Path:
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def test_a_replay_counts_what_the_second_oracle_has_checked(tmp_path: Path) -> None:
    lines: list[str] = []
    assert replay_files([_write(tmp_path / "a.json", WRONG)], echo=lines.append, interprets=True) == 0
    assert lines[-1] == "checked by a second oracle: 2 of 2 steps"
    model = {
        "name": "v",
        "sql": "select a, now() as t, uuid() as u from r",
        "config": {"fivm_policy": "full"},
    }
    other = {**WRONG, "models": [model]}
    assert replay_files([_write(tmp_path / "b.json", other)], echo=lines.append, interprets=True) == 0
    assert lines[-2:] == [
        "checked by a second oracle: 0 of 2 steps",
        "  not understood, 2 times: no one answer",
    ]


def test_a_recomputed_text_in_which_rows_tie_has_no_one_answer(tmp_path: Path) -> None:
    """Maintained, the same text is completed, and compared."""
    told = {}
    for strategy in ("reevaluate", "first_order"):
        lines: list[str] = []
        model = {
            "name": "v",
            "sql": "select a, row_number() over (order by 1) as n from r",
            "config": {"fivm_strategy": strategy},
        }
        path = _write(tmp_path / f"{strategy}.json", {**WRONG, "models": [model]})
        assert replay_files([path], echo=lines.append, interprets=True) == 0
        told[strategy] = next(line for line in lines if line.startswith("checked by"))
    assert told == {
        "reevaluate": "checked by a second oracle: 0 of 2 steps",
        "first_order": "checked by a second oracle: 2 of 2 steps",
    }


def test_a_difference_from_the_second_oracle_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fivm_dbt.testing.interpreter import aggregate_functions, aggregates

    def one_too_many(arguments: Any, call: Any) -> Any:
        type_, fold = aggregate_functions.count(arguments, call)
        return type_, lambda rows: fold(rows) + 1

    monkeypatch.setitem(aggregates.AGGREGATES, "COUNT", one_too_many)
    lines: list[str] = []
    report = tmp_path / "report.json"
    path = _write(tmp_path / "a.json", WRONG)
    assert replay_files([path], report=report, echo=lines.append, interprets=True) == 1
    assert "  step 0, model v: maintained is not interpreter" in lines
    (found,) = json.loads(report.read_text())["scenarios"]
    assert found["steps"][0]["models"][0]["second_oracle"] == "different"
    assert second_opinions([]) == (0, {})
