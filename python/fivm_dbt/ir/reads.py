"""A relation is read as a whole, where keys lie, or near the times of changed rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from fivm_dbt.catalog import Catalog
from fivm_dbt.catalog.types import SparkType
from fivm_dbt.ir.node import Field, Key, Node, Side
from fivm_dbt.ir.scalar import ColumnId
from fivm_dbt.ir.within import TimeBound


class Read(Node, ABC):
    """Rows of one relation."""

    is_item = True

    @property
    @abstractmethod
    def source(self) -> Scan:
        """The scan of which these are rows."""

    @property
    def lookup(self) -> Lookup | None:
        """By which keys its rows are looked up, if they are."""
        return None

    @property
    def times(self) -> tuple[TimeBound, ...]:
        """Between which times its rows lie."""
        return ()

    @property
    def is_near_changes(self) -> bool:
        """Whether it is between two times that depend on the change."""
        return any(b.is_closed for b in self.times)

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        return self.source.fields


@dataclass(frozen=True)
class Scan(Read):
    """An input relation, restricted to the columns that are read, on one side of a refresh."""

    relation: str
    alias: str
    columns: tuple[tuple[str, SparkType], ...]
    side: Side = Side.CURRENT

    @property
    def source(self) -> Scan:
        return self

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        return tuple(Field(self.alias, name, type_) for name, type_ in self.columns)

    @property
    def formula(self) -> str:
        side = "Δ" if self.side is Side.DELTA else f"{self.side.value} "
        return f"{side}{self.relation} {self.alias}"

    def only(self, needed: frozenset[ColumnId]) -> Scan:
        return replace(self, columns=tuple(c for c in self.columns if (self.alias, c[0]) in needed))

    def left_by(self, changed: Collection[str]) -> Scan | None:
        return None if self.side is Side.DELTA and self.relation not in changed else self

    def unique_keys(self, catalog: Catalog) -> tuple[Key, ...]:
        relation = catalog.find(self.relation)
        declared = relation.keys if relation is not None else ()
        ids = {f.name.lower(): f.id for f in self.fields}
        return tuple(frozenset(ids[n] for n in key) for key in declared if key and set(key) <= ids.keys())

    @property
    def described(self) -> str:
        alias = f" as {self.alias}" if self.alias != self.relation.split(".")[-1] else ""
        side = "" if self.side.value == "current" else f"{self.side.value} "
        return f"Scan {side}{self.relation}{alias} [{', '.join(name for name, _ in self.columns)}]"


@dataclass(frozen=True)
class Lookup(Read):
    """Rows of a kept view that a set of keys can match: those in the partitions of its state that the keys lie in.

    ``keys`` pairs the columns of the state that decide the partition with columns of the key set.
    """

    scan: Scan
    key_set: str
    keys: tuple[tuple[str, str], ...]

    @property
    def source(self) -> Scan:
        return self.scan

    @property
    def alias(self) -> str:
        return self.source.alias

    @property
    def lookup(self) -> Lookup:
        return self

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.scan,)

    def with_inputs(self, inputs: tuple[Node, ...]) -> Lookup:
        (scan,) = inputs
        if not isinstance(scan, Scan):
            raise TypeError("only a scan is looked up")
        return Lookup(scan, self.key_set, self.keys)

    @property
    def described(self) -> str:
        return f"Lookup {self.key_set}"


@dataclass(frozen=True)
class Within(Read):
    """The rows of a scan, or of a look-up, that all ``bounds`` allow. None that matters is left out."""

    passes_rows = True
    drops_rows = True

    read: Read
    bounds: tuple[TimeBound, ...]

    @property
    def source(self) -> Scan:
        return self.read.source

    @property
    def alias(self) -> str:
        return self.source.alias

    @property
    def lookup(self) -> Lookup | None:
        return self.read.lookup

    @property
    def times(self) -> tuple[TimeBound, ...]:
        return self.bounds

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.read,)

    def with_inputs(self, inputs: tuple[Node, ...]) -> Within:
        (read,) = inputs
        if not isinstance(read, Read):
            raise TypeError("only a read is bounded by time")
        return Within(read, self.bounds)

    @property
    def described(self) -> str:
        return f"Within {' and '.join(str(b) for b in self.bounds)}"


def reads(node: Node) -> Iterator[Read]:
    """The reads below ``node``, left to right, each with how it is bounded."""
    if isinstance(node, Read):
        yield node
        return
    for child in node.inputs:
        yield from reads(child)
