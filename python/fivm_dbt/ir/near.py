"""Operators of which a result depends on rows of the same key that are near it in time.

Time is cut into blocks as long as the operator reaches. What a changed row changes lies in its own block and in those
beside it, and so does what these are computed from: a fixed number of blocks, however long the history is.
"""

from __future__ import annotations

from dataclasses import dataclass

from fivm_dbt.ir.instants import aligned, day_of
from fivm_dbt.ir.scalar import Scalar

Range = tuple[int, int]
"""The first and the last of consecutive blocks, counted from that of a changed row."""


@dataclass(frozen=True)
class Near:
    """How far an operator reaches: ``block`` and ``day`` are columns of its rows, the start of the block in which a row
    lies, in microseconds since 1970, and the day of that start, by which the rows are placed.

    Blocks are ``length`` microseconds long. A changed row changes results in the blocks ``changed``, which are computed
    from rows in the blocks ``needed``.
    """

    block: Scalar
    day: Scalar
    length: int
    changed: Range
    needed: Range


def block_of(at: Scalar, length: int) -> tuple[Scalar, Scalar]:
    """The block of a time in microseconds, and the day of that.

    >>> [s.sql for s in block_of(Scalar.parse("r.t"), 60000000)]
    ['r.t - PMOD(r.t, 60000000)', 'CAST(TIMESTAMP_MICROS(r.t - PMOD(r.t, 60000000)) AS DATE)']
    """
    block = aligned(at, length)
    return block, day_of(block)
