"""Relational nodes: immutable, hashable, with derived fields and checks at construction.

A field is ``(alias, name)`` with a type, as in SQL: ``f.dep_delay``. Aliases are unique within a query, so that any
inner part can be merged into the SELECT around it. Relations are bags (section 3 of docs/architecture.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from enum import Enum
from typing import Any, TypeVar

from fivm_dbt.catalog.types import SparkType
from fivm_dbt.ir.factored import Factored
from fivm_dbt.ir.near import Days, Near
from fivm_dbt.ir.scalar import ColumnId, Scalar
from fivm_dbt.naming import CLOCK


class Side(str, Enum):
    """Which state of an input a scan reads."""

    CURRENT = "current"  # whatever is there; only before a plan is bound to versions
    OLD = "old"  # the version of the last finished refresh
    COUNTED = "counted"  # OLD as the new rows less the change, with a multiplicity column
    NEW = "new"  # the version of this refresh
    DELTA = "delta"  # the staged net change, with its multiplicity column


@dataclass(frozen=True)
class Field:
    """An output column of a node."""

    table: str
    name: str
    type: SparkType

    @property
    def id(self) -> ColumnId:
        return (self.table, self.name)

    @property
    def scalar(self) -> Scalar:
        return Scalar.column(self.table, self.name)


@dataclass(frozen=True)
class Item:
    """A computed column: its name, the expression over the input's fields, and its type."""

    name: str
    value: Scalar
    type: SparkType


N = TypeVar("N", bound="Node")


class Node:
    """A relational operator. Subclasses are frozen dataclasses.

    What is below it are the values of its attributes that are declared as a ``Node`` or as a tuple of these, in this
    order. It has the columns of the first of them, where it does not say which it has.
    """

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.inputs[0].fields

    @classmethod
    def _below(cls) -> tuple[tuple[str, bool], ...]:
        """The attributes that are below the operator, and whether they are tuples."""
        found = _BELOW_IN.get(cls)
        if found is None:
            declared = ((f.name, _BELOW.get(str(f.type))) for f in fields(cls))  # type: ignore[arg-type]
            found = _BELOW_IN[cls] = tuple((n, is_tuple) for n, is_tuple in declared if is_tuple is not None)
        return found

    @property
    def inputs(self) -> tuple[Node, ...]:
        found: list[Node] = []
        for name, is_tuple in self._below():
            value = getattr(self, name)
            found.extend(value) if is_tuple else found.append(value)
        return tuple(found)

    def with_inputs(self: N, inputs: tuple[Node, ...]) -> N:
        """The same operator over other inputs."""
        values: dict[str, Any] = {}
        for name, is_tuple in self._below():
            values[name], inputs = (inputs, ()) if is_tuple else (inputs[0], inputs[1:])
        return replace(self, **values) if values else self  # type: ignore[type-var]

    @property
    def described(self) -> str:
        """The operator in a line, for people."""
        raise NotImplementedError

    @property
    def ids(self) -> frozenset[ColumnId]:
        """What its fields are referred to by."""
        return frozenset(f.id for f in self.fields)

    def walk(self) -> Iterator[Node]:
        """The operator and everything below it, from above and from the left."""
        yield self
        for child in self.inputs:
            yield from child.walk()

    def _check(self, *scalars: Scalar) -> None:
        """Every column used is a field of an input or of the clock: a mistake here is ours, not the user's."""
        known = {f.id for node in self.inputs for f in node.fields}
        for scalar in scalars:
            missing = {c for c in scalar.columns - known if not c[0].startswith(CLOCK)}
            if missing:
                raise ValueError(
                    f"{type(self).__name__}: {scalar.sql} uses {sorted(missing)}, not in {sorted(known)}"
                )

    def _check_names(self) -> None:
        """No two columns of the result are called alike: whoever named one would get the other."""
        names = [field.name.lower() for field in self.fields]
        if len(names) != len(set(names)):
            double = sorted({name for name in names if names.count(name) > 1})
            raise ValueError(f"{type(self).__name__}: several columns are called {double}")


_BELOW = {"Node": False, "tuple[Node, ...]": True}
"""How an attribute that is below an operator is declared, and whether it has several."""

_BELOW_IN: dict[type[Node], tuple[tuple[str, bool], ...]] = {}


def listed(items: Iterable[Item]) -> str:
    """Computed columns, for people."""
    return ", ".join(named(item.name, item.value.sql) for item in items)


def named(name: str, sql: str) -> str:
    """A computed column for people: its name, and its expression where that is no column of this name."""
    return name if sql.split(".")[-1] == name else f"{name} = {sql}"


def _all(predicates: Iterable[Scalar]) -> str:
    return " and ".join(p.sql for p in predicates)


def _made(alias: str, items: Iterable[Item | AggregateCall]) -> tuple[Field, ...]:
    return tuple(Field(alias, item.name, item.type) for item in items)


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

    input: Node
    alias: str
    items: tuple[Item, ...]

    def __post_init__(self) -> None:
        self._check(*(item.value for item in self.items))
        self._check_names()

    @property
    def fields(self) -> tuple[Field, ...]:
        return _made(self.alias, self.items)

    @property
    def described(self) -> str:
        return f"Map {self.alias} [{listed(self.items)}]"


@dataclass(frozen=True)
class ClockFilter(Node):
    """Rows of ``input`` for which every predicate is true; each reads the clock, so that rows come and go with time.

    On one side of a refresh it is a Filter: there the time is known (:mod:`fivm_dbt.ir.clock`).
    """

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

    input: Node
    alias: str
    items: tuple[Item, ...]

    def __post_init__(self) -> None:
        self._check(*(item.value for item in self.items))

    @property
    def fields(self) -> tuple[Field, ...]:
        return _made(self.alias, self.items)

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
        return _made(self.alias, self.items)

    @property
    def described(self) -> str:
        by = ", ".join(i.value.sql for i in self.partition) or "nothing"
        return f"Window {self.alias} by {by} [{listed(self.items)}]"


@dataclass(frozen=True)
class Explode(Node):
    """``input`` with a row for each that the generator makes of it: LATERAL VIEW. ``outer`` keeps rows without any."""

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
class AggregateCall:
    """An SQL aggregate: function name, argument (None for COUNT(*)), the argument's type, and the result's type.

    A call that is no sum in a ring (MIN, COUNT(DISTINCT x), a sum of doubles...) stands in ``written`` as a whole.
    ``is_repeatable`` says that two evaluations over the same rows in another order agree to the last bit.
    """

    name: str
    function: str
    argument: Scalar | None
    argument_type: SparkType | None
    type: SparkType
    written: Scalar | None = None
    is_repeatable: bool = True

    @property
    def described(self) -> str:
        """The call, for people."""
        if self.written is not None:
            return self.written.sql
        return f"{self.function}({self.argument.sql if self.argument else '*'})"


@dataclass(frozen=True)
class Aggregate(Node):
    """GROUP BY ``keys``; without keys a global aggregate, which has one row even over nothing (``is_global``).

    ``factored`` says how its payload is added up where the input has payloads of a view tree instead of the rows that
    ``calls`` speak of. Over sliding windows and sessions ``near`` says where rows of an affected window are.
    """

    input: Node
    alias: str
    keys: tuple[Item, ...]
    calls: tuple[AggregateCall, ...]
    is_global: bool = False
    factored: Factored | None = None
    near: Near | Days | None = None

    def __post_init__(self) -> None:
        used: Iterable[Scalar | None]
        if self.factored is not None:
            used = self.factored.scalars
        else:
            used = (s for c in self.calls for s in (c.argument, c.written))
        self._check(*(k.value for k in self.keys), *(s for s in used if s is not None))
        self._check_names()

    @property
    def fields(self) -> tuple[Field, ...]:
        return _made(self.alias, (*self.keys, *self.calls))

    @property
    def adds_up(self) -> bool:
        """Whether every call is a sum in a ring, so that rows come and go by addition."""
        return all(call.written is None for call in self.calls)

    @property
    def described(self) -> str:
        calls = ", ".join(f"{c.name} = {c.described}" for c in self.calls)
        return f"Aggregate {self.alias} by [{listed(self.keys)}] [{calls}]"


@dataclass(frozen=True)
class Distinct(Node):
    """Each row of ``input`` once."""

    input: Node

    @property
    def described(self) -> str:
        return "Distinct"


ITEMS = (Scan, Lookup, Values, Map, ClockMap, Aggregate, UnionAll, Window)
"""Nodes whose fields have one alias, so that each can stand as an item of FROM."""
