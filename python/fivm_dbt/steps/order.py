"""The statements of a build and of a refresh have their order here alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from fivm_dbt.delta.key_sets import KeySet
from fivm_dbt.delta.near_changes import times_read
from fivm_dbt.delta.products import ProductDelta
from fivm_dbt.delta.term import scans
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.plan.model.view import View
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


def snapshots(names: Iterable[str]) -> tuple[KeepSnapshot, ...]:
    """The steps by which inputs that are compared with own snapshots are kept: in a build, and before each write."""
    return tuple(map(KeepSnapshot, sorted(names)))


def updates(plan: Plan) -> tuple[UpdateStep, ...]:
    """The steps by which every view is brought up to date, inner ones first, with all that can be there.

    All deltas come before the first write, so that they are computed from one state, and nothing is written unless
    all of them could be computed.

    What has nothing to do, after what did not change, is left out when they run: steps are the same for all refreshes
    of a plan.
    """
    deltas = (step for level in levels(plan) for step in _deltas(plan, level))
    return (*deltas, Write())


def levels(plan: Plan) -> tuple[tuple[View, ...], ...]:
    """The views by how deep views are that they read: those of a level do not read each other.

    Their deltas can be computed at once, and then their changes.
    """
    depth: dict[str, int] = {}
    for view in plan.stored:
        below = (depth[name] for name in _read_by(view) if name in depth)
        depth[view.name] = 1 + max(below, default=0)
    found = sorted(set(depth.values()))
    return tuple(tuple(v for v in plan.stored if depth[v.name] == number) for number in found)


def _read_by(view: View) -> Iterator[str]:
    """What the statements for a view read, or ask for the times of its changes."""
    parts = [part.node for product in view.products for part in product.parts]
    nodes = [view.core, *(t.node for t in view.terms), *(k.node for k, _ in key_sets(view)), *parts]
    yield from (scan.relation for node in nodes for scan in scans(node))
    yield from (product.of.view for product in view.products)
    yield from (near.relation for near in times_read(view.terms, view.key_sets))


def _deltas(plan: Plan, level: Sequence[View]) -> Iterator[UpdateStep]:
    for view in level:
        for key_set, product in key_sets(view):
            yield Locate(view, key_set, product)
            yield StageKeys(view, key_set, product)
        yield Locate(view)
        for product in view.products:
            for part in product.parts:
                yield StageFactor(view, part, product)
    yield from map(StageDelta, level)
    yield from map(Count, level)
    inner = [view for view in level if view is not plan.top]
    yield from map(StageChange, inner)
    yield from map(Factorise, inner)


def key_sets(view: View) -> Iterator[tuple[KeySet, ProductDelta | None]]:
    """All key sets of a view, those of its products with the product that they belong to."""
    for key_set in view.key_sets:
        yield key_set, None
    for product in view.products:
        for key_set in product.key_sets:
            yield key_set, product
