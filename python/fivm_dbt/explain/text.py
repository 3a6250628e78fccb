"""A plan as text: query → operators → state → delta per updatable input → statements. Stable across processes."""

from __future__ import annotations

from datetime import timedelta

from sqlglot import exp

from fivm_dbt.catalog import Presentation
from fivm_dbt.delta.prune import prune_terms
from fivm_dbt.delta.term import Term, scans
from fivm_dbt.explain.access import access_paths
from fivm_dbt.explain.inequality import inequality_lines
from fivm_dbt.explain.operators import maintenance
from fivm_dbt.explain.part_maps import part_map_lines
from fivm_dbt.explain.parts import part_lines
from fivm_dbt.explain.products import product_lines
from fivm_dbt.explain.view_trees import view_tree_lines
from fivm_dbt.ir.aggregate import Aggregate
from fivm_dbt.ir.dialect import SparkText
from fivm_dbt.ir.node import Node, Side
from fivm_dbt.ir.nodes import Filter, Join, Lookup, OuterJoin, Restrict, Scan, SemiJoin, UnionAll, Values
from fivm_dbt.ir.printer import render
from fivm_dbt.ir.runs import Runs
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.ir.within import Near, Within
from fivm_dbt.naming import CLOCK, COUNT, PARTITION, old_rows
from fivm_dbt.parts.shift import duration
from fivm_dbt.plan.model.inputs import PlanInput
from fivm_dbt.plan.model.plan import FactorisedPlan, MaintainedPlan, Plan, RecomputedPlan, ViewdfPlan
from fivm_dbt.plan.model.recompute import Recompute
from fivm_dbt.plan.model.view import View
from fivm_dbt.spark.merge import Way, write_deltas
from fivm_dbt.spark.places import Place
from fivm_dbt.spark.state import joined_on_read
from fivm_dbt.spark.statements import statement
from fivm_dbt.sql.edits import Edit
from fivm_dbt.steps.applying import APPENDED_ROWS, anew_up_to, not_appended_to
from fivm_dbt.steps.binding import Binding, staged_input, staged_state
from fivm_dbt.steps.example import EXAMPLE_HEAD, EXAMPLE_TIMES, example
from fivm_dbt.steps.kinds import (
    Build,
    Count,
    Factorise,
    KeepSnapshot,
    Locate,
    StageChange,
    StageDelta,
    StageFactor,
    StageInput,
    StageKeys,
    StageState,
    Step,
    Write,
)
from fivm_dbt.steps.order import builds, captures, snapshots, updates

_OLD, _NEW = 1, 2
"""The versions shown: every old side is version 1, every new side version 2."""


def explain(plan: Plan) -> str:
    """The whole plan as text."""
    match plan:
        case RecomputedPlan():
            return _recomputed(plan, plan.recompute)
        case ViewdfPlan():
            heading = [_heading(f"model {plan.relation}"), plan.sql.strip()]
            return "\n".join([*heading, *part_lines(plan)]) + "\n"
        case MaintainedPlan():
            return _maintained(plan)
    raise TypeError(f"no explanation of a {type(plan).__name__}")


def _maintained(plan: MaintainedPlan) -> str:
    parts = [
        _heading(f"model {plan.relation}"),
        plan.sql.strip(),
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
            f"shown by view {plan.relation}:\n{_indent(joined_on_read(plan).sql('spark', pretty=True))}",
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
    products = tuple(product_lines(plan))
    if products:
        parts += [_heading("changes that are products"), *products]
    parts += [
        _heading(f"statements (old side = version {_OLD}, new side = version {_NEW}{_times(plan)})"),
        *statement_lines(plan),
    ]
    return "\n".join(parts) + "\n"


def _recomputed(plan: Plan, recompute: Recompute) -> str:
    """A model that is not maintained: why, what moves it, what it leaves."""
    when = "when an input or the clock has moved" if plan.clock_kinds else "when an input has moved"
    if recompute.changes_by_itself:
        when = "in every run: its result changes by itself"
    columns = [f"  {k.name} {k.type}" for k in plan.root.keys]
    by = plan.root.partitioning
    partition = f"  {PARTITION} {by.type}  -- {by.reason}"
    parts = [
        _heading(f"model {plan.relation}"),
        plan.sql.strip(),
        _heading(f"recomputed, {when}"),
        recompute.reason,
        *_recomputed_parts(recompute),
        *([f"not comparable: {recompute.not_repeatable}"] if recompute.not_repeatable else []),
        _heading("inputs"),
        *(f"{item.name}\n  read in full, at its newest version" for item in plan.inputs),
        *_clock(plan),
        _heading("state"),
        f"{plan.state_relation}, replaced as a whole by the rows of the query above",
        *columns,
        partition,
        f"shown by view {plan.relation}:\n{_indent(_pretty_sql(plan.presentation))}",
    ]
    return "\n".join(parts) + "\n"


def _recomputed_parts(recompute: Recompute) -> list[str]:
    """How far changes of the inputs reach, where that is known."""
    parts = recompute.parts
    if parts is None:
        return []
    lines = [
        f"where only inputs changed whose times tell it, for the rows that these reach, by {parts.column}:"
    ]
    for reach in parts.inputs:
        low, high = (None if end is None else -end for end in (reach.high, reach.low))
        near = Near(reach.relation, reach.column, reach.type, low, high)
        lines.append(f"  {parts.column} in {near}")
    return lines


def _completions(plan: Plan) -> list[str]:
    """What is put into the text so that it has one answer, and the text that is maintained and recomputed."""
    if not plan.completions:
        return []
    put = [f"  {underlined}" for edit in plan.completions for underlined in [_edit(plan.sql, edit)]]
    heading = _heading("completed where rows may tie: this is maintained, and recomputed")
    return [heading, *put, plan.completed_sql.strip()]


def _edit(sql: str, edit: Edit) -> str:
    start = sql.rfind("\n", 0, edit.position) + 1
    where = f"line {sql.count(chr(10), 0, edit.position) + 1}, column {edit.position - start + 1}"
    gone = sql[edit.position : edit.position + edit.length]
    return f"{where}: {edit.text.strip()}" + (f" in the place of {gone}" if gone else "")


def _heading(text: str) -> str:
    return f"\n== {text}" if not text.startswith("model") else f"== {text}"


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
    if item.retention is not None:
        kept, age = item.retention, duration(item.retention.age // timedelta(microseconds=1))
        parts = f"parts of {kept.column}, {kept.length.in_words} long"
        how += f"\n  {parts}, are dropped when older than {age}: their results stay"
    return f"{item.name} [{columns}]\n  {how}"


def _clock(plan: Plan) -> list[str]:
    if not plan.clock_kinds:
        return []
    return [
        f"the clock [{', '.join(sorted(plan.clock_kinds))}]\n  read once per refresh and kept in the head"
    ]


def _times(plan: Plan) -> str:
    times = f"from {EXAMPLE_TIMES.old.timestamp_ntz} to {EXAMPLE_TIMES.new.timestamp_ntz}"
    clock = f", {times}" if plan.clock_kinds else ""
    return f"{clock}, changed rows {times}" if plan.times_read else clock


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
    payload += [f"  {p.name} {p.type} = Σ multiplicity × ({p.lift_sql})" for p in state.payload]
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
        lines.append(f"shown by view {plan.relation}:\n{_indent(_pretty_sql(plan.presentation))}")
    return lines


def _pretty_sql(presentation: Presentation) -> str:
    import sqlglot

    return sqlglot.parse_one(presentation.sql, dialect=SparkText).sql(dialect="spark", pretty=True)


def delta_lines(plan: Plan, moved: str) -> list[str]:
    """The terms that are left when just this input, or the clock, changed, view by view, with what each reads."""
    changed = frozenset({moved, old_rows(moved)})
    lines = []
    for view in plan.views:
        for key_set in view.key_sets:
            if prune_terms((Term(key_set.node, Scalar.number(1)),), changed):
                changed |= {key_set.name}
        terms = prune_terms(view.terms, changed)
        if not terms:
            continue
        changed |= {view.name}
        if len(plan.views) > 1:
            lines.append(f"{view.name}:")
        for number, term in enumerate(terms, start=1):
            lines.append(f"term {number}: {_product(term)}")
            lines += [f"  {line}" for line in _reads(plan, view, term)]
    return lines or ["no term: this input cannot change the model"]


def _product(term: Term) -> str:
    """``+1 × [Δf ⋈ old a]``: the factors with their sides, deltas first."""
    multiplicity = term.multiplicity.as_number
    sign = "" if multiplicity is None else f"{multiplicity:+d} × "
    return sign + _factors(term.node)


def _factors(node: Node) -> str:
    if isinstance(node, Scan):
        return f"{_side(node.side)}{node.relation} {node.alias}"
    if isinstance(node, Values):
        return f"rows {node.alias}"
    if isinstance(node, Restrict):
        keys = ", ".join(left.sql for left, _ in node.keys) or "anything"
        changed = ", ".join(sorted({f"Δ{s.relation}" for s in scans(node.right) if s.side is Side.DELTA}))
        return f"{_factors(node.left)} ⋉ keys({keys}) of {changed}"
    if isinstance(node, Aggregate):
        keys = ", ".join(k.value.sql for k in node.keys) or "all"
        return f"γ[{keys}]({_factors(node.input)})"
    if isinstance(node, Runs):
        return f"runs({' from '.join(_factors(child) for child in node.inputs)})"
    if _is_crossing(node):
        return f"σ[old time → new time]({_factors(node.inputs[0])})"
    if len(node.inputs) == 1:
        return _factors(node.inputs[0])
    return "(" + f" {_symbol(node)} ".join(_factors(child) for child in node.inputs) + ")"


def _symbol(node: Node) -> str:
    if isinstance(node, SemiJoin):
        return "▷" if node.anti else "⋉"
    return {Join: "⋈", OuterJoin: "⟕", UnionAll: "⊎"}[type(node)]


def _is_crossing(node: Node) -> bool:
    """Whether these are the rows for which something is different because time passed."""
    if not isinstance(node, Filter):
        return False
    tables = {table for predicate in node.predicates for table in predicate.tables}
    return {f"{CLOCK}_{side.value}" for side in (Side.OLD, Side.NEW)} <= tables


def _side(side: Side) -> str:
    return "Δ" if side is Side.DELTA else f"{side.value} "


def _reads(plan: Plan, view: View, term: Term) -> list[str]:
    """One line per relation that the term reads besides deltas, marking what is read in full."""
    lines = []
    bounded = {n.scan: n for n in term.node.walk() if isinstance(n, Lookup)}
    near = {id(n.scan): n for n in term.node.walk() if isinstance(n, Within)}
    own = {view.name, *(v.name for v in plan.helpers)}
    crossing = {id(scan) for node in term.node.walk() if _is_crossing(node) for scan in scans(node)}
    for scan in scans(term.node):
        if scan.side is Side.DELTA:
            continue
        side = f"{scan.side.value} {scan.relation}"
        if id(scan) in crossing and scan.side is Side.OLD:
            lines.append(f"reads of {side} what enters or leaves as time passes")
        elif scan in bounded:
            keys = ", ".join(ours for ours, _ in bounded[scan].keys)
            when = "".join(f", {b}" for b in near[id(scan)].bounds) if id(scan) in near else ""
            lines.append(f"looks up {side} in the partitions of the affected {keys}{when}")
        elif id(scan) in near:
            lines += [f"reads {side} where {b}" for b in near[id(scan)].bounds]
        elif scan.relation in own:
            lines.append(
                f"reads {side} in full: the change does not tell in which partitions its partners lie"
            )
        else:
            lines.append(f"reads {side} in full: no inner view holds what is needed of it")
    return list(dict.fromkeys(lines)) or ["reads nothing but the change"]


def statement_lines(plan: Plan) -> list[str]:
    """The statements of a build and of a refresh in which every input changed."""
    everything = example(plan, _OLD, _NEW)
    *deltas, write = updates(plan)
    kept = snapshots(item.name for item in plan.inputs if item.starts_with_snapshot)
    steps = (*builds(plan), *captures(plan), *deltas, *kept, write)
    return [line for step in steps for line in _statement(plan, step, everything)]


def _statement(plan: Plan, step: Step, binding: Binding) -> list[str]:
    """A statement under what it is for; nothing where the step has none.

    What is asked for partitions stands in the statements behind it; products have lines of their own.
    """
    match step:
        case Locate() | Count() | StageFactor() | Factorise():
            return []
        case Build():
            purpose = "build"
        case StageState(view):
            purpose = f"build of {view.name}, staged as {staged_state(plan, view)}"
        case StageInput(relation):
            purpose = f"staged as {staged_input(plan, relation)}"
        case StageKeys(_, key_set, _):
            where = "asked for the partitions that they lie in"
            if not key_set.is_inlined:
                where = f"staged as {staged_input(plan, key_set.name)}"
            purpose = f"affected keys, {where}"
        case StageDelta(view):
            purpose = (
                f"staged as {staged_state(plan, view)}; terms of inputs that did not change are left out"
            )
        case StageChange(view):
            purpose = f"the change of this view, staged as {staged_input(plan, view.name)}"
        case KeepSnapshot(relation):
            purpose = f"the rows of {relation} that the next refresh compares with"
        case Write():
            touched = (exp.Placeholder(this="touched"),)
            places = [Place(view, touched) for view in plan.stored if binding.is_changed_by(view)]
            if not places:
                return []
            written = write_deltas(plan, places, _OLD, EXAMPLE_HEAD, way=_way(plan))
            return [f"-- with the touched partitions as literals{_or_anew(plan)}", _sql(written)]
    query = statement(plan, step, binding)
    return [] if query is None else [f"-- {purpose}", _sql(query)]


def _way(plan: Plan) -> Way:
    """How large deltas are written, or all."""
    if plan.config.fivm_apply == "append":
        return "append" if not_appended_to(plan) is None else "merge"
    return "replace" if plan.config.fivm_apply == "replace" else "merge"


def _or_anew(plan: Plan) -> str:
    """What ``fivm_apply: auto`` may do instead."""
    if plan.config.fivm_apply != "auto":
        return ""
    most, fewer = (anew_up_to(plan, plan.top, writes_changes) for writes_changes in (True, False))
    over_thrift = f", over Thrift {fewer:,}" if fewer != most else ""
    anew = f"; written anew while partitions have up to {most:,} rows{over_thrift} (fivm_apply)"
    if not_appended_to(plan) is not None:
        return anew
    return f"; appended while all states have up to {APPENDED_ROWS:,} rows{anew}"


def _sql(statement: exp.Expr) -> str:
    return statement.sql(dialect="spark", pretty=True) + ";"


def _indent(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.split("\n"))
