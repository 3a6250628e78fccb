"""A staged delta into its state: by MERGE, or by writing the touched partitions anew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from fivm_dbt.catalog.types import BIGINT
from fivm_dbt.ir.scalar import column_ast, identifier, never_null, raise_error
from fivm_dbt.naming import COUNT, PARTITION
from fivm_dbt.plan.binding import staged_state
from fivm_dbt.plan.plan import PayloadColumn, Plan, StateTable, View
from fivm_dbt.rings.registry import Component
from fivm_dbt.spark.added import stored_and_staged
from fivm_dbt.spark.reads import Bounds, in_bounds, in_partitions, pinned, table
from fivm_dbt.spark.state import as_set, is_any, lay_out, twice

NEGATIVE = "FIVM401"
OVERFLOW = "FIVM402"


def write_delta(
    plan: Plan,
    view: View,
    partitions: Sequence[exp.Expr] | None,
    before: int,
    *,
    is_replaced: bool,
    only_these: bool = False,
    bounds: Bounds | None = None,
) -> exp.Merge | exp.Insert:
    """What brings a view's staged delta into its state, which was at version ``before``.

    Partitions are written anew only where they are known: not where ``partitions`` is None, for there are too many.
    ``bounds`` are those of the delta in what the state is bounded by.
    """
    if is_replaced and partitions is not None:
        return replace_partitions(plan, view, partitions, before, bounds)
    return merge(plan, view, partitions, only_these=only_these, bounds=bounds)


def merge(
    plan: Plan,
    view: View,
    partitions: Sequence[exp.Expr] | None,
    *,
    only_these: bool = False,
    bounds: Bounds | None = None,
) -> exp.Merge:
    """Add the staged delta to a view's state, in the given partitions only (literals; None: no restriction).

    ``only_these`` says that the delta has rows for other partitions too, which are left for other statements.
    ``bounds`` are those of the whole delta.

    Keys compare null-safe. A row whose multiplicity reaches zero is deleted; one that would go below zero, and a
    decimal that overflows, abort the statement before anything is committed.
    """
    state = view.state
    source = _source(plan, view, partitions if only_these else None)
    conditions: list[exp.Expr] = [
        exp.NullSafeEQ(this=column_ast("target", name), expression=column_ast("delta", name))
        for name in state.merge_keys
    ]
    if partitions is not None:
        conditions.append(in_partitions("target", partitions))
    if bounds is not None:
        conditions.append(in_bounds("target", bounds))
    if state.is_set:
        whens = _of_set(state)
    else:
        count = exp.Add(this=column_ast("target", COUNT), expression=column_ast("delta", COUNT))
        whens = [_update(state, count), _insert(state)]
        if not state.is_global:
            whens.insert(0, _delete(count))
    return exp.Merge(
        this=table(state.relation).as_("target", copy=False),
        using=source,
        on=exp.and_(*conditions) if conditions else exp.Boolean(this=True),
        whens=exp.Whens(expressions=whens),
    )


def _source(plan: Plan, view: View, partitions: Sequence[exp.Expr] | None) -> exp.Expr:
    """The staged delta of a view, in the given partitions, each key of the MERGE once."""
    staged: exp.Expr = table(staged_state(plan, view)).as_("delta", copy=False)
    if view.step is not None:
        return _over_all_steps(plan, view).subquery("delta")
    if partitions is not None:
        staged = exp.select("*").from_(staged).where(in_partitions("delta", partitions)).subquery("delta")
    return _latest(view.state, staged).subquery("delta") if view.state.determined else staged


def _latest(state: StateTable, staged: exp.Expr) -> exp.Select:
    """A staged delta added up by the keys of the MERGE, with the determined ones that come, if any do.

    Of such a key there is one value before and one after: what goes has a multiplicity below zero, what comes above.
    """
    moving = [*state.determined, PARTITION]
    fields = [
        exp.PropertyEQ(this=exp.to_identifier(f"k{i}"), expression=column_ast("", n))
        for i, n in enumerate(moving)
    ]
    newest = exp.ArgMax(this=exp.Struct(expressions=fields), expression=exp.column(COUNT))
    keys = [column_ast("", name) for name in state.merge_keys]
    sums = [exp.alias_(exp.Sum(this=exp.column(n)), n) for n in state.payload_names]
    added = exp.select(*keys, exp.alias_(newest, "newest"), *sums).from_(staged)
    added = added.group_by(*(k.copy() for k in keys))
    shown = [exp.alias_(exp.column(f"k{i}", table="newest"), identifier(n)) for i, n in enumerate(moving)]
    columns = [*(column_ast("", n) for n in (*state.merge_keys, *state.payload_names)), *shown]
    return exp.select(*columns).from_(added.subquery("added"))


def _of_set(state: StateTable) -> list[exp.When]:
    """Rows that come, go, or have other values in what their key determines; a table without multiplicities."""
    count, zero = column_ast("delta", COUNT), exp.Literal.number(0)
    goes = exp.LT(this=count.copy(), expression=zero.copy())
    delete = exp.When(matched=True, condition=goes, then=exp.var("DELETE"))
    comes = exp.GT(this=count.copy(), expression=zero.copy())
    partition, type_ = column_ast("delta", PARTITION), state.partitioning.type.text
    kept = _unless(comes, partition.copy(), type_, twice(state))
    assignments = [
        exp.EQ(this=exp.column(identifier(n)), expression=column_ast("delta", n)) for n in state.determined
    ]
    assignments.append(exp.EQ(this=exp.column(PARTITION), expression=kept))
    update = exp.When(matched=True, then=exp.Update(expressions=assignments))
    names = [*(k.name for k in state.keys), PARTITION]
    is_gone = exp.LTE(this=count.copy(), expression=zero.copy())
    message = f"{NEGATIVE} {state.relation}: a key is to be removed that is not there"
    is_many = exp.GT(this=count.copy(), expression=exp.Literal.number(1))
    checked = _unless(is_gone, _unless(is_many, partition, type_, twice(state)), type_, message)
    values = [*(column_ast("delta", k.name) for k in state.keys), checked]
    then = exp.Insert(
        this=exp.Tuple(expressions=[exp.column(identifier(n)) for n in names]),
        expression=exp.Tuple(expressions=values),
    )
    return [delete, update, exp.When(matched=False, then=then)]


def _over_all_steps(plan: Plan, view: View) -> exp.Select:
    """The staged delta of a view by its keys alone, without what one step has undone of another."""
    keys = [column_ast("", name) for name in (*(k.name for k in view.state.keys), PARTITION)]
    sums = {name: exp.Sum(this=exp.column(name)) for name in view.state.payload_names}
    query = exp.select(*(k.copy() for k in keys), *(exp.alias_(s.copy(), n) for n, s in sums.items()))
    return query.from_(table(staged_state(plan, view))).group_by(*keys).having(is_any(sums.values()))


def _delete(count: exp.Expr) -> exp.When:
    gone = exp.EQ(this=count.copy(), expression=exp.Literal.number(0))
    return exp.When(matched=True, condition=gone, then=exp.var("DELETE"))


def _update(state: StateTable, count: exp.Expr) -> exp.When:
    negative = exp.LT(this=count.copy(), expression=exp.Literal.number(0))
    checked = _unless(
        negative, count.copy(), BIGINT.text, f"{NEGATIVE} {state.relation}: a multiplicity below zero"
    )
    assignments = [exp.EQ(this=exp.column(COUNT), expression=checked)]
    if state.determined:
        moving = (*state.determined, PARTITION)
        assignments += [
            exp.EQ(this=exp.column(identifier(n)), expression=column_ast("delta", n)) for n in moving
        ]
    for payload in state.payload:
        assignments.append(
            exp.EQ(this=exp.column(payload.name), expression=_added(payload.name, payload.component, state))
        )
    return exp.When(matched=True, then=exp.Update(expressions=assignments))


def _added(name: str, component: Component, state: StateTable) -> exp.Expr:
    if not component.type.is_decimal:
        return exp.Add(this=column_ast("target", name), expression=column_ast("delta", name))
    # decimal(37, s) + decimal(37, s) is decimal(38, s); of wider operands Spark would round the last digits.
    narrow = f"decimal(37,{component.type.scale})"
    sides = [exp.cast(column_ast(side, name), narrow, dialect="spark") for side in ("target", "delta")]
    return _never_null(exp.Add(this=sides[0], expression=sides[1]), component.type.text, state)


def _insert(state: StateTable) -> exp.When:
    columns = [*(k.name for k in state.keys), *state.payload_names, PARTITION]
    values: list[exp.Expr] = [column_ast("delta", k.name) for k in state.keys]
    missing = exp.LTE(this=column_ast("delta", COUNT), expression=exp.Literal.number(0))
    message = f"{NEGATIVE} {state.relation}: a key is to be removed that is not there"
    values.append(_unless(missing, column_ast("delta", COUNT), BIGINT.text, message))
    for payload in state.payload:
        value = column_ast("delta", payload.name)
        values.append(
            _never_null(value, payload.component.type.text, state)
            if payload.component.type.is_decimal
            else value
        )
    values.append(column_ast("delta", PARTITION))
    then = exp.Insert(
        this=exp.Tuple(expressions=[exp.column(identifier(c)) for c in columns]),
        expression=exp.Tuple(expressions=values),
    )
    return exp.When(matched=False, condition=_is_more_than_rounding(state), then=then)


def _is_more_than_rounding(state: StateTable) -> exp.Expr | None:
    """Of a key that comes and goes within one delta, doubles may leave a rest: it is no row. None without doubles."""
    exact = [p.name for p in state.payload if not p.component.type.is_floating]
    if len(exact) == len(state.payload):
        return None
    zero = exp.Literal.number(0)
    return exp.or_(
        *(exp.NEQ(this=column_ast("delta", n), expression=zero.copy()) for n in (COUNT, *exact)), copy=False
    )


def _unless(alarm: exp.Expr, value: exp.Expr, type_: str, message: str) -> exp.Expr:
    """``value``, but an error with ``message`` where ``alarm`` holds."""
    return exp.Case(ifs=[exp.If(this=alarm, true=raise_error(message, type_))], default=value)


def _never_null(value: exp.Expr, type_: str, state: StateTable) -> exp.Expr:
    message = f"{OVERFLOW} {state.relation}: a decimal sum overflowed"
    return never_null(value, message, type_)


def replace_partitions(
    plan: Plan, view: View, partitions: Sequence[exp.Expr], before: int, bounds: Bounds | None = None
) -> exp.Insert:
    """Write the given partitions anew: the rows of version ``before`` and the staged delta, added up per key.

    Of a state that is bounded by a key only what lies within the ``bounds`` of the delta, where all is that can change.

    One pass over the partitions where MERGE takes two, and fewer jobs: cheaper while partitions are small. Repeating it
    gives the same rows. The same alarms as in :func:`merge` abort it.
    """
    state = view.state
    touched = in_partitions("", partitions)
    if bounds is not None:
        touched = exp.and_(touched, in_bounds("", bounds), copy=False)
    keys = [k.name for k in state.keys]
    both = stored_and_staged(plan, view, pinned(state.relation, before), touched)
    sums = {name: exp.Sum(this=exp.column(name)) for name in state.payload_names}
    # A key without rows has gone; one that still has sums is an alarm.
    left = [sums[COUNT], *(sums[p.name] for p in state.payload if not p.component.type.is_floating)]
    is_there = is_any(left)
    shown = [exp.alias_(_counted(state, sums[COUNT], is_there), COUNT)]
    shown += [exp.alias_(_summed(p, sums, state), p.name) for p in state.payload]
    group = [column_ast("", c) for c in (*keys, PARTITION)]
    query = exp.select(*(column_ast("", k) for k in keys), *shown, exp.column(PARTITION))
    query = query.from_(both.subquery(identifier("both"), copy=False), copy=False).group_by(
        *group, copy=False
    )
    if not state.is_global:
        query = query.having(is_there.copy(), copy=False)
    if state.is_set:
        query = as_set(state, query)
    lay_out(query, state)
    return exp.Insert(this=table(state.relation), expression=query, where=touched)


def _counted(state: StateTable, total: exp.Expr, is_there: exp.Expr) -> exp.Expr:
    """The multiplicity of a key, or an alarm. Spark computes it for keys too that HAVING drops then."""
    wrong: exp.Expr = exp.LT(this=total.copy(), expression=exp.Literal.number(0))
    if not state.is_global:
        none = exp.LT(this=total.copy(), expression=exp.Literal.number(1))
        wrong = exp.and_(none, exp.paren(is_there.copy()), copy=False)
    message = (
        f"{NEGATIVE} {state.relation}: a multiplicity below zero, or a key is to be removed that is not there"
    )
    return _unless(wrong, total.copy(), BIGINT.text, message)


def _summed(payload: PayloadColumn, sums: Mapping[str, exp.Expr], state: StateTable) -> exp.Expr:
    """A component's sum. A decimal that had overflowed is NULL, which SUM would pass over: an alarm, as in MERGE."""
    total = sums[payload.name]
    if not payload.component.type.is_decimal:
        return total.copy()
    type_ = payload.component.type.text
    there = exp.Count(this=exp.column(payload.name))
    is_lost: exp.Expr = exp.LT(this=there, expression=exp.Count(this=exp.Star()))
    checked = _never_null(total.copy(), type_, state)
    message = f"{OVERFLOW} {state.relation}: a decimal sum had overflowed"
    value = _unless(is_lost, checked, type_, message)
    if state.is_global:
        return value
    # Of a key that has gone nothing is left to be wrong.
    gone = exp.EQ(this=sums[COUNT].copy(), expression=exp.Literal.number(0))
    return exp.Case(ifs=[exp.If(this=gone, true=total.copy())], default=value)
