"""The order of the statements of a build and of a refresh. It stands here alone."""

from __future__ import annotations

from collections.abc import Iterator

from fivm_dbt.delta.key_sets import KeySet
from fivm_dbt.delta.products import ProductDelta
from fivm_dbt.delta.term import scans
from fivm_dbt.plan.plan import Plan, View
from fivm_dbt.steps.kinds import (
    Build,
    Count,
    Factorise,
    Locate,
    StageChange,
    StageDelta,
    StageFactor,
    StageInput,
    StageKeys,
    StageState,
    UpdateStep,
    Write,
)


def builds(plan: Plan) -> tuple[StageState | Build, ...]:
    """The steps of a build: what views are built of, inner ones first, then the table of all."""
    read = {scan.relation for view in plan.stored for scan in scans(view.core)}
    return (*(StageState(view) for view in plan.stored if view.name in read), Build())


def captures(plan: Plan) -> tuple[StageInput, ...]:
    """The steps by which the changes of inputs are staged; those of inputs whose version stands still are left out."""
    return tuple(StageInput(item.name) for item in plan.inputs if not item.is_static)


def updates(plan: Plan) -> tuple[UpdateStep, ...]:
    """The steps by which every view is brought up to date, inner ones first, with all that can be there.

    All deltas come before the first write, so that they are computed from one state, and nothing is written unless
    all of them could be computed.

    What has nothing to do, after what did not change, is left out when they run: steps are the same for all refreshes
    of a plan.
    """
    deltas = (step for view in plan.stored for step in _deltas(plan, view))
    return (*deltas, Write())


def _deltas(plan: Plan, view: View) -> Iterator[UpdateStep]:
    for key_set, product in key_sets(view):
        yield Locate(view, key_set, product)
        yield StageKeys(view, key_set, product)
    yield Locate(view)
    for product in view.products:
        for part in product.parts:
            yield StageFactor(view, part, product)
    yield StageDelta(view)
    yield Count(view)
    if view is not plan.top:
        yield StageChange(view)
        yield Factorise(view)


def key_sets(view: View) -> Iterator[tuple[KeySet, ProductDelta | None]]:
    """All key sets of a view, those of its products with the product that they belong to."""
    for key_set in view.key_sets:
        yield key_set, None
    for product in view.products:
        for key_set in product.key_sets:
            yield key_set, product
