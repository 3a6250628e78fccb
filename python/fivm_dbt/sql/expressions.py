"""User expressions become scalars: names are resolved, and all but row-level expressions are refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sqlglot import exp

from fivm_dbt.errors import FivmError
from fivm_dbt.functions.function import Kind
from fivm_dbt.functions.lookup import is_kind
from fivm_dbt.ir.calls import function_name
from fivm_dbt.ir.clock import CLOCK_TYPES
from fivm_dbt.ir.places import note, notes
from fivm_dbt.ir.scalar import Scalar, column_ast, grouped
from fivm_dbt.naming import CLOCK
from fivm_dbt.sql.functions import (
    clock_column,
    is_aggregate,
    is_non_deterministic,
    is_special_time,
)
from fivm_dbt.sql.parse import span_of, unsupported
from fivm_dbt.sql.scope import Scope

MARKS = "fivm_subquery"
"""The relation of the marks that stand for subqueries above GROUP BY until the groups are known."""


def check_row_level(
    node: exp.Expr,
    *,
    allow_aggregates: bool = False,
    allow_windows: bool = False,
    allow_clock: bool = False,
) -> None:
    """Refuse what is not computed from one row alone: subqueries, windows, generators, clocks, random values.

    With ``allow_clock`` it is the business of :mod:`fivm_dbt.rewrite.clock` what the clock may be used for.
    """
    for part in node.walk():
        name = function_name(part)
        if isinstance(part, (exp.Query, exp.Subquery)) or (
            isinstance(part, exp.Exists) and is_subquery(part)
        ):
            raise unsupported(
                part, "a subquery in an expression is not maintained yet", "join the relations in FROM"
            )
        if (isinstance(part, exp.Window) or is_kind(part, Kind.WINDOW)) and not allow_windows:
            raise unsupported(part, "a window function is not allowed here", "use it in SELECT or QUALIFY")
        if is_kind(part, Kind.TIME_WINDOW):
            what = f"{name} puts a row into several groups, which is not maintained yet"
            raise unsupported(part, what, "group by date_trunc(...)")
        if is_kind(part, Kind.GENERATOR) or isinstance(part, (exp.Explode, exp.Posexplode, exp.Unnest)):
            raise unsupported(
                part, f"{name or 'a generator'} is not maintained yet", "explode in a table model upstream"
            )
        if is_non_deterministic(part) and not (allow_clock and clock_column(part)):
            raise FivmError(
                "FIVM106",
                f"{part.sql('spark')} gives another value at every evaluation",
                span=span_of(part),
                remedy="compute it in a table model upstream, or leave it out",
            )
        if isinstance(part, exp.DataType) and part.this == exp.DType.TIME:
            raise unsupported(part, "the type TIME is not maintained yet", "use a timestamp or a string")
        if isinstance(part, (exp.Placeholder, exp.Parameter, exp.SessionParameter)):
            raise unsupported(part, "parameters have no fixed value", "write the value")
        if (
            not allow_aggregates
            and is_aggregate(part)
            and not (allow_windows and part.find_ancestor(exp.Window))
        ):
            raise unsupported(part, f"the aggregate {name} is not allowed here", "use it in SELECT or HAVING")


def qualify(node: exp.Expr, scope: Scope) -> exp.Expr:
    """A copy of ``node`` with every column qualified; names that are select aliases are replaced by their meaning.

    A column of the FROM clause goes before an alias of the same name, as in Spark.
    """

    def visit(part: exp.Column) -> exp.Expr:
        if not isinstance(part.this, exp.Star) and part.table not in (MARKS, CLOCK):
            resolved = _resolved(part, scope)
            if resolved is None and part.name.lower() in scope.aliases and not part.table:
                # The meaning may itself name an earlier alias.
                resolved = grouped(qualify(scope.aliases[part.name.lower()], _without(scope, part.name)))
            if resolved is None and scope.outer is not None:
                resolved = scope.outer.reference(part)
            if resolved is None:
                raise scope.unknown(part)
            # Keep where it stood: later refusals point there.
            for new, old in zip(
                resolved.find_all(exp.Identifier), reversed(list(part.find_all(exp.Identifier))), strict=False
            ):
                if notes(old):
                    note(new, **notes(old))
            return resolved
        return part

    qualified = _transform_columns(_with_clock(node.copy(), scope), visit)
    _check_words(qualified, scope)
    return qualified


def _check_words(node: exp.Expr, scope: Scope) -> None:
    """FIVM106 where a string is compared with a time and Spark reads it as one by the clock, like ``d >= 'today'``."""
    from fivm_dbt.sql.typing import static_type

    for word in node.find_all(exp.Literal):
        if not (word.is_string and is_special_time(word.this) and isinstance(word.parent, exp.Predicate)):
            continue
        others = [part for part in word.parent.iter_expressions() if not isinstance(part, exp.Literal)]
        types = [static_type(part, {**scope.types, **CLOCK_TYPES}) for part in others]
        if not all(type_ is not None and type_.is_string for type_ in types):
            raise FivmError(
                "FIVM106",
                f"{word.sql('spark')} is read by the clock where it is compared with a time",
                span=span_of(word) or span_of(word.parent),
                remedy="write current_date() or now(), or CAST the other side to a string",
            )


def _with_clock(node: exp.Expr, scope: Scope) -> exp.Expr:
    """``node`` with the functions that read the clock as columns of it, which know where they stood."""

    def visit(part: exp.Expr) -> exp.Expr:
        kind = clock_column(part)
        if kind is None:
            return part
        name = function_name(part) or ""
        if notes(part).get("bare") and scope.resolve(exp.column(name)) is not None:
            raise FivmError(
                "FIVM104",
                f"{name} is a column here, and the name of a function",
                span=span_of(part),
                remedy=f"write {name}() for the clock, and the column with its relation in front",
            )
        column = column_ast(CLOCK, kind)
        span = span_of(part)
        assert span is not None
        note(column, start=span.start, end=span.end - 1, written=f"{name}()")
        return column

    return node.transform(visit, copy=False)


def _resolved(column: exp.Column, scope: Scope) -> exp.Expr | None:
    """What a column means in this query; a name that is none here may be one of the query around it."""
    try:
        return scope.resolve(column)
    except FivmError:
        if scope.outer is None or scope.outer.resolve(column) is None:
            raise
        return None


def _without(scope: Scope, alias: str) -> Scope:
    """The scope as the expression behind ``alias`` sees it: an alias does not mean itself."""
    return replace(scope, aliases={k: v for k, v in scope.aliases.items() if k != alias.lower()})


def _transform_columns(node: exp.Expr, visit: Callable[[exp.Column], exp.Expr]) -> exp.Expr:
    # Bottom-up replacement that does not descend into what it has just put in.
    for column in list(node.find_all(exp.Column)):
        replacement = visit(column)
        if replacement is not column:
            if column is node:
                return replacement
            column.replace(replacement)
    return node


def to_scalar(node: exp.Expr, scope: Scope) -> Scalar:
    """The scalar of a row-level user expression."""
    check_row_level(node, allow_clock=True)
    return Scalar(unparenthesized(qualify(node, scope)))


def is_subquery(node: exp.Exists) -> bool:
    """Whether EXISTS is asked of a query, and not of an array with a lambda."""
    return node.args.get("expression") is None


def unparenthesized(node: exp.Expr) -> exp.Expr:
    """``node`` without parentheses around the whole."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node
