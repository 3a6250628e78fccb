"""MATCH_RECOGNIZE as an operator: it is local to its PARTITION BY, like windows.

``M(R) = ⊎_k M(R[PARTITION BY = k])``, and of one partition M finds the matches of a row pattern in its ordered rows.

What is evaluated while a match grows are *registers*: of the rows that a thread has taken, the first or last value for
a variable, a count, a sum. Expressions name them, and the columns of a row, as columns of the relations below.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from fivm_dbt.catalog.types import SparkType
from fivm_dbt.ir.nodes import Field, Item, Node
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.naming import PREFIX
from fivm_dbt.patterns.automaton import Automaton

ROW = f"{PREFIX}row"
"""The columns of one row of the partition."""
TESTED = f"{PREFIX}tested"
"""The registers that conditions read, the row that is tried included."""
FINAL = f"{PREFIX}match"
"""The registers at the last row of the match."""
RUNNING = f"{PREFIX}step"
"""The registers at a row of the match."""
FOUND = f"{PREFIX}found"
"""What is known of a match as a whole: NUMBER."""
ROW_PART = f"{PREFIX}part"
"""The number of a row's time part."""
KEYS = f"{PREFIX}keys"
"""The columns of PARTITION BY."""

NUMBER = "number"
POSITION = f"{PREFIX}position"
"""The number of a row in its partition, from 1; also the register that has that of the last row."""

Kind = Literal["first", "last", "count", "sum", "min", "max", "classifier"]
Mode = Literal["past last row", "to next row", "to first", "to last"]


@dataclass(frozen=True)
class Shift:
    """A column of the row that is ``offset`` further in the partition (before, if negative): PREV and NEXT."""

    name: str
    column: str
    offset: int


@dataclass(frozen=True)
class Register:
    """``kind`` of ``value``, which is over ROW, for the rows of ``variable`` (None: for all rows of the match).

    A count without a value counts rows. ``counter`` is the register that tells whether there was a value before.
    """

    name: str
    kind: Kind
    variable: str | None
    value: Scalar | None
    type: SparkType
    counter: str | None = None


@dataclass(frozen=True)
class Ordering:
    """An item of ORDER BY over the rows' columns."""

    column: str
    desc: bool
    nulls_first: bool


@dataclass(frozen=True)
class Skip:
    """AFTER MATCH SKIP; ``target`` is the register that has the position of the row to skip to."""

    mode: Mode
    target: str | None = None
    written: str = ""


@dataclass(frozen=True)
class Recognizer:
    """How the ordered rows of a partition become matches.

    ``conditions`` are over ROW and TESTED. A variable without one takes every row. ``per_part``: the pattern is a chain
    of states that a key goes along with its row of each part, and a match is reported in every part in which it holds.
    """

    pattern: str
    automaton: Automaton
    conditions: tuple[tuple[str, Scalar], ...]
    tested: tuple[Register, ...]
    held: tuple[Register, ...]
    skip: Skip
    all_rows: bool
    per_part: bool = False


@dataclass(frozen=True)
class Match(Node):
    """The matches of a pattern: a row for each, or for each row of each.

    ``columns`` are what a row of the input is to the recognizer, ``order`` tells all rows of a partition apart that
    differ in them. The fields are PARTITION BY and the ``items``, which are over KEYS, FINAL, RUNNING and FOUND.
    ``part`` is the time part of a row, over ROW, where the recognizer is ``per_part``.
    """

    input: Node
    alias: str
    partition: tuple[Item, ...]
    columns: tuple[Item, ...]
    order: tuple[Ordering, ...]
    shifts: tuple[Shift, ...]
    recognizer: Recognizer
    items: tuple[Item, ...]
    part: Scalar | None = None

    def __post_init__(self) -> None:
        self._check(*(i.value for i in (*self.partition, *self.columns)))

    @property
    def fields(self) -> tuple[Field, ...]:
        return tuple(Field(self.alias, i.name, i.type) for i in (*self.partition, *self.items))

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    def with_inputs(self, inputs: tuple[Node, ...]) -> Match:
        return replace(self, input=inputs[0])


@dataclass(frozen=True)
class WrittenMatch:
    """Where MATCH_RECOGNIZE stands in a query's text, and its operator over a scan of what stands before it.

    ``start`` to ``end`` is all of it, ``start`` to ``relation_end`` the relation that it reads.
    """

    start: int
    relation_end: int
    end: int
    node: Match
