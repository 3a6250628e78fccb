"""Common types: what Spark is asked for, and what needs no question."""

from __future__ import annotations

import pytest

from fivm_dbt.catalog import Column, SparkType
from fivm_dbt.sql.typing import VOID, Typer

INT, DECIMAL = SparkType.of("int"), SparkType.of("decimal(5,2)")


def test_null_alone_is_of_every_type() -> None:
    """Spark calls it void, a type that no CAST is written to."""

    def describe(sql: str) -> tuple[Column, ...]:
        pytest.fail(f"nobody need be asked: {sql}")

    typer = Typer(describe)
    assert typer.common([INT, VOID]) == typer.common([VOID, INT, VOID]) == INT
    assert typer.common([VOID, VOID]) == VOID


def test_types_that_differ_are_asked_for_without_null() -> None:
    asked: list[str] = []

    def describe(sql: str) -> tuple[Column, ...]:
        asked.append(sql)
        return (Column.of("c", "decimal(12,2)"),)

    assert Typer(describe).common([INT, VOID, DECIMAL]) == SparkType.of("decimal(12,2)")
    assert len(asked) == 1 and "void" not in asked[0].lower()
