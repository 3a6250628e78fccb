"""Relational nodes are immutable and hashable, with derived fields and checks at construction.

A field is ``(alias, name)`` with a type, as in SQL: ``f.dep_delay``. Aliases are unique within a query, so that any
inner part can be merged into the SELECT around it. Relations are bags (section 3 of docs/architecture.md).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from sqlglot import exp

from fivm_dbt.catalog import Catalog
from fivm_dbt.catalog.types import SparkType
from fivm_dbt.ir.keys import keys_shown, keys_together
from fivm_dbt.ir.node import Field, Item, Key, Node, conjunction, listed, made, used
from fivm_dbt.ir.scalar import ColumnId, Scalar


@dataclass(frozen=True)
class Values(Node):
    """Rows that stand in the query."""

    is_item = True

    alias: str
    columns: tuple[tuple[str, SparkType], ...]
    rows: tuple[tuple[Scalar, ...], ...]

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        return tuple(Field(self.alias, name, type_) for name, type_ in self.columns)

    @property
    def formula(self) -> str:
        return f"rows {self.alias}"

    def only(self, needed: frozenset[ColumnId]) -> Values:
        return self

    @property
    def described(self) -> str:
        return f"Values {self.alias} [{', '.join(name for name, _ in self.columns)}] {len(self.rows)} rows"


@dataclass(frozen=True)
class AsWritten(Node):
    """A query of which nothing is known but its columns: it is run as it stands."""

    alias: str
    columns: tuple[tuple[str, SparkType], ...]

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        return tuple(Field(self.alias, name, type_) for name, type_ in self.columns)

    @property
    def described(self) -> str:
        return f"AsWritten {self.alias} [{', '.join(name for name, _ in self.columns)}]"


@dataclass(frozen=True)
class Filter(Node):
    """Rows of ``input`` for which every predicate is true."""

    passes_rows = True
    is_row_level = True
    is_linear = True
    drops_rows = True

    input: Node
    predicates: tuple[Scalar, ...]

    def __post_init__(self) -> None:
        self._check(*self.predicates)

    @property
    def described(self) -> str:
        return f"Filter {conjunction(self.predicates)}"


@dataclass(frozen=True)
class Map(Node):
    """One row ``alias.(items)`` per row of ``input``."""

    is_row_level = True
    is_linear = True
    is_item = True
    computes_columns = True

    input: Node
    alias: str
    items: tuple[Item, ...]

    def __post_init__(self) -> None:
        self._check(*(item.value for item in self.items))
        self._check_names()

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        return made(self.alias, self.items)

    def shown_as(self, column: ColumnId) -> Scalar | None:
        return next((i.value for i in self.items if (self.alias, i.name) == column), None)

    def only(self, needed: frozenset[ColumnId]) -> Map:
        items = tuple(i for i in self.items if (self.alias, i.name) in needed)
        return Map(self.input.only(used(i.value for i in items)), self.alias, items)

    def unique_keys(self, catalog: Catalog) -> tuple[Key, ...]:
        return keys_shown(self.input, self.alias, self.items, catalog)

    @property
    def described(self) -> str:
        return f"Map {self.alias} [{listed(self.items)}]"


@dataclass(frozen=True)
class Join(Node):
    """The product of the factors, kept where every predicate is true (n-ary inner join)."""

    is_linear = True
    symbol = "⋈"

    factors: tuple[Node, ...]
    predicates: tuple[Scalar, ...]

    def __post_init__(self) -> None:
        self._check(*self.predicates)
        ids = [f.id for f in self.fields]
        if len(ids) != len(set(ids)):
            raise ValueError(f"Join: factors share fields: {sorted(i for i in ids if ids.count(i) > 1)}")

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        return tuple(f for factor in self.factors for f in factor.fields)

    def joined(self) -> tuple[tuple[Node, ...], tuple[Scalar, ...]]:
        below = [factor.joined() for factor in self.factors]
        nodes = tuple(node for found, _ in below for node in found)
        return nodes, (*self.predicates, *(p for _, found in below for p in found))

    def only(self, needed: frozenset[ColumnId]) -> Node:
        return self._with_used(needed)

    def over_nothing(self, inputs: tuple[Node | None, ...]) -> None:
        return None

    def unique_keys(self, catalog: Catalog) -> tuple[Key, ...]:
        return keys_together(self.factors, catalog)

    @property
    def described(self) -> str:
        return f"Join {conjunction(self.predicates) or 'cross'}"


@dataclass(frozen=True)
class Explode(Node):
    """``input`` with a row for each that the generator makes of it: LATERAL VIEW. ``outer`` keeps rows without any."""

    passes_rows = True
    is_row_level = True
    is_linear = True
    makes_rows = True

    input: Node
    alias: str
    generator: Scalar
    columns: tuple[tuple[str, SparkType], ...]
    outer: bool = False

    def __post_init__(self) -> None:
        self._check(self.generator)

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        return self.input.fields + tuple(Field(self.alias, name, type_) for name, type_ in self.columns)

    @property
    def keeps_rows(self) -> bool:
        """A generator that makes no rows of one leaves it out, unless it is an outer one."""
        return self.outer or isinstance(self.generator.ast(), (exp.ExplodeOuter, exp.PosexplodeOuter))

    def parts_of(self, keys: Iterable[Scalar]) -> tuple[Scalar, ...] | None:
        """What these values of a generated row, and the generator itself, need of the row that is repeated.

        None where a row without copies is kept, and where the generator reads arrays: there are as many as rows.
        """
        types = {f.id: f.type for f in self.input.fields}
        if self.outer or not all(types[column].is_value for column in self.generator.columns):
            return None
        parts: list[Scalar] = []
        for key in keys:
            chosen = self._chosen(key)
            columns = sorted(key.columns & self.input.ids) if chosen is None else ()
            parts += [Scalar.column(*c) for c in columns] if chosen is None else [chosen]
        parts += [Scalar.column(*c) for c in sorted(self.generator.columns)]
        return tuple(dict.fromkeys(parts))

    def _chosen(self, key: Scalar) -> Scalar | None:
        """What a key is in some copies of a row, if it is that or NULL, and otherwise depends on no copy."""
        made = self.ids - self.input.ids
        value = key if not key.columns & made else key.or_null
        return value if value is not None and value.columns and not value.columns & made else None

    @property
    def described(self) -> str:
        made = ", ".join(name for name, _ in self.columns)
        return f"Explode {self.alias} [{made} = {self.generator.sql}]{' outer' if self.outer else ''}"


@dataclass(frozen=True)
class UnionAll(Node):
    """The bag union of the branches, matched by position, named after the first."""

    is_linear = True
    is_item = True
    symbol = "⊎"

    branches: tuple[Node, ...]
    alias: str

    def __post_init__(self) -> None:
        widths = {len(branch.fields) for branch in self.branches}
        if len(widths) != 1:
            raise ValueError(f"UnionAll: branches of different widths {sorted(widths)}")

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        return tuple(Field(self.alias, f.name, f.type) for f in self.branches[0].fields)

    def only(self, needed: frozenset[ColumnId]) -> UnionAll:
        kept = [i for i, f in enumerate(self.fields) if f.id in needed]
        return UnionAll(tuple(_positions(branch, kept) for branch in self.branches), self.alias)

    def over_nothing(self, inputs: tuple[Node | None, ...]) -> Node | None:
        """The branches that have rows; of one under the union's names, so that references above stay valid."""
        kept = tuple(branch for branch in inputs if branch is not None)
        if len(kept) == 1 and kept[0].fields == self.fields:
            return kept[0]
        return UnionAll(kept, self.alias) if kept else None

    @property
    def described(self) -> str:
        return f"UnionAll {self.alias}"


@dataclass(frozen=True)
class Distinct(Node):
    """Each row of ``input`` once."""

    input: Node

    def unique_keys(self, catalog: Catalog) -> tuple[Key, ...]:
        return (frozenset(self.ids),)

    @property
    def described(self) -> str:
        return "Distinct"


def _positions(branch: Node, kept: list[int]) -> Node:
    """A branch of a union with just its columns at the positions ``kept``."""
    wanted = frozenset(branch.fields[i].id for i in kept)
    pruned = branch.only(wanted)
    if len(pruned.fields) == len(kept):
        return pruned
    # An aggregate keeps all its keys: cut them with a projection.
    alias = f"{branch.fields[0].table}_kept"
    items = tuple(Item(f.name, f.scalar, f.type) for f in branch.fields if f.id in wanted)
    return Map(pruned, alias, items)
