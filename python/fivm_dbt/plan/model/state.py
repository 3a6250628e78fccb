"""A state has the keys, the payload and the partitions of a view."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from fivm_dbt.catalog import SparkType
from fivm_dbt.ir.factored import Product
from fivm_dbt.ir.node import Item
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.naming import COUNT
from fivm_dbt.rings.component import ROWS, Component
from fivm_dbt.rings.numbers import Numbers
from fivm_dbt.rings.polynomial import Polynomial
from fivm_dbt.rings.vectors import Vectors, element_of


@dataclass(frozen=True)
class PayloadColumn:
    """A state column holding a component of the payload."""

    name: str
    component: Component
    products: tuple[Product, ...] | None = None
    """What is added up over payloads of a view tree, instead of the component's lift over rows."""
    members: tuple[Component, ...] = ()
    """The components that a column of vectors has, in the order of its elements."""

    @property
    def numbers(self) -> Numbers:
        return self.component.numbers

    @property
    def type(self) -> SparkType:
        return self.numbers.type

    @property
    def values(self) -> Iterator[tuple[Component, Scalar]]:
        """Each component that it has, as a value over a row of the state."""
        own = Scalar.column("", self.name)
        if not self.members:
            yield self.component, own
        yield from ((member, element_of(own, n)) for n, member in enumerate(self.members))

    @property
    def lift_sql(self) -> str:
        """What one row contributes, for people."""
        return self.component.lift.sql if self.products is None else Polynomial(self.products).sql

    def term(self, multiplicity: Scalar) -> Scalar:
        """The contribution of one signed row."""
        if self.products is None:
            return self.component.term(multiplicity)
        return self.numbers.sum_of(self.products, multiplicity)


@dataclass(frozen=True)
class Partitioning:
    """The hidden partition column of a state: the period of a time key, a given column, or a hash bucket.

    ``expression`` is over the state's key columns (bare names). ``buckets`` is None where the number is chosen from
    the inputs' size when the state is built, and kept until a rebuild.
    """

    kind: Literal["time", "value", "bucket"]
    expression: Scalar | None
    type: SparkType
    reason: str
    buckets: int | None = None
    ranges_of: str | None = None
    """The key whose numbers each partition has a range of."""
    unit: str | None = None
    """The period of time that each partition has: year, month, day or hour."""


@dataclass(frozen=True)
class StateTable:
    """A Delta table with one row per key: hidden partition, keys, multiplicity, payload.

    ``grouped_by`` are the keys by which rows are replaced together, if those are not all: buckets are hashed over them.
    ``determined`` are keys that follow from the others by declared keys that are promised: a MERGE does not compare
    them. ``is_set`` says that by the same promise no row is there twice, so that the table has no multiplicity. Nor has
    it where rows are kept as a text gives them (``is_plain``): that may be several times.
    """

    relation: str
    keys: tuple[Item, ...]
    payload: tuple[PayloadColumn, ...]
    partitioning: Partitioning
    is_global: bool
    grouped_by: tuple[str, ...] = ()
    rows: Product | None = None
    """How many rows one of the input stands for, where that has payloads of a view tree."""
    determined: tuple[str, ...] = ()
    is_set: bool = False
    is_plain: bool = False
    is_grouped: bool = False
    """Whether the rows that it is computed from have different keys already."""
    sorted_by: tuple[str, ...] = ()
    """The keys by which rows lie sorted in the files of a partition; none where nobody reads them by a prefix."""
    bounded_by: str | None = None
    """A key, a bigint or a timestamp, of whose range in a delta nothing outside is read or written: the time parts of
    which a partition has many, so that one more part leaves those before it alone. In a partition it is NULL in all
    rows or in none."""

    @property
    def bounding(self) -> Item | None:
        """The key that it is bounded by."""
        return next((k for k in self.keys if k.name == self.bounded_by), None)

    @property
    def payload_names(self) -> tuple[str, ...]:
        """The components of a delta: the multiplicity first, then the others."""
        return (COUNT, *(p.name for p in self.payload))

    def numbers(self, name: str) -> Numbers:
        """What a component of a delta is added up in."""
        return next((p.numbers for p in self.payload if p.name == name), ROWS.numbers)

    @property
    def is_exact(self) -> bool:
        """Whether what is added to a row can be taken away again without a rest."""
        return all(p.numbers.is_exact for p in self.payload)

    @property
    def has_vectors(self) -> bool:
        """Whether a column holds several components."""
        return any(isinstance(p.numbers, Vectors) for p in self.payload)

    @property
    def stored_names(self) -> tuple[str, ...]:
        """Those of them that are columns of the table."""
        return self.payload_names[1:] if self.is_set or self.is_plain else self.payload_names

    @property
    def placing(self) -> tuple[str, ...]:
        """The keys that decide the partition of a row; none where one bucket has all."""
        by = self.partitioning
        if by.buckets == 1:
            return ()
        if by.expression is not None:
            return tuple(sorted(name for _, name in by.expression.columns))
        return self.grouped_by or tuple(k.name for k in self.keys)

    @property
    def merge_keys(self) -> tuple[str, ...]:
        """The keys by which a MERGE finds a row."""
        return tuple(k.name for k in self.keys if k.name not in self.determined)
