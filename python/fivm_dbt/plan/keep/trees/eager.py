"""Rows of a large input are grouped before they meet the change of a small one (eager aggregation).

``Δγ_K(R ⋈ F ⋈ S) = γ_K(ΔR ⋈ γ_{K_F}(F ⋉ ΔR) ⋈ S)`` where R alone has changed.

``K_F`` are the columns of F that are used above it. A changed row of a dimension comes as the old one and the new one:
each row of F would be joined and added up twice. The groups are those of a view of a view tree that is not kept
(F-IVM article, section 4). Moving a GROUP BY below a join is due to Yan and Larson (VLDB 1995).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from fivm_dbt.catalog import TableStatistics
from fivm_dbt.delta import derive
from fivm_dbt.delta.term import Term, at_side, scans
from fivm_dbt.ir.aggregate import Aggregate, AggregateCall
from fivm_dbt.ir.comparison import Comparison
from fivm_dbt.ir.factored import Product
from fivm_dbt.ir.node import Node, Side
from fivm_dbt.ir.one_sided import SemiJoin
from fivm_dbt.ir.rename import moved, renamed
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.plan.keep.kept_views import KeptViews
from fivm_dbt.plan.keep.trees.blocks import Block
from fivm_dbt.plan.keep.trees.payload_views import ROWS, PayloadViews, Piece
from fivm_dbt.rings.kinds import numbers_for

MANY_ROWS = 100_000
"""Of the large input: with fewer there is nothing to save."""

ROWS_A_GROUP = 4
"""So many of its rows are to be in a group, on the average. To group rows costs about as much as to join them."""


@dataclass(frozen=True)
class EagerTerm:
    """What ``relation`` changes of ``over``, the aggregate of the query over groups of another input."""

    relation: str
    term: Term
    over: Aggregate


@dataclass(frozen=True)
class EagerTerms:
    """The terms of a ``block`` over inputs alone, of which as much is ``known``, for changes of its small ones."""

    block: Block
    views: KeptViews
    known: TableStatistics

    def all(self) -> Iterator[EagerTerm]:
        """One for each input that joins the largest one. None where its groups would not be far fewer."""
        large = self._large
        if large is None:
            return
        inputs = [scan.relation for node in self.block.relations for scan in scans(node)]
        for position, node in enumerate(self.block.relations):
            read = scans(node)
            is_input = len(read) == 1 and all(n.is_linear for n in node.walk() if n.inputs)
            if position == large or not is_input or not self.views.can_change(node):
                continue
            if inputs.count(read[0].relation) == 1:
                yield from self._of(position, large, read[0].relation)

    @cached_property
    def _large(self) -> int | None:
        """The position of the input that is grouped."""
        block, statistics = self.block, self.block.statistics(self.known)
        rows = statistics.rows
        if not rows or not all(numbers_for([t for _, t in p.factors]).is_exact for p in block.products):
            return None
        name = max(sorted(rows), key=rows.__getitem__)
        position = block.position(name)
        parts = PayloadViews(block).columns(frozenset({position}))
        groups = statistics.groups(block.graph, [name], {block.variable_of[part] for part in parts})
        is_worth = rows[name] >= MANY_ROWS and ROWS_A_GROUP * groups <= rows[name]
        return position if is_worth else None

    @cached_property
    def _alias(self) -> str:
        """Of the groups, in all terms the same: so that several can be added up."""
        return self.views.alias()

    def _of(self, small: int, large: int, relation: str) -> Iterator[EagerTerm]:
        pairs = list(self._pairs(small, large))
        if not pairs:
            return
        (change,) = derive(self.block.relations[small])
        changed, names = renamed(change.node, lambda _: self.views.alias())
        predicates = tuple(Comparison(theirs, "=", moved(own, names)).scalar for own, theirs in pairs)
        wanted = SemiJoin(at_side(self.block.relations[large], Side.NEW), changed, predicates)
        views = PayloadViews(self.block)
        piece = replace(views.as_it_is(large), node=wanted)
        every = frozenset(range(len(self.block.relations)))
        made = views.view([piece], every, self._alias)
        groups = _as_sql(made.node)
        grouped = Piece(
            groups, made.relations, made.columns, made.payload, Scalar.column(made.node.alias, ROWS)
        )
        others = [views.as_it_is(n) for n in sorted(every - {large})]
        over = views.result([grouped, *others])

        def sided(factor: Node) -> Node:
            if factor is groups:
                return factor
            return change.node if factor is self.block.relations[small] else at_side(factor, Side.NEW)

        node = over.input.with_inputs(tuple(map(sided, over.input.inputs)))
        yield EagerTerm(relation, Term(node, change.multiplicity), over)

    def _pairs(self, small: int, large: int) -> Iterator[tuple[Scalar, Scalar]]:
        """What is equal in rows of both that meet."""
        for condition in self.block.conditions:
            found = Comparison.of(condition)
            if found is None or found.operator != "=":
                continue
            for each in (found, found.turned):
                sides = (self.block.relations_of(each.left), self.block.relations_of(each.right))
                if sides == (frozenset({small}), frozenset({large})):
                    yield each.left, each.right


def _as_sql(view: Aggregate) -> Aggregate:
    """A view with payload as a part of a query: its sums are written out, as nobody keeps them."""
    assert view.factored is not None
    products = (component for (component,) in view.factored.calls[1:])
    rows, *totals = view.calls
    calls = (_written(call, added) for call, added in zip(totals, products, strict=True))
    return replace(view, calls=(rows, *calls), factored=None)


def _written(call: AggregateCall, products: tuple[Product, ...]) -> AggregateCall:
    numbers = numbers_for([type_ for product in products for _, type_ in product.factors])
    return replace(call, written=numbers.partial(numbers.sum_of(products, Scalar.number(1))))
