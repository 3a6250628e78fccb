"""Clauses that Spark does not know, in the tokens of a text."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import ClassVar

from sqlglot import Token

from fivm_dbt.registry import load_features


class Clause(ABC):
    """A clause that features add to the SQL that is read."""

    word: ClassVar[str]
    """How it begins, in small letters. Of a text without the word nothing more is asked."""

    def is_named_in(self, sql: str) -> bool:
        """Whether its word is somewhere in a text."""
        return self.word in sql.lower()

    @abstractmethod
    def stands_in(self, tokens: Sequence[Token]) -> bool:
        """Whether it is in a text, and not just a name or a string that reads like it."""

    @abstractmethod
    def as_read(self, tokens: list[Token]) -> list[Token]:
        """The tokens as sqlglot can read them."""

    @abstractmethod
    def spans(self, tokens: Sequence[Token]) -> Iterator[range]:
        """Where it stands, by the numbers of tokens."""


CLAUSES: list[Clause] = []


def clauses_in(sql: str) -> list[Clause]:
    """The clauses whose word is somewhere in a text."""
    load_features()
    return [clause for clause in CLAUSES if clause.is_named_in(sql)]
