"""The staged deltas of all views into their table, in one statement: by MERGE, or by writing partitions anew."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from sqlglot import exp

from fivm_dbt.catalog.types import BIGINT
from fivm_dbt.ir.scalar import as_type, column_ast, identifier, never_null, raise_error
from fivm_dbt.naming import CHANGE_TYPE, COUNT, OF, PARTITION, SIGN, VIEW
from fivm_dbt.plan.binding import staged_state
from fivm_dbt.plan.head import NextHead
from fivm_dbt.plan.plan import PayloadColumn, Plan, StateTable, View
from fivm_dbt.rings.registry import Component
from fivm_dbt.spark.added import at_delta, before_and_after, stored_and_staged
from fivm_dbt.spark.heads import head_branches, head_row, is_from, is_in_tail
from fivm_dbt.spark.pieces import table
from fivm_dbt.spark.reads import Bounds, in_bounds, in_partitions
from fivm_dbt.spark.state import as_set, is_any, twice
from fivm_dbt.spark.states import (
    as_delta,
    as_stored,
    lay_out_rows,
    of_view,
    renamed,
    stored,
    with_head,
)

Way = Literal["merge", "replace", "append"]
"""How deltas are written: into the rows of their keys, with their partitions written anew, or into the tail."""

NEGATIVE = "FIVM401"
OVERFLOW = "FIVM402"


@dataclass(frozen=True)
class Place:
    """Where rows of a staged delta go: some partitions of a view, as literals, and in them within ``bounds``.

    Too many partitions to be written down are None.
    """

    view: View
    partitions: tuple[exp.Expr, ...] | None
    bounds: Bounds | None = None
    is_staged: bool = True
    """Whether the view has a staged delta: else what it has in the tail is folded in, and nothing added."""

    def condition(self, plan: Plan, alias: str = "") -> exp.Expr:
        """Whether a row of the table, called ``alias``, lies there."""
        within = (renamed(plan, self.view, test) for test in self._within(alias))
        return exp.and_(of_view(plan, self.view, alias), *within, copy=False)

    def of_own(self) -> exp.Expr | None:
        """The same of a row of its own state or delta."""
        tests = self._within("")
        return exp.and_(*tests, copy=False) if tests else None

    def _within(self, alias: str) -> list[exp.Expr]:
        tests = [] if self.partitions is None else [in_partitions(alias, self.partitions)]
        return tests if self.bounds is None else [*tests, in_bounds(alias, self.bounds)]


def write_deltas(
    plan: Plan,
    places: Sequence[Place],
    before: int,
    head: NextHead,
    *,
    way: Way,
    tails: Collection[str] = (),
    only_these: bool = False,
) -> exp.Merge | exp.Insert:
    """What brings the staged deltas of some views into the table of all states, which was at version ``before``.

    It sets the head. ``tails`` are the views that have something in the tail, which writing anew folds in.
    """
    if way == "append":
        return append(plan, [place.view for place in places], head)
    if way == "replace":
        return replace_partitions(plan, places, before, head, tails)
    return merge(plan, places, head, only_these=only_these)


def append(plan: Plan, views: Sequence[View], head: NextHead) -> exp.Insert:
    """Put the staged deltas into the tail, with the head: one small file, whatever they touch.

    What is wrong with a sum is found when the tail is folded in.
    """
    rows: list[tuple[View, exp.Expr]] = [(view, table(staged_state(plan, view))) for view in views]
    every = with_head(plan, as_stored(plan, rows, in_tail=True), head)
    names = [column_ast("", c) for c in every.named_selects]
    query = exp.select(*names, copy=False).from_(every.subquery("appended", copy=False), copy=False)
    query.set(
        "hint", exp.Hint(expressions=[exp.Anonymous(this="COALESCE", expressions=[exp.Literal.number(1)])])
    )
    return exp.Insert(this=table(plan.layout.relation), expression=query)


def write_head(plan: Plan, head: NextHead) -> exp.Insert:
    """Set the head, and nothing else."""
    return exp.Insert(this=table(plan.layout.relation), expression=head_row(plan, head))


def merge(plan: Plan, places: Sequence[Place], head: NextHead, *, only_these: bool = False) -> exp.Merge:
    """Add the staged deltas to their states, in the given partitions only.

    ``only_these`` says that a delta has rows for other partitions too, which are left for other statements.

    Keys compare null-safe. A row whose multiplicity reaches zero is deleted; one that would go below zero, and a
    decimal that overflows, abort the statement before anything is committed.
    """
    views = tuple({place.view.name: place.view for place in places}.values())
    sources = [
        (view, _source(plan, view, [p for p in places if p.view is view] if only_these else ()))
        for view in views
    ]
    assert head.before is not None
    tests = [is_in_tail("target"), *(place.condition(plan, "target") for place in places)]
    conditions: list[exp.Expr] = [
        exp.paren(exp.or_(*tests, copy=False)),
        exp.EQ(this=column_ast("target", VIEW), expression=column_ast("delta", VIEW)),
        exp.NullSafeEQ(this=column_ast("target", OF), expression=column_ast("delta", OF)),
        is_from(head.before, "target"),
    ]
    conditions += [
        exp.NullSafeEQ(this=column_ast("target", name), expression=column_ast("delta", name))
        for name in _merge_keys(plan, views)
    ]
    return exp.Merge(
        this=table(plan.layout.relation).as_("target", copy=False),
        using=as_delta(plan, sources, head).subquery("delta", copy=False),
        on=exp.and_(*conditions, copy=False),
        whens=exp.Whens(expressions=_in_order([*head_branches(plan, head), *_whens(plan, views)])),
    )


def _in_order(whens: Sequence[exp.When]) -> list[exp.When]:
    """Spark's grammar has the branches of rows that are there before those of new ones."""
    return sorted(whens, key=lambda when: not when.args["matched"])


def _merge_keys(plan: Plan, views: Sequence[View]) -> list[str]:
    """The columns of the table by which a MERGE finds rows of these views."""
    used = {plan.layout.stored_as(view)[name] for view in views for name in view.state.merge_keys}
    return [c.name for c in plan.layout.columns if c.name in used]


def _whens(plan: Plan, views: Sequence[View]) -> list[exp.When]:
    """What is done with a row, view by view; once for views of which it is the same."""
    found: dict[tuple[str, ...], tuple[list[exp.When], list[View]]] = {}
    for view in views:
        whens = [_placed(plan, view, when) for when in _of_state(view.state)]
        texts = tuple(when.sql(dialect="spark") for when in whens)
        found.setdefault(texts, (whens, []))[1].append(view)
    if len(found) > 1:
        for whens, own in found.values():
            for when in whens:
                _restrict(plan, when, own)
    return [when for whens, _ in found.values() for when in whens]


def _of_state(state: StateTable) -> list[exp.When]:
    if state.is_set:
        return _of_set(state)
    count = exp.Add(this=column_ast("target", COUNT), expression=column_ast("delta", COUNT))
    whens = [_update(state, count), _insert(state)]
    return whens if state.is_global else [_delete(count), *whens]


def _placed(plan: Plan, view: View, when: exp.When) -> exp.When:
    """A branch over the columns of a view's state, over those of the table."""
    result = renamed(plan, view, when)
    assert isinstance(result, exp.When)
    then = result.args["then"]
    if isinstance(then, exp.Insert):
        label = exp.Literal.string(plan.layout.label(view))
        then.this.append("expressions", exp.column(VIEW))
        then.expression.append("expressions", column_ast("delta", VIEW) if len(plan.stored) > 1 else label)
    return result


def _restrict(plan: Plan, when: exp.When, views: Sequence[View]) -> None:
    """Have a branch for rows of these views alone."""
    own: exp.Expr = of_view(plan, views[0], "delta")
    if len(views) > 1:
        labels = [exp.Literal.string(plan.layout.label(view)) for view in views]
        own = exp.In(this=column_ast("delta", VIEW), expressions=labels)
    given = when.args.get("condition")
    when.set("condition", own if given is None else exp.and_(own, given, copy=False))


def _source(plan: Plan, view: View, places: Sequence[Place]) -> exp.Expr:
    """The staged delta of a view, for the given places if there are any, each key of the MERGE once."""
    staged: exp.Expr = table(staged_state(plan, view)).as_("own", copy=False)
    if view.step is not None:
        return _over_all_steps(plan, view).subquery("own")
    tests = [test for place in places if (test := place.of_own()) is not None]
    if tests:
        staged = exp.select("*").from_(staged).where(exp.or_(*tests, copy=False)).subquery("own")
    return _latest(view.state, staged).subquery("own") if view.state.determined else staged


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
    partition, type_ = column_ast("delta", PARTITION), "string"
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
            exp.EQ(this=exp.column(payload.name), expression=_sum(payload.name, payload.component, state))
        )
    return exp.When(matched=True, then=exp.Update(expressions=assignments))


def _sum(name: str, component: Component, state: StateTable) -> exp.Expr:
    if not component.type.is_decimal:
        return exp.Add(this=column_ast("target", name), expression=column_ast("delta", name))
    # decimal(37, s) + decimal(37, s) is decimal(38, s); of wider operands Spark would round the last digits.
    narrow = f"decimal(37,{component.type.scale})"
    sides = [as_type(column_ast(side, name), narrow) for side in ("target", "delta")]
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
    plan: Plan, places: Sequence[Place], before: int, head: NextHead, tails: Collection[str] = ()
) -> exp.Insert:
    """Write the given partitions anew: the rows of version ``before`` and the staged deltas, added up per key.

    The tail is written anew too, with nothing but the head: ``places`` have all that the views ``tails`` have there.

    Of a state that is bounded by a key only what lies within the bounds of the delta, where all is that can change.

    One pass over the partitions where MERGE takes two, and fewer jobs: cheaper while partitions are small. Repeating it
    gives the same rows. The same alarms as in :func:`merge` abort it.
    """
    rows = [
        (p.view, _added(plan, p, before, p.view.name in tails).subquery(identifier("added"))) for p in places
    ]
    views = [v for v in plan.stored if any(place.view is v for place in places)]
    query = lay_out_rows(plan, views, with_head(plan, as_stored(plan, rows), head))
    where = exp.or_(is_in_tail(), *(place.condition(plan) for place in places), copy=False)
    return exp.Insert(this=table(plan.layout.relation), expression=query, where=where)


def written_changes(plan: Plan, places: Sequence[Place], before: int) -> exp.Select | None:
    """What :func:`replace_partitions` changes of the root, as rows of a change feed; None where that is not written.

    Of the keys in its delta: the rows that it had, deleted, and those that it will have, inserted.
    """
    view, tests = plan.top, [place.of_own() for place in places if place.view is plan.top]
    if not tests:
        return None
    known = [test for test in tests if test is not None]
    where = exp.or_(*known, copy=False) if len(known) == len(tests) else None
    rows = before_and_after(plan, view, at_delta(plan, view, before, where), where)
    comes = exp.GT(this=exp.column(SIGN), expression=exp.Literal.number(0))
    told = exp.Case(
        ifs=[exp.If(this=comes, true=exp.Literal.string("insert"))], default=exp.Literal.string("delete")
    )
    changes = as_stored(plan, [(view, rows.subquery(identifier("changed"), copy=False))])
    assert isinstance(changes, exp.Select)
    return changes.select(exp.alias_(told, CHANGE_TYPE), copy=False)


def _added(plan: Plan, place: Place, before: int, has_tail: bool) -> exp.Select:
    """The rows of a place, with the tail and the staged delta."""
    view, state, touched = place.view, place.view.state, place.of_own()
    keys = [k.name for k in state.keys]
    own = stored(plan, view, before, touched, has_tail=has_tail)
    both = stored_and_staged(plan, view, own, touched) if place.is_staged else exp.select("*").from_(own)
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
    return as_set(state, query) if state.is_set else query


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
