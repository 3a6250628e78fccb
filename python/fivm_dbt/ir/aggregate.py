"""An aggregate has group keys and calls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

from fivm_dbt.catalog import Catalog
from fivm_dbt.catalog.types import SparkType
from fivm_dbt.ir.factored import Factored
from fivm_dbt.ir.local import Local
from fivm_dbt.ir.near import Days, Near
from fivm_dbt.ir.node import Field, Item, Key, Node, listed, made, used
from fivm_dbt.ir.scalar import ColumnId, Scalar


@dataclass(frozen=True)
class AggregateCall:
    """An SQL aggregate: function name, argument (None for COUNT(*)), the argument's type, and the result's type.

    Several arguments are one, put together to a struct.
    A call that is no sum in a ring (MIN, COUNT(DISTINCT x), a sum of doubles...) stands in ``written`` as a whole.
    ``is_repeatable`` says that two evaluations over the same rows in another order agree to the last bit. ``names``
    are those of the arguments where the result shows them.
    """

    name: str
    function: str
    argument: Scalar | None
    argument_type: SparkType | None
    type: SparkType
    written: Scalar | None = None
    is_repeatable: bool = True
    names: tuple[str, ...] = ()

    @staticmethod
    def over(
        name: str, function: str, arguments: Sequence[tuple[Scalar, SparkType | None]], type_: SparkType
    ) -> AggregateCall:
        """A call with some arguments, of which all types are known if there are several."""
        if len(arguments) < 2:
            argument, argument_type = arguments[0] if arguments else (None, None)
            return AggregateCall(name, function, argument, argument_type, type_)
        together = Scalar.together([value for value, _ in arguments])
        types = ",".join(f"_{n}:{t}" for n, (_, t) in enumerate(arguments, start=1))
        return AggregateCall(name, function, together, SparkType(f"struct<{types}>"), type_)

    @staticmethod
    def as_written(
        name: str, function: str, written: Scalar, type_: SparkType, *, is_repeatable: bool = True
    ) -> AggregateCall:
        """A call that stands in ``written`` as a whole."""
        return AggregateCall(
            name=name,
            function=function,
            argument=None,
            argument_type=None,
            type=type_,
            written=written,
            is_repeatable=is_repeatable,
        )

    @property
    def arguments(self) -> tuple[tuple[Scalar, SparkType], ...]:
        """What the function is called with; nothing for COUNT(*). A type that is not known, in COUNT, is void."""
        if self.argument is None:
            return ()
        type_ = self.argument_type or SparkType("void")
        parts = self.argument.parts
        types = [type_] if len(parts) == 1 else [t for _, t in type_.struct_fields]
        return tuple(zip(parts, types, strict=True))

    @property
    def scalars(self) -> Iterator[Scalar]:
        """What it is computed of."""
        return (s for s in (self.argument, self.written) if s is not None)

    @property
    def described(self) -> str:
        """The call, for people."""
        if self.written is not None:
            return self.written.sql
        return f"{self.function}({', '.join(a.sql for a, _ in self.arguments) or '*'})"


@dataclass(frozen=True)
class Aggregate(Local):
    """GROUP BY ``keys``; without keys a global aggregate, which has one row even over nothing (``is_global``).

    ``factored`` says how its payload is added up where the input has payloads of a view tree instead of the rows that
    ``calls`` speak of. Over sliding windows and sessions ``near`` says where rows of an affected window are.
    """

    kind = "an aggregate"
    has_row_per_key = True

    keys: tuple[Item, ...]
    calls: tuple[AggregateCall, ...]
    is_global: bool = False
    factored: Factored | None = None
    near: Near | Days | None = None

    def __post_init__(self) -> None:
        added = self.factored.scalars if self.factored is not None else self._called
        self._check(*(k.value for k in self.keys), *added)
        self._check_names()

    @property
    def key(self) -> tuple[Item, ...]:
        return self.keys

    @property
    def _called(self) -> Iterable[Scalar]:
        return chain.from_iterable(c.scalars for c in self.calls)

    @property
    def used(self) -> frozenset[ColumnId]:
        return used(self._called)

    def shown_as(self, column: ColumnId) -> Scalar | None:
        return next((k.value for k in self.keys if (self.alias, k.name) == column), None)

    def only(self, needed: frozenset[ColumnId]) -> Aggregate:
        """All keys stay: they make the groups."""
        calls = tuple(c for c in self.calls if (self.alias, c.name) in needed)
        over = used(k.value for k in self.keys) | used(s for c in calls for s in c.scalars)
        return replace(self, input=self.input.only(over), calls=calls)

    def over_nothing(self, inputs: tuple[Node | None, ...]) -> None:
        if self.is_global:
            raise ValueError("a global aggregate over nothing has a row: its input cannot be pruned")

    def unique_keys(self, catalog: Catalog) -> tuple[Key, ...]:
        return (frozenset((self.alias, key.name) for key in self.keys),)

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        return made(self.alias, (*self.keys, *self.calls))

    @property
    def adds_up(self) -> bool:
        """Whether every call is a sum in a ring, so that rows come and go by addition."""
        return all(call.written is None for call in self.calls)

    @property
    def formula(self) -> str:
        keys = ", ".join(k.value.sql for k in self.keys) or "all"
        return f"γ[{keys}]({self.input.formula})"

    @property
    def described(self) -> str:
        calls = ", ".join(f"{c.name} = {c.described}" for c in self.calls)
        return f"Aggregate {self.alias} by [{listed(self.keys)}] [{calls}]"
