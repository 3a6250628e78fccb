"""Each step has a statement, with the versions and literals of a binding."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from fivm_dbt.delta.key_sets import lookups
from fivm_dbt.delta.prune import prune_terms
from fivm_dbt.delta.term import Term
from fivm_dbt.ir.reads import Lookup
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.naming import PARTITION, VIEW
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.plan.model.state import StateTable
from fivm_dbt.plan.model.view import View
from fivm_dbt.spark.capture import change_query, snapshot_query, state_change_query
from fivm_dbt.spark.properties import snapshot_properties, state_properties
from fivm_dbt.spark.state import (
    build_query,
    build_states_query,
    create_table,
    delta_query,
    key_set_query,
    part_query,
    partitions_query,
    touched_query,
)
from fivm_dbt.steps.binding import Binding
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
from fivm_dbt.steps.order import builds, key_sets


def statement(plan: Plan, step: Step, binding: Binding) -> exp.Expr | None:
    """The statement of a step, or the query that it stages; None where nothing that moved needs it.

    A :class:`~fivm_dbt.steps.kinds.Write` is one or several statements, by what was counted
    (:func:`fivm_dbt.refresh.writes.writes`), and :class:`~fivm_dbt.steps.kinds.Factorise` is a search
    (:mod:`fivm_dbt.refresh.factorise`): neither has one of its own.
    """
    match step:
        case KeepSnapshot(relation):
            rows = snapshot_query(plan, binding.input(relation))
            return create_table(plan.snapshot_table(relation), rows, snapshot_properties(plan, relation))
        case StageState(view):
            return build_query(plan, view, binding.while_built(plan))
        case Build():
            staged = [s.view for s in builds(plan) if isinstance(s, StageState)]
            assert binding.head is not None
            rows = build_states_query(plan, binding.while_built(plan), staged, binding.head)
            return create_table(
                plan.layout.relation,
                rows,
                state_properties(plan),
                (VIEW, PARTITION),
                is_replacing=binding.head.before is not None or binding.head.replaces,
            )
        case StageInput(relation):
            return change_query(plan, binding.input(relation))
        case Locate(view):
            looked_up = locates(plan, step, binding)
            return locate_query(plan, view, looked_up, binding) if looked_up else None
        case StageKeys(view, key_set, product):
            is_met = product is None or product in binding.products(view)
            return key_set_query(plan, view, key_set, binding) if is_met else None
        case StageFactor(view, part, product):
            return part_query(plan, view, part, binding) if product in binding.products(view) else None
        case StageDelta(view):
            return delta_query(plan, view, binding) if binding.is_changed_by(view) else None
        case Count(view):
            return touched_query(plan, view) if binding.is_changed_by(view) else None
        case StageChange(view):
            is_computed = binding.input(view.name).capture == "state" and view.name in plan.changes_read
            return state_change_query(plan, view, binding) if is_computed else None
        case Write() | Factorise():
            return None


def locate_query(
    plan: Plan, view: View, looked_up: Sequence[tuple[Lookup, StateTable]], binding: Binding
) -> exp.Query:
    """In which partitions the keys of look-ups lie, by the number of the look-up."""
    asked = {lookup.key_set for lookup, _ in looked_up}
    inlined = {
        k.name: query
        for k, _ in key_sets(view)
        if k.is_inlined and k.name in asked
        if (query := key_set_query(plan, view, k, binding)) is not None
    }
    return partitions_query(plan, looked_up, binding.buckets, inlined)


def locates(plan: Plan, step: Locate, binding: Binding) -> tuple[tuple[Lookup, StateTable], ...]:
    """The look-ups of which the partitions are not known yet, each with the state that it looks into."""
    view, met = step.view, binding.products(step.view)
    if step.product is not None and step.product not in met:
        return ()
    if step.key_set is not None:
        terms = prune_terms((Term(step.key_set.node, Scalar.number(1)),), binding.met(view))
    else:
        parts = (Term(part.node, Scalar.number(1)) for product in met for part in product.parts)
        terms = (*binding.terms(view), *parts)
    known = {(t.key_set, t.state) for t in binding.touched}
    states = {v.name: v.state for v in plan.views}
    found = ((lookup, states[lookup.scan.relation]) for lookup in lookups(terms))
    return tuple((lookup, state) for lookup, state in found if (lookup.key_set, state.relation) not in known)
