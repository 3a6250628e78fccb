"""The delta of an inner view may be a product, which the views above it use (F-IVM article, section 6).

``Δ(W ⋈ S_1 ⋈ …)`` falls into connected parts when ΔW is a product: two of its factors are in one part if they meet the
same sibling, condition, computed key or computed summand. Each part is added up by itself, and the delta of the view is
the product of the parts: the method Optimize of the article's figure 7, which pushes marginalisation past joins.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import BIGINT
from fivm_dbt.delta.products import Factor, FactorisedDelta, Part, ProductDelta, joined, same_terms
from fivm_dbt.delta.term import Term
from fivm_dbt.ir.factored import Product
from fivm_dbt.ir.higher_order import Total
from fivm_dbt.ir.node import Item, Node, Side
from fivm_dbt.ir.nodes import Join
from fivm_dbt.ir.reads import Scan
from fivm_dbt.ir.scalar import ColumnId, Scalar
from fivm_dbt.naming import COUNT, PREFIX
from fivm_dbt.plan.keep.trees.blocks import equal_parts
from fivm_dbt.plan.model.state import StateTable
from fivm_dbt.plan.model.view import View
from fivm_dbt.rings.component import ROWS
from fivm_dbt.rings.numbers import Numbers

Columns = tuple[tuple[str, SparkType], ...]


def key_columns(view: View) -> Columns:
    """The shown columns of a payload view that are keys of its state."""
    stored = {k.name for k in view.state.keys}
    return tuple((c.name, c.type) for c in view.columns if _stored_as(view, c.name) in stored)


def payload_columns(view: View) -> Columns:
    """The shown columns of a payload view that are added up, the number of rows first."""
    keys = {name for name, _ in key_columns(view)}
    return tuple((c.name, c.type) for c in view.columns if c.name not in keys)


def may_be_product(view: View) -> bool:
    """Whether a view's delta may be kept as factors: exact payloads, no vectors, by several keys."""
    state = view.state
    is_summed = view.is_payload and view.step is None and state.is_exact and not state.has_vectors
    return is_summed and len(key_columns(view)) > 1


def shown_as(view: View) -> dict[str, str]:
    """By column of a payload view's state what it is called in the view."""
    return {_stored_as(view, c.name): c.name for c in view.columns}


def split_by(view: View, blocks: Iterable[frozenset[str]]) -> FactorisedDelta:
    """The form in which a product is looked for in what is staged for ``view``: a factor for each block of its keys.

    The first factors hold whole numbers by which the rows of the last one are multiplied, which have the payload's
    types. Terms chain them: a term of two factors that follow each other is in both.
    """
    keys, payload = key_columns(view), payload_columns(view)
    ordered = sorted(blocks, key=lambda block: min(i for i, (name, _) in enumerate(keys) if name in block))
    factors = []
    for number, block in enumerate(ordered):
        terms = [f"{PREFIX}term_{n}" for n in (number, number + 1) if 0 < n < len(ordered)]
        is_last = number == len(ordered) - 1
        columns = payload if is_last else tuple((name, BIGINT) for name, _ in payload)
        own = tuple((name, type_) for name, type_ in keys if name in block)
        factors.append(Factor(f"{view.name}_factor_{number + 1}", tuple(terms), own, columns))
    return FactorisedDelta(f"{view.name}_factors", view.name, tuple(factors))


def blocks_of(term: Term, view: View, state: StateTable) -> tuple[frozenset[str], ...]:
    """The keys of ``view`` that stay together in a view above it, of which ``term`` is the delta for its changes.

    One block, or none, where a product would not help.
    """
    analysis = _analysis(term, view, tuple(frozenset({name}) for name, _ in key_columns(view)), state)
    return analysis.blocks if analysis is not None else ()


def product_delta(
    term: Term, view: View, given: FactorisedDelta, name: str, state: StateTable, shown: dict[str, str] | None
) -> ProductDelta | None:
    """The delta of a view by that of ``view`` below it, which is ``given`` as factors; None where it is no product.

    ``term`` is the delta for its changes, ``name`` is to begin the names of the parts. ``shown`` has the names of the
    state's columns where others read it as a payload view.
    """
    blocks = tuple(frozenset(key for key, _ in f.keys) for f in given.factors)
    analysis = _analysis(term, view, blocks, state)
    if analysis is None or len(analysis.parts) < 2:
        return None
    if any(len(p.products or ()) != 1 for p in state.payload):
        # A sum of products is none: what reads it takes it as it is staged.
        shown = None
    return _Builder(analysis, given, name, state, shown).built()


@dataclass(frozen=True)
class _Analysis:
    """The parts of a join without ``scan``: per part the numbers of its blocks, and the siblings in it."""

    scan: Scan
    siblings: tuple[Node, ...]
    predicates: tuple[Scalar, ...]
    given: tuple[frozenset[str], ...]
    parts: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]

    @property
    def blocks(self) -> tuple[frozenset[str], ...]:
        """The keys of the view that are in one part."""
        return tuple(frozenset().union(*(self.given[b] for b in blocks)) for blocks, _ in self.parts)

    def part_of(self, column: ColumnId) -> int:
        """The number of the part that has a column."""
        table, name = column
        for number, (blocks, siblings) in enumerate(self.parts):
            if table == self.scan.alias:
                if any(name in self.given[b] for b in blocks):
                    return number
            elif any(column in self.siblings[s].ids for s in siblings):
                return number
        raise KeyError(column)


def _analysis(
    term: Term, view: View, given: tuple[frozenset[str], ...], state: StateTable
) -> _Analysis | None:
    """The connected parts; None where the view's change is not met as a product of payloads."""
    factors = term.node.factors if isinstance(term.node, Join) else (term.node,)
    predicates = term.node.predicates if isinstance(term.node, Join) else ()
    scans = [f for f in factors if isinstance(f, Scan) and f.relation == view.name and f.side is Side.DELTA]
    if len(scans) != 1 or any(_reads_change(f) for f in factors if f is not scans[0]):
        return None
    scan = scans[0]
    if term.multiplicity != Scalar.column(scan.alias, COUNT):
        return None
    siblings = tuple(f for f in factors if f is not scan)
    payload = {(scan.alias, name) for name, _ in payload_columns(view)}
    pairs: list[tuple[int, int]] = []

    def unit(column: ColumnId) -> int | None:
        if column[0] == scan.alias:
            return next((n for n, block in enumerate(given) if column[1] in block), None)
        return next((len(given) + n for n, s in enumerate(siblings) if column in s.ids), None)

    def together(scalar: Scalar) -> bool:
        found = [unit(c) for c in scalar.columns]
        known = [u for u in found if u is not None]
        pairs.extend((known[0], u) for u in known[1:])
        return len(known) == len(found)

    if not all(together(s) for s in (*predicates, *(k.value for k in state.keys))):
        return None
    for product in _products(state):
        own = [value for value, _ in product.factors if value.is_column and value.columns <= payload]
        if len(own) != 1:
            return None
        if not all(together(value) for value, _ in product.factors if value not in own):
            return None
    parts = []
    units = equal_parts(range(len(given) + len(siblings)), pairs)
    for members in dict.fromkeys(units.values()):
        blocks = tuple(m for m in members if m < len(given))
        if not blocks:
            return None
        parts.append((blocks, tuple(m - len(given) for m in members if m >= len(given))))
    return _Analysis(scan, siblings, predicates, given, tuple(parts))


def _reads_change(node: Node) -> bool:
    return any(isinstance(n, Scan) and n.side is Side.DELTA for n in node.walk())


def _products(state: StateTable) -> tuple[Product, ...]:
    """Everything that is added up; nothing where that is no sum of products."""
    if state.rows is None or state.has_vectors or any(p.products is None for p in state.payload):
        return (Product(0, ()),)
    return (state.rows, *(product for p in state.payload for product in p.products or ()))


@dataclass
class ProductDeltas:
    """The products that deltas of a plan's views may be, as these are planned, those below first.

    ``forms`` has by view the ways in which its delta may come as factors, ``split`` the blocks of the keys of views
    without a view below, of which the staged delta is looked at.
    """

    forms: dict[str, list[FactorisedDelta]] = field(default_factory=dict)
    views: dict[str, View] = field(default_factory=dict)
    split: dict[str, FactorisedDelta] = field(default_factory=dict)

    def of(self, view: View, terms: tuple[Term, ...]) -> tuple[ProductDelta, ...]:
        """The deltas of ``view`` by products below it, of ``terms`` those for one change each."""
        found: list[ProductDelta] = []
        below = [(v, t) for v in self.views.values() if (t := _only_term(terms, v.name)) is not None]
        shown = shown_as(view) if may_be_product(view) else None
        for child, term in below:
            for given in self._forms(child, term, view.state):
                name = f"{view.name}_product_{len(found) + 1}"
                delta = product_delta(term, child, given=given, name=name, state=view.state, shown=shown)
                if delta is not None:
                    found.append(delta)
        if may_be_product(view):
            self.views[view.name] = view
            self.forms[view.name] = [d.gives for d in found if d.gives is not None]
        return tuple(found)

    def _forms(self, view: View, term: Term, state: StateTable) -> list[FactorisedDelta]:
        """How the delta of ``view`` may come; the first reader of one over inputs alone says how it is to be split."""
        forms = self.forms[view.name]
        if not forms and view.name not in self.split:
            blocks = blocks_of(term, view, state)
            if len(blocks) > 1:
                self.split[view.name] = split_by(view, blocks)
        if forms or view.name not in self.split:
            return forms
        return [self.split[view.name]]

    def with_splits(self, views: Iterable[View]) -> Iterable[View]:
        """The views with what is known of them when all are planned."""
        return (replace(v, split=self.split.get(v.name)) for v in views)


def _only_term(terms: tuple[Term, ...], name: str) -> Term | None:
    """The term for the change of a view, if there is just one that reads it."""
    found = [t for t in terms if any(isinstance(n, Scan) and _is_change(n, name) for n in t.node.walk())]
    return found[0] if len(found) == 1 else None


def _is_change(scan: Scan, name: str) -> bool:
    return scan.relation == name and scan.side is Side.DELTA


@dataclass
class _Builder:
    analysis: _Analysis
    given: FactorisedDelta
    name: str
    state: StateTable
    shown: dict[str, str] | None

    @cached_property
    def aliases(self) -> tuple[str, ...]:
        return tuple(f"{self.analysis.scan.alias}_factor_{n + 1}" for n in range(len(self.given.factors)))

    @cached_property
    def meaning(self) -> dict[ColumnId, Scalar]:
        """The keys of the view in its factors."""
        return {
            (self.analysis.scan.alias, key): Scalar.column(alias, key)
            for alias, factor in zip(self.aliases, self.given.factors, strict=True)
            for key, _ in factor.keys
        }

    def built(self) -> ProductDelta:
        parts = tuple(self._part(number) for number in range(len(self.analysis.parts)))
        factors = tuple(part.factor for part in parts)
        rows = self._over_parts(factors, self.state.rows or Product(0, ()), 0, 0)
        payload = tuple(
            tuple(self._over_parts(factors, product, n, m) for m, product in enumerate(p.products or ()))
            for n, p in enumerate(self.state.payload, start=1)
        )
        gives = None
        if self.shown is not None:
            gives = FactorisedDelta(self.name, self.state.relation, factors)
        node = joined(factors, [self._alias(n) for n in range(len(parts))])
        return ProductDelta(
            self.given, parts, node=node, keys=self._keys(), rows=rows, payload=payload, gives=gives
        )

    def _alias(self, part: int) -> str:
        return f"part_{part + 1}"

    def _keys(self) -> tuple[Scalar, ...]:
        """The state's keys over the parts."""
        return tuple(
            Scalar.column(self._alias(self._part_of_key(k)), self._called(k.name))
            if k.value.columns
            else k.value
            for k in self.state.keys
        )

    def _part_of_key(self, key: Item) -> int:
        return self.analysis.part_of(next(iter(sorted(key.value.columns))))

    def _called(self, name: str) -> str:
        return name if self.shown is None else self.shown.get(name, name)

    def _part(self, number: int) -> Part:
        blocks, siblings = self.analysis.parts[number]
        factors = [self.given.factors[b] for b in blocks]
        scans = [factor.scan(self.aliases[b]) for b, factor in zip(blocks, factors, strict=True)]
        nodes = (*scans, *(self.analysis.siblings[s] for s in siblings))
        known = frozenset(c for node in nodes for c in node.ids)
        predicates = tuple(p.substitute(self.meaning.get) for p in self.analysis.predicates)
        own = tuple(p for p in predicates if p.columns <= known)
        shared = same_terms(factors, [s.alias for s in scans])
        node = Join(nodes, (*own, *shared)) if len(nodes) > 1 else nodes[0]
        keys = tuple(
            Item(self._called(k.name), k.value.substitute(self.meaning.get), k.type)
            for k in self.state.keys
            if k.value.columns and self._part_of_key(k) == number
        )
        terms: dict[str, Item] = {}
        for scan, factor in zip(scans, factors, strict=True):
            for term in factor.terms:
                terms.setdefault(term, Item(term, Scalar.column(scan.alias, term), BIGINT))
        totals = tuple(self._totals(number))
        factor = Factor(
            f"{self.name}_{number + 1}",
            tuple(terms),
            tuple((k.name, k.type) for k in keys),
            tuple((t.name, t.type) for t in totals),
        )
        return Part(factor, node, (*terms.values(), *keys), totals)

    def _totals(self, part: int) -> Iterable[Total]:
        """What a part adds up: of each product those factors that it has."""
        assert self.state.rows is not None
        yield self._total(self.state.rows, ROWS.numbers, part, 0, 0)
        for n, payload in enumerate(self.state.payload, start=1):
            for m, product in enumerate(payload.products or ()):
                yield self._total(product, payload.numbers, part, n, m)

    def _total(self, product: Product, numbers: Numbers, part: int, component: int, position: int) -> Total:
        factors = self._within(product, part)
        own = numbers.over([type_ for _, type_ in factors])
        return Total(self._column(component, position), (Product(1, factors),), own)

    def _column(self, component: int, position: int) -> str:
        """What the total of a component's product is called: in a view that others read as its payload is."""
        if self.shown is not None:
            return self.shown[self.state.payload_names[component]]
        return f"total_{component}_{position + 1}"

    def _within(self, product: Product, part: int) -> tuple[tuple[Scalar, SparkType], ...]:
        blocks, _ = self.analysis.parts[part]
        found: list[tuple[Scalar, SparkType]] = []
        for value, type_ in product.factors:
            (table, name) = min(value.columns) if value.columns else ("", "")
            if value.is_column and table == self.analysis.scan.alias and (table, name) not in self.meaning:
                for b in blocks:
                    types = dict(self.given.factors[b].payload)
                    found.append((Scalar.column(self.aliases[b], name), types[name]))
            elif not value.columns:
                # A constant goes with the first part.
                found += [(value, type_)] if part == 0 else []
            elif self.analysis.part_of((table, name)) == part:
                found.append((value.substitute(self.meaning.get), type_))
        return tuple(found)

    def _over_parts(
        self, factors: tuple[Factor, ...], product: Product, component: int, position: int
    ) -> Product:
        name = self._column(component, position)
        totals = tuple(
            (Scalar.column(self._alias(n), name), dict(factor.payload)[name])
            for n, factor in enumerate(factors)
        )
        return Product(product.coefficient, totals)


def _stored_as(view: View, shown: str) -> str:
    value = dict(view.rows or ())[shown]
    (column,) = value.columns
    return column[1]
