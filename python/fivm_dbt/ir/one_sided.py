"""One-sided joins keep or drop rows of their left side by the partners that these have on the right.

So do a restriction to keys, and one to whether anything has changed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from fivm_dbt.catalog import Catalog
from fivm_dbt.ir.keys import keys_together
from fivm_dbt.ir.node import Field, Key, Node, Side, conjunction
from fivm_dbt.ir.reads import Scan
from fivm_dbt.ir.scalar import Scalar


@dataclass(frozen=True)
class OneSided(Node, ABC):
    """Looks for the partners in ``right`` of each row of ``left``, for which every predicate is true."""

    passes_rows = True
    shows_right: ClassVar[bool] = False
    """Whether it has the columns of ``right`` too."""

    left: Node
    right: Node
    predicates: tuple[Scalar, ...]

    @property
    @abstractmethod
    def keeps_unmatched(self) -> bool:
        """Whether rows of ``left`` without a partner stay."""

    @property
    @abstractmethod
    def join_type(self) -> str:
        """What SQL calls it."""

    def __post_init__(self) -> None:
        self._check(*self.predicates)


@dataclass(frozen=True)
class OuterJoin(OneSided):
    """LEFT JOIN: the rows of ``left`` with each partner in ``right``, once with NULLs where there is none.

    RIGHT swaps the sides, FULL adds the rows of ``right`` without a partner (:mod:`fivm_dbt.sql.from_clause`). The
    fields of ``right`` have one alias, so that it stands as one item in FROM.
    """

    symbol = "⟕"
    shows_right = True
    keeps_unmatched = True
    join_type = "left"

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        return self.left.fields + self.right.fields

    def over_nothing(self, inputs: tuple[Node | None, ...]) -> None:
        """Over no left rows there is nothing."""
        if inputs[0] is not None:
            raise ValueError("the right side of an outer join is never a change alone")

    def unique_keys(self, catalog: Catalog) -> tuple[Key, ...]:
        """Of one row on the left there are its partners, or one row without any."""
        return keys_together(self.inputs, catalog)

    @property
    def described(self) -> str:
        return f"OuterJoin {conjunction(self.predicates) or 'true'}"


@dataclass(frozen=True)
class SemiJoin(OneSided):
    """Rows of ``left`` that have a partner in ``right`` for which every predicate is true; ``anti``: that have none."""

    drops_rows = True

    anti: bool = False

    @property
    def keeps_unmatched(self) -> bool:
        return self.anti

    @property
    def join_type(self) -> str:
        return "left anti" if self.anti else "left semi"

    @property
    def formula(self) -> str:
        return f"({self.left.formula} {'▷' if self.anti else '⋉'} {self.right.formula})"

    def over_nothing(self, inputs: tuple[Node | None, ...]) -> Node | None:
        """Over no right rows a semijoin is empty, and an antijoin keeps all rows on the left."""
        return inputs[0] if self.anti else None

    @property
    def described(self) -> str:
        kind = "AntiJoin" if self.anti else "SemiJoin"
        return f"{kind} {conjunction(self.predicates) or 'true'}"


@dataclass(frozen=True)
class Apart:
    """``0 ≤ later − earlier ≤ most`` microseconds, of columns of two rows with the same keys, unless ``later`` is NULL.

    In a session in UTC; in any other it may be up to two days more at either end, as dates begin at other times there.
    """

    later: Scalar
    earlier: Scalar
    most: int


@dataclass(frozen=True)
class Restrict(Node):
    """Rows of ``left`` whose key occurs among ``right``; keys compare null-safe, pair by pair.

    How far ``apart`` two columns of theirs are follows from the keys; where it is said, reads can be bounded by it.
    """

    passes_rows = True
    drops_rows = True

    left: Node
    right: Node
    keys: tuple[tuple[Scalar, Scalar], ...]
    apart: Apart | None = None

    @property
    def formula(self) -> str:
        keys = ", ".join(left.sql for left, _ in self.keys) or "anything"
        scans = (n for n in self.right.walk() if isinstance(n, Scan))
        changed = ", ".join(sorted({f"Δ{s.relation}" for s in scans if s.side is Side.DELTA}))
        return f"{self.left.formula} ⋉ keys({keys}) of {changed}"

    def over_nothing(self, inputs: tuple[Node | None, ...]) -> None:
        return None

    @property
    def described(self) -> str:
        return f"Restrict {' and '.join(f'{a.sql} <=> {b.sql}' for a, b in self.keys)}"


@dataclass(frozen=True)
class IfChanged(Node):
    """All rows of ``input`` where one of ``relations`` has changed, none where none of them has, or the opposite.

    That is known before a statement is written, so that it is never part of one.
    """

    passes_rows = True
    drops_rows = True

    input: Node
    relations: tuple[str, ...]
    is_opposite: bool = False

    def left_by(self, changed: Collection[str]) -> Node | None:
        """What is below it, or nothing."""
        has_changed = any(name in changed for name in self.relations)
        return self.input.left_by(changed) if has_changed is not self.is_opposite else None

    @property
    def formula(self) -> str:
        sign, word = ("=", " and ") if self.is_opposite else ("≠", " or ")
        return f"{self.input.formula} if {word.join(f'Δ{name} {sign} ∅' for name in self.relations)}"

    @property
    def described(self) -> str:
        return f"If{'Not' if self.is_opposite else ''}Changed {', '.join(self.relations)}"
