"""What is asked of inner views and cannot be kept is refused."""

from __future__ import annotations

from fivm_dbt.errors import FivmError
from fivm_dbt.ir.aggregate import Aggregate
from fivm_dbt.ir.node import Node
from fivm_dbt.ir.reads import Scan
from fivm_dbt.plan.keep.helper_views import Wanted
from fivm_dbt.plan.keep.trees.factorise import GivenOrder
from fivm_dbt.plan.model.shown import InequalityHelper
from fivm_dbt.suggest import did_you_mean


def check_needless(query: Node, given: GivenOrder) -> None:
    """FIVM204 for an order that nothing goes by, except over one relation, where each order gives the same views."""
    if sum(isinstance(node, Scan) for node in query.walk()) != 1:
        raise FivmError(
            "FIVM204",
            "fivm_variable_order is given, but the model, or its topmost aggregate, is not over an inner join",
            remedy="leave it out",
        )
    unknown = [v for v in given.order.variables if v.lower() not in given.columns]
    if unknown:
        what = f"{', '.join(unknown)} of the order is no column of the relation"
        remedy = did_you_mean(unknown[0], sorted(given.columns)) or "correct the name"
        raise FivmError("FIVM204", what, remedy=remedy)


def check_inequality(wanted: Wanted, chosen: tuple[InequalityHelper, ...]) -> None:
    """FIVM201 where a way is given in which nothing of the model can be kept."""
    if wanted.inequality == "auto" or any(c.way == wanted.inequality for c in chosen):
        return
    if wanted.only_needed:
        why = f"fivm_strategy: {wanted.strategy} keeps no inner views"
    elif chosen:
        why = chosen[0].reason
    else:
        why = "no aggregate that adds up is correlated by one inequality with outer values that change"
    raise FivmError(
        "FIVM201", f"fivm_inequality: {wanted.inequality} is given, but {why}", remedy="leave it out"
    )


def check_repeatable(node: Aggregate) -> None:
    """FIVM108 for a result that can neither be kept nor be computed again to the last bit."""
    unstable = next((c for c in node.calls if not c.is_repeatable), None)
    odd = next((f for f in node.fields if not f.type.is_groupable), None)
    if odd is not None and unstable is not None:
        shown = (
            unstable.written.sql
            if unstable.written is not None
            else f"{unstable.function.upper()} of doubles"
        )
        raise FivmError(
            "FIVM108",
            f"{shown} depends on the order in which doubles are added, and its group cannot be kept: "
            f"{odd.name} has type {odd.type}",
            remedy="CAST the argument to a decimal type, e.g. CAST(x AS DECIMAL(18, 4))",
        )
