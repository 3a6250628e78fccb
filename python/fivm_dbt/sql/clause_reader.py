"""How clauses are read that features add to a SELECT."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from sqlglot import exp

from fivm_dbt.registry import load_features

if TYPE_CHECKING:
    from fivm_dbt.sql.lower import Lowering
    from fivm_dbt.sql.part import Part


class ClauseReader(ABC):
    """A clause that stands behind a relation, alone in its FROM clause."""

    word: ClassVar[str]
    """How it begins, in small letters. Of a text without the word nothing more is asked."""
    argument: ClassVar[str]
    """What sqlglot calls it among the arguments of a SELECT."""

    @abstractmethod
    def check(self, sql: str) -> None:
        """Raise FIVM105 for what sqlglot would drop of it in silence."""

    @abstractmethod
    def place(self, query: exp.Query, sql: str) -> None:
        """Note in the tree where it stands in the text."""

    @abstractmethod
    def lower(self, lowering: Lowering, part: Part, node: Any) -> Part:
        """The relation that it makes of ``part``."""


READERS: list[ClauseReader] = []


def readers() -> list[ClauseReader]:
    """The readers of all features."""
    load_features()
    return READERS


def readers_in(sql: str) -> list[ClauseReader]:
    """Those whose word is somewhere in a text."""
    text = sql.lower()
    return [reader for reader in readers() if reader.word in text]


def without_clauses(select: exp.Select) -> None:
    """Takes what features have added from a SELECT."""
    for reader in readers():
        select.set(reader.argument, None)
