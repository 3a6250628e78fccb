"""A SELECT says whether it groups its rows, and by which keys."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from fivm_dbt.sql.aggregates import AROUND_AGGREGATES, called
from fivm_dbt.sql.expressions import unparenthesized
from fivm_dbt.sql.functions import is_aggregate
from fivm_dbt.sql.grouping_sets import GroupingSets, read_grouping_sets
from fivm_dbt.sql.outer_scope import CARRIED
from fivm_dbt.sql.parse import unsupported
from fivm_dbt.sql.scope import Scope
from fivm_dbt.sql.window_bounds import group_parts, is_window

Projections = list[tuple[str, exp.Expr]]
"""Name and expression of the columns of a SELECT."""


def is_aggregated(node: exp.Select, projections: Projections) -> bool:
    """Whether a SELECT groups: it has GROUP BY or HAVING, or an aggregate that is not a window function."""
    if node.args.get("group") or node.args.get("having"):
        return True
    return any(_aggregates_here(value) for _, value in projections)


def _aggregates_here(value: exp.Expr) -> bool:
    """Whether an expression aggregates the rows of its own SELECT: not those of a subquery or a window."""
    if isinstance(value, exp.Query):
        return False
    if isinstance(value, exp.Window):
        # The function over the window is none of the groups, but its operands may be.
        inner = called(value.this)
        parts = [*inner.iter_expressions(), *(c for c in value.iter_expressions() if c is not value.this)]
        return any(_aggregates_here(part) for part in parts)
    return is_aggregate(value) or any(_aggregates_here(child) for child in value.iter_expressions())


def outermost_aggregates(node: exp.Expr) -> list[exp.Expr]:
    """Calls of aggregate functions, with what stands around them, but those of subqueries."""
    if isinstance(node, exp.Query):
        return []
    if is_aggregate(node) or isinstance(node, AROUND_AGGREGATES):
        return [node]
    return [found for child in node.iter_expressions() for found in outermost_aggregates(child)]


@dataclass(frozen=True)
class GroupKeys:
    """What a SELECT groups by, as it is written, and whether in several grouping sets."""

    expressions: list[exp.Expr]
    in_sets: bool


def group_keys(node: exp.Select, scope: Scope, projections: Projections) -> GroupKeys:
    """The keys of a SELECT with aggregates; none without GROUP BY, where there is one group."""
    group = node.args.get("group")
    if group is None:
        return GroupKeys([], False)
    sets = read_grouping_sets(group)
    return GroupKeys(written_keys(group, sets, scope, projections), sets is not None)


def written_keys(
    group: exp.Group, sets: GroupingSets | None, scope: Scope, projections: Projections
) -> list[exp.Expr]:
    """The items of GROUP BY, once each grouping set has been taken apart."""
    if group.args.get("all"):
        every = [v for n, v in projections if not n.startswith(CARRIED)]
        written = [v for v in every if is_window(v) or not _aggregates_here(v)]
    else:
        expressions = sets.expressions if sets is not None else group.expressions
        written = [grouped_expression(e, scope, projections) for e in expressions]
    return [part for expression in written for part in group_parts(expression)]


def grouped_expression(expression: exp.Expr, scope: Scope, projections: Projections) -> exp.Expr:
    """The meaning of one GROUP BY item: an ordinal, a column, or the alias of an output column."""
    inner = unparenthesized(expression)
    if isinstance(inner, exp.Literal) and not inner.is_string and inner.this.isdigit():
        position = int(inner.this)
        if not 1 <= position <= len(projections):
            what = f"GROUP BY {position}, but there are {len(projections)} columns"
            raise unsupported(expression, what, "use a position of the select list", code="FIVM102")
        return projections[position - 1][1]
    if isinstance(inner, exp.Column) and not inner.table and scope.resolve(inner) is None:
        for name, value in projections:
            if name.lower() == inner.name.lower():
                return value
    return inner


def has_windows(node: exp.Select, projections: Projections) -> bool:
    """Whether a SELECT computes window functions of its own."""
    if node.args.get("qualify"):
        return True
    return any(_has_window(value) for _, value in projections)


def _has_window(value: exp.Expr) -> bool:
    if isinstance(value, exp.Query):
        return False
    return isinstance(value, exp.Window) or any(_has_window(c) for c in value.iter_expressions())
