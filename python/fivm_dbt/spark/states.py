"""The rows of a view are read from the table of all states of its model, and written down there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from fivm_dbt.ir.scalar import as_type, cast_ast, column_ast, conjuncts, identifier
from fivm_dbt.naming import COUNT, FILE, OF, PARTITION, ROW, TAIL, TO, VIEW
from fivm_dbt.plan.model.head import NextHead
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.plan.model.view import View
from fivm_dbt.spark.formats import FORMAT
from fivm_dbt.spark.heads import HEAD_COLUMNS, TAIL_PLACE, head_row, is_in_tail, no_head, place_in_tail
from fivm_dbt.spark.pieces import in_one_task, table, union_all


def stored(
    plan: Plan,
    view: View,
    version: int | None,
    where: exp.Expr | None = None,
    alias: str = "state",
    *,
    has_tail: bool = False,
    is_located: bool = False,
) -> exp.Subquery:
    """The rows of a view's state where ``where`` holds, with the view's own names.

    With ``is_located`` each says where it lies.

    They are those of a ``version``; of the newest one with None, which is for looks from outside a refresh. With a tail
    they are also what has been appended and not folded in: of a key there are several, to be added up.
    """
    names = {**plan.layout.stored_as(view), PARTITION: PARTITION}
    name = plan.layout.relation
    source = table(name) if version is None else FORMAT.pinned(name, version)
    columns = [named(column_ast("", place), name) for name, place in names.items()]
    tests = [of_view(plan, view), *([] if where is None else [renamed(plan, view, where)])]
    if has_tail:
        columns[-1] = exp.alias_(_shown_partition(), PARTITION)
        tests = [test for every in tests for t in conjuncts(every) for test in _with_tail(t)]
    if is_located:
        columns += [exp.alias_(e, n) for e, n in zip(FORMAT.place_of_row, (FILE, ROW), strict=True)]
    query = exp.select(*columns, copy=False).from_(source, copy=False).where(*tests, copy=False)
    return query.subquery(identifier(alias), copy=False)


def tail_rows(plan: Plan, view: View, version: int, where: exp.Expr | None) -> exp.Subquery:
    """What has been appended to a view's state and not folded in, where ``where`` holds, with the view's own names."""
    names = plan.layout.stored_as(view)
    columns = [named(column_ast("", place), name) for name, place in names.items()]
    columns.append(exp.alias_(exp.column(TO), PARTITION))
    label = exp.Literal.string(plan.layout.label(view))
    tests = [is_in_tail(), exp.EQ(this=exp.column(OF), expression=label)]
    if where is not None:
        tests.append(_over(renamed(plan, view, where), {PARTITION: exp.column(TO)}))
    query = exp.select(*columns, copy=False).from_(FORMAT.pinned(plan.layout.relation, version), copy=False)
    return query.where(*tests, copy=False).subquery(identifier("appended"), copy=False)


def _with_tail(test: exp.Expr) -> list[exp.Expr]:
    """A condition on rows of a state as one that holds in the tail too, for rows of that state.

    By the second one, on nothing but a column that the table is partitioned by, Delta leaves out files.
    """
    result = _over(test.copy(), {VIEW: _shown_view(), PARTITION: _shown_partition()})
    if isinstance(test, exp.EQ) and test.this.name == VIEW:
        values = [test.expression, exp.Literal.string(TAIL)]
        return [exp.In(this=column_ast("", VIEW), expressions=values), result]
    if isinstance(test, exp.In) and isinstance(test.this, exp.Column) and test.this.name == PARTITION:
        place = exp.Literal.string(TAIL_PLACE)
        wider = exp.In(this=test.this.copy(), expressions=[*(e.copy() for e in test.expressions), place])
        return [wider, result]
    return [result]


def _over(test: exp.Expr, moved: Mapping[str, exp.Expr]) -> exp.Expr:
    """A condition over what columns have ``moved`` to."""
    for column in list(test.find_all(exp.Column)):
        if column.name in moved:
            new = moved[column.name].copy()
            test = new if column is test else test
            column.replace(new)
    return test


def _shown_view() -> exp.Expr:
    """The view that a row is of: in the tail another column has it."""
    return exp.Coalesce(this=column_ast("", OF), expressions=[column_ast("", VIEW)])


def _shown_partition() -> exp.Expr:
    """The partition that a row is of, or goes to when it is folded in."""
    return exp.Coalesce(this=column_ast("", TO), expressions=[column_ast("", PARTITION)])


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


def as_stored(plan: Plan, views: Sequence[tuple[View, exp.Expr]], *, in_tail: bool = False) -> exp.Query:
    """Rows of several states, each in a FROM item with its view's own names, as rows of the table, or of its tail."""
    return union_all(
        [_as_stored(plan, view, rows, plan.layout.stored_as(view), in_tail=in_tail) for view, rows in views]
    )


def as_delta(plan: Plan, views: Sequence[tuple[View, exp.Expr]], head: NextHead) -> exp.Query:
    """The same of deltas, whose rows have multiplicities also where the state has none, and of the head to be set."""
    branches = [
        _as_stored(plan, view, rows, {**plan.layout.stored_as(view), COUNT: COUNT}) for view, rows in views
    ]
    row = head_row(plan, head)
    if COUNT not in {c.name for c in plan.layout.columns}:
        position = len(plan.layout.columns)
        nothing = exp.alias_(as_type(exp.Null(), "bigint"), COUNT)
        row.set("expressions", [*row.expressions[:position], nothing, *row.expressions[position:]])
    return union_all([*branches, row])


def with_head(plan: Plan, rows: exp.Query, head: NextHead) -> exp.Query:
    """Rows of the table with the head to be set."""
    return union_all([rows, head_row(plan, head)])


def _as_stored(
    plan: Plan, view: View, rows: exp.Expr, places: Mapping[str, str], *, in_tail: bool = False
) -> exp.Select:
    own = {place: name for name, place in places.items()}
    types = {c.name: c.type for c in plan.layout.columns}
    columns = [
        named(column_ast("", own[name]), name)
        if name in own
        else exp.alias_(cast_ast(exp.Null(), types[name]), identifier(name))
        for name in dict.fromkeys((*types, *own))
    ]
    label = exp.Literal.string(plan.layout.label(view))
    placed = (
        place_in_tail(label, exp.column(PARTITION))
        if in_tail
        else [*no_head(), exp.alias_(label, VIEW), exp.column(PARTITION)]
    )
    return exp.select(*columns, *placed, copy=False).from_(rows, copy=False)


def lay_out_rows(
    plan: Plan, views: Sequence[View], rows: exp.Query, *, is_small: bool = False, is_told: bool = False
) -> exp.Select:
    """Have each partition written by one task: else every task would write a file into every partition.

    What ``is_small`` one task writes as a whole. Rows that are told (``is_told``) have a change type.

    Within it rows are sorted where they are read by a prefix of their keys, so that few row groups have any.
    """
    own = (c.name for c in plan.layout.columns)
    told = [FORMAT.change_type.name] if is_told else []
    names = [column_ast("", name) for name in (*own, *HEAD_COLUMNS, VIEW, PARTITION, *told)]
    query = exp.select(*names, copy=False).from_(rows.subquery(identifier("stored"), copy=False), copy=False)
    if is_small:
        in_one_task(query)
    else:
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
