"""A row of a result comes about in one of several ways, each with the distances that hold between its columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fivm_dbt.catalog import SparkType
from fivm_dbt.ir.reads import Scan
from fivm_dbt.ir.scalar import ColumnId
from fivm_dbt.parts.shift import Shift


@dataclass(frozen=True)
class Edge:
    """``later − earlier ≤ most``; ``is_strict`` where it is not true of NULL."""

    later: int
    earlier: int
    most: Shift
    is_strict: bool


Columns = Mapping[ColumnId, tuple[int, SparkType]]
"""The variables of the time columns that can be seen."""


@dataclass(frozen=True)
class PlacedRead:
    """A scan that a way comes by, with the variables of its time columns."""

    place: tuple[int, ...]
    scan: Scan
    columns: Columns


@dataclass(frozen=True)
class Way:
    """How a row of the result comes about: one branch of every union. All edges hold together."""

    columns: Columns
    edges: tuple[Edge, ...] = ()
    reads: tuple[PlacedRead, ...] = ()

    def most(self, start: int) -> dict[int, tuple[Shift, bool]]:
        """The least known bounds ``start − x`` to every variable x, and whether NULL is ruled out on the way."""
        return _shortest(start, tuple((e.later, e.earlier, e.most, e.is_strict) for e in self.edges))

    def least(self, start: int) -> dict[int, tuple[Shift, bool]]:
        """The least known bounds ``x − start``."""
        return _shortest(start, tuple((e.earlier, e.later, e.most, e.is_strict) for e in self.edges))


class TooMany(Exception):
    """There are more ways than are looked at."""


class Unknown(Exception):
    """What is asked for stands below an operator of which nothing is known here."""


def _shortest(start: int, edges: tuple[tuple[int, int, Shift, bool], ...]) -> dict[int, tuple[Shift, bool]]:
    """Shortest paths by Bellman and Ford. Conditions that contradict each other make ever shorter ones: it stops."""
    found: dict[int, tuple[Shift, bool]] = {start: (Shift(), False)}
    for _ in range(len(edges) + 1):
        is_settled = True
        for one, other, by, is_strict in edges:
            if one not in found:
                continue
            so_far, was_strict = found[one]
            total = so_far + by
            known = found.get(other)
            if known is None or total.most < known[0].most:
                found[other] = (total, was_strict or is_strict)
                is_settled = False
        if is_settled:
            break
    return found
