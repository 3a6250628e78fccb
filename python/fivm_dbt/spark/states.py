"""The rows of a view in the table of all states of its model: how they are read, and how they are written down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from fivm_dbt.ir.scalar import cast_ast, column_ast, identifier
from fivm_dbt.naming import COUNT, PARTITION, VIEW
from fivm_dbt.plan.head import NextHead
from fivm_dbt.plan.plan import Plan, View
from fivm_dbt.spark.heads import HEAD_COLUMNS, head_row, no_head
from fivm_dbt.spark.pieces import pinned, table, union_all


def stored(
    plan: Plan, view: View, version: int | None, where: exp.Expr | None = None, alias: str = "state"
) -> exp.Subquery:
    """The rows of a view's state where ``where`` holds, with the view's own names.

    They are those of a ``version``; of the newest one with None, which is for looks from outside a refresh.
    """
    names = {**plan.layout.stored_as(view), PARTITION: PARTITION}
    name = plan.layout.relation
    source = table(name) if version is None else pinned(name, version)
    columns = [named(column_ast("", place), name) for name, place in names.items()]
    query = exp.select(*columns, copy=False).from_(source, copy=False).where(of_view(plan, view), copy=False)
    if where is not None:
        query = query.where(renamed(plan, view, where), copy=False)
    return query.subquery(identifier(alias), copy=False)


def of_view(plan: Plan, view: View, alias: str = "") -> exp.Expr:
    """``alias.__fivm_view = 'the view'``."""
    return exp.EQ(this=column_ast(alias, VIEW), expression=exp.Literal.string(plan.layout.label(view)))


def renamed(plan: Plan, view: View, test: exp.Expr) -> exp.Expr:
    """An expression over the columns of a view's state, over those of the table."""
    names = plan.layout.stored_as(view)
    result = test.copy()
    for column in list(result.find_all(exp.Column)):
        place = names.get(column.name)
        if place is not None:
            column.set("this", identifier(place))
    return result


def as_stored(plan: Plan, views: Sequence[tuple[View, exp.Expr]]) -> exp.Query:
    """Rows of several states, each in a FROM item with its view's own names, as rows of the table."""
    return union_all([_as_stored(plan, view, rows, plan.layout.stored_as(view)) for view, rows in views])


def as_delta(plan: Plan, views: Sequence[tuple[View, exp.Expr]], head: NextHead) -> exp.Query:
    """The same of deltas, whose rows have multiplicities also where the state has none, and of the head to be set."""
    branches = [
        _as_stored(plan, view, rows, {**plan.layout.stored_as(view), COUNT: COUNT}) for view, rows in views
    ]
    row = head_row(plan, head, is_compared=False)
    if COUNT not in {c.name for c in plan.layout.columns}:
        position = len(plan.layout.columns)
        nothing = exp.alias_(exp.cast(exp.Null(), "bigint", dialect="spark"), COUNT)
        row.set("expressions", [*row.expressions[:position], nothing, *row.expressions[position:]])
    return union_all([*branches, row])


def with_head(plan: Plan, rows: exp.Query, head: NextHead) -> exp.Query:
    """Rows of the table with the head to be set, which is compared."""
    return union_all([rows, head_row(plan, head)])


def _as_stored(plan: Plan, view: View, rows: exp.Expr, places: Mapping[str, str]) -> exp.Select:
    own = {place: name for name, place in places.items()}
    types = {c.name: c.type for c in plan.layout.columns}
    columns = [
        named(column_ast("", own[name]), name)
        if name in own
        else exp.alias_(cast_ast(exp.Null(), types[name]), identifier(name))
        for name in dict.fromkeys((*types, *own))
    ]
    label = exp.alias_(exp.Literal.string(plan.layout.label(view)), VIEW)
    return exp.select(*columns, *no_head(), label, exp.column(PARTITION), copy=False).from_(rows, copy=False)


def lay_out_rows(plan: Plan, views: Sequence[View], rows: exp.Query) -> exp.Select:
    """Have each partition written by one task: else every task would write a file into every partition.

    Within it rows are sorted where they are read by a prefix of their keys, so that few row groups have any.
    """
    own = (c.name for c in plan.layout.columns)
    names = [column_ast("", name) for name in (*own, *HEAD_COLUMNS, VIEW, PARTITION)]
    query = exp.select(*names, copy=False).from_(rows.subquery(identifier("stored"), copy=False), copy=False)
    together = exp.Anonymous(this="REBALANCE", expressions=[exp.column(VIEW), exp.column(PARTITION)])
    query.set("hint", exp.Hint(expressions=[together]))
    order = [e for view in views for e in _sorted_by(plan, view, is_alone=len(views) == 1)]
    if order:
        every = [exp.column(VIEW), exp.column(PARTITION), *order]
        query.set("sort", exp.Sort(expressions=[exp.Ordered(this=e, nulls_first=True) for e in every]))
    return query


def _sorted_by(plan: Plan, view: View, *, is_alone: bool) -> list[exp.Expr]:
    names = plan.layout.stored_as(view)
    columns = [column_ast("", names[name]) for name in view.state.sorted_by]
    if is_alone:
        return list(columns)
    return [exp.Case(ifs=[exp.If(this=of_view(plan, view), true=column)]) for column in columns]


def named(value: exp.Expr, name: str) -> exp.Expr:
    """``value AS name``, without the alias where that is its name."""
    return value if value.alias_or_name == name else exp.alias_(value, identifier(name))
