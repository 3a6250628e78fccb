"""A window operator is a projection with window functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

from fivm_dbt.catalog import Catalog
from fivm_dbt.ir.frames import numbered_by, ordered_by
from fivm_dbt.ir.keys import keys_shown
from fivm_dbt.ir.local import Local
from fivm_dbt.ir.near import Near
from fivm_dbt.ir.node import Field, Item, Key, listed, made, used
from fivm_dbt.ir.scalar import ColumnId, Scalar
from fivm_dbt.naming import unique_name

W = TypeVar("W", bound="Window")


@dataclass(frozen=True)
class Window(Local):
    """A projection whose items hold window functions. Each of those partitions by ``partition`` and maybe by more, so
    that rows with another value of ``partition`` have no influence.

    Where frames reach a fixed time, ``near`` says how far; the last two of ``partition`` are then its block and day.
    """

    kind = "window functions"
    has_frames = True

    partition: tuple[Item, ...]
    items: tuple[Item, ...]
    near: Near | None = None

    def __post_init__(self) -> None:
        self._check(*(i.value for i in (*self.partition, *self.items)))
        self._check_names()

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        return made(self.alias, self.items)

    @property
    def key(self) -> tuple[Item, ...]:
        return self.partition

    def shown_as(self, column: ColumnId) -> Scalar | None:
        """Told of columns by which rows are partitioned alone: of others a window function may be part."""
        value = next((i.value for i in self.items if (self.alias, i.name) == column), None)
        return value if any(value == item.value for item in self.partition) else None

    @property
    def used(self) -> frozenset[ColumnId]:
        return used(i.value for i in self.items)

    @property
    def goes_by_time(self) -> bool:
        types = {f.scalar: f.type for f in self.input.fields}
        found = (types.get(by) for by in ordered_by(i.value for i in self.items))
        return any(type_ is not None and type_.is_temporal for type_ in found)

    def only(self, needed: frozenset[ColumnId]) -> Window:
        narrow = replace(self, items=tuple(i for i in self.items if (self.alias, i.name) in needed))
        return replace(narrow, input=self.input.only(used(i.value for i in self.partition) | narrow.used))

    def accepts(self, meaning: Mapping[ColumnId, Scalar]) -> bool:
        """DuckDB takes no expression that may raise in the ORDER BY of a window."""
        columns = used(i.value for i in (*self.partition, *self.items))
        return not any(meaning[c].may_raise for c in columns & meaning.keys())

    def simplified(self: W) -> W:
        """A constant in PARTITION BY tells no rows apart. Block and day stay."""
        of, rest = (
            (self.partition[:-2], self.partition[-2:]) if self.near is not None else (self.partition, ())
        )
        return replace(self, partition=(*(item for item in of if item.value.columns), *rest))

    def with_key_shown(self: W) -> tuple[W, tuple[Field, ...]]:
        items, found = list(self.items), []
        for key in self.partition:
            item = next((i for i in items if i.value == key.value), None)
            if item is None:
                item = Item(unique_name(key.name, {i.name.lower() for i in items}), key.value, key.type)
                items.append(item)
            found.append(Field(self.alias, item.name, item.type))
        return replace(self, items=tuple(items)), tuple(found)

    def unique_keys(self, catalog: Catalog) -> tuple[Key, ...]:
        """ROW_NUMBER() is one with what it partitions by, where that is shown."""
        shown = {item.value: (self.alias, item.name) for item in self.items}
        numbered = ((i, by) for i in self.items if (by := numbered_by(i.value)) is not None)
        of = (
            frozenset({(self.alias, i.name), *(shown[p] for p in by)})
            for i, by in numbered
            if by <= shown.keys()
        )
        return (*keys_shown(self.input, self.alias, self.items, catalog), *of)

    @property
    def described(self) -> str:
        by = ", ".join(i.value.sql for i in self.partition) or "nothing"
        return f"Window {self.alias} by {by} [{listed(self.items)}]"
