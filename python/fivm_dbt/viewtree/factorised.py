"""A view tree's result need not be a list: it may be a join of views over free variables.

The function ν of the F-IVM article (section 7.1, figure 9) over a free-top variable order, in which no bound variable
stands above a free one.
"""

from __future__ import annotations

from dataclasses import dataclass

from fivm_dbt.errors import FivmError
from fivm_dbt.viewtree.hypergraph import Edge, Hypergraph
from fivm_dbt.viewtree.variable_order import OrderNode, VariableOrder
from fivm_dbt.viewtree.view_tree import TreeBuilder, View


@dataclass(frozen=True)
class FactorisedTree:
    """``Q[free] = Π over pieces``, each the payload of one row per key, where all ``joins`` have a row.

    ``pieces`` are the lowest views, or relations, with free variables only. Of ``above`` those at the free variable
    X with several children, ``H@X[dep(X), X]``, are the ``joins``: their rows are the values of X that the result
    has. The others, ``V@X[dep(X)]``, are what deltas of X's siblings meet. All are counts, each after those below it.
    """

    pieces: tuple[View | Edge, ...]
    above: tuple[View, ...]

    @property
    def joins(self) -> tuple[View, ...]:
        return tuple(view for view in self.above if set(view.variables) & set(view.keys))


def factorised_tree(graph: Hypergraph, order: VariableOrder) -> FactorisedTree:
    """ν: the views of a factorised result. Raises FIVM204 where the order does not fit, or is not free-top."""
    order.check(graph)
    misplaced = order.misplaced(graph.free)
    if misplaced is not None:
        bound, free = misplaced
        raise FivmError(
            "FIVM204",
            f"{bound} is no variable of the result and stands above {free}, which is one",
            remedy="fivm_result: factorized needs the variables of the result on top; or leave the order out",
        )
    builder = _Builder(TreeBuilder(graph, order))
    for root in order.roots:
        builder.visit(root, has_siblings=len(order.roots) > 1)
    return FactorisedTree((*builder.pieces, *builder.views.leaves.get(None, [])), tuple(builder.above))


@dataclass
class _Builder:
    views: TreeBuilder

    def __post_init__(self) -> None:
        self.pieces: list[View | Edge] = []
        self.above: list[View] = []

    def visit(self, node: OrderNode, *, has_siblings: bool) -> View | Edge:
        """What stands for a subtree in the view above it."""
        if node.variable not in self.views.graph.free:
            piece = self.views.view(node)
            self.pieces.append(piece)
            return piece
        leaves = self.views.leaves.get(node.variable, [])
        is_single = len(node.children) + len(leaves) == 1
        children: list[View | Edge] = [
            self.visit(child, has_siblings=not is_single) for child in node.children
        ]
        children += leaves
        self.pieces += leaves
        if is_single:
            (below,) = children
        else:
            below = self._count(node.variable, tuple(children), with_itself=True)
        return self._count(node.variable, (below,), with_itself=False) if has_siblings else below

    def _count(self, variable: str, children: tuple[View | Edge, ...], *, with_itself: bool) -> View:
        """``H@X`` of several children, or ``V@X`` of one."""
        keys = {*self.views.dependencies[variable], *((variable,) if with_itself else ())}
        view = View((variable,), self.views.relations_of(children), self.views.in_order(keys), children)
        self.above.append(view)
        return view
