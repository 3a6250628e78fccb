"""One statement writes the staged deltas of all views into their table: a MERGE, or partitions written anew."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal

from sqlglot import exp

from fivm_dbt.catalog.types import BIGINT
from fivm_dbt.ir.scalar import column_ast, identifier
from fivm_dbt.naming import COUNT, OF, PARTITION, VIEW
from fivm_dbt.plan.model.head import NextHead
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.plan.model.state import StateTable
from fivm_dbt.plan.model.view import View
from fivm_dbt.spark.alarms import NEGATIVE, overflowed, unless
from fivm_dbt.spark.heads import head_branches, head_row, is_from, is_in_tail
from fivm_dbt.spark.pieces import any_moved, in_one_task, table
from fivm_dbt.spark.places import Closed, Place
from fivm_dbt.spark.replace import replace_partitions
from fivm_dbt.spark.state import twice
from fivm_dbt.spark.states import as_delta, as_stored, of_view, renamed, with_head
from fivm_dbt.steps.binding import staged_state

Way = Literal["merge", "replace", "append"]
"""How deltas are written: into the rows of their keys, with their partitions written anew, or into the tail."""


def write_deltas(
    plan: Plan,
    places: Sequence[Place],
    before: int,
    head: NextHead,
    *,
    way: Way,
    tails: Collection[str] = (),
    only_these: bool = False,
    is_small: bool = False,
    left: Sequence[Place] = (),
    closed: Sequence[Closed] = (),
) -> exp.Merge | exp.Insert:
    """What brings the staged deltas of some views into the table of all states, which was at version ``before``.

    It sets the head. ``tails`` are the views that have something in the tail, which writing anew folds in, but for what
    is ``left`` there: by one task what ``is_small``. Partitions that are ``closed`` go where others are written anew.
    """
    if way == "append":
        return append(plan, [place.view for place in places], head)
    if way == "replace":
        return replace_partitions(
            plan, places, before, head, tails, is_small=is_small, left=left, closed=closed
        )
    return merge(plan, places, head, only_these=only_these)


def append(plan: Plan, views: Sequence[View], head: NextHead) -> exp.Insert:
    """Put the staged deltas into the tail, with the head: one small file, whatever they touch.

    What is wrong with a sum is found when the tail is folded in.
    """
    rows: list[tuple[View, exp.Expr]] = [(view, table(staged_state(plan, view))) for view in views]
    every = with_head(plan, as_stored(plan, rows, in_tail=True), head)
    names = [column_ast("", c) for c in every.named_selects]
    query = exp.select(*names, copy=False).from_(every.subquery("appended", copy=False), copy=False)
    return exp.Insert(this=table(plan.layout.relation), expression=in_one_task(query))


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
    sums = [exp.alias_(state.numbers(n).total(exp.column(n)), n) for n in state.payload_names]
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
    kept = unless(comes, partition.copy(), type_, twice(state))
    assignments = [
        exp.EQ(this=exp.column(identifier(n)), expression=column_ast("delta", n)) for n in state.determined
    ]
    assignments.append(exp.EQ(this=exp.column(PARTITION), expression=kept))
    update = exp.When(matched=True, then=exp.Update(expressions=assignments))
    names = [*(k.name for k in state.keys), PARTITION]
    is_gone = exp.LTE(this=count.copy(), expression=zero.copy())
    message = f"{NEGATIVE} {state.relation}: a key is to be removed that is not there"
    is_many = exp.GT(this=count.copy(), expression=exp.Literal.number(1))
    checked = unless(is_gone, unless(is_many, partition, type_, twice(state)), type_, message)
    values = [*(column_ast("delta", k.name) for k in state.keys), checked]
    then = exp.Insert(
        this=exp.Tuple(expressions=[exp.column(identifier(n)) for n in names]),
        expression=exp.Tuple(expressions=values),
    )
    return [delete, update, exp.When(matched=False, then=then)]


def _over_all_steps(plan: Plan, view: View) -> exp.Select:
    """The staged delta of a view by its keys alone, without what one step has undone of another."""
    keys = [column_ast("", name) for name in (*(k.name for k in view.state.keys), PARTITION)]
    sums = {name: view.state.numbers(name).total(exp.column(name)) for name in view.state.payload_names}
    query = exp.select(*(k.copy() for k in keys), *(exp.alias_(s.copy(), n) for n, s in sums.items()))
    return query.from_(table(staged_state(plan, view))).group_by(*keys).having(any_moved(view.state, sums))


def _delete(count: exp.Expr) -> exp.When:
    gone = exp.EQ(this=count.copy(), expression=exp.Literal.number(0))
    return exp.When(matched=True, condition=gone, then=exp.var("DELETE"))


def _update(state: StateTable, count: exp.Expr) -> exp.When:
    negative = exp.LT(this=count.copy(), expression=exp.Literal.number(0))
    checked = unless(
        negative, count.copy(), BIGINT.text, f"{NEGATIVE} {state.relation}: a multiplicity below zero"
    )
    assignments = [exp.EQ(this=exp.column(COUNT), expression=checked)]
    if state.determined:
        moving = (*state.determined, PARTITION)
        assignments += [
            exp.EQ(this=exp.column(identifier(n)), expression=column_ast("delta", n)) for n in moving
        ]
    for payload in state.payload:
        added = payload.numbers.add(*(column_ast(side, payload.name) for side in ("target", "delta")))
        value = payload.numbers.checked(added, overflowed(state))
        assignments.append(exp.EQ(this=exp.column(payload.name), expression=value))
    return exp.When(matched=True, then=exp.Update(expressions=assignments))


def _insert(state: StateTable) -> exp.When:
    columns = [*(k.name for k in state.keys), *state.payload_names, PARTITION]
    values: list[exp.Expr] = [column_ast("delta", k.name) for k in state.keys]
    missing = exp.LTE(this=column_ast("delta", COUNT), expression=exp.Literal.number(0))
    message = f"{NEGATIVE} {state.relation}: a key is to be removed that is not there"
    values.append(unless(missing, column_ast("delta", COUNT), BIGINT.text, message))
    for payload in state.payload:
        values.append(payload.numbers.checked(column_ast("delta", payload.name), overflowed(state)))
    values.append(column_ast("delta", PARTITION))
    then = exp.Insert(
        this=exp.Tuple(expressions=[exp.column(identifier(c)) for c in columns]),
        expression=exp.Tuple(expressions=values),
    )
    return exp.When(matched=False, condition=_is_more_than_rounding(state), then=then)


def _is_more_than_rounding(state: StateTable) -> exp.Expr | None:
    """Of a key that comes and goes within one delta, doubles may leave a rest: it is no row. None without doubles."""
    if state.is_exact:
        return None
    exact = [COUNT, *(p.name for p in state.payload if p.numbers.is_exact)]
    return any_moved(state, {name: column_ast("delta", name) for name in exact})
