"""A state with its staged delta, before that is written."""

from __future__ import annotations

from sqlglot import exp

from fivm_dbt.catalog.types import BIGINT, DOUBLE
from fivm_dbt.ir.scalar import column_ast, identifier
from fivm_dbt.naming import COUNT, PARTITION
from fivm_dbt.plan.binding import staged_state
from fivm_dbt.plan.plan import Plan, StateTable, View
from fivm_dbt.spark.pieces import table


def stored_and_staged(plan: Plan, view: View, own: exp.Expr, where: exp.Expr | None = None) -> exp.Query:
    """Rows of the view's state, a FROM item, beside those of its staged delta where ``where`` holds."""
    state = view.state
    columns = [*(k.name for k in state.keys), *state.payload_names, PARTITION]

    def rows(source: exp.Expr, *, is_stored: bool) -> exp.Select:
        once = exp.alias_(exp.cast(exp.Literal.number(1), BIGINT.text, dialect="spark"), COUNT)
        shown = [once if is_stored and c == COUNT and state.is_set else column_ast("", c) for c in columns]
        return exp.select(*shown, copy=False).from_(source, copy=False)

    staged = rows(table(staged_state(plan, view)), is_stored=False)
    if where is not None:
        staged = staged.where(where.copy(), copy=False)
    return exp.union(rows(own, is_stored=True), staged, distinct=False, copy=False)


def added_up(plan: Plan, view: View, own: exp.Expr, where: exp.Expr | None = None) -> exp.Select:
    """What the state will have when the delta is written: ``new = old + delta`` per key, without keys that are gone.

    ``own`` are the rows of the state where ``where`` holds, which is over its keys and its partitions. The alarms are
    those of the write, which comes after all reads: here a sum that overflowed is NULL.
    """
    state = view.state
    keys = [column_ast("", name) for name in (*(k.name for k in state.keys), PARTITION)]
    sums = [exp.alias_(_total(name, state), name) for name in state.stored_names]
    query = exp.select(*(k.copy() for k in keys), *sums)
    query = query.from_(
        stored_and_staged(plan, view, own, where).subquery(identifier("both"), copy=False), copy=False
    )
    query = query.group_by(*keys, copy=False)
    if state.is_global:
        return query
    is_there = exp.NEQ(this=exp.Sum(this=exp.column(COUNT)), expression=exp.Literal.number(0))
    return query.having(is_there, copy=False)


def _total(name: str, state: StateTable) -> exp.Expr:
    total = exp.Sum(this=column_ast("", name))
    type_ = next((p.type for p in state.payload if p.name == name), BIGINT)
    return total if type_ in (BIGINT, DOUBLE) else exp.cast(total, type_.text, dialect="spark")
