"""The table of functions."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlglot
from tests.function_types import FIELDS, NAMES, read, recorded

from fivm_dbt.catalog import Column, SparkType
from fivm_dbt.errors import FivmError
from fivm_dbt.functions.lookup import TABLE, find, named
from fivm_dbt.functions.nothing import value_over_nothing
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.sql.functions import check_functions
from fivm_dbt.sql.parse import parse
from fivm_dbt.sql.typing import Describe, Typer

PYTHON = Path(__file__).resolve().parent.parent / "python" / "fivm_dbt"


@pytest.mark.parametrize(
    ("call", "value"),
    [
        ("count(*)", "CAST(0 AS BIGINT)"),
        ("count(distinct a) filter (where b)", "CAST(0 AS BIGINT)"),
        ("approx_count_distinct(a)", "CAST(0 AS BIGINT)"),
        ("regr_count(a, b)", "CAST(0 AS BIGINT)"),
        ("max(a)", "NULL"),
        ("bit_and(a)", "NULL"),
        ("any(a)", "NULL"),
        ("listagg(a) within group (order by a)", "NULL"),
        ("percentile(a, array(0.1, 0.2))", "NULL"),
        ("max_by(a, b, 2)", "NULL"),
        ("collect_list(a)", "ARRAY()"),
        ("array_agg(a)", "ARRAY()"),
        ("collect_set(a)", "ARRAY()"),
        ("count_min_sketch(a, 0.1, 0.9, 1)", None),
        ("upper(a)", None),
    ],
)
def test_value_over_nothing(call: str, value: str | None) -> None:
    found = value_over_nothing(sqlglot.parse_one(call, dialect="spark"))
    assert (found and found.sql("spark")) == value


def test_an_empty_list_has_the_type_of_the_list() -> None:
    found = value_over_nothing(
        sqlglot.parse_one("collect_set(a)", dialect="spark"), SparkType.of("array<int>")
    )
    assert found is not None and found.sql("spark") == "CAST(ARRAY() AS ARRAY<INT>)"


@pytest.mark.parametrize(("call", "type_"), recorded(), ids=[call for call, _ in recorded()])
def test_type_without_a_connection_is_the_one_of_spark(call: str, type_: str) -> None:
    assert str(Typer().types([Scalar(read(call))], FIELDS)[0]) == type_


def test_every_function_with_a_type_has_a_call() -> None:
    calls = [node for call, _ in recorded() for node in read(call).walk()]
    called = {function.name for node in calls if (function := find(node)) is not None}
    typed = {f.name for f in TABLE if f.type is not None and not f.refused and f.other is None}
    of_one_type = (
        "xpath",
        "tuple_",
        "theta_",
        "kll_",
        "vector_",
        "st_",
        "regr_",
        "make_",
        "try_",
        "from_",
        "to_",
    )
    left = {name for name in typed - called if name.isidentifier() and not name.startswith(of_one_type)}
    assert left == LEFT


CASTS = set("smallint int bigint float double boolean string date timestamp".split())
"""Calls that are read as CAST."""

LEFT = set(
    "and array_size array_sort between bigint boolean date div double float grouping_id ilike in int like locate log2 "
    "ltrim mod named_struct not or rpad rtrim schema_of_avro smallint string timestamp".split()
)
"""What is read as an operator, a CAST or the call of another function."""


def test_every_function_of_spark_is_in_the_table_under_one_row() -> None:
    names = NAMES.read_text(encoding="utf-8").split()
    assert len(names) > 550
    assert [n for n in names if named(n) is None] == []
    every = [name for function in TABLE for name in function.names]
    assert len(every) == len(set(every))
    # Spark reads these without listing them.
    assert sorted(set(every) - set(names)) == ["getdate", "timestampadd", "timestampdiff"]


def test_no_list_of_function_names_is_left_where_sql_is_read() -> None:
    syntax = {
        *CASTS,
        "tinyint",
        "binary",
        "decimal",
        "time",
        "and",
        "or",
        "not",
        "between",
        "in",
        "case",
        "when",
    }
    found = []
    for path in sorted([*(PYTHON / "sql").glob("*.py"), *(PYTHON / "features").glob("*/sql/*.py")]):
        for words in _lists_of_words(path.read_text(encoding="utf-8")):
            functions = [w for w in words if w.isidentifier() and w not in syntax and named(w) is not None]
            if 2 * len(functions) > len(words):
                found.append(f"{path.stem}: {' '.join(words)}")
    # What a row pattern maintains, and how it is walked along, which are no functions of Spark.
    assert found == [
        "expressions: count sum min max avg",
    ]


def _lists_of_words(text: str) -> Iterator[list[str]]:
    for node in ast.walk(ast.parse(text)):
        if not (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "split"
        ):
            continue
        words = node.func.value
        if isinstance(words, ast.Constant) and isinstance(words.value, str):
            yield words.value.lower().split()


def _describe(known: str) -> Describe:
    """What a session says that has one function of the user's, with an argument."""

    def describe(sql: str) -> tuple[Column, ...]:
        if f"{known}()" in sql.lower():
            raise RuntimeError(f"[WRONG_NUM_ARGS.WITHOUT_SUGGESTION] The `{known}` requires 1 parameters")
        raise RuntimeError("[UNRESOLVED_ROUTINE] Cannot resolve routine on search path")

    return describe


@pytest.mark.parametrize("describe", [None, _describe("own")], ids=["offline", "connected"])
def test_the_function_that_was_meant(describe: Describe | None) -> None:
    sql = "select k, uper(own(s)) as u from r"
    if describe is None:
        sql = sql.replace("own(s)", "s")
    with pytest.raises(FivmError) as caught:
        check_functions(parse(sql), describe)
    assert caught.value.code.number == "FIVM105" and caught.value.span is not None
    assert sql[caught.value.span.start : caught.value.span.end].startswith("uper")
    assert caught.value.remedy == "did you mean upper?"


def test_functions_of_the_user_are_asked_for_once() -> None:
    asked = []

    def describe(sql: str) -> tuple[Column, ...]:
        asked.append(sql)
        return _describe("own")(sql)

    check_functions(
        parse("select own(own(s)) as u, max(own(s)) over (partition by upper(s)) as m from r"), describe
    )
    assert asked == ["SELECT OWN()"]
    with pytest.raises(FivmError, match="zzyzx is no function of Spark"):
        check_functions(parse("select zzyzx(s) as u from r"), describe)
