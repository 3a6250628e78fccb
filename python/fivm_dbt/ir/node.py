"""All relational operators have fields, what is below them, and a line for people."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import Enum
from functools import cached_property
from operator import is_
from typing import Any, ClassVar, Protocol, TypeVar

from fivm_dbt.catalog import Catalog
from fivm_dbt.catalog.types import SparkType
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


Key = frozenset[ColumnId]
"""Columns in which no two rows of a relation are equal."""

N = TypeVar("N", bound="Node")


_BELOW = {"Node": False, "tuple[Node, ...]": True}
"""How an attribute that is below an operator is declared, and whether it has several."""


_BELOW_IN: dict[type[Node], tuple[tuple[str, bool], ...]] = {}


class Node:
    """A relational operator. Subclasses are frozen dataclasses.

    What is below it are the values of its attributes that are declared as a ``Node`` or as a tuple of these, in this
    order. It has the columns of the first of them, where it does not say which it has.
    """

    passes_rows: ClassVar[bool] = False
    """Whether each row of the first input stays never, once or several times, whatever other rows there are."""
    is_row_level: ClassVar[bool] = False
    """Whether each row is made of one row of the only input."""
    is_linear: ClassVar[bool] = False
    """Whether it gives the rows of two bags what it gives each of them: ``Q(R ⊎ S) = Q(R) ⊎ Q(S)``, for any input."""
    makes_rows: ClassVar[bool] = False
    """Whether rows are generated in the FROM clause, behind all joins."""
    is_item: ClassVar[bool] = False
    """Whether all its columns have its own alias, so that it can stand as an item of FROM."""
    computes_columns: ClassVar[bool] = False
    """Whether all its columns are computed of those of its only input, so that a projection below it dissolves."""
    drops_rows: ClassVar[bool] = False
    """Whether it has rows of its first input, none of them more often than there."""
    symbol: ClassVar[str] = ""
    """What stands between its inputs in a formula."""

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        return self.inputs[0].fields

    @property
    def keeps_rows(self) -> bool:
        """Whether it has each row of its only input, once or more often."""
        return self.is_row_level and self.computes_columns

    @classmethod
    def _below(cls) -> tuple[tuple[str, bool], ...]:
        """The attributes that are below the operator, and whether they are tuples."""
        found = _BELOW_IN.get(cls)
        if found is None:
            declared = ((f.name, _BELOW.get(str(f.type))) for f in fields(cls))  # type: ignore[arg-type]
            found = _BELOW_IN[cls] = tuple((n, is_tuple) for n, is_tuple in declared if is_tuple is not None)
        return found

    @cached_property
    def inputs(self) -> tuple[Node, ...]:
        """What is below it, from the left."""
        found: list[Node] = []
        for name, is_tuple in self._below():
            value = getattr(self, name)
            found.extend(value) if is_tuple else found.append(value)
        return tuple(found)

    def with_inputs(self: N, inputs: tuple[Node, ...]) -> N:
        """The same operator over other inputs; itself, with all that is known of it, over the same ones."""
        if len(inputs) == len(self.inputs) and all(map(is_, inputs, self.inputs)):
            return self
        values: dict[str, Any] = {}
        for name, is_tuple in self._below():
            values[name], inputs = (inputs, ()) if is_tuple else (inputs[0], inputs[1:])
        return replace(self, **values) if values else self  # type: ignore[type-var]

    @property
    def described(self) -> str:
        """The operator in a line, for people."""
        raise NotImplementedError

    @property
    def formula(self) -> str:
        """The operator over those below it, as algebra. What leaves all columns and rows as they are is left out."""
        below = [child.formula for child in self.inputs]
        return below[0] if len(below) == 1 else f"({f' {self.symbol} '.join(below)})"

    def only(self, needed: frozenset[ColumnId]) -> Node:
        """The same rows with only the columns in ``needed``, and with nothing unused below."""
        if not self.passes_rows:
            raise TypeError(f"{type(self).__name__} does not say which columns it needs")
        return self._with_used(needed)

    def _with_used(self, needed: frozenset[ColumnId]) -> Node:
        """The operator over what ``needed`` and its own expressions name of its inputs."""
        wanted = needed | used(scalars_of(self))
        return self.with_inputs(tuple(child.only(wanted & child.ids) for child in self.inputs))

    def left_by(self, changed: Collection[str]) -> Node | None:
        """What is left of it in a delta where only the relations in ``changed`` changed; None if it has no rows.

        CLOCK is among them where the time is another.
        """
        inputs = tuple(child.left_by(changed) for child in self.inputs)
        kept = tuple(child for child in inputs if child is not None)
        return self.with_inputs(kept) if len(kept) == len(inputs) else self.over_nothing(inputs)

    def over_nothing(self, inputs: tuple[Node | None, ...]) -> Node | None:
        """What it is over its inputs where those that are None have no rows; None if it has none then."""
        if len(inputs) != 1:
            raise TypeError(f"{type(self).__name__} does not say what it is without one of its inputs")
        return None

    def unique_keys(self, catalog: Catalog) -> tuple[Key, ...]:
        """Sets of columns in which no two of its rows are equal; none where nothing is known.

        ``catalog`` has what is declared of relations.
        """
        return self.inputs[0].unique_keys(catalog) if self.drops_rows else ()

    def shown_as(self, column: ColumnId) -> Scalar | None:
        """What one of its columns is of the row of its first input that it is made of, or of each of several.

        None where it is not computed of one row, nor the same for all that a row is made of.
        """
        is_passed = self.passes_rows and column in self.inputs[0].ids
        return Scalar.column(*column) if is_passed else None

    @cached_property
    def ids(self) -> frozenset[ColumnId]:
        """What its fields are referred to by."""
        return frozenset(f.id for f in self.fields)

    def joined(self) -> tuple[tuple[Node, ...], tuple[Scalar, ...]]:
        """What is joined with nothing in between, and the predicates: of anything but a join it is this alone."""
        return (self,), ()

    def walk(self) -> Iterator[Node]:
        """The operator and everything below it, from above and from the left."""
        yield self
        for child in self.inputs:
            yield from child.walk()

    def _check(self, *scalars: Scalar) -> None:
        """Every column used is a field of an input or of the clock: a mistake here is ours, not the user's."""
        below = self.inputs
        known = below[0].ids if len(below) == 1 else frozenset().union(*(node.ids for node in below))
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


class Named(Protocol):
    """A computed column."""

    @property
    def name(self) -> str: ...

    @property
    def type(self) -> SparkType: ...


def conjunction(predicates: Iterable[Scalar]) -> str:
    """Conditions, for people."""
    return " and ".join(p.sql for p in predicates)


def named(name: str, sql: str) -> str:
    """A computed column for people: its name, and its expression where that is no column of this name."""
    return name if sql.split(".")[-1] == name else f"{name} = {sql}"


def listed(items: Iterable[Item]) -> str:
    """Computed columns, for people."""
    return ", ".join(named(item.name, item.value.sql) for item in items)


def made(alias: str, items: Iterable[Named]) -> tuple[Field, ...]:
    """The fields of computed columns."""
    return tuple(Field(alias, item.name, item.type) for item in items)


def scalars_of(value: Any) -> Iterator[Scalar]:
    """The expressions that stand in an operator itself, not in its inputs."""
    if isinstance(value, Scalar):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            if not isinstance(item, Node):
                yield from scalars_of(item)
    elif is_dataclass(value) and not isinstance(value, type):
        for f in fields(value):
            part = getattr(value, f.name)
            if not isinstance(part, Node):
                yield from scalars_of(part)


def used(scalars: Iterable[Scalar]) -> frozenset[ColumnId]:
    """The columns that expressions name."""
    return frozenset(c for scalar in scalars for c in scalar.columns)
