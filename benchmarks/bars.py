"""Figures held against what they may be at most."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rich.table import Table


@dataclass(frozen=True)
class Bar:
    """A figure, and what it may be at most."""

    what: str
    figure: float
    at_most: float

    @property
    def is_met(self) -> bool:
        return self.figure <= self.at_most

    @property
    def cells(self) -> tuple[str, str, str, str]:
        """
        >>> Bar("median ratio", 0.41234, 0.5).cells
        ('median ratio', '0.412', '0.5', 'met')
        """
        return self.what, f"{self.figure:.3g}", f"{self.at_most:g}", "met" if self.is_met else "NOT MET"


def bars_table(held: Iterable[Bar]) -> Table:
    """A row for each."""
    table = Table("bar", "figure", "at most", "", box=None)
    for bar in held:
        table.add_row(*bar.cells)
    return table
