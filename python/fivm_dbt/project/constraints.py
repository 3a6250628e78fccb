"""Constraints and tests of a dbt node state what holds of its rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any


def kind(constraint: Any) -> str:
    """What a constraint says: primary_key, unique, not_null, foreign_key."""
    return str(getattr(constraint.type, "value", constraint.type))


def lower(columns: Iterable[str]) -> tuple[str, ...]:
    """Columns as keys have them."""
    return tuple(c.lower() for c in columns)


def constraint_keys(node: Any) -> Iterator[tuple[str, ...]]:
    """The keys that constraints of a whole relation state."""
    for constraint in getattr(node, "constraints", None) or ():
        if kind(constraint) in ("primary_key", "unique") and constraint.columns:
            yield lower(constraint.columns)


def primary(node: Any) -> Iterator[str]:
    """Columns of a primary key: never NULL by definition."""
    for constraint in getattr(node, "constraints", None) or ():
        if kind(constraint) == "primary_key":
            yield from lower(constraint.columns)
    for column in node.columns.values():
        if any(kind(c) == "primary_key" for c in getattr(column, "constraints", None) or ()):
            yield column.name.lower()


def column_constraints(node: Any) -> tuple[set[str], set[str]]:
    """Columns declared unique, and columns declared not null."""
    unique, not_null = set(), set()
    for column in node.columns.values():
        kinds = {kind(c) for c in getattr(column, "constraints", None) or ()}
        if kinds & {"unique", "primary_key"}:
            unique.add(column.name.lower())
        if "not_null" in kinds:
            not_null.add(column.name.lower())
    return unique, not_null


def is_strict(config: Any) -> bool:
    """Whether a test that fails fails the build, and looks at all rows."""
    severity = str(getattr(config.severity, "value", config.severity)).lower()
    return config.where is None and severity == "error" and config.error_if == "!= 0" and config.limit is None
