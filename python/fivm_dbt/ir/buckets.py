"""Buckets on several levels turn an inequality of ordered values into equalities of few buckets."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from fivm_dbt.catalog.types import BIGINT, INT
from fivm_dbt.ir.node import Field, Item, Node, listed
from fivm_dbt.ir.scalar import Scalar

BITS = 8
"""A bucket has up to ``2 ** BITS`` buckets of the next finer level in it: a level is a byte of the value."""

LEVEL, PARENT, BUCKET = "level", "parent", "bucket"


@dataclass(frozen=True)
class Buckets(Node):
    """The ``items`` of each row of ``input``, once per level, with the bucket there and the one that it lies in.

    ``bucket = ⌊code / 2^(BITS × level)⌋`` and ``parent = ⌊code / 2^(BITS × (level + 1))⌋``; on the last level every
    bucket has the parent 0. ``code`` is a bigint in the order of what is compared.
    """

    is_linear = True
    is_item = True

    input: Node
    alias: str
    items: tuple[Item, ...]
    code: Scalar
    levels: int

    def __post_init__(self) -> None:
        self._check(self.code, *(i.value for i in self.items))

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        kept = tuple(Field(self.alias, i.name, i.type) for i in self.items)
        names = ((LEVEL, INT), (PARENT, BIGINT), (BUCKET, BIGINT))
        return kept + tuple(Field(self.alias, name, type_) for name, type_ in names)

    @property
    def described(self) -> str:
        return f"Buckets {self.alias} [{listed(self.items)}] of {self.code.sql} on {self.levels} levels"
