"""A row that meets no variable's condition separates: no match has it, so none has rows before it and behind it.

The matches of a key are those between its separators, each found by itself. A change reaches no further than to the
last one before it and to the first one behind it.
"""

from __future__ import annotations

from dataclasses import dataclass

from fivm_dbt.catalog import SparkType
from fivm_dbt.features.match.ir.match import Match
from fivm_dbt.ir.node import Node
from fivm_dbt.ir.scalar import Scalar


@dataclass(frozen=True)
class Separated(Node):
    """The rows of ``input``, of which it is known where the separators of a key lie.

    ``relation`` keeps in its columns ``keys`` and ``part`` the time parts in which a key has rows, and in
    ``separators`` how many of these separate. ``at`` is the time part of a row, over the rows of the pattern.
    """

    is_item = True

    input: Node
    relation: str
    keys: tuple[tuple[str, SparkType], ...]
    part: str
    separators: str
    at: Scalar

    @property
    def match(self) -> Match:
        assert isinstance(self.input, Match)
        return self.input

    @property
    def alias(self) -> str:
        return self.match.alias

    def over_nothing(self, inputs: tuple[Node | None, ...]) -> None:
        return None

    @property
    def formula(self) -> str:
        return self.input.formula

    @property
    def described(self) -> str:
        return f"Separated by the rows that no match has, counted in {self.relation}"
