"""Views with payload group a part of a join: a group has its number of rows and their sums.

``γ_K(R1 ⋈ … ⋈ Rn)`` becomes ``γ_K(V1 ⋈ … ⋈ Vm)`` where each V groups a part of the join by what the rest of the query
still needs of it, and has as payload how many rows a group stands for and the sums that the query's own sums are made
of (F-IVM article, section 4; rings: section 3).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, reduce

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import BIGINT, INT
from fivm_dbt.ir.aggregate import Aggregate, AggregateCall
from fivm_dbt.ir.comparison import Comparison
from fivm_dbt.ir.factored import Factored, Product
from fivm_dbt.ir.node import Item, Node
from fivm_dbt.ir.nodes import Join
from fivm_dbt.ir.reads import Scan
from fivm_dbt.ir.scalar import Scalar, replaced
from fivm_dbt.naming import storable, unique_name
from fivm_dbt.plan.keep.kept_views import KeptViews
from fivm_dbt.plan.keep.trees.blocks import Block, Use, column_name, equal_parts
from fivm_dbt.rings.integers import is_presence
from fivm_dbt.rings.kinds import numbers_for
from fivm_dbt.rings.numbers import Typed
from fivm_dbt.rings.totals import TOTAL
from fivm_dbt.rings.vectors import element_of, is_packed, listed, product_of

ROWS = "rows"
"""The column of a payload view that says how many rows of the join a group stands for."""

Factors = tuple[Typed, ...]


def is_payload_view(node: Node) -> bool:
    """Whether ``node`` is a view with payload: its rows are added up by those that read it."""
    if not isinstance(node, Aggregate) or node.factored is None or not node.calls:
        return False
    first, *others = node.calls
    return first.name == ROWS and first.argument is None and all(c.function == TOTAL for c in others)


@dataclass
class Piece:
    """Part of a join: a relation as it is (``rows`` None), a kept view with payload, or an indicator.

    ``columns`` are the values of one relation that are used above it, and what they are called here; ``payload`` has
    the sum of each product of factors. An indicator has no relations, only the values of variables that it ``meets``.
    """

    node: Node
    relations: frozenset[int]
    columns: dict[Scalar, Scalar]
    payload: dict[Factors, Typed] = field(default_factory=dict)
    rows: Scalar | None = None
    meets: dict[str, Scalar] = field(default_factory=dict)


@dataclass
class PayloadView:
    """A view with payload before it is kept. ``joined`` are the columns that join it with what is around it."""

    node: Aggregate
    relations: frozenset[int]
    columns: dict[Scalar, Scalar]
    payload: dict[Factors, Typed]
    joined: tuple[str, ...]

    def kept_as(self, scan: Scan) -> Piece:
        """The part of a join that reads it."""
        return Piece(scan, self.relations, self.columns, self.payload, Scalar.column(scan.alias, ROWS))

    @property
    def payload_names(self) -> tuple[str, ...]:
        """What a group has; of vectors with how many numbers each has."""
        return tuple(f"{c.name}{_size(c)}" for c in self.node.calls)


@dataclass
class PayloadViews:
    """What views and the result of a block are over pieces of its join."""

    block: Block
    named: dict[frozenset[int], dict[Scalar, str]] = field(default_factory=dict)

    def as_it_is(self, position: int) -> Piece:
        """A relation of the join by itself."""
        parts = (p for p in self.block.parts if self.block.relations_of(p) == {position})
        return Piece(self.block.relations[position], frozenset({position}), {p: p for p in parts})

    def indicator(self, position: int, variables: tuple[str, ...], alias: str) -> Aggregate:
        """``∃R[variables]``: the values that these have in a relation, each once."""
        own = {self.block.variable_of[p]: p for p in reversed(self.block.parts) if self._is_of(p, position)}
        keys: list[Item] = []
        for variable in variables:
            name = unique_name(storable(column_name(own[variable])), {k.name.lower() for k in keys})
            keys.append(Item(name, own[variable], self.block.type_of(own[variable])))
        return Aggregate(self.block.relations[position], alias, tuple(keys), ())

    def _is_of(self, part: Scalar, position: int) -> bool:
        return self.block.relations_of(part) == {position}

    def view(
        self, pieces: list[Piece], around: frozenset[int], alias: str, counted: tuple[str, ...] | None = None
    ) -> PayloadView:
        """The view of ``pieces``, which meets the other relations of ``around``.

        Its columns have the same names whatever the pieces are that make up its relations. One that is ``counted`` by
        some variables has these alone as columns, and nothing but the number of rows as payload.
        """
        relations = frozenset[int]().union(*(p.relations for p in pieces))
        known = _known(pieces)
        names = self.columns(relations)
        if counted is not None:
            names = {p: name for p, name in names.items() if self.block.variable_of[p] in counted}
        columns = {part: Scalar.column(alias, name) for part, name in names.items()}
        first: dict[str, Scalar] = {}
        for part, name in names.items():
            first.setdefault(name, part)
        keys = [Item(name, known[part], self.block.type_of(part)) for name, part in first.items()]
        joined = [names[part] for part in names if self._is_joined(part, relations, around)]
        if not keys:
            # A key that all rows share: unlike a global aggregate, a view of no rows has no group.
            keys.append(Item("everything", Scalar.number(1), INT))
        totals = _Totals(alias, {k.name.lower() for k in keys} | {ROWS})
        summed = dict.fromkeys(self.block.within(p, relations) for p in self.block.products)
        own = {f: self._product(Product(1, f), pieces) for f in summed if f and counted is None}
        if self.has_vectors:
            totals.add_vectors(own)
        else:
            totals.add(own)
        rows = self._product(Product(1, ()), pieces)
        counts = AggregateCall(ROWS, "count", None, None, BIGINT)
        factored = Factored(rows, ((), *totals.products))
        calls = (counts, *totals.calls)
        node = Aggregate(self._joined(pieces), alias, tuple(keys), calls, factored=factored)
        return PayloadView(node, relations, columns, totals.payload, tuple(dict.fromkeys(joined)))

    @cached_property
    def has_vectors(self) -> bool:
        """Whether payloads are vectors: of a call with many components, all of them single products."""
        every = [component for call in self.block.payload for component in call]
        has_many = any(is_packed(len(call)) for call in self.block.payload)
        is_exact = all(numbers_for([t for _, t in p.factors]).is_exact for p in self.block.products)
        return has_many and is_exact and all(len(c) == 1 and c[0].coefficient == 1 for c in every)

    def result(self, pieces: list[Piece]) -> Aggregate:
        """The aggregate of the query over ``pieces``."""
        known = _known(pieces)
        top = self.block.aggregate
        keys = tuple(Item(k.name, replaced(k.value, known), k.type) for k in top.keys)
        calls = tuple(
            tuple(tuple(self._product(p, pieces) for p in component) for component in call)
            for call in self.block.payload
        )
        factored = Factored(self._product(Product(1, ()), pieces), calls)
        return Aggregate(
            self._joined(pieces),
            top.alias,
            keys=keys,
            calls=top.calls,
            is_global=top.is_global,
            factored=factored,
        )

    def reason(self, view: PayloadView) -> str:
        """What a view is of, for people."""
        names = ", ".join(self.block.names[r] for r in sorted(view.relations))
        keys = ", ".join(k.name for k in view.node.keys) or "nothing"
        return f"view of {names} by {keys}, which deltas of the others meet"

    def _product(self, product: Product, pieces: list[Piece]) -> Product:
        """A product over payloads: of each piece the sum of its factors, or how many rows it stands for."""
        factors: list[Typed] = []
        done: set[Typed] = set()
        for piece in pieces:
            own = self.block.within(product, piece.relations)
            done.update(own)
            if piece.rows is None:
                factors += own
            else:
                factors.append(piece.payload[own] if own else (piece.rows, BIGINT))
        known = _known(pieces)
        factors += [(replaced(f[0], known), f[1]) for f in product.factors if f not in done]
        return Product(product.coefficient, tuple(factors))

    def _joined(self, pieces: list[Piece]) -> Node:
        """The pieces under the conditions that have all they need here for the first time."""
        relations = frozenset[int]().union(*(p.relations for p in pieces))
        known = _known(pieces)
        conditions = tuple(
            replaced(c, known)
            for c in self.block.conditions
            if (used := self.block.relations_of(c)) <= relations
            and not any(used <= p.relations for p in pieces)
            # What a counted view has no columns for is left to the join of all.
            and known.keys() >= set(self.block.parts_of(c))
        )
        if len(pieces) == 1 and not conditions:
            return pieces[0].node
        return Join(tuple(p.node for p in pieces), (*conditions, *self._met(pieces, known)))

    def _met(self, pieces: list[Piece], known: dict[Scalar, Scalar]) -> Iterator[Scalar]:
        """Each value of an indicator is that of its variable in some other piece, NULL too."""
        for piece in pieces:
            for variable, value in piece.meets.items():
                met = next(
                    known[p] for p in self.block.parts if p in known and self.block.variable_of[p] == variable
                )
                yield Comparison(met, "<=>", value).scalar

    def columns(self, relations: frozenset[int]) -> dict[Scalar, str]:
        """The parts that are used outside of these relations, with the column of their view that has the value.

        Parts that a condition on these relations makes the same value share one.
        """
        if relations not in self.named:
            self.named[relations] = self._columns(relations)
        return self.named[relations]

    def _columns(self, relations: frozenset[int]) -> dict[Scalar, str]:
        pairs = [(left, right) for used, left, right in self.block.equal if used <= relations]
        names: dict[Scalar, str] = {}
        for part in self.block.parts:
            if not self.block.relations_of(part) <= relations or not self._is_needed(part, relations):
                continue
            members = equal_parts((part, *names), pairs)[part]
            same = next((names[m] for m in members if m in names), None)
            taken = {name.lower() for name in names.values()} | {ROWS}
            names[part] = same or unique_name(storable(column_name(part)), taken)
        return names

    def _is_needed(self, part: Scalar, relations: frozenset[int]) -> bool:
        return part in self.block.key_parts or any(self._uses(part, relations))

    def _is_joined(self, part: Scalar, relations: frozenset[int], around: frozenset[int]) -> bool:
        """Whether a part meets others of ``around`` beside these relations."""
        return any(u.relations <= around for u in self._uses(part, relations))

    def _uses(self, part: Scalar, relations: frozenset[int]) -> Iterator[Use]:
        return (u for u in self.block.uses if part in u.parts and not u.relations <= relations)


@dataclass
class HelperViewMaker:
    """What the strategies have in common that keep helper views of a ``block`` in ``inner``."""

    block: Block
    inner: KeptViews

    @cached_property
    def views(self) -> PayloadViews:
        return PayloadViews(self.block)

    @cached_property
    def updatable(self) -> frozenset[str]:
        return self.block.updatable(self.inner.can_change)


@dataclass
class _Totals:
    """The calls of a view with payload, what each adds up, and where the sum of each product of factors is."""

    alias: str
    taken: set[str]
    calls: list[AggregateCall] = field(default_factory=list)
    products: list[tuple[tuple[Product, ...], ...]] = field(default_factory=list)
    payload: dict[Factors, Typed] = field(default_factory=dict)

    def add(self, own: Mapping[Factors, Product]) -> None:
        """A column for each sum."""
        for factors, product in own.items():
            type_ = numbers_for([t for _, t in factors]).type
            column = self._column(_label(factors), _described(factors), type_, product)
            self.payload[factors] = (column, type_)

    def add_vectors(self, own: Mapping[Factors, Product]) -> None:
        """A column of vectors for all sums of the same numbers."""
        kinds: dict[SparkType, list[Factors]] = {}
        for factors in own:
            kinds.setdefault(numbers_for([t for _, t in factors]).type, []).append(factors)
        for type_, members in kinds.items():
            product = product_of([own[factors] for factors in members])
            assert product is not None, "each is one product"
            described = listed([_described(factors) for factors in members])
            vector = self._column("sums", described, SparkType.of(f"array<{type_}>"), product)
            for place, factors in enumerate(members):
                self.payload[factors] = (element_of(vector, place), type_)

    def _column(self, wanted: str, described: Scalar, type_: SparkType, product: Product) -> Scalar:
        name = unique_name(wanted, self.taken)
        self.taken.add(name)
        self.calls.append(AggregateCall(name, TOTAL, described, type_, type_))
        self.products.append(((product,),))
        return Scalar.column(self.alias, name)


def _size(call: AggregateCall) -> str:
    """``[66]`` for vectors of so many numbers."""
    if call.argument is None or not call.type.is_array:
        return ""
    return f"[{len(call.argument.ast().expressions)}]"


def _known(pieces: Iterable[Piece]) -> dict[Scalar, Scalar]:
    return {part: column for piece in pieces for part, column in piece.columns.items()}


def _described(factors: Factors) -> Scalar:
    """The product of the factors as they are over the relations: what a payload is the sum of."""
    return reduce(Scalar.times, (value for value, _ in factors))


_NAMED = 4
"""A column has the names of so many others in its own."""


def _label(factors: Factors) -> str:
    """``sum_price`` for a sum, ``product_price_units`` of a product, ``count_price`` for how many are not NULL."""
    values = [value for value, _ in factors if not is_presence(value)]
    kind = ("count", "sum")[len(values)] if len(values) < 2 else "product"
    of = values or [value for value, _ in factors]
    names = dict.fromkeys(name for value in of for _, name in sorted(value.columns))
    return storable("_".join([kind, *list(names)[:_NAMED]]))
