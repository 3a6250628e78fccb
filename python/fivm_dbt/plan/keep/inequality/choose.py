"""This module chooses what is kept of ``G = γ_c(D ⋈_{x θ c} R)``, with D the outer values.

S are the sums of R by x and by what is compared for equality (for VWAP the volume by price). Over S there are three
ways:

* ``reevaluate``: nothing else is kept. What stands over G is evaluated whenever something changed, G by one sweep over
  S and D in the order of x and c (:mod:`fivm_dbt.plan.keep.inequality.sweep`).
* ``parameterised``: G is kept, one value per outer value in use. A changed sum of S meets the outer values that it is
  in range of, a new outer value reads S, and a value that is no longer in use leaves with its outer value.
* ``ranges``: G is kept, over H in place of S: sums per bucket of x on several levels
  (:mod:`fivm_dbt.plan.keep.inequality.ranges`). The range of a new outer value is the union over the levels of the
  buckets beside its own, which are looked up.

(Multilevel IVM, sections 3.1.3, 3.3 and 4.4. Which way: :mod:`fivm_dbt.viewtree.inequality_costs`.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from fivm_dbt.catalog import TableStatistics
from fivm_dbt.config import Inequality
from fivm_dbt.delta.term import scans
from fivm_dbt.ir.aggregate import Aggregate
from fivm_dbt.ir.buckets import LEVEL, PARENT
from fivm_dbt.ir.build import is_there
from fivm_dbt.ir.node import Node
from fivm_dbt.ir.nodes import Filter, Join, Map
from fivm_dbt.ir.on_demand import OnDemand
from fivm_dbt.ir.reads import Scan
from fivm_dbt.ir.rename import with_meaning
from fivm_dbt.ir.scalar import ColumnId, Scalar
from fivm_dbt.plan.keep.inequality.correlation import Correlation
from fivm_dbt.plan.keep.inequality.outer_sums import OuterRows
from fivm_dbt.plan.keep.inequality.ranges import Spread, beside, bucketed, items_of, spread_of
from fivm_dbt.plan.keep.inequality.sweep import Sweep
from fivm_dbt.plan.keep.kept_views import KeptViews, column_of
from fivm_dbt.plan.keep.trees.blocks import Block
from fivm_dbt.plan.keep.trees.payload_views import PayloadViews, Piece
from fivm_dbt.plan.model.shown import InequalityHelper
from fivm_dbt.viewtree.inequality_costs import Sizes, Way, buckets_of, costs
from fivm_dbt.viewtree.statistics import DISTINCT
from fivm_dbt.viewtree.statistics import ROWS as UNKNOWN_ROWS


@dataclass
class InequalityHelpers:
    """Keeps what is chosen for one model's aggregates over inequalities, in ``views``.

    ``setting`` is ``fivm_inequality``; ``buckets`` are those of its states where the model says it. ``measurable`` says
    what ``auto`` would like to know, ``chosen`` what was taken and why.
    """

    views: KeptViews
    setting: Inequality
    measured: TableStatistics | None
    buckets: int | None
    splits_sums: bool
    summed: OuterRows | None = None
    """The outer rows of the model that would be kept as sums if something were evaluated on demand."""
    sums: Piece | None = None
    """These sums, where they are kept."""
    measurable: dict[str, set[str]] = field(default_factory=dict)
    chosen: list[InequalityHelper] = field(default_factory=list)

    def applies(self, found: Correlation) -> bool:
        """Whether it is for here: the outer values come and go, and what is compared can be a key."""
        types = found.types
        used = (found.comparison, *found.equal)
        is_keyed = all(types[c].is_groupable for s in used for c in s.columns)
        return is_keyed and self.views.can_change(found.domain)

    def is_on_demand(self, found: Correlation) -> bool:
        """Whether ``found``, over the inputs, is to be evaluated on demand."""
        spread, why_not = spread_of(found)
        sizes = self._sizes(found, spread.levels if spread is not None else None)
        return self._choice(sizes, why_not)[0] == "reevaluate"

    def values(self, found: Correlation) -> Aggregate | None:
        """The domain of ``found`` as the values of the outer rows' sums, where these are kept and have them all."""
        if self.summed is None or self.sums is None or not self.summed.covers(found.domain):
            return None
        assert isinstance(found.domain, Aggregate)
        if not self.is_on_demand(found):
            return None
        return self.summed.values(found.domain, self.sums, self.views.alias())

    def kept(self, found: Correlation, before: Correlation) -> Node:
        """The aggregate over what is kept for it. ``before`` is ``found`` over the inputs, of which the sizes are."""
        spread, why_not = spread_of(found)
        sizes = self._sizes(before, spread.levels if spread is not None else None)
        way, reason = self._choice(sizes, why_not)
        first = len(self.views.views)
        node = {"reevaluate": self._on_demand, "parameterised": self._parameterised}.get(
            way, lambda f: self._over_ranges(f, spread)
        )(found)
        names = tuple(v.name for v in self.views.views[first:])
        estimates = tuple((w, round(cost)) for w, cost in costs(sizes).items())
        self.chosen.append(
            InequalityHelper(
                before.comparison.sql,
                way,
                reason=reason,
                views=names,
                costs=estimates,
                without_ranges=why_not,
            )
        )
        return node

    # The choice

    def _choice(self, sizes: Sizes, why_not: str | None) -> tuple[Way, str]:
        if self.setting == "ranges" and why_not is not None:
            return "parameterised", f"ranges do not apply: {why_not}"
        if self.setting != "auto":
            return self.setting, f"fivm_inequality: {self.setting}"
        found = costs(sizes)
        least = min(found, key=lambda way: found[way])
        known = "by the sizes that were measured" if self.measured is not None else "by default sizes"
        return least, f"the fewest rows per refresh, {known}"

    def _sizes(self, found: Correlation, levels: int | None) -> Sizes:
        inner, outer = Join(found.factors, ()), found.domain
        rows, outer_rows = self._rows(inner), self._rows(outer)
        values = self._distinct(inner, found.value.columns)
        equal = frozenset(c for p in found.equal for c in p.columns) & inner.ids
        groups = min(rows, self._distinct(inner, equal))
        outer_columns = frozenset(c for p in (found.comparison, *found.equal) for c in p.columns) & outer.ids
        rate, outer_rate = self._rates(inner, outer)
        outer_kept, domain_kept = outer_rows, min(outer_rows, self._distinct(outer, outer_columns))
        if self.summed is not None and _inputs(self.summed.rows) == _inputs(outer):
            outer_kept = min(outer_rows, self._distinct(self.summed.rows, self.summed.compared))
            domain_kept = 0.0 if self.summed.covers(outer) else domain_kept
        return Sizes(
            rows=rows,
            keys=min(rows, values * groups),
            groups=groups,
            outer_rows=outer_rows,
            outer_kept=outer_kept,
            outer_values=min(outer_rows, self._distinct(outer, outer_columns)),
            domain_kept=domain_kept,
            rate=rate,
            outer_rate=outer_rate,
            levels=levels,
            buckets=self.buckets or buckets_of(max(rows, outer_rows)),
        )

    def _rows(self, node: Node) -> float:
        """Rows of the largest relation below: most joins are from a foreign key to a key."""
        counted = [self._rows_of(s.relation) for s in scans(node)]
        return float(max(counted, default=1))

    def _rows_of(self, relation: str) -> int:
        self.measurable.setdefault(relation, set())
        known = self.measured.rows_of(relation) if self.measured is not None else None
        return max(1, UNKNOWN_ROWS if known is None else known)

    def _distinct(self, node: Node, columns: Iterable[ColumnId]) -> float:
        product = 1.0
        for column in sorted(columns):
            found = _input_column(node, column)
            known = None
            if found is not None:
                self.measurable.setdefault(found[0], set()).add(found[1])
                known = self.measured.distinct_of(*found) if self.measured is not None else None
            product *= max(1, DISTINCT if known is None else known)
        return product

    def _rates(self, inner: Node, outer: Node) -> tuple[float, float]:
        """How often R and L change, the one that changes oftener once per refresh: by the fourth root of their rows."""
        weights = [
            self._rows(node) ** 0.25 if self.views.can_change(node) else 0.0 for node in (inner, outer)
        ]
        if _inputs(inner) & _inputs(outer):
            weights = [max(weights)] * 2
        most = max(weights) or 1.0
        return weights[0] / most, weights[1] / most

    # The three ways

    def _parameterised(self, found: Correlation) -> Node:
        rows, own, domain = self._relations(found)
        block = self._block(found, rows, domain, own)
        views = PayloadViews(block)
        return views.result([self._sums(views, found.equal), views.as_it_is(1)])

    def _on_demand(self, found: Correlation) -> Node:
        rows, own, domain = self._relations(found)
        block = self._block(found, rows, domain, own)
        views = PayloadViews(block)
        sums, values = self._sums(views, found.equal), views.as_it_is(1)
        result = views.result([sums, values])
        alias = self.views.alias
        sweep = Sweep(own, result, sums=sums, values=values, alias=alias(), placed=alias())
        swept = sweep.rows()
        return OnDemand(swept if swept is not None else sweep.joined())

    def _over_ranges(self, found: Correlation, spread: Spread | None) -> Node:
        assert spread is not None
        rows, own, domain = self._relations(found)
        inner, meaning = bucketed(rows, spread.code(own.value), spread.levels, self.views.alias())
        outer, outer_meaning = bucketed(domain, spread.code(own.outer), spread.levels, self.views.alias())
        meaning |= outer_meaning
        equal = tuple(p.substitute(meaning.get) for p in own.equal)
        pairs = [(inner.alias, n, outer.alias, n) for n in (LEVEL, PARENT)]
        same = tuple(Scalar.equal((a, b), (c, d)) for a, b, c, d in pairs)
        near = beside(own.operator, inner.alias, outer.alias)
        aggregate = replace(
            own.aggregate,
            keys=with_meaning(own.aggregate.keys, meaning),
            calls=with_meaning(own.aggregate.calls, meaning),
            input=Join((inner, outer), (*equal, *same, near)),
        )
        block = Block(aggregate, (inner, outer), (*equal, *same, near), self.splits_sums)
        views = PayloadViews(block)
        return views.result([self._sums(views, (*equal, *same), "per range"), views.as_it_is(1)])

    def _sums(self, views: PayloadViews, equal: tuple[Scalar, ...], what: str = "by key") -> Piece:
        """The sums of R, kept: placed by what has to be equal, where anything has to."""
        made = views.view([views.as_it_is(0)], frozenset((0, 1)), self.views.alias())
        compared = frozenset(c for p in equal for c in p.columns)
        by = [column_of(column) for part, column in made.columns.items() if part.columns & compared]
        keys = ", ".join(k.name for k in made.node.keys)
        reason = f"sums of {views.block.names[0]} {what} ({keys}), which outer values are compared with"
        return made.kept_as(self.views.keep(made.node, tuple(dict.fromkeys(by)), reason))

    def _block(self, found: Correlation, rows: Node, domain: Node, own: Correlation) -> Block:
        conditions = (*own.equal, own.comparison)
        aggregate = replace(own.aggregate, input=Join((rows, domain), conditions))
        return Block(aggregate, (rows, domain), conditions, self.splits_sums)

    def _relations(self, found: Correlation) -> tuple[Node, Correlation, Node]:
        """R as one relation and the domain, each under the conditions on it alone, and ``found`` over these."""
        present = is_there(found.value)
        if found.value.is_column:
            present = Scalar.is_not_null(next(iter(found.value.columns)))
        domain: Node = Filter(found.domain, found.beside) if found.beside else found.domain
        if len(found.factors) == 1:
            return Filter(found.factors[0], (*found.own, present)), found, domain
        joined = Join(found.factors, (*found.own, present))
        rows, meaning = _projected(joined, _used(found) & joined.ids, self.views.alias())
        return rows, found.over(domain, (rows,), meaning), domain


def _inputs(node: Node) -> frozenset[str]:
    return frozenset(s.relation for s in scans(node))


def _used(found: Correlation) -> frozenset[ColumnId]:
    """The columns of R that are compared or added up."""
    arguments = (c.argument for c in found.aggregate.calls if c.argument is not None)
    return frozenset(c for s in (found.comparison, *found.equal, *arguments) for c in s.columns)


def _projected(node: Node, columns: frozenset[ColumnId], alias: str) -> tuple[Map, dict[ColumnId, Scalar]]:
    """Some columns of ``node`` as one relation, and what they are called there."""
    items, meaning = items_of(node, columns, alias)
    return Map(node, alias, items), meaning


def _input_column(node: Node, column: ColumnId) -> tuple[str, str] | None:
    """The column of an input that a column of ``node`` is, if it is one as it stands."""
    if isinstance(node, Scan):
        return (node.relation, column[1]) if column in node.ids else None
    if isinstance(node, (Map, Aggregate)):
        items = node.items if isinstance(node, Map) else node.keys
        value = next((i.value for i in items if (node.alias, i.name) == column), None)
        if value is None or not value.is_column:
            return None
        column = next(iter(value.columns))
    found: Iterator[tuple[str, str] | None] = (_input_column(child, column) for child in node.inputs)
    return next((f for f in found if f is not None), None)
