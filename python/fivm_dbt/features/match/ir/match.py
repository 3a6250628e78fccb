"""MATCH_RECOGNIZE is an operator that is local to its PARTITION BY, like windows.

``M(R) = ⊎_k M(R[PARTITION BY = k])``, and of one partition M finds the matches of a row pattern in its ordered rows.

What is evaluated while a match grows are *registers*: of the rows that a thread has taken, the first or last value for
a variable, a count, a sum. Expressions name them, and the columns of a row, as columns of the relations below.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from fivm_dbt.catalog.types import SparkType
from fivm_dbt.features.match.ir.automaton import Automaton
from fivm_dbt.features.match.ir.regular import Regular
from fivm_dbt.ir.local import Local
from fivm_dbt.ir.node import Field, Item, named, used
from fivm_dbt.ir.scalar import ColumnId, Scalar, conjuncts
from fivm_dbt.naming import PREFIX

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
SYMBOL = f"{PREFIX}symbol"
"""The letter of a row: which conditions it meets."""
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
    ``regular`` finds the matches of whole partitions; a text says why the automaton does that.
    """

    pattern: str
    automaton: Automaton
    conditions: tuple[tuple[str, Scalar], ...]
    tested: tuple[Register, ...]
    held: tuple[Register, ...]
    skip: Skip
    all_rows: bool
    per_part: bool = False
    regular: Regular | str = ""

    @property
    def way(self) -> str:
        """How the matches of a whole partition are found, in words."""
        if isinstance(self.regular, Regular):
            return self.regular.described
        return f"by the automaton: {self.regular}" if self.regular else "by the automaton"

    @property
    def is_sliced(self) -> bool:
        """Whether the registers of a match follow from where the rows of each variable begin and end in it."""
        if not isinstance(self.regular, Regular) or self.all_rows:
            return False
        known = {None, *(name for name, _ in self.regular.captured)}
        return all(r.kind != "classifier" and r.variable in known for r in self.held)

    @property
    def read_by_slices(self) -> frozenset[str] | None:
        """The columns of a row that registers read; None where an automaton may read rows too."""
        if not isinstance(self.regular, Regular) or self.regular.longest is not None or not self.is_sliced:
            return None
        return frozenset(name for r in self.held if r.value is not None for _, name in r.value.columns)


@dataclass(frozen=True)
class Match(Local):
    """The matches of a pattern: a row for each, or for each row of each.

    ``columns`` are what a row of the input is to the recognizer, ``order`` tells all rows of a partition apart that
    differ in them. The fields are PARTITION BY and the ``items``, which are over KEYS, FINAL, RUNNING and FOUND.
    ``part`` is the time part of a row, over ROW, where the recognizer is ``per_part``. ``separates``, over rows of the
    input, is 1 for one that no match has, else 0; None where that is not known. Matches lie between such rows.
    """

    kind = "matches"

    partition: tuple[Item, ...]
    columns: tuple[Item, ...]
    order: tuple[Ordering, ...]
    shifts: tuple[Shift, ...]
    recognizer: Recognizer
    items: tuple[Item, ...]
    part: Scalar | None = None
    separates: Scalar | None = None

    def __post_init__(self) -> None:
        self._check(*(i.value for i in (*self.partition, *self.columns)))

    @property
    def key(self) -> tuple[Item, ...]:
        return self.partition

    @property
    def used(self) -> frozenset[ColumnId]:
        return used(i.value for i in self.columns)

    @cached_property
    def registers_shown(self) -> frozenset[str]:
        """The registers of a whole match that the items read."""
        return frozenset(name for i in self.items for table, name in i.value.columns if table == FINAL)

    @cached_property
    def are_whole_ranges(self) -> bool:
        """Whether all rows between two separators are one match, if they are enough, and registers are aggregates.

        Sums of doubles are not: they are added up in the order of rows.
        """
        rec, read = self.recognizer, {table for i in self.items for table, _ in i.value.columns}
        if self.separates is None or self.shifts or rec.all_rows or not isinstance(rec.regular, Regular):
            return False
        if not rec.automaton.is_loop or rec.skip.mode != "past last row" or not read <= {FINAL, KEYS}:
            return False
        held = [r for r in rec.held if r.name in self.registers_shown]
        is_exact = all(r.kind != "classifier" and not (r.kind == "sum" and r.type.is_floating) for r in held)
        condition = dict(rec.conditions)[rec.automaton.symbols[0]]
        own = conditions_of_row(condition, frozenset(i.name for i in self.columns))
        return is_exact and len(own) == len(conjuncts(condition.ast()))

    @property
    def goes_by_time(self) -> bool:
        types = {i.name: i.type for i in self.columns}
        return any(types[o.column].is_temporal for o in self.order if o.column in types)

    def only(self, needed: frozenset[ColumnId]) -> Match:
        """All its columns order the rows, so that none of them can be spared."""
        items = tuple(i for i in self.items if (self.alias, i.name) in needed)
        over = used(i.value for i in self.partition) | self.used
        return replace(self, input=self.input.only(over), items=items)

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        return tuple(Field(self.alias, i.name, i.type) for i in (*self.partition, *self.items))

    @property
    def described(self) -> str:
        by = ", ".join(i.value.sql for i in self.partition) or "nothing"
        how = recognized(self.recognizer, self.order, self.items)
        way = self.recognizer.way
        if self.are_whole_ranges:
            way = "by groups: all rows between two that no match has"
        elif self.separates is not None:
            way = f"{way}, between rows that no match has"
        return f"Match {self.alias} by {by} {how}, {way}"


def conditions_of_row(condition: Scalar, columns: frozenset[str]) -> tuple[Scalar, ...]:
    """What of a condition, joined by AND, asks for the row's own ``columns`` and nothing else."""
    parts = (Scalar(part) for part in conjuncts(condition.ast()))
    return tuple(p for p in parts if p.columns and all(t == ROW and name in columns for t, name in p.columns))


def recognized(rec: Recognizer, order: Sequence[Ordering], items: Sequence[Item]) -> str:
    """What is looked for, in which order of rows, and what is shown of it, for people."""
    by = ", ".join(f"{o.column}{' desc' if o.desc else ''}" for o in order)
    where = ", ".join(f"{name}: {_registers(condition, rec.tested)}" for name, condition in rec.conditions)
    columns = ", ".join(named(i.name, _registers(i.value, rec.held)) for i in items)
    rows = "all rows" if rec.all_rows else "one row per part" if rec.per_part else "one row"
    skip = f"skip {rec.skip.mode}{f' {rec.skip.written}' if rec.skip.written else ''}"
    pattern = f"({rec.pattern}) where {where}" if where else f"({rec.pattern})"
    return f"order {by}: {pattern}, {rows}, {skip} [{columns}]"


def _registers(value: Scalar, registers: tuple[Register, ...]) -> str:
    """An expression with what its registers mean."""
    meanings = {r.name: _register(r) for r in registers}

    def meaning(column: ColumnId) -> Scalar | None:
        table, name = column
        if table in (TESTED, FINAL, RUNNING) and name in meanings:
            return Scalar.column("", meanings[name])
        return Scalar.column("", name)

    return value.substitute(meaning).sql.replace("`", "")


def _register(register: Register) -> str:
    of = f"{register.variable}." if register.variable is not None else ""
    if register.kind == "classifier":
        return "classifier()"
    if register.value is None:
        return f"count({of}*)"
    value = register.value.substitute(lambda column: Scalar.column("", f"{of}{column[1]}")).sql
    return f"{register.kind}({value})".replace("`", "")
