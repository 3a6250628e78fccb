"""A pattern runs over the time parts of its keys: a part ends with a fold's state, and decided matches.

``C[k, p] = fold(C[k, p′], R[k, p])`` with p′ the last part before p in which k has rows. A *mark* is that state, with
the matches that were decided in the part; the last mark of a key also has the matches that are there if no row comes
any more. All marks of a key follow from one of them and from the rows behind it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import BIGINT
from fivm_dbt.features.match.ir.match import FOUND, NUMBER, Ordering, Recognizer, Shift, recognized
from fivm_dbt.features.match.ir.types import array_type, plain, state_type, struct_type
from fivm_dbt.ir.node import Field, Item, Node
from fivm_dbt.ir.scalar import Scalar

MARK = "mark"
"""The field of :class:`Runs` beside the keys."""
BASE, HEADS = "base", "heads"
"""The fields of what runs begin with, beside the keys."""

SLOT, PART, OWN, AT, STATE = "slot", "time_part", "own_slot", "last_at", "state"
DECIDED, OPEN = "decided", "open"


@dataclass(frozen=True)
class Runs(Node):
    """The marks of all parts of each key from where it begins, as ``struct(slot, part, …)``.

    ``inputs`` are the rows, and what each key begins with, if not with nothing: the mark ``base`` before its rows, or
    of the part of its first ones, and the ``heads`` of its periods. Then a key without rows has its base alone.
    ``part`` and ``own`` are the part of a row and the slot of its period, over the rows, as are ``keys``, ``columns``,
    and ``at``, by which it is ordered first. ``latest`` is the slot of a key's last mark, over KEYS. So many slots
    before that of a key's newest row are open (``open_slots``): it is promised that nothing comes to earlier ones.
    """

    is_item = True

    inputs_: tuple[Node, ...]
    alias: str
    keys: tuple[Item, ...]
    part: Scalar
    own: Scalar
    at: Item
    latest: Scalar
    columns: tuple[Item, ...]
    order: tuple[Ordering, ...]
    shifts: tuple[Shift, ...]
    recognizer: Recognizer
    items: tuple[Item, ...]
    open_slots: int | None = None

    def __post_init__(self) -> None:
        values = (i.value for i in (*self.keys, self.at, *self.columns))
        self._check(*values, self.part, self.own)

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        keys = tuple(Field(self.alias, k.name, k.type) for k in self.keys)
        return (*keys, Field(self.alias, MARK, self.mark_type))

    @property
    def is_numbered(self) -> bool:
        """Whether a match has its number in the partition, so that one more makes all behind it others."""
        return any((FOUND, NUMBER) in i.value.columns for i in self.items)

    @property
    def behind(self) -> int:
        """How many rows back PREV asks."""
        return max(0, *(-s.offset for s in self.shifts), 0)

    @property
    def ahead(self) -> int:
        """How many rows further NEXT asks: so many rows wait for those behind them."""
        return max(0, *(s.offset for s in self.shifts), 0)

    @cached_property
    def tail(self) -> tuple[Item, ...]:
        """The columns that are kept of the last rows: what PREV asks for, and of rows that wait all."""
        asked = {s.column for s in self.shifts}
        return tuple(i for i in self.columns if self.ahead or i.name in asked)

    @cached_property
    def match_type(self) -> SparkType:
        """The measures of a match."""
        fields = [(f"item_{n}", plain(i.type)) for n, i in enumerate(self.items, start=1)]
        return struct_type(fields or [("item_0", BIGINT)])

    @cached_property
    def state_type(self) -> SparkType:
        return state_type(self.recognizer, self.tail)

    @cached_property
    def base_type(self) -> SparkType:
        """What a mark has of its part."""
        return struct_type(self.base_fields)

    @cached_property
    def base_fields(self) -> tuple[tuple[str, SparkType], ...]:
        matches = array_type(self.match_type)
        return (
            (PART, BIGINT),
            (OWN, BIGINT),
            (AT, self.at.type),
            (STATE, self.state_type),
            (DECIDED, matches),
        )

    @cached_property
    def heads_type(self) -> SparkType:
        """The first part in each period in which the key has rows, with the slot of the period."""
        return array_type(struct_type([(PART, BIGINT), (OWN, BIGINT)]))

    @cached_property
    def mark_fields(self) -> tuple[tuple[str, SparkType], ...]:
        more = ((OPEN, array_type(self.match_type)), (HEADS, self.heads_type))
        return ((SLOT, BIGINT), *self.base_fields, *more)

    @cached_property
    def mark_type(self) -> SparkType:
        return struct_type(self.mark_fields)

    def over_nothing(self, inputs: tuple[Node | None, ...]) -> None:
        return None

    @property
    def formula(self) -> str:
        return f"runs({' from '.join(child.formula for child in self.inputs)})"

    @property
    def described(self) -> str:
        by = f"{', '.join(k.value.sql for k in self.keys)}, {self.part.sql}"
        how = recognized(self.recognizer, self.order, self.items)
        way = "by the automaton, whose states are kept"
        return f"Runs {self.alias} by {by} {how}, {way}, last mark in {self.latest.sql}"
