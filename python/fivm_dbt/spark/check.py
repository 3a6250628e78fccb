"""A new plan is validated: every kind of statement that it can emit, with all inputs changed at once."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.spark.added import superseded
from fivm_dbt.spark.merge import merge, write_head
from fivm_dbt.spark.places import Place
from fivm_dbt.spark.reads import Bounds
from fivm_dbt.spark.replace import new_rows, replace_partitions
from fivm_dbt.spark.statements import statement
from fivm_dbt.spark.validate import validate_tree
from fivm_dbt.steps.applying import tells_changes
from fivm_dbt.steps.binding import staged_input, staged_old, staged_state
from fivm_dbt.steps.example import EXAMPLE_HEAD, example
from fivm_dbt.steps.kinds import (
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


def check_statements(plan: Plan) -> None:
    """Raise FIVM901 where a statement of ``plan`` would be unsafe, before any has run.

    Whatever changes, a refresh runs some of the terms that are checked: a subset of safe reads is safe. The trees are
    looked at and not their text: to parse it took as long as to plan the model five times.
    """
    staged = {name for step in _steps(plan) for name in _staged(plan, step)}
    staged |= {staged_old(plan, view) for view in plan.stored}
    staged |= {
        staged_input(plan, f.name) for v in plan.stored if v.split is not None for f in v.split.factors
    }
    for found in emitted(plan):
        validate_tree(found, staged)


def emitted(plan: Plan) -> Iterator[exp.Expr]:
    """Every kind of statement that ``plan`` can emit, and each way to write."""
    steps, binding = _steps(plan), example(plan)
    products = {product.of.name: product.of for view in plan.stored for product in view.products}
    for bound in (binding, *(binding.with_factors(of) for of in products.values())):
        for step in steps:
            query = statement(plan, step, bound) if not isinstance(step, Write) else None
            if query is not None:
                yield query
    yield from _writes(plan)


def _steps(plan: Plan) -> tuple[Step, ...]:
    kept = snapshots(item.name for item in plan.inputs)
    return (*builds(plan), *captures(plan), *kept, *updates(plan))


def _writes(plan: Plan) -> Iterator[exp.Expr]:
    """Every way in which deltas can be written."""
    partition = (exp.Literal.string("v1"),)
    whole = [Place(view, partition) for view in plan.stored]
    bounded = [
        Place(view, partition, Bounds(key.name, key.type, 1, 2) if key is not None else None)
        for view in plan.stored
        for key in [view.state.bounding]
    ]
    for places in (whole, bounded):
        yield merge(plan, places, EXAMPLE_HEAD)
        yield replace_partitions(plan, places, 1, EXAMPLE_HEAD)
    is_told = tells_changes(plan, writes_changes=True)
    if is_told:
        yield new_rows(plan, whole, 1, EXAMPLE_HEAD)
    if plan.config.fivm_apply == "auto":
        yield new_rows(plan, (), 1, EXAMPLE_HEAD, is_told=is_told, deleted=whole)
        yield from (
            superseded(plan, p.view, 1, p.of_own(), is_small=True) for p in bounded if p.view.state.keys
        )
    yield write_head(plan, EXAMPLE_HEAD)


def _staged(plan: Plan, step: Step) -> Iterator[str]:
    """The session names that a step may leave."""
    match step:
        case StageInput(relation):
            yield staged_input(plan, relation)
        case StageKeys(_, key_set, _):
            yield staged_input(plan, key_set.name)
        case StageFactor(_, part, _):
            yield staged_input(plan, part.factor.name)
        case StageDelta(view) | StageState(view):
            yield staged_state(plan, view)
        case StageChange(view):
            yield staged_input(plan, view.name)
