"""Parts of an input are there that have rows, and empty ones that nobody waits for any more."""

from __future__ import annotations

from datetime import timedelta

from fivm_dbt.parts.intervals import Intervals
from fivm_dbt.parts.length import Length


def with_empty_parts(there: Intervals, length: Length, lateness: timedelta | None) -> Intervals:
    """The parts that are there, and those without rows that a declared lateness gives up waiting for.

    >>> str(with_empty_parts(Intervals.of((1, 2), (6, 6)), Length.of("minute"), timedelta(minutes=2)))
    '1..3, 6'
    """
    if lateness is None or not there:
        return there
    last = length.part_of(length.start_of(there.last) - lateness) - 1
    return there | Intervals.of((there.first, last))


def coarser(there: Intervals, fine: Length, coarse: Length) -> Intervals:
    """The parts of length ``coarse`` of which every part of length ``fine`` is there.

    Raises FIVM205 where the fine ones do not divide the coarse ones.

    >>> str(coarser(Intervals.of((58, 179), (200, 290)), Length.of("minute"), Length.of("hour")))
    '1..2'
    """
    found = []
    for first, last in there.ranges:
        low = coarse.part_of(fine.start_of(first))
        high = coarse.part_of(fine.start_of(last))
        if fine.within(coarse, low).start < first:
            low += 1
        if fine.within(coarse, high).stop - 1 > last:
            high -= 1
        found.append((low, high))
    return Intervals.of(*found)
