"""Relational nodes: immutable, hashable, with derived fields and checks at construction.

A field is ``(alias, name)`` with a type, as in SQL: ``f.dep_delay``. Aliases are unique within a query, so that any
inner part can be merged into the SELECT around it. Relations are bags (section 3 of docs/architecture.md).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from fivm_dbt.catalog.types import SparkType
from fivm_dbt.ir.aggregate import Aggregate
from fivm_dbt.ir.near import Near
from fivm_dbt.ir.node import Field, Item, Node, Side, listed, made
from fivm_dbt.ir.scalar import Scalar


def _all(predicates: Iterable[Scalar]) -> str:
    return " and ".join(p.sql for p in predicates)


@dataclass(frozen=True)
class Scan(Node):
    """An input relation, restricted to the columns that are read, on one side of a refresh."""

    relation: str
    alias: str
    columns: tuple[tuple[str, SparkType], ...]
    side: Side = Side.CURRENT

    @property
    def fields(self) -> tuple[Field, ...]:
        return tuple(Field(self.alias, name, type_) for name, type_ in self.columns)

    @property
    def described(self) -> str:
        alias = f" as {self.alias}" if self.alias != self.relation.split(".")[-1] else ""
        side = "" if self.side.value == "current" else f"{self.side.value} "
        return f"Scan {side}{self.relation}{alias} [{', '.join(name for name, _ in self.columns)}]"


@dataclass(frozen=True)
class Values(Node):
    """Rows that stand in the query."""

    alias: str
    columns: tuple[tuple[str, SparkType], ...]
    rows: tuple[tuple[Scalar, ...], ...]

    @property
    def fields(self) -> tuple[Field, ...]:
        return tuple(Field(self.alias, name, type_) for name, type_ in self.columns)

    @property
    def described(self) -> str:
        return f"Values {self.alias} [{', '.join(name for name, _ in self.columns)}] {len(self.rows)} rows"


@dataclass(frozen=True)
class AsWritten(Node):
    """A query of which nothing is known but its columns: it is run as it stands."""

    alias: str
    columns: tuple[tuple[str, SparkType], ...]

    @property
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

    input: Node
    predicates: tuple[Scalar, ...]

    def __post_init__(self) -> None:
        self._check(*self.predicates)

    @property
    def described(self) -> str:
        return f"Filter {_all(self.predicates)}"


@dataclass(frozen=True)
class Map(Node):
    """One row ``alias.(items)`` per row of ``input``."""

    is_row_level = True
    is_linear = True

    input: Node
    alias: str
    items: tuple[Item, ...]

    def __post_init__(self) -> None:
        self._check(*(item.value for item in self.items))
        self._check_names()

    @property
    def fields(self) -> tuple[Field, ...]:
        return made(self.alias, self.items)

    @property
    def described(self) -> str:
        return f"Map {self.alias} [{listed(self.items)}]"


@dataclass(frozen=True)
class ClockFilter(Node):
    """Rows of ``input`` for which every predicate is true; each reads the clock, so that rows come and go with time.

    On one side of a refresh it is a Filter: there the time is known (:mod:`fivm_dbt.ir.clock`).
    """

    is_row_level = True

    input: Node
    predicates: tuple[Scalar, ...]

    def __post_init__(self) -> None:
        self._check(*self.predicates)

    @property
    def described(self) -> str:
        return f"ClockFilter {_all(self.predicates)}"


@dataclass(frozen=True)
class ClockMap(Node):
    """A Map with items that compare something with the clock. On one side of a refresh it is a Map."""

    is_row_level = True

    input: Node
    alias: str
    items: tuple[Item, ...]

    def __post_init__(self) -> None:
        self._check(*(item.value for item in self.items))

    @property
    def fields(self) -> tuple[Field, ...]:
        return made(self.alias, self.items)

    @property
    def described(self) -> str:
        return f"ClockMap {self.alias} [{listed(self.items)}]"


@dataclass(frozen=True)
class Crossing(Node):
    """In a delta: the rows of ``input`` for which something is different because the clock moved.

    ``predicates`` are over the clocks of both sides. If the clock stood still there are none, and the term vanishes.
    """

    input: Node
    predicates: tuple[Scalar, ...]

    def __post_init__(self) -> None:
        self._check(*self.predicates)

    @property
    def described(self) -> str:
        return f"Crossing {_all(self.predicates)}"


@dataclass(frozen=True)
class Join(Node):
    """The product of the factors, kept where every predicate is true (n-ary inner join)."""

    is_linear = True

    factors: tuple[Node, ...]
    predicates: tuple[Scalar, ...]

    def __post_init__(self) -> None:
        self._check(*self.predicates)
        ids = [f.id for f in self.fields]
        if len(ids) != len(set(ids)):
            raise ValueError(f"Join: factors share fields: {sorted(i for i in ids if ids.count(i) > 1)}")

    @property
    def fields(self) -> tuple[Field, ...]:
        return tuple(f for factor in self.factors for f in factor.fields)

    @property
    def described(self) -> str:
        return f"Join {_all(self.predicates) or 'cross'}"


@dataclass(frozen=True)
class OuterJoin(Node):
    """LEFT JOIN: the rows of ``left`` with each partner in ``right``, once with NULLs where there is none.

    RIGHT swaps the sides, FULL adds the rows of ``right`` without a partner (:mod:`fivm_dbt.sql.from_clause`). The
    fields of ``right`` have one alias, so that it stands as one item in FROM.
    """

    passes_rows = True

    left: Node
    right: Node
    predicates: tuple[Scalar, ...]

    def __post_init__(self) -> None:
        self._check(*self.predicates)

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.left.fields + self.right.fields

    @property
    def described(self) -> str:
        return f"OuterJoin {_all(self.predicates) or 'true'}"


@dataclass(frozen=True)
class SemiJoin(Node):
    """Rows of ``left`` that have a partner in ``right`` for which every predicate is true; ``anti``: that have none."""

    passes_rows = True

    left: Node
    right: Node
    predicates: tuple[Scalar, ...]
    anti: bool = False

    def __post_init__(self) -> None:
        self._check(*self.predicates)

    @property
    def described(self) -> str:
        kind = "AntiJoin" if self.anti else "SemiJoin"
        return f"{kind} {_all(self.predicates) or 'true'}"


@dataclass(frozen=True)
class Restrict(Node):
    """Rows of ``left`` whose key occurs among ``right``; keys compare null-safe, pair by pair."""

    passes_rows = True

    left: Node
    right: Node
    keys: tuple[tuple[Scalar, Scalar], ...]

    @property
    def described(self) -> str:
        return f"Restrict {' and '.join(f'{a.sql} <=> {b.sql}' for a, b in self.keys)}"


@dataclass(frozen=True)
class Lookup(Node):
    """Rows of a kept view that a set of keys can match: those in the partitions of its state that the keys lie in.

    ``keys`` pairs the columns of the state that decide the partition with columns of the key set.
    """

    scan: Scan
    key_set: str
    keys: tuple[tuple[str, str], ...]

    @property
    def alias(self) -> str:
        return self.scan.alias

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.scan.fields

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
class Window(Node):
    """A projection whose items hold window functions. Each of those partitions by ``partition`` and maybe by more, so
    that rows with another value of ``partition`` have no influence.

    Where frames reach a fixed time, ``near`` says how far; the last two of ``partition`` are then its block and day.
    """

    input: Node
    alias: str
    partition: tuple[Item, ...]
    items: tuple[Item, ...]
    near: Near | None = None

    def __post_init__(self) -> None:
        self._check(*(i.value for i in (*self.partition, *self.items)))
        self._check_names()

    @property
    def fields(self) -> tuple[Field, ...]:
        return made(self.alias, self.items)

    @property
    def described(self) -> str:
        by = ", ".join(i.value.sql for i in self.partition) or "nothing"
        return f"Window {self.alias} by {by} [{listed(self.items)}]"


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

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.input.fields + tuple(Field(self.alias, name, type_) for name, type_ in self.columns)

    @property
    def described(self) -> str:
        made = ", ".join(name for name, _ in self.columns)
        return f"Explode {self.alias} [{made} = {self.generator.sql}]{' outer' if self.outer else ''}"


@dataclass(frozen=True)
class UnionAll(Node):
    """The bag union of the branches, matched by position, named after the first."""

    is_linear = True

    branches: tuple[Node, ...]
    alias: str

    def __post_init__(self) -> None:
        widths = {len(branch.fields) for branch in self.branches}
        if len(widths) != 1:
            raise ValueError(f"UnionAll: branches of different widths {sorted(widths)}")

    @property
    def fields(self) -> tuple[Field, ...]:
        return tuple(Field(self.alias, f.name, f.type) for f in self.branches[0].fields)

    @property
    def described(self) -> str:
        return f"UnionAll {self.alias}"


@dataclass(frozen=True)
class Distinct(Node):
    """Each row of ``input`` once."""

    input: Node

    @property
    def described(self) -> str:
        return "Distinct"


ITEMS = (Scan, Lookup, Values, Map, ClockMap, Aggregate, UnionAll, Window)
"""Nodes whose fields have one alias, so that each can stand as an item of FROM."""
