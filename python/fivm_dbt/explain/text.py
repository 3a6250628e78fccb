"""A plan becomes text, stable across processes: query, operators, states, deltas, statements."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from typing import Any

from fivm_dbt.errors import Span
from fivm_dbt.explain.access import access_paths
from fivm_dbt.explain.built_in_part import in_part_lines, reached
from fivm_dbt.explain.deltas import delta_lines
from fivm_dbt.explain.inequality import inequality_lines
from fivm_dbt.explain.operators import maintenance
from fivm_dbt.explain.part_maps import part_map_lines
from fivm_dbt.explain.products import product_lines
from fivm_dbt.explain.statements import sides, statement_lines
from fivm_dbt.explain.view_trees import view_tree_lines
from fivm_dbt.explain.words import story
from fivm_dbt.ir.printer import render
from fivm_dbt.naming import CLOCK, COUNT, PARTITION
from fivm_dbt.parts.shift import duration
from fivm_dbt.plan.model.inputs import PlanInput
from fivm_dbt.plan.model.plan import FactorisedPlan, MaintainedPlan, Plan, RecomputedPlan
from fivm_dbt.plan.model.recompute import Recompute
from fivm_dbt.plan.model.view import View
from fivm_dbt.registry import Registry
from fivm_dbt.spark.pieces import pretty
from fivm_dbt.spark.state import joined_on_read
from fivm_dbt.sql.edits import Edit
from fivm_dbt.sql.parse import is_beyond_spark

EXPLANATIONS: Registry[Callable[[Any, bool], Iterable[str]]] = Registry()
"""By kind of plan its parts of text, with the statements or without them."""


def explain(plan: Plan, *, statements: bool = True) -> str:
    """The plan as text: a story in words, then how it is maintained, and at last the ``statements``."""
    explanation = EXPLANATIONS.of(plan)
    if explanation is None:
        raise TypeError(f"no explanation of a {type(plan).__name__}")
    heading = [f"== model {plan.relation}", *written(plan), _heading("in short"), *story(plan)]
    return "\n".join([*heading, *explanation(plan, statements)]) + "\n"


@EXPLANATIONS.add(MaintainedPlan)
def _maintained(plan: MaintainedPlan, statements: bool) -> list[str]:
    parts = [
        *_completions(plan),
        _heading("operators"),
        render(plan.query),
        _heading("inputs"),
        *(_input(plan, item) for item in plan.inputs),
        *_clock(plan),
    ]
    for kept in plan.inequalities:
        parts += [_heading(f"inequality {kept.comparison}"), *inequality_lines(kept)]
    for tree in plan.view_trees:
        parts += [_heading(f"view tree of {tree.block}"), *view_tree_lines(tree)]
    for view in plan.helpers:
        parts += [
            _heading(f"inner view {view.name}"),
            f"kept: {view.reason}",
            render(view.core),
            *_state(plan, view),
            *(f"  {path}" for path in access_paths(plan, view)),
        ]
    if plan.part_maps:
        parts += [_heading("which parts are computed from which"), *part_map_lines(plan.part_maps)]
    if isinstance(plan, FactorisedPlan):
        parts += [
            _heading("result"),
            "no rows of its own: joined from the views above when the model is read",
            f"shown by view {plan.relation}:\n{_indent(pretty(joined_on_read(plan)))}",
        ]
    else:
        parts += [_heading("state"), *_state(plan, plan.top)]
    parts += [_heading("how each operator is maintained (! marks what is read in full)"), *maintenance(plan)]
    for item in plan.inputs:
        if not item.is_static:
            parts += [
                _heading(f"delta of {plan.model} when {item.name} changes"),
                *delta_lines(plan, item.name),
            ]
    if plan.clock_kinds:
        parts += [_heading(f"delta of {plan.model} when the clock moves"), *delta_lines(plan, CLOCK)]
    in_part = tuple(in_part_lines(plan))
    if in_part:
        parts += [_heading("built in part"), *in_part]
    products = tuple(product_lines(plan))
    if products:
        parts += [_heading("changes that are products"), *products]
    if statements:
        parts += [_heading(f"statements ({sides(plan)})"), *statement_lines(plan)]
    return parts


@EXPLANATIONS.add(RecomputedPlan)
def _recomputed(plan: RecomputedPlan, statements: bool) -> list[str]:
    """A model that is not maintained: why, what moves it, what it leaves."""
    recompute = plan.recompute
    when = "when an input or the clock has moved" if plan.clock_kinds else "when an input has moved"
    if recompute.changes_by_itself:
        when = "in every run: its result changes by itself"
    columns = [f"  {k.name} {k.type}" for k in plan.root.keys]
    by = plan.root.partitioning
    partition = f"  {PARTITION} {by.type}  -- {by.reason}"
    return [
        _heading(f"recomputed, {when}"),
        recompute.reason,
        *_recomputed_parts(recompute),
        *([f"not comparable: {recompute.not_repeatable}"] if recompute.not_repeatable else []),
        _heading("inputs"),
        *(
            f"{item.name}{_through(plan, item)}\n  read in full, at its newest version"
            for item in plan.inputs
        ),
        *_clock(plan),
        _heading("state"),
        f"{plan.state_relation}, replaced as a whole by the rows of the query above",
        *columns,
        partition,
        f"shown by view {plan.relation}:\n{_indent(pretty(plan.presentation.sql))}",
    ]


def _recomputed_parts(recompute: Recompute) -> list[str]:
    """How far changes of the inputs reach, where that is known."""
    parts = recompute.parts
    if parts is None:
        return []
    lines = [
        f"where only inputs changed whose times tell it, for the rows that these reach, by {parts.column}:"
    ]
    return [*lines, *(f"  {reached(parts, reach)}" for reach in parts.inputs)]


def _completions(plan: Plan) -> list[str]:
    """What is put into the text so that it has one answer, and the text that is maintained and recomputed."""
    if not plan.completions:
        return []
    put = [f"  {_edit(plan, edit)}" for edit in plan.completions]
    what = "completed where rows may tie: this is maintained, and recomputed"
    if is_beyond_spark(plan.sql):
        what = "completed where rows may tie, and written out as Spark SQL: this is recomputed"
    return [_heading(what), *put, _shortened(plan.completed_sql.strip(), _LONG_TEXT)]


_LONG_EDIT, _LONG_TEXT = 400, 8_000
"""The sums of a covariance of 39 variables are a million characters."""


def _shortened(text: str, most: int) -> str:
    """A text, or its beginning.

    >>> _shortened("abcdef", 6), _shortened("abcdefg", 6)
    ('abcdef', 'abcdef ... (7 characters)')
    """
    return text if len(text) <= most else f"{text[:most]} ... ({len(text):,} characters)"


def _edit(plan: Plan, edit: Edit) -> str:
    view, span = plan.unfolded.place(Span(edit.position, edit.position + 1))
    sql, position = (plan.sql if view is None else view.sql), span.start
    start = sql.rfind("\n", 0, position) + 1
    where = f"line {sql.count(chr(10), 0, position) + 1}, column {position - start + 1}"
    where += f" of view {view.name}" if view is not None else ""
    gone = plan.text[edit.position : edit.position + edit.length]
    return f"{where}: {_shortened(edit.text.strip(), _LONG_EDIT)}" + (
        f" in the place of {gone}" if gone else ""
    )


def _heading(text: str) -> str:
    return f"\n== {text}"


def written(plan: Plan) -> Iterator[str]:
    """The model's text, and those of the views that it reads."""
    yield plan.sql.strip()
    for view in plan.database_views:
        yield _heading(f"view {view.name}, whose query takes its place")
        yield view.sql.strip()


def _through(plan: Plan, item: PlanInput) -> str:
    """By which names the model's text reads an input, where that is not its own."""
    names = plan.unfolded.through.get(item.name, ())
    views = [name for name in names if name != item.name]
    if not views:
        return ""
    return f" through view {', '.join(views)}" + (" and by itself" if item.name in names else "")


def _input(plan: Plan, item: PlanInput) -> str:
    columns = ", ".join(f"{c.name} {c.type}" for c in item.columns) or "no column, only its rows are counted"
    if item.is_static:
        how = "static: no delta; its version is watched"
    elif item.starts_with_snapshot:
        how = f"compared with its own snapshot {plan.snapshot_table(item.name)}"
    else:
        how = "change feed, or the difference of two versions where the feed is off"
    if item.relation.presentation is not None:
        how += f"; a fivm model, read through its root state {item.relation.presentation.root}"
    if item.conditions:
        how += f"\n  where {' and '.join(p.sql for p in item.conditions)}: changes of other rows are left out"
    if item.retention is not None:
        kept, age = item.retention, duration(item.retention.age // timedelta(microseconds=1))
        parts = f"parts of {kept.column}, {kept.length.in_words} long"
        how += f"\n  {parts}, are dropped when older than {age}: their results stay"
    return f"{item.name}{_through(plan, item)} [{columns}]\n  {how}"


def _clock(plan: Plan) -> list[str]:
    if not plan.clock_kinds:
        return []
    return [
        f"the clock [{', '.join(sorted(plan.clock_kinds))}]\n  read once per refresh and kept in the head"
    ]


def _state(plan: Plan, view: View) -> list[str]:
    state = view.state
    by = state.partitioning
    follows = "  -- follows from the other keys: MERGE does not compare it"
    keys = [
        f"  key {k.name} {k.type} = {k.value.sql}{follows if k.name in state.determined else ''}"
        for k in state.keys
    ]
    rows = "" if state.rows is None else f" × {state.rows.sql}"
    payload = [f"  {COUNT} bigint = Σ multiplicity{rows}"]
    if state.is_set:
        payload = ["  no multiplicity: by the promised keys each row is there once"]
    payload += [
        f"  {p.name} {p.type} = Σ multiplicity × ({_shortened(p.lift_sql, _LONG_EDIT)})"
        for p in state.payload
    ]
    hashed = ", ".join(state.grouped_by) or "key"
    rule = (
        by.expression.sql
        if by.expression is not None
        else f"pmod(xxhash64({hashed}), {by.buckets or 'by size'})"
    )
    partition = f"  {PARTITION} string = {rule} as text  -- {by.reason}"
    where = f"{plan.state_relation}, partition {plan.layout.label(view)}"
    lines = [f"{where}, one row per key", *(keys or ["  no key: one row"]), *payload, partition]
    if view is plan.top:
        lines.append(f"shown by view {plan.relation}:\n{_indent(pretty(plan.presentation.sql))}")
    return lines


def _indent(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.split("\n"))
