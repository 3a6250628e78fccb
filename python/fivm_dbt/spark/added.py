"""Rows of a key are added up: a state with its tail, and with its staged delta."""

from __future__ import annotations

from sqlglot import exp

from fivm_dbt.catalog.types import BIGINT
from fivm_dbt.ir.scalar import as_type, column_ast, conjuncts, identifier
from fivm_dbt.naming import COUNT, FILE, PARTITION, ROW, SIGN
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.plan.model.state import StateTable
from fivm_dbt.plan.model.view import View
from fivm_dbt.spark.pieces import any_moved, as_both, table
from fivm_dbt.spark.states import stored
from fivm_dbt.steps.binding import staged_state


def stored_and_staged(plan: Plan, view: View, own: exp.Expr, where: exp.Expr | None = None) -> exp.Union:
    """Rows of the view's state, a FROM item, beside those of its staged delta where ``where`` holds."""
    state = view.state
    columns = [*(k.name for k in state.keys), *state.payload_names, PARTITION]

    def rows(source: exp.Expr, *, is_stored: bool) -> exp.Select:
        once = exp.alias_(as_type(exp.Literal.number(1), BIGINT.text), COUNT)
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
    both = stored_and_staged(plan, view, own, where).subquery(identifier("both"), copy=False)
    return summed(view, both)


def before_and_after(plan: Plan, view: View, own: exp.Expr, *, is_small: bool) -> exp.Select:
    """The state before its delta is written, and as it will be, from one pass: per key and ``__fivm_sign``.

    A row of the state counts for both, one of the delta for what will be. ``own`` are the rows of the state, whose keys
    are those of the delta. What ``is_small`` one task adds up.
    """
    both = stored_and_staged(plan, view, own)
    stored_rows, staged_rows = both.left, both.right
    assert isinstance(stored_rows, exp.Select) and isinstance(staged_rows, exp.Select)
    after, before = exp.Literal.number(1), exp.Neg(this=exp.Literal.number(1))
    signs = exp.Explode(this=exp.Array(expressions=[after, before]))
    stored_rows.select(exp.alias_(signs, SIGN), copy=False)
    staged_rows.select(exp.alias_(after.copy(), SIGN), copy=False)
    return summed(view, as_both(both, is_small=is_small), is_signed=True)


def at_delta(plan: Plan, view: View, version: int, where: exp.Expr | None, *, has_tail: bool) -> exp.Expr:
    """The rows of a view's state at a version, where ``where`` holds, whose keys are in its staged delta."""
    state = stored(plan, view, version, where, has_tail=has_tail)
    return _at_delta(plan, view, state).subquery("state", copy=False) if view.state.keys else state


def superseded(plan: Plan, view: View, version: int, where: exp.Expr | None, *, is_small: bool) -> exp.Select:
    """The same rows, with the place where each of them lies: these go when the delta is written.

    With a delta that ``is_small`` every task looks into it, and no row of the state is moved.
    """
    query = _at_delta(plan, view, stored(plan, view, version, where, is_located=True), FILE, ROW)
    if is_small:
        hint = exp.Anonymous(this="BROADCAST", expressions=[exp.column("delta")])
        query.set("hint", exp.Hint(expressions=[hint]))
    return query


def _at_delta(plan: Plan, view: View, state: exp.Expr, *more: str) -> exp.Select:
    """The rows of a state, called so, whose keys are in the staged delta, with ``more`` of their columns."""
    names = [*(k.name for k in view.state.keys), PARTITION]
    is_same = exp.and_(
        *(exp.NullSafeEQ(this=column_ast("state", n), expression=column_ast("delta", n)) for n in names),
        copy=False,
    )
    columns = [column_ast("state", n) for n in (*names, *view.state.stored_names, *more)]
    delta = table(staged_state(plan, view)).as_("delta", copy=False)
    query = exp.select(*columns, copy=False).from_(state, copy=False)
    return query.join(delta, on=is_same, join_type="LEFT SEMI", copy=False)


def read_summed(
    plan: Plan, view: View, version: int | None, where: exp.Expr | None, alias: str, *, has_tail: bool
) -> exp.Subquery:
    """The rows of a view's state where ``where`` holds, of each key one: with what has been appended, added up."""
    if not has_tail:
        return stored(plan, view, version, where, alias)
    keys = {*(k.name for k in view.state.keys), PARTITION}
    tests = conjuncts(where) if where is not None else []
    of_keys = [t for t in tests if all(c.name in keys for c in t.find_all(exp.Column))]
    first = exp.and_(*of_keys, copy=False) if of_keys else None
    query = summed(view, stored(plan, view, version, first, has_tail=True))
    rest = [t for t in tests if not any(t is of_key for of_key in of_keys)]
    if rest:
        query = exp.select("*").from_(query.subquery("summed", copy=False)).where(*rest, copy=False)
    return query.subquery(identifier(alias), copy=False)


def summed(
    view: View,
    rows: exp.Expr,
    *,
    with_partition: bool = True,
    is_signed: bool = False,
    of_delta: bool = False,
) -> exp.Select:
    """Rows of a view's state, a FROM item, added up per key, without keys that are gone; signed, per sign too.

    A row ``of_delta`` changes something where one of its sums is not zero.
    """
    state = view.state
    names = [
        *(k.name for k in state.keys),
        *([PARTITION] if with_partition else []),
        *([SIGN] if is_signed else []),
    ]
    keys = [column_ast("", name) for name in names]
    sums = [exp.alias_(_total(name, state), name) for name in state.stored_names]
    query = exp.select(*(k.copy() for k in keys), *sums).from_(rows, copy=False)
    if keys:
        query = query.group_by(*keys, copy=False)
    if of_delta:
        return query.having(
            any_moved(state, {name: _total(name, state) for name in state.stored_names}), copy=False
        )
    if state.is_global:
        return query
    is_there = exp.NEQ(this=exp.Sum(this=exp.column(COUNT)), expression=exp.Literal.number(0))
    return query.having(is_there, copy=False)


def _total(name: str, state: StateTable) -> exp.Expr:
    numbers = state.numbers(name)
    return numbers.stored(numbers.total(column_ast("", name)))
