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
from fivm_dbt.ir.nodes import Aggregate, AggregateCall, Filter, Item, Join, Node, Scan
from fivm_dbt.ir.scalar import ColumnId, Scalar, replaced
from fivm_dbt.naming import storable, unique_name
from fivm_dbt.rewrite.flatten_joins import flatten_joins
from fivm_dbt.rings.polynomial import Atom, Monomial, Polynomial, polynomial
from fivm_dbt.rings.polynomial import Join as Joined
from fivm_dbt.rings.registry import TOTAL, components
from fivm_dbt.viewtree.hypergraph import Edge, Hypergraph
from fivm_dbt.viewtree.search import find_order
from fivm_dbt.viewtree.variable_order import VariableOrder
from fivm_dbt.viewtree.view_tree import View, materialised, view_tree

ROWS = "rows"
"""The column of a payload view that says how many rows of the join a group stands for."""

Atoms = tuple[Atom, ...]


def is_payload_view(node: Node) -> bool:
    """Whether ``node`` is a view of a view tree: its rows are added up by those that read it."""
    if not isinstance(node, Aggregate) or node.factored is None or not node.calls:
        return False
    first, *others = node.calls
    return first.name == ROWS and first.argument is None and all(c.function == TOTAL for c in others)


@dataclass(frozen=True)
class Block:
    """An aggregate over a join of at least two relations: each with the conditions on it alone, and the others.

    Raises nothing: :func:`block_of` gives None where a query is no block.
    """

    aggregate: Aggregate
    relations: tuple[Node, ...]
    conditions: tuple[Scalar, ...]

    @cached_property
    def relation_of(self) -> dict[ColumnId, int]:
        """The position of the relation that has a column."""
        return {f.id: i for i, node in enumerate(self.relations) for f in node.fields}

    @cached_property
    def types(self) -> dict[ColumnId, SparkType]:
        return {f.id: f.type for node in self.relations for f in node.fields}

    def relations_of(self, scalar: Scalar) -> frozenset[int]:
        return frozenset(self.relation_of[c] for c in scalar.columns)

    @cached_property
    def payload(self) -> tuple[tuple[Polynomial, ...], ...]:
        """Per call, per component of it, its sum of products."""
        joined = Joined(self.types.__getitem__, self.relation_of.__getitem__)
        return tuple(tuple(polynomial(c, joined) for c in components(call)) for call in self.aggregate.calls)

    @cached_property
    def monomials(self) -> tuple[Monomial, ...]:
        """All products, each once."""
        every = (m for call in self.payload for component in call for m in component)
        return tuple(dict.fromkeys(every))

    @cached_property
    def uses(self) -> tuple[_Use, ...]:
        """What is computed where several relations are joined: conditions, and atoms that could not be split."""
        found = [_Use(self.relations_of(c), self._parts(c)) for c in self.conditions]
        late = {a for m in self.monomials for a in m.atoms if len(a.relations) > 1}
        for atom in sorted(late, key=lambda a: a.sort_key):
            found.append(_Use(atom.relations, _columns(atom.value)))
        return tuple(found)

    @cached_property
    def key_parts(self) -> tuple[Scalar, ...]:
        """What groups are told apart by: keys of one relation as they are, of others their columns."""
        return tuple(dict.fromkeys(part for k in self.aggregate.keys for part in self._within_one(k.value)))

    @cached_property
    def parts(self) -> tuple[Scalar, ...]:
        """All values of one relation that are used above it."""
        return tuple(dict.fromkeys((*(p for use in self.uses for p in use.parts), *self.key_parts)))

    def type_of(self, part: Scalar) -> SparkType:
        """The type of a part: a column, or a key of one relation."""
        if part.is_column:
            (column,) = part.columns
            return self.types[column]
        return next(k.type for k in self.aggregate.keys if k.value == part)

    def _parts(self, condition: Scalar) -> tuple[Scalar, ...]:
        """The sides of a comparison, where each has one relation, and the columns of what has several."""
        return tuple(dict.fromkeys(part for side in _sides(condition) for part in self._within_one(side)))

    def _within_one(self, scalar: Scalar) -> tuple[Scalar, ...]:
        if not scalar.columns:
            return ()
        is_typed = scalar.is_column or any(k.value == scalar for k in self.aggregate.keys)
        return (scalar,) if is_typed and len(self.relations_of(scalar)) == 1 else _columns(scalar)

    @cached_property
    def equal(self) -> tuple[tuple[frozenset[int], Scalar, Scalar], ...]:
        """Pairs of columns that a condition makes the same value: same type, and equal means identical."""
        found = []
        for condition in self.conditions:
            if condition.equality is None:
                continue
            left, right = (Scalar.column(*c) for c in condition.equality)
            if self.type_of(left) == self.type_of(right) and _is_identical(self.type_of(left)):
                found.append((self.relations_of(condition), left, right))
        return tuple(found)

    @cached_property
    def variable_of(self) -> dict[Scalar, str]:
        """The variable that each part is a value of: equal ones are one, named after their column."""
        classes = _classes(self.parts, [(left, right) for _, left, right in self.equal])
        names: dict[Scalar, str] = {}
        wanted = {part: _column_name(members[0]) for part, members in classes.items()}
        for part, members in classes.items():
            first = members[0]
            others = {wanted[p] for p in classes if classes[p] != members}
            names[part] = wanted[part] if wanted[part] not in others else first.sql
        return names

    @cached_property
    def graph(self) -> Hypergraph:
        """The block as a hypergraph; relations are called by their position."""
        edges = []
        for position in range(len(self.relations)):
            own = [self.variable_of[p] for p in self.parts if self.relations_of(p) == {position}]
            edges.append(Edge(str(position), tuple(dict.fromkeys(own))))
        free = frozenset(self.variable_of[p] for p in self.key_parts)
        together = [frozenset(self.variable_of[p] for p in use.parts) for use in self.uses]
        return Hypergraph(tuple(edges), free, tuple(t for t in together if len(t) > 1))


@dataclass(frozen=True)
class _Use:
    """Something over several relations, and the values of each that it needs."""

    relations: frozenset[int]
    parts: tuple[Scalar, ...]


def block_of(node: Aggregate) -> Block | None:
    """``node`` as a block, if it adds up over a join and is none of a view tree already."""
    if not node.adds_up or node.factored is not None:
        return None
    flat = flatten_joins(node)
    if not isinstance(flat, Aggregate) or not isinstance(flat.input, Join) or len(flat.input.factors) < 2:
        return None
    relations = list(flat.input.factors)
    relation_of = {f.id: i for i, n in enumerate(relations) for f in n.fields}
    own: dict[int, list[Scalar]] = {}
    conditions = []
    for condition in flat.input.predicates:
        used = {relation_of[c] for c in condition.columns if c in relation_of}
        is_own = len(used) == 1 and all(c in relation_of for c in condition.columns)
        if is_own:
            own.setdefault(used.pop(), []).append(condition)
        elif len(used) > 1 and all(c in relation_of for c in condition.columns):
            conditions.append(condition)
        else:
            # A condition on nothing, or on the clock of a side: not worth a view tree.
            return None
    for position, predicates in own.items():
        relations[position] = Filter(relations[position], tuple(predicates))
    block = Block(flat, tuple(relations), tuple(conditions))
    return block if all(block.type_of(p).is_groupable for p in block.parts) else None


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


@dataclass
class Factoriser:
    """Builds the helper views of a block and what is left of it. ``changes`` says of a relation whether it can."""

    block: Block
    changes: Callable[[Node], bool]
    keep: Keep
    alias: Callable[[], str]
    pays: Callable[[View, Block], bool] = lambda view, block: True

    @cached_property
    def copied(self) -> frozenset[str]:
        """Relations that are kept by the key they are joined by, where nothing of theirs is added up."""
        return frozenset(str(i) for i in range(len(self.block.relations)))

    @cached_property
    def updatable(self) -> frozenset[str]:
        return frozenset(str(i) for i, node in enumerate(self.block.relations) if self.changes(node))

    def order(self) -> VariableOrder:
        return find_order(self.block.graph, self.updatable)

    def root(self) -> Aggregate:
        """The aggregate over kept views, which have been kept on the way."""
        tree = view_tree(self.block.graph, self.order())
        kept = {
            id(v) for v in materialised(tree, self.updatable) if v is not tree and self.pays(v, self.block)
        }
        return self._over(self._below(tree, kept))

    def _below(self, view: View, kept: set[int]) -> list[_Piece]:
        return [piece for child in view.children for piece in self._pieces(child, view, kept)]

    def _pieces(self, node: View | Edge, parent: View, kept: set[int]) -> Iterator[_Piece]:
        around = _positions(parent)
        if isinstance(node, View):
            pieces = self._below(node, kept)
            if id(node) in kept:
                yield self._kept(pieces, around)
            else:
                yield from pieces
            return
        piece = self._as_it_is(int(node.name))
        is_met = bool({str(i) for i in around - piece.relations} & self.updatable)
        yield self._kept([piece], around) if is_met and node.name in self.copied else piece

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
                name = unique_name(storable(_column_name(part)), {k.name.lower() for k in keys} | {ROWS})
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
            name = unique_name(f"sum_{_label(atoms)}", taken)
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
        members = _classes((part, *shown), pairs)[part]
        return next((shown[m] for m in members if m in shown), None)


def _known(pieces: Iterable[_Piece]) -> dict[Scalar, Scalar]:
    return {part: column for piece in pieces for part, column in piece.columns.items()}


def _positions(view: View) -> frozenset[int]:
    return frozenset(int(name) for name in view.relations)


def _name(relation: Node) -> str:
    """What a relation is called in the query."""
    aliases = (getattr(n, "alias", None) for n in relation.walk())
    return next(str(a) for a in aliases if a is not None)


def _reason(node: Aggregate, relations: frozenset[int], block: Block) -> str:
    names = ", ".join(_name(block.relations[r]) for r in sorted(relations))
    keys = ", ".join(k.name for k in node.keys) or "nothing"
    return f"view of {names} by {keys}, which deltas of the others meet"


def _is_identical(type_: SparkType) -> bool:
    """Whether values of a type that are equal are the same value in every other respect."""
    return type_.is_integral or type_.is_decimal or type_.is_temporal or type_.text in ("string", "boolean")


def _sides(condition: Scalar) -> tuple[Scalar, ...]:
    node = condition.ast()
    if isinstance(node, (exp.EQ, exp.NullSafeEQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)):
        return Scalar(node.this.unnest()), Scalar(node.expression.unnest())
    return (condition,)


def _columns(scalar: Scalar) -> tuple[Scalar, ...]:
    return tuple(Scalar.column(*c) for c in sorted(scalar.columns))


def _column_name(part: Scalar) -> str:
    if part.is_column:
        ((_, name),) = part.columns
        return name
    return part.sql


def _classes(
    parts: Iterable[Scalar], pairs: Iterable[tuple[Scalar, Scalar]]
) -> dict[Scalar, tuple[Scalar, ...]]:
    """For each part those that pairs connect it with, itself included, in the order of the parts."""
    of: dict[Scalar, list[Scalar]] = {p: [p] for p in parts}
    for left, right in pairs:
        of.setdefault(left, [left])
        of.setdefault(right, [right])
        if of[left] is not of[right]:
            merged = of[left] + of[right]
            for member in merged:
                of[member] = merged
    order = {p: i for i, p in enumerate(of)}
    return {p: tuple(sorted(of[p], key=order.__getitem__)) for p in of}


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
    names = [name for a in atoms for _, name in sorted(a.value.columns)]
    return storable("_".join(dict.fromkeys(names)) or "value")
