"""Clauses that features add to a SELECT are read by these."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from sqlglot import exp

from fivm_dbt.ir.clauses import CLAUSES, Clause
from fivm_dbt.registry import load_features

if TYPE_CHECKING:
    from fivm_dbt.sql.lower import Lowering
    from fivm_dbt.sql.part import Part


class ClauseReader(Clause):
    """A clause that stands behind a relation, alone in its FROM clause."""

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


def readers() -> list[ClauseReader]:
    """The readers of all features."""
    load_features()
    return [clause for clause in CLAUSES if isinstance(clause, ClauseReader)]


def without_clauses(select: exp.Select) -> None:
    """Takes what features have added from a SELECT."""
    for reader in readers():
        select.set(reader.argument, None)
