"""The strategies that keep helper views of a join, of which an aggregate or a listing is then computed.

``factorized`` keeps a view tree (:mod:`fivm_dbt.plan.factorise`), ``recursive`` maps (:mod:`fivm_dbt.plan.recursive`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from fivm_dbt.config import Strategy
from fivm_dbt.ir.copies import Copies
from fivm_dbt.ir.nodes import Aggregate, Map, Node
from fivm_dbt.plan.blocks import Block, block_of
from fivm_dbt.plan.factorise import Factoriser, GivenOrder
from fivm_dbt.plan.payload_views import Keep
from fivm_dbt.plan.plan import ViewTree
from fivm_dbt.plan.recursive import Recursion


@dataclass
class HelperViews:
    """Keeps the helper views of one model's joins. ``changes`` says of a relation whether it can."""

    strategy: Strategy
    depth: int | None
    changes: Callable[[Node], bool]
    keep: Keep
    alias: Callable[[], str]
    trees: list[ViewTree] = field(default_factory=list)

    @property
    def are_kept(self) -> bool:
        return self.strategy in ("factorized", "recursive")

    def aggregate(self, node: Aggregate, order: GivenOrder | None) -> Aggregate | None:
        """``node`` over helper views; None where it has no join that they could be of."""
        block = block_of(node) if self.are_kept else None
        return self._over(block, order) if block is not None else None

    def listing(self, rows: Map, order: GivenOrder | None = None) -> Copies | None:
        """The rows of a join over helper views: grouped by all their columns they are an aggregate that counts."""
        if not self.are_kept or not rows.items or not all(i.type.is_groupable for i in rows.items):
            return None
        block = block_of(Aggregate(rows.input, rows.alias, rows.items, ()))
        if block is None:
            return None
        over = self._over(block, order)
        assert over.factored is not None
        return Copies(over.input, rows.alias, over.keys, over.factored.rows)

    def _over(self, block: Block, order: GivenOrder | None) -> Aggregate:
        maker: Factoriser | Recursion
        if self.strategy == "recursive":
            maker = Recursion(block, self.changes, self.keep, self.alias, self.depth)
        else:
            maker = Factoriser(block, self.changes, self.keep, self.alias, order)
        over, tree = maker.root()
        self.trees.append(tree)
        return over
