"""The result of some operators depends on rows of the same key that are near in time.

Time is cut into blocks. Where an operator reaches a fixed time, blocks are that long: what a changed row changes lies
in its own block and in those beside it, and so does what these are computed from. Where it looks at a number of rows
before or after, blocks are days, and the blocks beside one are the nearest that have so many rows of the key. Either
way it is a fixed number of blocks, however long the history is. The rows of a session lie on the days from
its start to its end.
"""

from __future__ import annotations

from dataclasses import dataclass

from fivm_dbt.catalog.types import SparkType
from fivm_dbt.ir.instants import aligned, day_of
from fivm_dbt.ir.scalar import Scalar

Range = tuple[int, int]
"""The first and the last of consecutive blocks, counted from that of a changed row."""


@dataclass(frozen=True)
class Beside:
    """The nearest blocks that have rows, of a key: ``relation`` keeps the blocks of each, in its columns ``keys`` and
    ``block``, and where more than one row is looked at how many rows each has, in ``rows``.

    A row looks at so many rows ``earlier`` in time, and at so many ``later`` ones."""

    relation: str
    keys: tuple[tuple[str, SparkType], ...]
    block: str
    earlier: int
    later: int
    rows: str | None = None

    @property
    def is_counted(self) -> bool:
        """Whether one block may not be enough, so that their rows have to be counted."""
        return max(self.earlier, self.later) > 1


@dataclass(frozen=True)
class Part:
    """Of the item ``of`` of a window: the ``column`` with what it is over the rows of a block alone, and how it goes on
    from there (``sum``, ``count``, ``min`` or ``max``)."""

    of: str
    how: str
    column: str
    type: SparkType


@dataclass(frozen=True)
class Running:
    """Functions over all rows of a key up to the own one, in the order of time.

    ``relation`` keeps the blocks of each key, in its columns ``keys`` and ``block``, and a part of each function.
    """

    relation: str
    keys: tuple[tuple[str, SparkType], ...]
    block: str
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Extreme:
    """The least or the greatest value of a column of the rows, ``how`` (``min``, ``max``), which ``column`` has of a
    block."""

    argument: Scalar
    how: str
    column: str
    type: SparkType


@dataclass(frozen=True)
class Covered:
    """The blocks, counted from one, that every frame of each of its rows has as a whole, or not at all: ``steps``.

    Of these no rows are read. ``relation`` keeps of each block of a key a ``time`` of one of its rows, and extremes of
    columns, beside the columns ``keys``, ``block`` and ``day``.
    """

    steps: tuple[int, ...]
    time: Extreme
    parts: tuple[Extreme, ...]
    relation: str = ""
    keys: tuple[tuple[str, SparkType], ...] = ()
    block: str = ""
    day: str = ""


@dataclass(frozen=True)
class Near:
    """How far an operator reaches: ``block`` and ``day`` are columns of its rows, the start of the block in which a row
    lies, in microseconds since 1970, and the day of that start, by which the rows are placed.

    Blocks are ``length`` microseconds long. A changed row changes results in the blocks ``changed``, which are computed
    from rows in the blocks ``needed``. With ``beside`` it changes those in the nearest blocks too, which that says.
    ``needed`` are counted from each block that it changes then, and so are the nearest ones. It changes all results
    behind it where they are ``running``: these are computed from rows in their blocks, and from what is kept of the
    blocks before. Blocks that are ``covered`` have a row each in the place of their rows.
    """

    block: Scalar
    day: Scalar
    length: int
    changed: Range
    needed: Range
    beside: Beside | None = None
    running: Running | None = None
    covered: Covered | None = None


@dataclass(frozen=True)
class Days:
    """On which days the rows of a group lie: ``day`` is a column of its rows, the date by which they are placed.

    ``first`` and ``last`` are the numbers of two days, which are the same for all rows of the group.
    """

    day: Scalar
    first: Scalar
    last: Scalar


def block_of(at: Scalar, length: int) -> tuple[Scalar, Scalar]:
    """The block of a time in microseconds, and the day of that.

    >>> [s.sql for s in block_of(Scalar.parse("r.t"), 60000000)]
    ['r.t - PMOD(r.t, 60000000)', 'CAST(TIMESTAMP_MICROS(r.t - PMOD(r.t, 60000000)) AS DATE)']
    """
    block = aligned(at, length)
    return block, day_of(block)
