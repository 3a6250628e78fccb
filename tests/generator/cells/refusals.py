"""Some cells of the table of positions and kinds are refused, by Spark 4.2 or by the planner.

A test on Spark asks again for every cell: that those named here are refused so, and that no other one is. Another one
fails as long as the list of what the planner refuses says too much.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from generator.cells.cell import Cell

_CATEGORY = "UNSUPPORTED_SUBQUERY_EXPRESSION_CATEGORY"

_COMPARED = ("IN", "NOT IN", "IN in SELECT", "NOT IN in SELECT", "IN below OR", "NOT IN below OR")
"""Positions where brackets with VALUES are a list, and VALUES (1) is taken for a call of a function."""


@dataclass(frozen=True)
class Refusal:
    """Cells that are refused with a condition of Spark or a code of ours.

    What is empty says nothing about them. ``correlated`` None: whether or not.
    """

    condition: str
    positions: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    correlated: bool | None = True
    places: tuple[str, ...] = ()

    def covers(self, cell: Cell) -> bool:
        return (
            (not self.positions or cell.position in self.positions)
            and (not self.kinds or cell.kind in self.kinds)
            and self.correlated in (None, cell.is_correlated)
            and (not self.places or cell.place in self.places)
        )


SPARK_REFUSES: tuple[Refusal, ...] = (
    Refusal(f"{_CATEGORY}.UNSUPPORTED_CORRELATED_SCALAR_SUBQUERY", ("ORDER BY",)),
    Refusal(f"{_CATEGORY}.CORRELATED_REFERENCE", kinds=("total and outer column",)),
    Refusal(f"{_CATEGORY}.ACCESSING_OUTER_QUERY_COLUMN_IS_NOT_ALLOWED", kinds=("ROLLUP", "GROUPING SETS")),
    Refusal(
        f"{_CATEGORY}.ACCESSING_OUTER_QUERY_COLUMN_IS_NOT_ALLOWED",
        kinds=("full join",),
        places=("derived", "cte"),
    ),
    Refusal(
        "UNRESOLVED_ROUTINE",
        (*_COMPARED, "scalar > IN", "scalar > EXISTS > IN"),
        ("VALUES",),
        correlated=False,
    ),
)


NOT_YET: tuple[Refusal, ...] = ()
"""What the planner refuses as yet, with its code; that Spark runs it is the test's to see."""


def refused_by_spark(cell: Cell) -> str | None:
    """The condition of Spark's error, None for a cell that Spark runs."""
    return next((refusal.condition for refusal in SPARK_REFUSES if refusal.covers(cell)), None)


def not_yet(cell: Cell) -> str | None:
    """The code with which the planner refuses a cell that Spark runs, None for one that is maintained."""
    return next((refusal.condition for refusal in NOT_YET if refusal.covers(cell)), None)
