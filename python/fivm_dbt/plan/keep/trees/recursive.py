"""Recursive maintenance keeps a map for what each delta of a join is joined with, and for their deltas.

A refresh takes the relations that changed one after the other, as if each change came by itself (DBToaster, section
3.1). A map over several relations is then needed as it is after some of them: what was staged for it says by its step
which relation has changed it, so that the map at a step is its old rows with those of earlier steps.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from functools import cached_property

from fivm_dbt.catalog.types import INT
from fivm_dbt.delta.term import at_side
from fivm_dbt.ir.aggregate import Aggregate
from fivm_dbt.ir.factored import Factored, Product
from fivm_dbt.ir.higher_order import HigherOrder, Total, Trigger
from fivm_dbt.ir.node import Item, Node, Side
from fivm_dbt.ir.nodes import Filter, Join, Map, UnionAll
from fivm_dbt.ir.reads import Scan
from fivm_dbt.ir.rename import renamed
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.naming import STEP, unique_name
from fivm_dbt.plan.keep.trees.blocks import equal_parts
from fivm_dbt.plan.keep.trees.payload_views import ROWS, HelperViewMaker, Piece
from fivm_dbt.plan.model.shown import TreeView, ViewTree
from fivm_dbt.rings.component import ROWS as COUNTED
from fivm_dbt.rings.registry import components
from fivm_dbt.viewtree.classes import class_of
from fivm_dbt.viewtree.recursive import DeltaMap, parts, recursive_maps
from fivm_dbt.viewtree.update_costs import implied

Relations = tuple[str, ...]


@dataclass
class Recursion(HelperViewMaker):
    """Builds the maps of a block and what is left of it.

    With ``depth`` only maps are kept that less than so many deltas lead to; what deeper ones would answer is joined
    from the relations themselves. ``built`` has the relation of each map by what it is, whatever relations of a
    self-join it is asked for.
    """

    depth: int | None = None
    pieces: dict[tuple[Relations, tuple[str, ...]], Piece] = field(default_factory=dict)
    built: dict[tuple[Node, tuple[str, ...], bool], str] = field(default_factory=dict)
    shown: list[TreeView] = field(default_factory=list)

    @cached_property
    def maps(self) -> dict[Relations, DeltaMap]:
        """Every map by its relations, which decide its keys; the query itself last."""
        return {m.relations: m for m in recursive_maps(self.block.graph, self.updatable, self.depth)}

    def root(self) -> tuple[Aggregate, ViewTree]:
        """The aggregate over maps, which have been kept on the way, and what they are for people."""
        whole = self.block.names
        aggregate = self._in_steps(whole)
        levels = sorted(self.shown, key=lambda v: v.depth)
        root = TreeView(
            0, "", keys=self.maps[whole].keys, relations=whole, payload=(), kept=None, reason="the result"
        )
        depth = "of any depth" if self.depth is None else f"down to depth {self.depth}"
        query_class = class_of(self.block.graph)
        shown = ViewTree(
            self.block.title,
            self.block.variables,
            order=None,
            chosen=f"{len(self.maps)} maps for deltas {depth}",
            query_class=query_class,
            views=(root, *levels),
            implied=implied(query_class),
            static=tuple(name for name in self.block.names if name not in self.updatable),
        )
        return aggregate, shown

    # Maps

    def _in_steps(self, relations: Relations) -> Aggregate:
        """What some relations add up to, with a trigger for each of them that can change."""
        changing = self._changing(relations)
        if len(relations) == 1 or not changing:
            return self._aggregate([self._as_it_is(name) for name in relations])
        made = [self._trigger(relations, name) for name in changing]
        alias = self.inner.alias()
        definition = _weighted(made[0][0], alias)
        triggers = []
        for step, (aggregate, others) in enumerate(made, start=1):
            keys, totals = _columns(aggregate)
            assert isinstance(aggregate.input, Join)
            changed, *_ = aggregate.input.factors
            triggers.append(
                Trigger(
                    changed,
                    step,
                    others=others,
                    predicates=aggregate.input.predicates,
                    keys=keys,
                    totals=totals,
                )
            )
        rows = HigherOrder(definition, tuple(triggers), is_stepwise=relations in self._stepwise)
        return _over(made[0][0], rows)

    def _trigger(self, relations: Relations, changed: str) -> tuple[Aggregate, tuple[Node, ...]]:
        """The change of one relation with maps of the others, and these as they are when it is its turn."""
        pieces = [self._as_it_is(changed)]
        others: list[Node] = []
        for part in self._parts(relations, changed):
            if part in self.maps:
                piece = self._kept(part, self._placed_for(part, changed))
                pieces.append(piece)
                others.append(self._at_step(piece.node, part, changed))
                continue
            for name in part:
                piece = self._as_it_is(name)
                pieces.append(piece)
                others.append(at_side(piece.node, Side.NEW if self._is_before(name, changed) else Side.OLD))
        return self._aggregate(pieces), tuple(others)

    def _aggregate(self, pieces: list[Piece]) -> Aggregate:
        """The query over ``pieces`` if they are all of it, else their view with payload."""
        if len(frozenset[int]().union(*(p.relations for p in pieces))) == len(self.block.names):
            return self.views.result(pieces)
        return self.views.view(pieces, frozenset(), self.inner.alias()).node

    def _kept(self, relations: Relations, by: tuple[str, ...]) -> Piece:
        """The map of some relations, its rows placed by the columns ``by``."""
        found = self.pieces.get((relations, by))
        if found is not None:
            return found
        made = self.maps[relations]
        view = self.views.view([self._as_it_is(name) for name in relations], frozenset(), self.inner.alias())
        numbers = itertools.count(1)
        shape, _ = renamed(view.node, lambda _: f"t{next(numbers)}")
        same = (shape, by, relations in self._stepwise)
        if same not in self.built:
            node = replace(self._in_steps(relations), alias=view.node.alias)
            names, keys = ", ".join(relations), ", ".join(made.keys) or "nothing"
            scan = self.inner.keep(node, by, f"map of {names} by {keys}, which deltas of the others meet")
            self.built[same] = scan.relation
        columns = tuple((f.name, f.type) for f in view.node.fields)
        scan = Scan(self.built[same], view.node.alias, columns)
        met_by = [c for p, c in self._accesses if p == relations and self._placed_for(p, c) == by]
        why = f"deltas of {', '.join(met_by)} meet it"
        self.shown.append(
            TreeView(
                made.depth,
                "",
                keys=made.keys,
                relations=relations,
                payload=view.payload_names,
                kept=scan.relation,
                reason=why,
            )
        )
        piece = self.pieces[relations, by] = view.kept_as(scan)
        return piece

    def _at_step(self, scan: Node, part: Relations, changed: str) -> Node:
        """A map as it is when the relations before ``changed`` have changed and the others have not."""
        assert isinstance(scan, Scan)
        members = self._changing(part)
        before = [name for name in members if self._is_before(name, changed)]
        if len(before) in (0, len(members)):
            return at_side(scan, Side.NEW if before else Side.OLD)
        old = Scan(scan.relation, self.inner.alias(), scan.columns, Side.OLD)
        staged = Scan(scan.relation, self.inner.alias(), (*scan.columns, (STEP, INT)), Side.DELTA)
        earlier = Scalar.parse(f"{Scalar.column(staged.alias, STEP).sql} <= {len(before)}")
        items = tuple(Item(name, Scalar.column(staged.alias, name), type_) for name, type_ in scan.columns)
        return UnionAll((old, Map(Filter(staged, (earlier,)), self.inner.alias(), items)), scan.alias)

    # Structure

    def _parts(self, relations: Relations, changed: str) -> list[Relations]:
        keys = frozenset(self.maps[relations].keys)
        return [part for part, _ in parts(self.block.graph, relations, keys, changed)]

    def _changing(self, relations: Relations) -> list[str]:
        return [name for name in relations if name in self.updatable]

    def _is_before(self, name: str, other: str) -> bool:
        return self.block.position(name) < self.block.position(other)

    def _as_it_is(self, name: str) -> Piece:
        return self.views.as_it_is(self.block.position(name))

    @cached_property
    def _accesses(self) -> dict[tuple[Relations, str], frozenset[str]]:
        """Which columns of a map the change of a relation has values for, of all maps and relations that meet."""
        found = {}
        for relations in self.maps:
            for changed in self._changing(relations):
                for part in self._parts(relations, changed):
                    if part in self.maps:
                        found[part, changed] = self._columns_met(part, changed)
        return found

    def _columns_met(self, part: Relations, changed: str) -> frozenset[str]:
        columns = self.views.columns(frozenset(self.block.position(name) for name in part))
        position = self.block.position(changed)
        return frozenset(name for p, name in columns.items() if position in self._equated[p])

    @cached_property
    def _equated(self) -> dict[Scalar, frozenset[int]]:
        """For each part the relations that have a column which conditions make equal to it."""
        pairs = [
            (Scalar.column(*left), Scalar.column(*right))
            for left, right in (c.equality for c in self.block.conditions if c.equality is not None)
        ]
        classes = equal_parts(self.block.parts, pairs)
        return {
            part: frozenset[int]().union(*(self.block.relations_of(p) for p in members))
            for part, members in classes.items()
        }

    def _placed_for(self, part: Relations, changed: str) -> tuple[str, ...]:
        """By what the rows of a map are placed for the change of a relation: the fewest columns that it has."""
        met = self._accesses[part, changed]
        every = {columns for (p, _), columns in self._accesses.items() if p == part and columns}
        least = [c for c in every if c <= met and not any(other < c for other in every)]
        chosen = min(least, key=sorted) if least else min(every, key=sorted, default=frozenset[str]())
        return tuple(sorted(chosen))

    @cached_property
    def _stepwise(self) -> frozenset[Relations]:
        """The maps of which some delta needs the change by some of their relations and not by all."""
        found = set()
        for part, changed in self._accesses:
            members = self._changing(part)
            before = sum(self._is_before(name, changed) for name in members)
            if 0 < before < len(members):
                found.add(part)
        return frozenset(found)


def _columns(aggregate: Aggregate) -> tuple[tuple[Item, ...], tuple[Total, ...]]:
    """What a row contributes to an aggregate, under names that are the same for all of its triggers."""
    assert aggregate.factored is not None
    taken = {k.name.lower() for k in aggregate.keys}
    totals = [Total(unique_name(ROWS, taken), (aggregate.factored.rows,), COUNTED.numbers)]
    for call, sums in zip(aggregate.calls, aggregate.factored.calls, strict=True):
        for component, products in zip(components(call), sums, strict=True):
            name = unique_name(call.name, taken | {t.name.lower() for t in totals})
            totals.append(Total(name, products, component.numbers))
    return aggregate.keys, tuple(totals)


def _weighted(aggregate: Aggregate, alias: str) -> Map:
    """The rows that are added up, each with what it contributes."""
    keys, totals = _columns(aggregate)
    once = Scalar.number(1)
    return Map(aggregate.input, alias, (*keys, *(total.item(once) for total in totals)))


def _over(aggregate: Aggregate, rows: HigherOrder) -> Aggregate:
    """The same aggregate over rows that have their contributions as columns."""
    keys, (counted, *totals) = _columns(aggregate)
    assert aggregate.factored is not None

    def one(total: Total) -> Product:
        return Product(1, ((Scalar.column(rows.alias, total.name), total.type),))

    rest = iter(totals)
    calls = tuple(tuple((one(next(rest)),) for _ in products) for products in aggregate.factored.calls)
    return Aggregate(
        rows,
        aggregate.alias,
        keys=tuple(Item(k.name, Scalar.column(rows.alias, k.name), k.type) for k in keys),
        calls=aggregate.calls,
        is_global=aggregate.is_global,
        factored=Factored(one(counted), calls),
    )
