"""A join below an aggregate becomes a hypergraph: relations, the values that join them, sums as polynomials."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from fivm_dbt.catalog import Dependency, SparkType, TableStatistics
from fivm_dbt.delta.term import scans
from fivm_dbt.errors import FivmError
from fivm_dbt.ir.aggregate import Aggregate
from fivm_dbt.ir.comparison import Comparison
from fivm_dbt.ir.factored import Product
from fivm_dbt.ir.node import Node
from fivm_dbt.ir.nodes import Filter, Join
from fivm_dbt.ir.scalar import ColumnId, Scalar
from fivm_dbt.naming import unique_name
from fivm_dbt.plan.layout.partitioning import is_period
from fivm_dbt.rewrite.flatten_joins import flatten_joins
from fivm_dbt.rings.numbers import Typed
from fivm_dbt.rings.registry import components
from fivm_dbt.rings.split import Join as Joined
from fivm_dbt.rings.split import split
from fivm_dbt.viewtree.hypergraph import Edge, FunctionalDependency, Hypergraph
from fivm_dbt.viewtree.statistics import Statistics
from fivm_dbt.viewtree.variable_order import VariableOrder

T = TypeVar("T", bound=Hashable)


@dataclass(frozen=True)
class Block:
    """An aggregate over a join of at least two relations: each with the conditions on it alone, and the others.

    Raises nothing: :func:`block_of` gives None where a query is no block.
    """

    aggregate: Aggregate
    relations: tuple[Node, ...]
    conditions: tuple[Scalar, ...]
    splits_sums: bool = True

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
    def joined(self) -> Joined:
        return Joined(self.types.__getitem__, self.relation_of.__getitem__, not self.splits_sums)

    @cached_property
    def payload(self) -> tuple[tuple[tuple[Product, ...], ...], ...]:
        """Per call, per component of it, its sum of products."""
        calls = self.aggregate.calls
        return tuple(tuple(split(c, self.joined) for c in components(call)) for call in calls)

    def within(self, product: Product, relations: frozenset[int]) -> tuple[Typed, ...]:
        """The factors that some relations can compute."""
        return tuple(f for f in product.factors if f[0].columns and self.relations_of(f[0]) <= relations)

    def numbers_of(self, names: Collection[str]) -> int:
        """How many numbers the payload of a view of these relations has."""
        relations = frozenset(self.names.index(name) for name in names)
        if relations not in self._counted:
            found = {self.within(product, relations) for product in self.products}
            self._counted[relations] = len(found - {()})
        return self._counted[relations]

    @cached_property
    def _counted(self) -> dict[frozenset[int], int]:
        """What :meth:`numbers_of` has found: a search asks for the same relations many times."""
        return {}

    @cached_property
    def products(self) -> tuple[Product, ...]:
        """All products, each once."""
        every = (m for call in self.payload for component in call for m in component)
        return tuple(dict.fromkeys(every))

    @cached_property
    def uses(self) -> tuple[Use, ...]:
        """What is computed where several relations are joined: conditions, and factors that could not be split."""
        found = [Use(self.relations_of(c), self.parts_of(c)) for c in self.conditions]
        late = {f for p in self.products for f in p.factors if len(self.relations_of(f[0])) > 1}
        for value, _ in sorted(late, key=self.joined.sort_key):
            found.append(Use(self.relations_of(value), _columns(value)))
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

    def parts_of(self, condition: Scalar) -> tuple[Scalar, ...]:
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
        classes = equal_parts(self.parts, [(left, right) for _, left, right in self.equal])
        names: dict[Scalar, str] = {}
        wanted = {part: column_name(members[0]) for part, members in classes.items()}
        for part, members in classes.items():
            first = members[0]
            others = {wanted[p] for p in classes if classes[p] != members}
            names[part] = wanted[part] if wanted[part] not in others else first.sql
        return names

    @cached_property
    def names(self) -> tuple[str, ...]:
        """What each relation is called in the query, by its position."""
        found: list[str] = []
        for relation in self.relations:
            found.append(unique_name(_name(relation), set(found)))
        return tuple(found)

    @property
    def title(self) -> str:
        """The block by its keys, for people."""
        return f"γ[{', '.join(k.value.sql for k in self.aggregate.keys)}]"

    def updatable(self, changes: Callable[[Node], bool]) -> frozenset[str]:
        """The names of the relations that ``changes`` says can change."""
        return frozenset(n for n, node in zip(self.names, self.relations, strict=True) if changes(node))

    def statistics(self, known: TableStatistics) -> Statistics:
        """The sizes of the relations, as far as they are known of inputs."""
        rows, distinct = {}, {}
        for name, (input_, parts) in self.measurable.items():
            if (counted := known.rows_of(input_)) is not None:
                rows[name] = counted
            for part in parts:
                values = known.distinct_of(input_, column_name(part))
                if values is not None:
                    distinct[name, self.variable_of[part]] = values
        periods = frozenset(v for part, v in self.variable_of.items() if is_period(self.type_of(part), part))
        return Statistics(rows, distinct, periods, changed=self._changed(known) if known.changed else {})

    def _changed(self, known: TableStatistics) -> dict[str, float]:
        """How often each relation changes: as the input of it that does so the most."""
        return {
            name: max((known.share_of(scan.relation) or 0.0 for scan in scans(node)), default=0.0)
            for name, node in zip(self.names, self.relations, strict=True)
        }

    def rows_a_period(self, known: TableStatistics) -> float | None:
        """How many rows the aggregate is expected to have of each value of its first key that is a date."""
        statistics = self.statistics(known)
        days = (self.variable_of[k.value] for k in self.aggregate.keys if k.value in self.variable_of)
        day = next((variable for variable in days if variable in statistics.periods), None)
        if day is None:
            return None
        return self.rows(statistics) / statistics.distinct_of(self.graph, day)

    def rows(self, statistics: Statistics) -> float:
        """How many rows the aggregate is expected to have."""
        graph = self.graph
        return statistics.groups(graph, [edge.name for edge in graph.edges], graph.free)

    @cached_property
    def measurable(self) -> dict[str, tuple[str, tuple[Scalar, ...]]]:
        """By the name of each relation that is of one input: this input, and the columns of it that are variables."""
        found = {}
        for name, node in zip(self.names, self.relations, strict=True):
            read = list(scans(node))
            if len(read) == 1:
                columns = {f.id for f in read[0].fields}
                own = tuple(p for p in self.parts if p.is_column and p.columns <= columns)
                found[name] = (read[0].relation, own)
        return found

    def dependencies(self, known: Mapping[str, tuple[Dependency, ...]]) -> tuple[FunctionalDependency, ...]:
        """What columns of inputs are declared to determine, as far as they are variables.

        Nothing but costs may follow from it: nobody has proved that a key is one.
        """
        found = []
        for input_, parts in self.measurable.values():
            columns = {column_name(p).lower(): self.variable_of[p] for p in parts}
            for dependency in known.get(input_, ()):
                dependent = frozenset(columns[c] for c in dependency.dependent if c in columns)
                if dependent and all(column in columns for column in dependency.determinant):
                    determinant = frozenset(columns[c] for c in dependency.determinant)
                    found.append(FunctionalDependency(determinant, dependent))
        return tuple(found)

    def joins(self, part: Scalar) -> bool:
        """Whether a part is the same variable as one of another relation."""
        return len(self.graph.edges_of[self.variable_of[part]]) > 1

    def position(self, name: str) -> int:
        return self.names.index(name)

    @cached_property
    def graph(self) -> Hypergraph:
        """The block as a hypergraph of variables."""
        edges = []
        for position, name in enumerate(self.names):
            own = [self.variable_of[p] for p in self.parts if self.relations_of(p) == {position}]
            edges.append(Edge(name, tuple(dict.fromkeys(own))))
        free = frozenset(self.variable_of[p] for p in self.key_parts)
        together = [frozenset(self.variable_of[p] for p in use.parts) for use in self.uses]
        return Hypergraph(tuple(edges), free, tuple(t for t in together if len(t) > 1))

    @cached_property
    def variables(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Each variable with the columns, or expressions, that it is the value of."""
        found: dict[str, list[str]] = {}
        for part in self.parts:
            found.setdefault(self.variable_of[part], []).append(part.sql)
        return tuple((variable, tuple(members)) for variable, members in found.items())

    def in_own_names(self, order: VariableOrder, others: Collection[str]) -> VariableOrder:
        """A user's order over the block's variables, which may be called by any column of theirs.

        Names among ``others``, columns that the query does not need, are left out. FIVM204 for one that could be two.
        """
        called: dict[str, list[str]] = {}
        for variable, members in self.variables:
            bare = {column_name(p).lower() for p in self.parts if self.variable_of[p] == variable}
            for name in {*bare, *(m.lower() for m in members), variable.lower()}:
                called.setdefault(name, []).append(variable)
        names: dict[str, str | None] = {}
        for written in order.variables:
            found = called.get(written.lower(), [])
            if len(found) > 1:
                raise FivmError(
                    "FIVM204",
                    f"{written} in the order may be {' or '.join(found)}",
                    remedy="write the alias before the column",
                )
            if found:
                names[written] = found[0]
            elif written.lower() in others:
                names[written] = None
        return order.renamed(names)


@dataclass(frozen=True)
class Use:
    """Something over several relations, and the values of each that it needs."""

    relations: frozenset[int]
    parts: tuple[Scalar, ...]


def block_of(node: Aggregate, *, splits_sums: bool = True) -> Block | None:
    """``node`` as a block, if it adds up over a join and is none of a view tree already.

    Without ``splits_sums`` what is added up is computed where all its relations are joined.
    """
    if not node.adds_up or node.factored is not None:
        return None
    flat = flatten_joins(node)
    if not isinstance(flat, Aggregate) or not isinstance(flat.input, Join) or len(flat.input.factors) < 2:
        return None
    whole = Block(flat, flat.input.factors, flat.input.predicates)
    if any(not c.columns or not c.columns <= whole.relation_of.keys() for c in whole.conditions):
        # A condition on nothing, or on the clock of a side: not worth a view tree.
        return None
    relations = []
    for position, relation in enumerate(whole.relations):
        own = tuple(c for c in whole.conditions if whole.relations_of(c) == {position})
        relations.append(Filter(relation, own) if own else relation)
    conditions = tuple(c for c in whole.conditions if len(whole.relations_of(c)) > 1)
    block = Block(flat, tuple(relations), conditions, splits_sums)
    return block if all(block.type_of(p).is_groupable for p in block.parts) else None


def _is_identical(type_: SparkType) -> bool:
    """Whether values of a type that are equal are the same value in every other respect."""
    return type_.is_integral or type_.is_decimal or type_.is_temporal or type_.text in ("string", "boolean")


def _sides(condition: Scalar) -> tuple[Scalar, ...]:
    found = Comparison.of(condition)
    return (condition,) if found is None else (found.left, found.right)


def _columns(scalar: Scalar) -> tuple[Scalar, ...]:
    return tuple(Scalar.column(*c) for c in sorted(scalar.columns))


def column_name(part: Scalar) -> str:
    if part.is_column:
        ((_, name),) = part.columns
        return name
    return part.sql


def equal_parts(parts: Iterable[T], pairs: Iterable[tuple[T, T]]) -> dict[T, tuple[T, ...]]:
    """For each part those that pairs connect it with, itself included, in the order of the parts."""
    of: dict[T, list[T]] = {p: [p] for p in parts}
    for left, right in pairs:
        of.setdefault(left, [left])
        of.setdefault(right, [right])
        if of[left] is not of[right]:
            merged = of[left] + of[right]
            for member in merged:
                of[member] = merged
    order = {p: i for i, p in enumerate(of)}
    return {p: tuple(sorted(of[p], key=order.__getitem__)) for p in of}


def _name(relation: Node) -> str:
    """What a relation is called in the query."""
    aliases = (getattr(n, "alias", None) for n in relation.walk())
    return next(str(a) for a in aliases if a is not None)
