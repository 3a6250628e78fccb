"""Partitions of states are written anew: old rows and staged deltas are added up in one pass."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from sqlglot import exp

from fivm_dbt.catalog.types import BIGINT
from fivm_dbt.ir.scalar import as_type, column_ast, identifier
from fivm_dbt.naming import BEFORE, COUNT, KINDS, PARTITION, STAGED
from fivm_dbt.plan.model.head import NextHead
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.plan.model.state import PayloadColumn, StateTable
from fivm_dbt.plan.model.view import View
from fivm_dbt.spark.added import stored_and_staged, summed
from fivm_dbt.spark.alarms import NEGATIVE, OVERFLOW, overflowed, unless
from fivm_dbt.spark.formats import FORMAT
from fivm_dbt.spark.heads import head_row, is_in_tail
from fivm_dbt.spark.pieces import any_moved, as_both, table, union_all
from fivm_dbt.spark.places import Closed, Place
from fivm_dbt.spark.state import as_set, checked_partition
from fivm_dbt.spark.states import as_stored, lay_out_rows, stored, tail_rows, with_head
from fivm_dbt.steps.binding import staged_old, staged_state

_CHANGE_TYPE = FORMAT.change_type.name
_INSERT, _DELETE = FORMAT.change_type.came[0], FORMAT.change_type.went[0]


def replace_partitions(
    plan: Plan,
    places: Sequence[Place],
    before: int,
    head: NextHead,
    tails: Collection[str] = (),
    *,
    is_small: bool = False,
    left: Sequence[Place] = (),
    closed: Sequence[Closed] = (),
) -> exp.Insert:
    """Write the given partitions anew: the rows of version ``before`` and the staged deltas, added up per key.

    Those that are ``closed`` go.

    The tail is written anew too, with the head and what is ``left`` there: ``places`` have all else that the views
    ``tails`` have there.

    Of a state that is bounded by a key only what lies within the bounds of the delta, where all is that can change.

    One pass over the partitions where MERGE takes two, and fewer jobs: cheaper while partitions are small. Repeating it
    gives the same rows. The same alarms as in a MERGE abort it. What ``is_small`` is read and written by one task.
    """
    rows = [
        (p.view, _added(plan, p, before, p.view.name in tails, is_small).subquery(identifier("added")))
        for p in places
    ]
    kept = [
        (p.view, _left(plan, p, before, p.view.name in tails, is_small).subquery(identifier("left")))
        for p in left
    ]
    groups = [(rows, False), (kept, True)]
    every = union_all([as_stored(plan, found, in_tail=stays) for found, stays in groups if found])
    query = lay_out_rows(plan, _views(plan, places), with_head(plan, every, head), is_small=is_small)
    where = replaced_rows(plan, places, closed)
    return exp.Insert(this=table(plan.layout.relation), expression=query, where=where)


def replaced_rows(plan: Plan, places: Sequence[Place], closed: Sequence[Closed] = ()) -> exp.Expr:
    """The rows of the table that are written anew: those of the tail, where the head is, and of the places.

    And those that go, in partitions that are ``closed``.
    """
    conditions = [*(place.condition(plan) for place in places), *(one.condition(plan) for one in closed)]
    return exp.or_(is_in_tail(), *conditions, copy=False)


def new_rows(
    plan: Plan,
    places: Sequence[Place],
    before: int,
    head: NextHead,
    *,
    is_small: bool = False,
    is_told: bool = True,
    deleted: Sequence[Place] = (),
) -> exp.Select:
    """The rows that come with a commit, where there is no tail, and if it ``is_told`` those of the root's change feed.

    All of ``places``, as :func:`replace_partitions` writes them; of places that are ``deleted`` those alone whose keys
    are in the delta: what is there of them now has been staged (:func:`~fivm_dbt.spark.added.superseded`), and goes.

    Rows of the change feed have a change type. Of each key in the root's delta the row that it had is deleted, and the
    one that it will have inserted: ``table + deleted(key in delta) + inserted(key in delta)``, from one pass and one
    aggregation.
    """
    no_type: exp.Expr = exp.alias_(as_type(exp.Null(), "string"), _CHANGE_TYPE)
    sources: list[tuple[Place, exp.Expr]] = [(p, stored(plan, p.view, before, p.of_own())) for p in places]
    sources += [(p, table(staged_old(plan, p.view))) for p in deleted]
    rows: list[exp.Query] = []
    for place, own in sources:
        has_types = is_told and place.view is plan.top
        added = (_added_and_changes if has_types else _added_to)(plan, place, own, is_small)
        every = as_stored(plan, [(place.view, added.subquery(identifier("added")))])
        assert isinstance(every, exp.Select)
        rows.append(_typed(every, exp.column(_CHANGE_TYPE) if has_types else no_type, is_told))
    rows.append(_typed(head_row(plan, head), no_type, is_told))
    views = _views(plan, [place for place, _ in sources])
    return lay_out_rows(plan, views, union_all(rows), is_small=is_small, is_told=is_told)


def _typed(rows: exp.Select, type_: exp.Expr, is_told: bool) -> exp.Select:
    return rows.select(type_.copy(), copy=False) if is_told else rows


def _views(plan: Plan, places: Sequence[Place]) -> list[View]:
    return [v for v in plan.stored if any(place.view is v for place in places)]


def _added(plan: Plan, place: Place, before: int, has_tail: bool, is_small: bool) -> exp.Select:
    """The rows of a place, with the tail and the staged delta."""
    return _added_to(
        plan, place, stored(plan, place.view, before, place.of_own(), has_tail=has_tail), is_small
    )


def _added_to(plan: Plan, place: Place, own: exp.Expr, is_small: bool) -> exp.Select:
    """Rows of a place, a FROM item, with the staged delta."""
    view, state = place.view, place.view.state
    is_staged = place.is_staged
    both = stored_and_staged(plan, view, own, place.of_own()) if is_staged else exp.select("*").from_(own)
    query = _per_key(state, both, is_small)
    if not state.is_global:
        query = query.having(_is_there(state), copy=False)
    return as_set(state, query) if state.is_set else query


def _left(plan: Plan, place: Place, before: int, has_tail: bool, is_small: bool) -> exp.Select:
    """The rows of the tail that go to a place, and those of the staged delta, added up and left in the tail."""
    view, own = place.view, place.of_own()
    sources: list[exp.Expr] = [tail_rows(plan, view, before, own)] if has_tail else []
    if place.is_staged:
        sources.append(table(staged_state(plan, view)))
    names = (*(k.name for k in view.state.keys), *view.state.stored_names, PARTITION)
    columns = [column_ast("", name) for name in names]
    rows = [exp.select(*columns).from_(source, copy=False).where(own, copy=True) for source in sources]
    return summed(view, as_both(union_all(rows), is_small=is_small), of_delta=True)


def _added_and_changes(plan: Plan, place: Place, own: exp.Expr, is_small: bool) -> exp.Select:
    """Rows of a place, a FROM item, with the staged delta; of its keys again, and as they were, with a change type.

    A key has several rows then, or one that has gone: what is wrong with it is asked of those that stay.
    """
    state = place.view.state
    both = stored_and_staged(plan, place.view, own, place.of_own())
    for rows, is_staged in ((both.left, False), (both.right, True)):
        assert isinstance(rows, exp.Select)
        rows.select(exp.alias_(exp.Boolean(this=is_staged), STAGED), copy=False)
    staged, old = exp.column(STAGED), exp.Not(this=exp.column(STAGED))
    in_delta, was_there = (_is_any_row(rows) for rows in (staged, old))
    query = _per_key(state, both, is_small)
    for name in state.stored_names:
        query.select(
            exp.alias_(_over(state.numbers(name).total(exp.column(name)), old), BEFORE + name), copy=False
        )
    query.select(exp.alias_(_kinds(state, in_delta, was_there), KINDS), copy=False)
    if not state.is_global:
        has_gone = exp.paren(exp.and_(in_delta.copy(), was_there.copy(), copy=False))
        query.having(exp.or_(_is_there(state), has_gone, copy=False), copy=False)
    kind = exp.alias_(exp.Explode(this=exp.column(KINDS)), _CHANGE_TYPE)
    rows = exp.select("*", kind).from_(query.subquery("summed", copy=False), copy=False)
    return _of_kind(state).from_(rows.subquery("kinds", copy=False), copy=False)


def _kinds(state: StateTable, in_delta: exp.Expr, was_there: exp.Expr) -> exp.Expr:
    """What rows of a key are written: that of the table, which has no kind, and those of the change feed."""

    def kinds(*names: str | None) -> exp.Array:
        return exp.Array(
            expressions=[as_type(exp.Null(), "string") if n is None else exp.Literal.string(n) for n in names]
        )

    cases = [
        exp.If(this=exp.Not(this=in_delta.copy()), true=kinds(None)),
        exp.If(this=exp.Not(this=was_there.copy()), true=kinds(None, _INSERT)),
    ]
    stays = kinds(None, _DELETE, _INSERT)
    if state.is_global:
        return exp.Case(ifs=cases, default=stays)
    return exp.Case(ifs=[*cases, exp.If(this=_is_there(state), true=stays)], default=kinds(_DELETE))


def _of_kind(state: StateTable) -> exp.Select:
    """The columns of a row of the kind that its change type says: of one that is deleted as they were."""
    is_deleted = exp.EQ(this=exp.column(_CHANGE_TYPE), expression=exp.Literal.string(_DELETE))

    def value(name: str) -> exp.Expr:
        before = exp.If(this=is_deleted.copy(), true=column_ast("", BEFORE + name))
        return exp.alias_(exp.Case(ifs=[before], default=column_ast("", name)), identifier(name))

    partition = checked_partition(state, is_deleted) if state.is_set else exp.column(PARTITION)
    return exp.select(
        *(column_ast("", k.name) for k in state.keys),
        *(value(name) for name in state.stored_names),
        partition,
        exp.column(_CHANGE_TYPE),
    )


def _is_any_row(where: exp.Expr) -> exp.Expr:
    count = _over(exp.Count(this=exp.Star()), where)
    return exp.GT(this=count, expression=exp.Literal.number(0))


def _over(aggregate: exp.Expr, where: exp.Expr) -> exp.Expr:
    """``aggregate FILTER (WHERE where)``, of what is computed from one too."""
    own = aggregate.find(exp.AggFunc)
    assert own is not None, aggregate
    filtered = exp.Filter(this=own.copy(), expression=exp.Where(this=where.copy()))
    if own is aggregate:
        return filtered
    own.replace(filtered)
    return aggregate


def _per_key(state: StateTable, rows: exp.Query, is_small: bool) -> exp.Select:
    """Rows of a state added up per key, with alarms."""
    keys, sums = [k.name for k in state.keys], _sums(state)
    shown = [exp.alias_(_counted(state, sums[COUNT]), COUNT)]
    shown += [exp.alias_(_summed(p, sums, state), p.name) for p in state.payload]
    query = exp.select(*(column_ast("", k) for k in keys), *shown, exp.column(PARTITION))
    group = [column_ast("", c) for c in (*keys, PARTITION)]
    return query.from_(as_both(rows, is_small=is_small), copy=False).group_by(*group, copy=False)


def _sums(state: StateTable) -> dict[str, exp.Expr]:
    return {name: state.numbers(name).total(exp.column(name)) for name in state.payload_names}


def _is_there(state: StateTable) -> exp.Expr:
    """Whether a key has rows; without rows it has gone, and one that still has sums is an alarm."""
    sums = _sums(state)
    exact = [COUNT, *(p.name for p in state.payload if p.numbers.is_exact)]
    return any_moved(state, {name: sums[name] for name in exact})


def _counted(state: StateTable, total: exp.Expr) -> exp.Expr:
    """The multiplicity of a key, or an alarm. Spark computes it for keys too that HAVING drops then."""
    wrong: exp.Expr = exp.LT(this=total.copy(), expression=exp.Literal.number(0))
    if not state.is_global:
        none = exp.LT(this=total.copy(), expression=exp.Literal.number(1))
        wrong = exp.and_(none, exp.paren(_is_there(state)), copy=False)
    message = (
        f"{NEGATIVE} {state.relation}: a multiplicity below zero, or a key is to be removed that is not there"
    )
    return unless(wrong, total.copy(), BIGINT.text, message)


def _summed(payload: PayloadColumn, sums: Mapping[str, exp.Expr], state: StateTable) -> exp.Expr:
    """A component's sum. A decimal that had overflowed is NULL, which SUM would pass over: an alarm, as in MERGE."""
    total = sums[payload.name]
    if not payload.numbers.may_overflow:
        return total.copy()
    type_ = payload.type.text
    is_lost = payload.numbers.lost(exp.column(payload.name))
    checked = payload.numbers.checked(total.copy(), overflowed(state))
    message = f"{OVERFLOW} {state.relation}: a decimal sum had overflowed"
    value = unless(is_lost, checked, type_, message)
    if state.is_global:
        return value
    # Of a key that has gone nothing is left to be wrong.
    gone = exp.EQ(this=sums[COUNT].copy(), expression=exp.Literal.number(0))
    return exp.Case(ifs=[exp.If(this=gone, true=total.copy())], default=value)
