"""An aggregate over a join as a view tree: helper views that have added up what the join needs of their relations.

``γ_K(R1 ⋈ … ⋈ Rn)`` becomes ``γ_K(V1 ⋈ … ⋈ Vm)`` where each V groups a part of the join by what the rest of the query
still needs of it, and has as payload how many rows a group stands for and the sums that the query's own sums are made
of (F-IVM article, section 4; rings: section 2). The delta of one relation then meets groups instead of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import BIGINT, INT
from fivm_dbt.ir.factored import Factored, Product
from fivm_dbt.ir.nodes import Aggregate, AggregateCall, Item, Join, Node, Scan
from fivm_dbt.ir.scalar import Scalar, replaced
from fivm_dbt.naming import storable, unique_name
from fivm_dbt.plan.blocks import Block, column_name, equal_parts
from fivm_dbt.plan.plan import TreeView, ViewTree
from fivm_dbt.rings.integers import absent_of
from fivm_dbt.rings.polynomial import Atom, Monomial
from fivm_dbt.rings.registry import TOTAL
from fivm_dbt.viewtree.classes import class_of
from fivm_dbt.viewtree.hypergraph import Edge
from fivm_dbt.viewtree.search import find_order
from fivm_dbt.viewtree.variable_order import VariableOrder
from fivm_dbt.viewtree.view_tree import View, looked_up, materialised, view_tree

ROWS = "rows"
"""The column of a payload view that says how many rows of the join a group stands for."""

Atoms = tuple[Atom, ...]


def is_payload_view(node: Node) -> bool:
    """Whether ``node`` is a view of a view tree: its rows are added up by those that read it."""
    if not isinstance(node, Aggregate) or node.factored is None or not node.calls:
        return False
    first, *others = node.calls
    return first.name == ROWS and first.argument is None and all(c.function == TOTAL for c in others)


@dataclass
class _Piece:
    """Part of a join: a relation as it is (``rows`` None), or a kept view with payload."""

    node: Node
    relations: frozenset[int]
    columns: dict[Scalar, Scalar]
    payload: dict[Atoms, tuple[Scalar, SparkType]] = field(default_factory=dict)
    rows: Scalar | None = None


Keep = Callable[[Aggregate, tuple[str, ...], str], Scan]
"""Keeps a view under the columns that place its rows, for a reason; gives a scan of it."""


@dataclass(frozen=True)
class GivenOrder:
    """A variable order of the user, and the columns that it may name without the query needing them."""

    order: VariableOrder
    columns: frozenset[str]


@dataclass
class Factoriser:
    """Builds the helper views of a block and what is left of it. ``changes`` says of a relation whether it can."""

    block: Block
    changes: Callable[[Node], bool]
    keep: Keep
    alias: Callable[[], str]
    given: GivenOrder | None = None
    shown: list[TreeView] = field(default_factory=list)

    @cached_property
    def updatable(self) -> frozenset[str]:
        changing = (self.changes(node) for node in self.block.relations)
        return frozenset(name for name, changes in zip(self.block.names, changing, strict=True) if changes)

    @cached_property
    def order(self) -> VariableOrder:
        """The user's order, or the one that is found. Raises FIVM204 where the user's does not fit."""
        if self.given is not None:
            return self.block.in_own_names(self.given.order, self.given.columns)
        return find_order(self.block.graph, self.updatable)

    def root(self) -> tuple[Aggregate, ViewTree]:
        """The aggregate over kept views, which have been kept on the way, and the tree for people."""
        graph = self.block.graph
        query_class = class_of(graph)
        tree = view_tree(graph, self.order)
        kept: set[View | Edge] = {*materialised(tree, self.updatable), *looked_up(tree, self.updatable)}
        pieces = self._below(tree, kept, 1)
        root = TreeView(0, _at(tree), tree.keys, tree.relations, (), None, "the result")
        if self.given is not None:
            chosen = "given"
        elif query_class == "q-hierarchical":
            chosen = "by the shape of the query, which is q-hierarchical"
        else:
            chosen = "the one with the fewest rows in its views, by estimate"
        keys = ", ".join(k.value.sql for k in self.block.aggregate.keys)
        shown = ViewTree(
            f"γ[{keys}]",
            self.block.variables,
            str(self.order),
            chosen,
            query_class,
            (root, *self.shown),
        )
        return self._over(pieces), shown

    def _below(self, view: View, kept: set[View | Edge], depth: int) -> list[_Piece]:
        return [piece for child in view.children for piece in self._pieces(child, view, kept, depth)]

    def _pieces(
        self, node: View | Edge, parent: View, kept: set[View | Edge], depth: int
    ) -> Iterator[_Piece]:
        place = len(self.shown)
        if isinstance(node, View):
            pieces = self._below(node, kept, depth + 1)
            at, keys, relations = _at(node), node.keys, node.relations
            why = "nothing beside it changes"
        else:
            pieces = [self._as_it_is(self.block.position(node.name))]
            at, keys, relations = node.name, node.variables, (node.name,)
            why = "an input, which no delta meets"
        if node not in kept:
            self.shown.insert(place, TreeView(depth, at, keys, relations, (), None, why))
            yield from pieces
            return
        made = self._kept(pieces, self._positions(parent.relations))
        assert isinstance(made.node, Scan)
        payload = (ROWS, *(column_name(total) for total, _ in made.payload.values()))
        beside = ", ".join(r for r in parent.relations if r not in relations and r in self.updatable)
        why = f"deltas of {beside} meet it"
        self.shown.insert(place, TreeView(depth, at, keys, relations, payload, made.node.relation, why))
        yield made

    def _positions(self, names: Iterable[str]) -> frozenset[int]:
        return frozenset(self.block.position(name) for name in names)

    def _as_it_is(self, position: int) -> _Piece:
        parts = (p for p in self.block.parts if self.block.relations_of(p) == {position})
        return _Piece(self.block.relations[position], frozenset({position}), {p: p for p in parts})

    def _kept(self, pieces: list[_Piece], around: frozenset[int]) -> _Piece:
        """A view of the pieces, its rows placed by what joins them with the others of ``around``."""
        relations = frozenset[int]().union(*(p.relations for p in pieces))
        columns = _known(pieces)
        alias = self.alias()
        keys: list[Item] = []
        shown: dict[Scalar, Scalar] = {}
        by: list[str] = []
        for part, is_joined in self._needed(relations, around):
            same = self._same_within(part, relations, shown)
            if same is None:
                name = unique_name(storable(column_name(part)), {k.name.lower() for k in keys} | {ROWS})
                keys.append(Item(name, columns[part], self.block.type_of(part)))
                same = Scalar.column(alias, name)
            shown[part] = same
            ((_, name),) = same.columns
            if is_joined and name not in by:
                by.append(name)
        if not keys:
            # A key that all rows share: unlike a global aggregate, a view of no rows has no group.
            keys.append(Item("everything", Scalar.number(1), INT))
        taken = {k.name.lower() for k in keys} | {ROWS}
        calls = [AggregateCall(ROWS, "count", None, None, BIGINT)]
        products: list[tuple[tuple[Product, ...], ...]] = [()]
        payload: dict[Atoms, tuple[Scalar, SparkType]] = {}
        for atoms in dict.fromkeys(m.within(relations) for m in self.block.monomials):
            if not atoms:
                continue
            type_ = _type_of_sum(atoms)
            name = unique_name(_label(atoms), taken)
            taken.add(name)
            calls.append(AggregateCall(name, TOTAL, _described(atoms), type_, type_))
            products.append(((self._product(Monomial(1, atoms), pieces),),))
            payload[atoms] = (Scalar.column(alias, name), type_)
        factored = Factored(self._product(Monomial(1, ()), pieces), tuple(products))
        node = Aggregate(self._joined(pieces), alias, tuple(keys), tuple(calls), factored=factored)
        scan = self.keep(node, tuple(by), _reason(node, relations, self.block))
        return _Piece(scan, relations, shown, payload, Scalar.column(alias, ROWS))

    def _over(self, pieces: list[_Piece]) -> Aggregate:
        block = self.block
        columns = _known(pieces)
        keys = tuple(Item(k.name, replaced(k.value, columns), k.type) for k in block.aggregate.keys)
        calls = tuple(
            tuple(tuple(self._product(m, pieces) for m in component) for component in call)
            for call in block.payload
        )
        factored = Factored(self._product(Monomial(1, ()), pieces), calls)
        top = block.aggregate
        return Aggregate(self._joined(pieces), top.alias, keys, top.calls, top.is_global, factored)

    def _joined(self, pieces: list[_Piece]) -> Node:
        """The pieces under the conditions that have all they need here for the first time."""
        relations = frozenset[int]().union(*(p.relations for p in pieces))
        columns = _known(pieces)
        conditions = tuple(
            replaced(c, columns)
            for c in self.block.conditions
            if (used := self.block.relations_of(c)) <= relations
            and not any(used <= p.relations for p in pieces)
        )
        if len(pieces) == 1 and not conditions:
            return pieces[0].node
        return Join(tuple(p.node for p in pieces), conditions)

    def _product(self, monomial: Monomial, pieces: list[_Piece]) -> Product:
        """A monomial over payloads: of each piece the sum of its atoms, or how many rows it stands for."""
        factors: list[tuple[Scalar, SparkType]] = []
        done: set[Atom] = set()
        for piece in pieces:
            atoms = monomial.within(piece.relations)
            done.update(atoms)
            if piece.rows is None:
                factors += [(a.value, a.type) for a in atoms]
            else:
                factors.append(piece.payload[atoms] if atoms else (piece.rows, BIGINT))
        columns = _known(pieces)
        factors += [(replaced(a.value, columns), a.type) for a in monomial.atoms if a not in done]
        return Product(monomial.coefficient, tuple(factors))

    def _needed(self, relations: frozenset[int], around: frozenset[int]) -> Iterator[tuple[Scalar, bool]]:
        """The parts that are used outside of these relations, and whether it is to join them within ``around``."""
        for part in self.block.parts:
            if not self.block.relations_of(part) <= relations:
                continue
            uses = [u for u in self.block.uses if part in u.parts and not u.relations <= relations]
            if uses or part in self.block.key_parts:
                yield part, any(u.relations <= around for u in uses)

    def _same_within(
        self, part: Scalar, relations: frozenset[int], shown: dict[Scalar, Scalar]
    ) -> Scalar | None:
        """The column of a part that is the same value because of a condition on these relations."""
        pairs = [(left, right) for used, left, right in self.block.equal if used <= relations]
        members = equal_parts((part, *shown), pairs)[part]
        return next((shown[m] for m in members if m in shown), None)


def _known(pieces: Iterable[_Piece]) -> dict[Scalar, Scalar]:
    return {part: column for piece in pieces for part, column in piece.columns.items()}


def _at(view: View) -> str:
    return view.variables[0] if view.variables else "∅"


def _reason(node: Aggregate, relations: frozenset[int], block: Block) -> str:
    names = ", ".join(block.names[r] for r in sorted(relations))
    keys = ", ".join(k.name for k in node.keys) or "nothing"
    return f"view of {names} by {keys}, which deltas of the others meet"


def _type_of_sum(atoms: Atoms) -> SparkType:
    if any(a.type.is_floating for a in atoms):
        return atoms[0].type
    if any(a.type.is_decimal for a in atoms):
        return SparkType.decimal(38, sum(a.type.scale for a in atoms))
    return BIGINT


def _described(atoms: Atoms) -> Scalar:
    """The product of the atoms as they are over the relations: what a payload is the sum of."""
    value = atoms[0].value.ast()
    for atom in atoms[1:]:
        value = exp.Mul(this=value, expression=atom.value.ast())
    return Scalar(value)


def _label(atoms: Atoms) -> str:
    """``sum_price`` for a sum, ``count_price`` for how many are not NULL."""
    names = [name for a in atoms for _, name in sorted(a.value.columns)]
    kind = "count" if all(absent_of(a.value) is not None for a in atoms) else "sum"
    return storable("_".join([kind, *dict.fromkeys(names)]))
