"""What was measured of the inputs of a model when it was built: costs are estimated from it until it is rebuilt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class TableStatistics:
    """Rows per relation, by its canonical name; immutable and in a fixed order, as it decides about a layout.

    >>> TableStatistics.of({"raw.b": 2, "raw.a": 1}).rows_of("raw.b")
    2
    """

    rows: tuple[tuple[str, int], ...]

    @staticmethod
    def of(rows: Mapping[str, int]) -> TableStatistics:
        return TableStatistics(tuple(sorted(rows.items())))

    def rows_of(self, relation: str) -> int | None:
        """The rows of a relation, None where nobody has counted them."""
        return dict(self.rows).get(relation)
