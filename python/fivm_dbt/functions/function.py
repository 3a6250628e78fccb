"""A function is one row of the table: what is known of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from sqlglot import exp

from fivm_dbt.catalog import SparkType


class Kind(Enum):
    """Where a function may be called, and of how many rows it speaks."""

    SCALAR = "scalar"
    AGGREGATE = "aggregate"
    WINDOW = "window"
    GENERATOR = "generator"
    TIME_WINDOW = "time window"
    TABLE = "table"


class Other(Enum):
    """Why two evaluations over the same rows may differ: by chance, by the clock, by who asks, where and of what."""

    RANDOM = "random"
    CLOCK = "clock"
    SESSION = "session"


class Order(Enum):
    """What the order of the rows decides in a result."""

    FREE = "nothing"
    ANY_ROW = "which row it is of: any will do"
    FIRST = "which row it is of: the first of a frame"
    LAST = "which row it is of: the last of a frame"
    NTH = "which row it is of: one inside a frame"
    TIES = "which of several equally good values it is"
    LIST = "in which order its items stand"
    TEXT = "in which order its texts stand"
    ROW = "the place of a row itself"
    PEERS = "the place of a row, the same for equal ones"


@dataclass(frozen=True)
class Arguments:
    """The arguments of a call, and how their types are found."""

    call: exp.Expr
    nodes: tuple[exp.Expr, ...]
    type_of: Callable[[exp.Expr], SparkType | None]

    def type(self, place: int) -> SparkType | None:
        """The type of one argument; None where it is not there or its type is not known."""
        return self.type_of(self.nodes[place]) if place < len(self.nodes) else None

    @property
    def types(self) -> list[SparkType | None]:
        return [self.type_of(node) for node in self.nodes]


Rule = SparkType | Callable[[Arguments], SparkType | None] | None
"""The type of a result: always the same, found from the arguments, or not written down (Spark is asked for it)."""


@dataclass(frozen=True)
class Function:
    """A function of Spark. ``other`` says why its value is another each time, ``refused`` why it is not maintained.

    ``parameters`` are the names under which arguments may be given (``f(name => x)``), where Spark has any, and
    ``defaults`` what the last of these are where they are not given, as Spark SQL.
    """

    name: str
    type: Rule = None
    aliases: tuple[str, ...] = ()
    kind: Kind = Kind.SCALAR
    order: Order = Order.FREE
    other: Other | None = None
    refused: str = ""
    takes_nulls: bool = False
    """Whether IGNORE NULLS and RESPECT NULLS may stand behind it."""
    parameters: tuple[str, ...] = ()
    defaults: tuple[str, ...] = ()
    duckdb: str = ""
    """DuckDB's name where that is all the difference."""

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name, *self.aliases)

    def type_over(self, arguments: Arguments) -> SparkType | None:
        """The type of a call, None where it is not written down."""
        return self.type(arguments) if callable(self.type) else self.type


class Bits(Enum):
    """Whether the same rows in another order give the same bits."""

    SAME = "always"
    OF_EXACT = "where exact numbers are added"
    OTHER = "no: doubles are added, or the answer is approximate"


@dataclass(frozen=True)
class Aggregate(Function):
    """An aggregate function.

    ``nothing`` is its value over no rows, as Spark SQL. ``of_itself`` says that an aggregate of rows is the same
    aggregate of those of any parts of them, and ``is_idempotent`` that it is the same over equal rows as over one of
    them. Of those that have a ring (``rings/``) deltas are added; all others are recomputed for affected keys.
    """

    kind: Kind = Kind.AGGREGATE
    nothing: str = "NULL"
    bits: Bits = Bits.SAME
    within_group: bool = False
    needs_argument: bool = True
    of_itself: bool = False
    is_idempotent: bool = True
