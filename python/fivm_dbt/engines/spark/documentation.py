"""Descriptions go on a view, of which Spark takes column comments only where it is created, or on a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fivm_dbt.engines.spark.engine import Execute
from fivm_dbt.engines.spark.introspect import Described
from fivm_dbt.naming import FACTORS_PROPERTY, PART_PROPERTY, ROOT_PROPERTY, TAIL_PROPERTY, quote

_KEPT = (ROOT_PROPERTY, TAIL_PROPERTY, FACTORS_PROPERTY, PART_PROPERTY)


@dataclass(frozen=True)
class Documentation:
    """Comments of a view and of its columns (by name in lower case); None and {} where there are none."""

    relation: str | None
    columns: Mapping[str, str]


def document(execute: Execute, view: str, described: Described, wanted: Documentation) -> bool:
    """Give a fivm model its comments; whether anything had to be changed."""
    names = [column.name for column in described.columns]
    # A comment that nobody asked for here was put there by someone else: it stays.
    columns, comment = dict(described.column_comments), described.comment or None
    new_columns = columns | {n: wanted.columns[n] for n in map(str.lower, names) if n in wanted.columns}
    new_comment = wanted.relation or comment
    if new_columns == columns and new_comment == comment:
        return False
    if not described.is_view:
        if new_comment != comment:
            execute(f"COMMENT ON TABLE {view} IS {_literal(new_comment or '')}", fetch=False)
        for name in (n for n in names if new_columns.get(n.lower()) != columns.get(n.lower())):
            text = _literal(new_columns[name.lower()])
            execute(f"ALTER TABLE {view} ALTER COLUMN {quote(name)} COMMENT {text}", fetch=False)
        return True
    listed = ", ".join(_column(name, new_columns.get(name.lower())) for name in names)
    ours = {k: v for k, v in described.properties if k in _KEPT}
    kept = ", ".join(f"'{key}' = {_literal(value)}" for key, value in ours.items())
    execute(
        f"CREATE OR REPLACE VIEW {view} ({listed}){_comment(new_comment)} "
        f"TBLPROPERTIES ({kept}) AS {described.view_text}",
        fetch=False,
    )
    return True


def _column(name: str, comment: str | None) -> str:
    return f"{quote(name)}{_comment(comment)}"


def _comment(text: str | None) -> str:
    return f" COMMENT {_literal(text)}" if text else ""


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
