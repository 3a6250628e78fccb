"""The table of functions."""

from __future__ import annotations

import pytest
import sqlglot

from fivm_dbt.catalog import SparkType
from fivm_dbt.functions.nothing import value_over_nothing


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
