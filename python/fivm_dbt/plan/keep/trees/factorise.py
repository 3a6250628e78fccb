"""An aggregate over a join becomes a view tree: inner views stand beside every path from a relation that changes.

The delta of one relation then meets groups instead of rows (F-IVM article, section 5).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

from fivm_dbt.catalog import TableStatistics
from fivm_dbt.ir.aggregate import Aggregate
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.plan.keep.trees.payload_views import HelperViewMaker, Piece
from fivm_dbt.plan.model.shown import TreeView, ViewTree
from fivm_dbt.viewtree.choice import Choice, choose
from fivm_dbt.viewtree.classes import class_of
from fivm_dbt.viewtree.hypergraph import Edge, FunctionalDependency
from fivm_dbt.viewtree.search import find_order
from fivm_dbt.viewtree.statistics import APPENDED, APPENDED_ROWS, Statistics
from fivm_dbt.viewtree.update_costs import UpdateCost, implied, update_costs
from fivm_dbt.viewtree.variable_order import VariableOrder
from fivm_dbt.viewtree.view_tree import View, beside, looked_up, materialised, view_tree


@dataclass(frozen=True)
class GivenOrder:
    """A variable order of the user, and the columns that it may name without the query needing them."""

    order: VariableOrder
    columns: frozenset[str]


@dataclass
class Factoriser(HelperViewMaker):
    """Builds the helper views of a block and what is left of it.

    With ``measured`` only the views are kept that pay; without it all that a delta meets.
    """

    given: GivenOrder | None = None
    measured: TableStatistics | None = None
    may_append: bool = False
    """Whether what is kept costs no more than its delta, as long as the result is small."""
    shown: list[TreeView] = field(default_factory=list)

    @cached_property
    def order(self) -> VariableOrder:
        """The user's order, or the one that is found. Raises FIVM204 where the user's does not fit."""
        if self.given is not None:
            return self.block.in_own_names(self.given.order, self.given.columns)
        # What keys make constant per row may be a view as large as the largest input: with sizes, they decide.
        dependencies = () if self.statistics is not None else self.dependencies
        numbers = self.block.numbers_of
        return find_order(self.block.graph, self.updatable, self.statistics, dependencies, numbers=numbers)

    @cached_property
    def dependencies(self) -> tuple[FunctionalDependency, ...]:
        return self.block.dependencies(self.inner.determines)

    @cached_property
    def statistics(self) -> Statistics | None:
        if self.measured is None:
            return None
        found = self.block.statistics(self.measured)
        is_appended = self.may_append and self.measured.appends and self.block.rows(found) <= APPENDED_ROWS
        return replace(found, upkeep=APPENDED) if is_appended else found

    @cached_property
    def tree(self) -> View:
        return view_tree(self.block.graph, self.order)

    @cached_property
    def choices(self) -> dict[View | Edge, Choice]:
        """What is decided about the views that may be kept, where not all of them are."""
        if self.statistics is None:
            return {}
        return choose(self.block.graph, self.tree, self.updatable, self.statistics)

    @cached_property
    def kept(self) -> frozenset[View | Edge]:
        """The views below the root that are kept."""
        every: set[View | Edge] = {*looked_up(self.tree, self.updatable)}
        every |= {view for view in materialised(self.tree, self.updatable) if view is not self.tree}
        return frozenset(v for v in every if v not in self.choices or self.choices[v].is_kept)

    @cached_property
    def classes(self) -> tuple[str, str]:
        """The class of the query, and the one that it has under the declared keys."""
        graph = self.block.graph
        return class_of(graph), class_of(graph.closed(self.dependencies))

    def root(self) -> tuple[Aggregate, ViewTree]:
        """The aggregate over kept views, which have been kept on the way, and the tree for people."""
        pieces = self._below(self.tree, 1)
        return self.views.result(pieces), self.shown_tree("the result")

    def shown_tree(self, root: str) -> ViewTree:
        """The tree for people, with what is said of its ``root``."""
        tree = self.tree
        query_class, under_keys = self.classes
        top = TreeView(
            0, at(tree), keys=tree.keys, relations=tree.relations, payload=(), kept=None, reason=root
        )
        return ViewTree(
            self.block.title,
            self.block.variables,
            order=str(self.order),
            chosen=self._chosen(),
            query_class=query_class
            if under_keys == query_class
            else f"{query_class}; under the declared keys {under_keys}",
            views=(top, *self.shown),
            implied=implied(under_keys),
            costs=tuple(self._costs()),
            branches=tuple((v, len(self.order.paths[v]) - 1) for v in self.order.variables),
            static=tuple(name for name in self.block.names if name not in self.updatable),
        )

    def _costs(self) -> Iterator[str]:
        """What changed rows meet, for people: relations that meet single rows together, the others one by one."""
        costs = self.update_costs
        constant = [c.relation for c in costs if not c.met]
        if constant:
            yield f"a changed row of {', '.join(constant)} meets single rows"
        for cost in costs:
            if cost.met:
                what = " and ".join(f"{name} by {', '.join(keys)}" for name, keys in cost.met)
                yield f"a changed row of {cost.relation} may meet many of {what}"

    @property
    def update_costs(self) -> tuple[UpdateCost, ...]:
        """What a changed row of each updatable relation meets."""
        return update_costs(self.block.graph, (self.tree,), self.updatable, self.dependencies)

    def _chosen(self) -> str:
        """Where the order comes from."""
        query_class, under_keys = self.classes
        if self.given is not None:
            return "given"
        if query_class == "q-hierarchical":
            return "by the shape of the query, which is q-hierarchical"
        if under_keys == "q-hierarchical" and self.statistics is None:
            return "by the shape of the query, which is q-hierarchical under the declared keys"
        if self.statistics is not None:
            return "the one that reads least, by the sizes that were measured"
        return "the one with the fewest rows in its views, by estimate"

    def _below(self, view: View, depth: int) -> list[Piece]:
        return [piece for child in view.children for piece in self._pieces(child, view, depth)]

    def _pieces(self, node: View | Edge, parent: View, depth: int) -> Iterator[Piece]:
        place = len(self.shown)
        if isinstance(node, View):
            pieces = self._below(node, depth + 1)
            if node in self.kept:
                pieces += self._indicators(node, depth + 1)
            where, keys, relations = at(node), node.keys, node.relations
            why = "nothing beside it changes"
        else:
            pieces = [self.views.as_it_is(self.block.position(node.name))]
            where, keys, relations = node.name, node.variables, (node.name,)
            why = "an input, which no delta meets"
        if node not in self.kept:
            if node in self.choices:
                why = self.choices[node].reason
            elif parent in self.choices and parent not in self.kept:
                why = "read with what is above it"
            self.shown.insert(
                place,
                TreeView(depth, where, keys=keys, relations=relations, payload=(), kept=None, reason=why),
            )
            yield from pieces
            return
        made = self.views.view(pieces, self._positions(parent.relations), self.inner.alias())
        scan = self.inner.keep(made.node, made.joined, self.views.reason(made))
        why = self.choices[node].reason if node in self.choices else self._why(node, parent)
        shown = TreeView(
            depth,
            where,
            keys=keys,
            relations=relations,
            payload=made.payload_names,
            kept=scan.relation,
            reason=why,
        )
        self.shown.insert(place, shown)
        yield made.kept_as(scan)

    def _why(self, node: View | Edge, parent: View) -> str:
        """Why a view is kept."""
        met_by = beside(node, parent) & self.updatable
        return f"deltas of {', '.join(name for name in self.block.names if name in met_by)} meet it"

    def _indicators(self, view: View, depth: int) -> Iterator[Piece]:
        """What restricts a view within a cycle to values that the relations have which close it."""
        for indicator in view.indicators:
            position, alias = self.block.position(indicator.relation), self.inner.alias()
            values = self.views.indicator(position, indicator.variables, alias)
            columns = ", ".join(k.name for k in values.keys)
            reason = f"the values of {columns} in {indicator.relation}, which close a cycle"
            scan = self.inner.keep(values, (), reason)
            where, names = f"∃{indicator.relation}", (indicator.relation,)
            why = "restricts the view above to what can close the cycle"
            self.shown.append(
                TreeView(
                    depth,
                    where,
                    keys=indicator.variables,
                    relations=names,
                    payload=("present",),
                    kept=scan.relation,
                    reason=why,
                )
            )
            meets = zip(indicator.variables, (k.name for k in values.keys), strict=True)
            yield Piece(scan, frozenset(), {}, meets={v: Scalar.column(scan.alias, n) for v, n in meets})

    def _positions(self, names: Iterable[str]) -> frozenset[int]:
        return frozenset(self.block.position(name) for name in names)


def at(view: View) -> str:
    """The variable at which a view stands, for people."""
    return view.variables[0] if view.variables else "∅"
