"""A plan as text: query → operators → state → delta per updatable input → statements. Stable across processes."""

from __future__ import annotations

from sqlglot import exp

from fivm_dbt.catalog import Presentation
from fivm_dbt.delta.prune import prune_terms
from fivm_dbt.delta.term import Term, scans
from fivm_dbt.ir.dialect import SparkText
from fivm_dbt.ir.nodes import Aggregate, Node, Restrict, Scan, Side
from fivm_dbt.ir.printer import render
from fivm_dbt.naming import COUNT, PARTITION
from fivm_dbt.plan.binding import Binding, BoundInput, staged_input, staged_root
from fivm_dbt.plan.plan import Plan, PlanInput, Recompute
from fivm_dbt.spark.capture import change_query
from fivm_dbt.spark.state import build_query, create_table, delta_query, merge

_OLD, _NEW = 1, 2
"""The versions shown: every old side is version 1, every new side version 2."""


def explain(plan: Plan) -> str:
    """The whole plan as text."""
    if plan.recompute is not None:
        return _recomputed(plan, plan.recompute)
    parts = [
        _heading(f"model {plan.relation}"),
        plan.sql.strip(),
        _heading("operators"),
        render(plan.query),
        _heading("inputs"),
        *(_input(plan, item) for item in plan.inputs),
        _heading("state"),
        *_state(plan),
    ]
    updatable = [item for item in plan.inputs if not item.is_static]
    for item in updatable:
        parts += [_heading(f"delta of {plan.model} when {item.name} changes"), *_delta(plan, item)]
    parts += [
        _heading(f"statements (old side = version {_OLD}, new side = version {_NEW})"),
        *_statements(plan),
    ]
    return "\n".join(parts) + "\n"


def _recomputed(plan: Plan, recompute: Recompute) -> str:
    """A model that is not maintained: why, what moves it, what it leaves."""
    when = (
        "in every run: its result changes by itself"
        if recompute.changes_by_itself
        else "when an input has moved"
    )
    columns = [f"  {k.name} {k.type}" for k in plan.root.keys]
    by = plan.root.partitioning
    partition = f"  {PARTITION} {by.type}  -- {by.reason}"
    parts = [
        _heading(f"model {plan.relation}"),
        plan.sql.strip(),
        _heading(f"recomputed, {when}"),
        recompute.reason,
        *([f"not comparable: {recompute.not_repeatable}"] if recompute.not_repeatable else []),
        _heading("inputs"),
        *(f"{item.name}\n  read in full, at its newest version" for item in plan.inputs),
        _heading("state"),
        f"{plan.root.relation}, replaced as a whole by the rows of the query above",
        *columns,
        partition,
        f"shown by view {plan.relation}:\n{_indent(_pretty_sql(plan.presentation))}",
    ]
    return "\n".join(parts) + "\n"


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
    return f"{item.name} [{columns}]\n  {how}"


def _state(plan: Plan) -> list[str]:
    state = plan.root
    by = state.partitioning
    keys = [f"  key {k.name} {k.type} = {k.value.sql}" for k in state.keys] or ["  no key: one row"]
    payload = [f"  {COUNT} bigint = Σ multiplicity"]
    payload += [
        f"  {p.name} {p.component.type} = Σ multiplicity × ({p.component.lift.sql})" for p in state.payload
    ]
    rule = (
        by.expression.sql if by.expression is not None else f"pmod(xxhash64(key), {by.buckets or 'by size'})"
    )
    partition = f"  {PARTITION} {by.type} = {rule}  -- {by.reason}"
    shown = f"shown by view {plan.relation}:\n{_indent(_pretty_sql(plan.presentation))}"
    return [f"{state.relation}, one row per key", *keys, *payload, partition, shown]


def _pretty_sql(presentation: Presentation) -> str:
    import sqlglot

    return sqlglot.parse_one(presentation.sql, dialect=SparkText).sql(dialect="spark", pretty=True)


def _delta(plan: Plan, item: PlanInput) -> list[str]:
    """The terms that are left when just this input changed, with what each reads."""
    terms = prune_terms(plan.terms, frozenset({item.name}))
    lines = []
    for number, term in enumerate(terms, start=1):
        lines.append(f"term {number}: {_product(term)}")
        lines += [f"  {line}" for line in _reads(term)]
    return lines or ["no term: this input cannot change the model"]


def _product(term: Term) -> str:
    """``+1 × [Δf ⋈ old a]``: the factors with their sides, deltas first."""
    multiplicity = term.multiplicity.as_number
    sign = "" if multiplicity is None else f"{multiplicity:+d} × "
    return sign + _factors(term.node)


def _factors(node: Node) -> str:
    if isinstance(node, Scan):
        return f"{_side(node.side)}{node.relation} {node.alias}"
    if isinstance(node, Restrict):
        keys = ", ".join(left.sql for left, _ in node.keys) or "anything"
        changed = ", ".join(sorted({f"Δ{s.relation}" for s in scans(node.right) if s.side is Side.DELTA}))
        return f"{_factors(node.left)} ⋉ keys({keys}) of {changed}"
    if isinstance(node, Aggregate):
        keys = ", ".join(k.value.sql for k in node.keys) or "all"
        return f"γ[{keys}]({_factors(node.input)})"
    if len(node.inputs) == 1:
        return _factors(node.inputs[0])
    joined = " ⋈ " if type(node).__name__ == "Join" else " ⊎ "
    return "(" + joined.join(_factors(child) for child in node.inputs) + ")"


def _side(side: Side) -> str:
    return "Δ" if side is Side.DELTA else f"{side.value} "


def _reads(term: Term) -> list[str]:
    """One line per input that the term reads besides deltas, marking what is read in full and why."""
    lines = []
    if any(isinstance(n, Restrict) for n in _walk(term.node)):
        lines.append(
            "affected keys: groups with a changed row are computed at the new and at the old version"
        )
    for scan in scans(term.node):
        if scan.side is not Side.DELTA:
            lines.append(
                f"reads {scan.side.value} {scan.relation} in full: no helper view holds what is needed of it"
            )
    return list(dict.fromkeys(lines)) or ["reads nothing but the change"]


def _walk(node: Node) -> list[Node]:
    return [node, *(n for child in node.inputs for n in _walk(child))]


def _statements(plan: Plan) -> list[str]:
    updatable = frozenset(i.name for i in plan.inputs if not i.is_static)
    everything = _binding(plan, updatable)
    lines = ["-- build", _sql(create_table(plan.root.relation, build_query(plan, everything), {}, PARTITION))]
    for item in plan.inputs:
        if not item.is_static:
            lines.append(f"-- staged as {staged_input(plan, item.name)}")
            lines.append(_sql(change_query(plan, everything.input(item.name))))
    if updatable:
        lines.append(f"-- staged as {staged_root(plan)}; terms of inputs that did not change are left out")
        lines.append(_sql(delta_query(plan, everything)))
        lines.append("-- with the touched partitions as literals")
        lines.append(_sql(merge(plan, [exp.Placeholder(this="touched")])))
    return lines


def _binding(plan: Plan, changed: frozenset[str]) -> Binding:
    inputs = tuple(
        BoundInput(i.name, "snapshot" if i.starts_with_snapshot else "change feed", _OLD, _NEW, _OLD)
        for i in plan.inputs
    )
    return Binding(inputs, changed, plan.root.partitioning.buckets or 8, _OLD)


def _sql(statement: exp.Expr) -> str:
    return statement.sql(dialect="spark", pretty=True) + ";"


def _indent(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.split("\n"))
