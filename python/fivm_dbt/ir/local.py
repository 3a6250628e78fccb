"""Some operators are local to a key K, ``Op(R) = ⊎_k Op(R[K = k])``: a change concerns its keys alone."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from fivm_dbt.ir.near import Days, Near
from fivm_dbt.ir.node import Field, Item, Node
from fivm_dbt.ir.scalar import ColumnId, Scalar

L = TypeVar("L", bound="Local")


@dataclass(frozen=True)
class Local(Node, ABC):
    """An aggregate, window functions or row patterns over ``input``; what a row has is called ``alias``."""

    is_item = True
    computes_columns = True
    kind: ClassVar[str]
    """What it is called, for people."""
    has_frames: ClassVar[bool] = False
    """Whether its items hold window functions."""
    has_row_per_key: ClassVar[bool] = False
    """Whether it has no more than one row of each key."""

    input: Node
    alias: str

    @property
    @abstractmethod
    def key(self) -> tuple[Item, ...]:
        """K: the GROUP BY of an aggregate, the PARTITION BY of window functions and of patterns."""

    @property
    @abstractmethod
    def used(self) -> frozenset[ColumnId]:
        """The columns of the input that it needs beside the key."""

    @property
    def is_global(self) -> bool:
        """Whether it has a row even over nothing, of all rows together."""
        return False

    @property
    def near(self) -> Near | Days | None:
        """Where the rows of a key lie that have an influence on one another, if not all have."""
        return None

    @property
    def is_of_own_rows(self) -> bool:
        """Whether what is affected by a change is made anew from its own rows, not from those of the input."""
        return False

    def with_key_shown(self: L) -> tuple[L, tuple[Field, ...]]:
        """The same operator with the key among its columns, and these columns."""
        return self, tuple(Field(self.alias, k.name, k.type) for k in self.key)

    @property
    def goes_by_time(self) -> bool:
        """Whether it looks at the rows of a key in the order of a time."""
        return False

    def accepts(self, meaning: Mapping[ColumnId, Scalar]) -> bool:
        """Whether columns of the input may be replaced by what they are computed of."""
        return True

    def simplified(self: L) -> L:
        """The same operator in fewer words."""
        return self
