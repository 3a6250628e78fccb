"""These lines show view trees: variables, the order, and each view with keys, payload and why it is kept."""

from __future__ import annotations

from collections.abc import Iterator

from fivm_dbt.naming import split_name
from fivm_dbt.plan.model.plan import MaintainedPlan, Plan
from fivm_dbt.plan.model.shown import TreeView, ViewTree


def view_tree_lines(tree: ViewTree) -> Iterator[str]:
    """The lines about one tree."""
    yield f"query class: {tree.query_class}"
    if tree.implied:
        yield f"  {tree.implied}"
    yield from (f"  {line}" for line in tree.costs)
    if tree.order is None:
        yield f"recursive: {tree.chosen}"
    else:
        yield f"variable order: {tree.order or 'no variable'}  -- {tree.chosen}"
    for variable, members in tree.variables:
        if len(members) > 1 or members[0] != variable:
            yield f"  {variable} = {' = '.join(members)}"
    for view in tree.views:
        yield f"{'  ' * view.depth}{_view(view)}"


def _view(view: TreeView) -> str:
    keys = ", ".join(view.keys)
    if view.relations == (view.variable,) or view.variable.startswith("∃"):
        what = f"{view.variable}[{keys}]"
    elif not view.variable:
        what = f"M[{keys}] of {', '.join(view.relations)}"
    else:
        what = f"V@{view.variable}[{keys}] of {', '.join(view.relations)}"
    if view.depth == 0:
        return f"{what}: {view.reason}"
    if view.kept is None:
        return f"{what}: not kept, {view.reason}"
    return f"{what} → {', '.join(view.payload)}: kept as {split_name(view.kept)[-1]}, {view.reason}"


def trees_of(plan: Plan) -> tuple[ViewTree, ...]:
    """The view trees of a plan; only what is maintained has any."""
    return plan.view_trees if isinstance(plan, MaintainedPlan) else ()
