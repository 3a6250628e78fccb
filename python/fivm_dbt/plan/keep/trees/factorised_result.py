"""A result may be kept as the views of a view tree, and joined when it is read (``fivm_result: factorized``).

A join whose rows are many times its inputs' needs no more state than these (F-IVM article, section 7.1).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from fivm_dbt.ir.aggregate import Aggregate
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.plan.keep.trees.factorise import Factoriser, at
from fivm_dbt.plan.keep.trees.payload_views import Piece
from fivm_dbt.plan.model.shown import TreeView, ViewTree
from fivm_dbt.viewtree.factorised import FactorisedTree, factorised_tree
from fivm_dbt.viewtree.hypergraph import Edge
from fivm_dbt.viewtree.search import find_order
from fivm_dbt.viewtree.update_costs import UpdateCost, update_costs
from fivm_dbt.viewtree.variable_order import VariableOrder
from fivm_dbt.viewtree.view_tree import View, looked_up, materialised


@dataclass
class FactorisedResult(Factoriser):
    """Builds the views of a block, and the query over them that gives its result."""

    @cached_property
    def order(self) -> VariableOrder:
        """The user's order, or a free-top one that is found. Raises FIVM204 where the user's does not fit."""
        if self.given is not None:
            return self.block.in_own_names(self.given.order, self.given.columns)
        return find_order(self.block.graph, self.updatable, None, self.dependencies, is_free_top=True)

    @cached_property
    def factors(self) -> FactorisedTree:
        return factorised_tree(self.block.graph, self.order)

    @cached_property
    def tree(self) -> View:
        """The result over its pieces, as if it were a view."""
        graph = self.block.graph
        free = tuple(v for v in self.order.variables if v in graph.free)
        return View((), tuple(e.name for e in graph.edges), free, self.factors.pieces)

    @cached_property
    def kept(self) -> frozenset[View | Edge]:
        """All pieces, and what deltas meet below them."""
        found: set[View | Edge] = set(self.factors.pieces)
        for piece in self.factors.pieces:
            if isinstance(piece, View):
                found |= {*materialised(piece, self.updatable), *looked_up(piece, self.updatable)}
        return frozenset(found)

    def root(self) -> tuple[Aggregate, ViewTree]:
        """The aggregate that is the result, over what is kept, and the tree for people."""
        pieces = {
            node: piece for node in self.factors.pieces for piece in self._pieces(node, self._above(node), 1)
        }
        below = len(self.shown)
        for view in self.factors.above:
            pieces[view] = self._counted(view, [pieces[child] for child in view.children])
        # People read from the top.
        self.shown = [*reversed(self.shown[below:]), *self.shown[:below]]
        return self.views.result(self._enumerated(pieces)), self.shown_tree(
            "not kept: joined when it is read"
        )

    def _enumerated(self, pieces: dict[View | Edge, Piece]) -> list[Piece]:
        """The factors, each joined with one before where there is such a one, and restricted as soon as can be.

        What is joined so far never has more rows than the result (article, section 7.1, enumeration).
        """
        left, joins = list(self.factors.pieces), list(self.factors.joins)
        met: set[str] = set()
        found: list[Piece] = []
        while left:
            piece = next((p for p in left if met & set(p.keys)), left[0])
            left.remove(piece)
            met |= set(piece.keys)
            found.append(pieces[piece])
            for view in [v for v in joins if set(v.keys) <= met]:
                joins.remove(view)
                found.append(self._restricting(pieces[view]))
        return found

    @cached_property
    def is_grouped(self) -> bool:
        """Whether the keys of the result tell all variables of its factors, so that nothing is left to be added up.

        A result of one row has it even where nothing is joined.
        """
        if self.block.aggregate.is_global:
            return False
        shown = {k.value for k in self.block.aggregate.keys}
        known = {v for p, v in self.block.variable_of.items() if p in shown}
        of_pieces = {v for piece in self.factors.pieces for v in piece.keys}
        return of_pieces <= known

    def _above(self, node: View | Edge) -> View:
        """The view whose deltas meet ``node``, which is therefore placed by what joins it there."""
        return next((view for view in self.factors.above if node in view.children), self.tree)

    def _counted(self, view: View, below: list[Piece]) -> Piece:
        around = self._positions(self._above(view).relations)
        made = self.views.view(below, around, self.inner.alias(), view.keys)
        scan = self.inner.keep(made.node, made.joined, self.views.reason(made))
        if view in self.factors.joins:
            why = f"the values of {view.variables[0]} that the result has"
        else:
            why = "what deltas beside it meet"
        self.shown.append(
            TreeView(
                1,
                at(view),
                keys=view.keys,
                relations=view.relations,
                payload=("rows",),
                kept=scan.relation,
                reason=why,
            )
        )
        return made.kept_as(scan)

    def _restricting(self, piece: Piece) -> Piece:
        """A view of which only the keys count: what has no row there is not in the result."""
        first: dict[str, Scalar] = {}
        for part, column in piece.columns.items():
            first.setdefault(self.block.variable_of[part], column)
        return Piece(piece.node, frozenset(), {}, meets=first)

    @property
    def update_costs(self) -> tuple[UpdateCost, ...]:
        """What a changed row of each updatable relation meets on its way to the views that are kept."""
        every = {*self.factors.above, *(p for p in self.factors.pieces if isinstance(p, View))}
        below = {child for view in every for child in view.children}
        roots = [view for view in (*self.factors.above, *self.factors.pieces) if view not in below]
        trees = tuple(view for view in roots if isinstance(view, View))
        return update_costs(self.block.graph, trees, self.updatable, self.dependencies)

    def _why(self, node: View | Edge, parent: View) -> str:
        if node in self.factors.pieces:
            return "a factor of the result"
        return super()._why(node, parent)
