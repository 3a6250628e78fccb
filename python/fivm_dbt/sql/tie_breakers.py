"""A key of what a SELECT reads breaks the ties of its windows, or else all columns that it uses do."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlglot import exp

from fivm_dbt.ir.node import Field
from fivm_dbt.ir.scalar import ColumnId, column_ast
from fivm_dbt.naming import quote
from fivm_dbt.sql.aggregates import depends_on_order
from fivm_dbt.sql.group_keys import group_keys
from fivm_dbt.sql.numbered_rows import NumberedRows
from fivm_dbt.sql.scope import OF_OUTER
from fivm_dbt.sql.select_names import SelectNames, not_found
from fivm_dbt.sql.window_bounds import key_text
from fivm_dbt.sql.window_ties import WindowCall


def tie_breakers(select: SelectNames, call: WindowCall, numbered: NumberedRows | None) -> list[str]:
    """What tells rows apart besides what the window is given: group keys, a key, or the columns that are used.

    Numbered rows go down where the order does: so the last of equal rows in one order is the first in the reverse.
    """
    if select.is_grouped:
        return _group_keys(select, call.given)
    fixed = {c for g in call.given for c in [select.column(g)] if c is not None}
    if numbered is not None:
        columns = [*_columns(select, numbered.fields, fixed, call.window), *numbered.numbers]
        is_descending = all(item.args.get("desc") for item in call.order)
        return [f"{column} desc" for column in columns] if is_descending else columns
    if any(key <= fixed for key in select.keys):
        return []
    nearest = min(select.keys, key=lambda key: (len(key - fixed), sorted(key)), default=None)
    return _columns(select, _used_columns(select) if nearest is None else nearest, fixed, call.window)


def _group_keys(select: SelectNames, given: Sequence[exp.Expr]) -> list[str]:
    """The group keys besides those that are given."""
    keys = group_keys(select.node, select.scope, select.projections)
    fixed = {select.scalar(g) for g in given}
    missing = {select.scalar(k): key_text(k) for k in keys.expressions if not _is_outer(k)}
    written = [text for scalar, text in missing.items() if scalar not in fixed]
    by_set = keys.in_sets and not any(isinstance(g, exp.GroupingId) and not g.expressions for g in given)
    return [*written, "grouping_id()"] if by_set else written


def _is_outer(value: exp.Expr) -> bool:
    """Whether a group key is of the query around, so that it is the same for all groups."""
    return any(c.table.startswith(OF_OUTER) for c in value.find_all(exp.Column))


def _columns(
    select: SelectNames, used: Collection[ColumnId], fixed: set[ColumnId], window: exp.Window
) -> list[str]:
    """The columns that are used and not fixed, as they can be written."""
    missing: dict[ColumnId, str] = {}
    for source, name, field in select.columns:
        if field.id in used and field.id not in fixed and field.id not in missing:
            missing[field.id] = _written(select, source, name, field, window)
    return list(missing.values())


def _used_columns(select: SelectNames) -> set[ColumnId]:
    used: set[ColumnId] = set()
    args = select.node.args
    clauses = [args.get("qualify"), args.get("order"), *(args.get("windows") or [])]
    for part in (*(value for _, value in select.projections), *(c for c in clauses if c is not None)):
        for column in part.find_all(exp.Column):
            if isinstance(column.this, exp.Star):
                used.update(f.id for _, f in select.scope.outputs)
            used.update(select.meant(column))
    return used


def _written(select: SelectNames, source: str, name: str, field: Field, window: exp.Window) -> str:
    if not field.type.is_groupable:
        what = f"is ordered neither by {name}, which has type {field.type}, nor by a key, so it"
        raise depends_on_order(window, "order by columns that tell all rows apart", what)
    if source and source.lower() in _names_in_from(select):
        return column_ast(source, name).sql(dialect="spark")
    if sum(n.lower() == name.lower() for n, _ in select.scope.outputs) != 1:
        raise not_found(window)
    return quote(name)


def _names_in_from(select: SelectNames) -> set[str]:
    """What the relations in FROM are called in the text."""
    args = select.node.args
    names: set[str] = set()
    for clause in (args.get("from_"), *(args.get("joins") or []), *(args.get("laterals") or [])):
        for part in clause.walk(prune=_is_query_in_from) if clause is not None else ():
            alias = part.args.get("alias")
            name = alias.this if isinstance(alias, exp.TableAlias) else part.this
            if isinstance(name, exp.Identifier) and select.text.stands_at(name) is not None:
                names.add(name.name.lower())
    return names


def _is_query_in_from(node: exp.Expr) -> bool:
    return isinstance(node, exp.Subquery) and not isinstance(node.this, exp.Table)
