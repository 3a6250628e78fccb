"""Outer rows of an aggregate evaluated on demand are kept as sums by what is compared: VWAP's volume by price.

``γ_K(σ_p(L ⟕ G))`` with all sums over columns of L is ``γ_K(σ_p(γ_{K, columns of p}(L) ⟕ G))``: rows of L that are
compared alike are in or out together (Multilevel IVM, section 4.4: VWAP needs one row per price).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from fivm_dbt.ir.aggregate import Aggregate
from fivm_dbt.ir.node import Item, Node
from fivm_dbt.ir.nodes import Filter, Join, Map
from fivm_dbt.ir.on_demand import OnDemand
from fivm_dbt.ir.one_sided import OuterJoin, SemiJoin
from fivm_dbt.ir.reads import Scan
from fivm_dbt.ir.rename import substituted, with_meaning
from fivm_dbt.ir.scalar import ColumnId, Scalar
from fivm_dbt.plan.keep.inequality.aggregate_parts import parts_of, shown, summed
from fivm_dbt.plan.keep.kept_views import KeptViews, column_of
from fivm_dbt.plan.keep.trees.blocks import Block
from fivm_dbt.plan.keep.trees.payload_views import PayloadViews, Piece


@dataclass(frozen=True)
class OuterRows:
    """The relation L at the end of a ``path`` below an ``aggregate``, and its columns that something compares."""

    aggregate: Aggregate
    path: tuple[Node, ...]
    rows: Node
    compared: frozenset[ColumnId]

    @property
    def beside(self) -> Iterator[Node]:
        """What hangs beside the path."""
        below = (*self.path, self.rows)
        yield from (
            child for node in self.path for child in node.inputs if not any(child is n for n in below)
        )

    def covers(self, domain: Node) -> bool:
        """Whether L has every value of a domain in its compared columns: it is the same relation, and all of it."""
        if not isinstance(self.rows, Scan) or not isinstance(domain, Aggregate):
            return False
        source = domain.input
        if not isinstance(source, Scan) or source.relation != self.rows.relation:
            return False
        columns = [key.value.columns for key in domain.keys if key.value.is_column]
        names = [name for found in columns for _, name in found]
        return len(names) == len(domain.keys) and all((self.rows.alias, n) in self.compared for n in names)

    def values(self, domain: Aggregate, piece: Piece, alias: str) -> Aggregate:
        """The domain as the values of the sums that are kept of L."""
        assert isinstance(self.rows, Scan) and isinstance(piece.node, Scan)
        sums = Scan(piece.node.relation, alias, piece.node.columns)
        keys = []
        for key in domain.keys:
            ((_, name),) = key.value.columns
            shown = column_of(piece.columns[Scalar.column(self.rows.alias, name)])
            keys.append(Item(key.name, Scalar.column(alias, shown), key.type))
        return Aggregate(sums, domain.alias, tuple(keys), ())

    def summed(self, views: KeptViews, alias: str, *, splits_sums: bool) -> tuple[Aggregate, Map, Piece]:
        """The aggregate over sums of L, which are kept; the columns of the query over its own sums; those of L."""
        types = {f.id: f.type for f in self.rows.fields}
        keys = tuple(Item(name, Scalar.column(t, name), types[t, name]) for t, name in sorted(self.compared))
        grouped = replace(self.aggregate, input=self.rows, keys=keys, is_global=False)
        made_of = PayloadViews(Block(grouped, (self.rows,), (), splits_sums))
        made = made_of.view([made_of.as_it_is(0)], frozenset((0,)), views.alias())
        by = ", ".join(k.name for k in made.node.keys)
        reason = f"sums of {made_of.block.names[0]} by key ({by}), which are compared"
        piece = made.kept_as(views.keep(made.node, (), reason))
        meaning = {column: value for part, value in piece.columns.items() for column in part.columns}
        result = made_of.result([piece])
        over: Node = _read_whole(piece.node, views.alias())
        for node in reversed(self.path):
            below = self.rows if node is self.path[-1] else self.path[self._position(node) + 1]
            inputs = tuple(over if child is below else child for child in node.inputs)
            over = substituted(node, inputs, meaning)
        aggregate = Aggregate(
            over,
            alias,
            with_meaning(self.aggregate.keys, meaning),
            summed(parts_of(result)),
            self.aggregate.is_global,
        )
        named = tuple((k, k.name) for k in self.aggregate.keys)
        columns = shown(result, alias, named, is_global=self.aggregate.is_global)
        return aggregate, Map(aggregate, self.aggregate.alias, columns), piece

    def _position(self, node: Node) -> int:
        return next(i for i, n in enumerate(self.path) if n is node)


def outer_rows_of(aggregate: Aggregate) -> OuterRows | None:
    """The outer rows of an aggregate that adds up columns of one relation; None for others."""
    if not aggregate.adds_up or aggregate.factored is not None:
        return None
    path: list[Node] = []
    node: Node | None = aggregate.input
    while node is not None and not _is_relation(node):
        path.append(node)
        node = _leading(node)
    if node is None or not path:
        return None
    arguments = frozenset(c for call in aggregate.calls if call.argument for c in call.argument.columns)
    if not arguments <= node.ids:
        return None
    used = {c for step in path for p in _predicates(step) for c in p.columns}
    used |= {c for key in aggregate.keys for c in key.value.columns}
    compared = frozenset(used) & node.ids
    types = {f.id: f.type for f in node.fields}
    if not all(types[c].is_groupable for c in compared):
        return None
    return OuterRows(aggregate, tuple(path), node, compared)


def _read_whole(sums: Node, alias: str) -> OnDemand:
    """The sums as something that is evaluated: a join with them adds payloads to nothing, and must not be kept."""
    assert isinstance(sums, Scan)
    items = tuple(Item(name, Scalar.column(alias, name), type_) for name, type_ in sums.columns)
    return OnDemand(Map(Scan(sums.relation, alias, sums.columns), sums.alias, items))


def _is_relation(node: Node) -> bool:
    return isinstance(node, Scan) or (isinstance(node, Filter) and _is_relation(node.input))


def _leading(node: Node) -> Node | None:
    """Where the path goes on: to the rows that an outer or semi join keeps."""
    if isinstance(node, (Filter, OuterJoin, SemiJoin)):
        return node.inputs[0]
    if isinstance(node, Join):
        joined = [f for f in node.factors if isinstance(f, (Filter, OuterJoin, SemiJoin, Join))]
        return joined[0] if len(joined) == 1 else None
    return None


def _predicates(node: Node) -> tuple[Scalar, ...]:
    assert isinstance(node, (Filter, Join, OuterJoin, SemiJoin))
    return node.predicates
