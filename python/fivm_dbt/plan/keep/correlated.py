"""Aggregates that are correlated by an inequality stand over what is kept for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fivm_dbt.ir.aggregate import Aggregate
from fivm_dbt.ir.local import Local
from fivm_dbt.ir.node import Node
from fivm_dbt.ir.nodes import Map
from fivm_dbt.plan.keep.helper_views import HelperViews
from fivm_dbt.plan.keep.inequality.choose import InequalityHelpers
from fivm_dbt.plan.keep.inequality.correlation import Correlation, correlation_of
from fivm_dbt.plan.keep.inequality.outer_sums import outer_rows_of
from fivm_dbt.plan.keep.kept_rows import Meaning


@dataclass(frozen=True)
class CorrelatedAggregates:
    """Finds such aggregates. ``visit`` gives a part of the query over kept views."""

    inequality: InequalityHelpers
    helpers: HelperViews
    visit: Callable[[Node], tuple[Node, Meaning]]

    def over_kept(self, node: Aggregate) -> Node | None:
        """An aggregate that is correlated by an inequality, over what is kept for it; None for others."""
        found = self._correlation(node)
        if found is None:
            return None
        known = self.inequality.values(found)
        domain, *factors = (
            self.visit(f) if f is not known else (f, {}) for f in (known or found.domain, *found.factors)
        )
        meaning = {column: value for _, inner in (domain, *factors) for column, value in inner.items()}
        over = found.over(domain[0], tuple(f for f, _ in factors), meaning)
        return self.inequality.kept(over, found)

    def over_sums(self, node: Aggregate) -> tuple[Aggregate, Map] | None:
        """The topmost aggregate over sums of its outer rows, and the columns of the query over its own sums.

        None where not all of it is evaluated on demand anyway.
        """
        found = outer_rows_of(node)
        self.inequality.summed = found
        if found is None or not any(self._will_be_on_demand(child) for child in found.beside):
            return None
        kept, wanted = self.helpers.views, self.helpers.wanted
        over, shown, sums = found.summed(kept, kept.alias(), splits_sums=wanted.splits_sums)
        self.inequality.sums = sums
        return over, shown

    def _will_be_on_demand(self, node: Node) -> bool:
        """Whether a part of ``node`` is to be evaluated with what stands above it."""
        if isinstance(node, Aggregate):
            found = self._correlation(node)
            return found is not None and self.inequality.is_on_demand(found)
        return not isinstance(node, Local) and any(self._will_be_on_demand(child) for child in node.inputs)

    def _correlation(self, node: Aggregate) -> Correlation | None:
        """``node`` if it is correlated by an inequality and more than a join is kept of it."""
        wanted = self.helpers.wanted
        found = None if wanted.only_needed else correlation_of(node)
        is_in_tree = self.helpers.are_kept and wanted.inequality == "auto"
        return None if found is None or is_in_tree or not self.inequality.applies(found) else found
