"""Sets of part numbers are ranges that do not touch: years of minutes are one range."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True)
class Intervals:
    """A set of whole numbers. ``ranges`` are (first, last) pairs in ascending order, with a gap between any two."""

    ranges: tuple[tuple[int, int], ...] = ()

    @staticmethod
    def of(*ranges: tuple[int, int]) -> Intervals:
        """The union of ranges, each with both of its ends; one that ends before it begins is empty.

        >>> Intervals.of((5, 6), (1, 2), (3, 3), (9, 8))
        Intervals(ranges=((1, 3), (5, 6)))
        """
        merged: list[tuple[int, int]] = []
        for first, last in sorted(r for r in ranges if r[0] <= r[1]):
            if merged and first <= merged[-1][1] + 1:
                merged[-1] = (merged[-1][0], max(merged[-1][1], last))
            else:
                merged.append((first, last))
        return Intervals(tuple(merged))

    @staticmethod
    def numbers(parts: Iterable[int]) -> Intervals:
        """The set of these numbers."""
        return Intervals.of(*((p, p) for p in parts))

    @staticmethod
    def read(text: str) -> Intervals:
        """What :meth:`__str__` has written.

        >>> Intervals.read("1..3, 6"), Intervals.read("none")
        (Intervals(ranges=((1, 3), (6, 6))), Intervals(ranges=()))
        """
        if text == "none":
            return Intervals()
        ends = (piece.split("..") for piece in text.split(", "))
        return Intervals.of(*((int(e[0]), int(e[-1])) for e in ends))

    def __or__(self, other: Intervals) -> Intervals:
        return Intervals.of(*self.ranges, *other.ranges)

    def __and__(self, other: Intervals) -> Intervals:
        found, mine, theirs = [], list(self.ranges), list(other.ranges)
        i = k = 0
        while i < len(mine) and k < len(theirs):
            first, last = max(mine[i][0], theirs[k][0]), min(mine[i][1], theirs[k][1])
            if first <= last:
                found.append((first, last))
            if mine[i][1] < theirs[k][1]:
                i += 1
            else:
                k += 1
        return Intervals(tuple(found))

    def __sub__(self, other: Intervals) -> Intervals:
        found = []
        for first, last in self.ranges:
            for low, high in (other & Intervals(((first, last),))).ranges:
                if first < low:
                    found.append((first, low - 1))
                first = high + 1
            if first <= last:
                found.append((first, last))
        return Intervals(tuple(found))

    def __contains__(self, part: int) -> bool:
        at = bisect_right(self.ranges, (part, float("inf"))) - 1
        return at >= 0 and self.ranges[at][0] <= part <= self.ranges[at][1]

    def __iter__(self) -> Iterator[int]:
        for first, last in self.ranges:
            yield from range(first, last + 1)

    def __len__(self) -> int:
        return sum(last - first + 1 for first, last in self.ranges)

    def __bool__(self) -> bool:
        return bool(self.ranges)

    def at_most(self, number: int) -> Intervals:
        """So many ranges that cover it, by filling its smallest gaps.

        >>> str(Intervals.of((1, 2), (4, 5), (90, 91)).at_most(2))
        '1..5, 90..91'
        """
        gaps = sorted(range(1, len(self.ranges)), key=lambda n: self.ranges[n][0] - self.ranges[n - 1][1])
        filled = gaps[: max(0, len(self.ranges) - number)]
        return self | Intervals.of(*((self.ranges[n - 1][1], self.ranges[n][0]) for n in filled))

    def coarser(self) -> Intervals:
        """Fewer ranges that cover it, by filling its smallest gaps, with at most twice as many numbers.

        >>> str(Intervals.of((1, 2), (4, 5), (90, 91)).coarser())
        '1..5, 90..91'
        """
        filled, left = [], len(self)
        for (_, last), (first, _) in sorted(pairwise(self.ranges), key=lambda two: two[1][0] - two[0][1]):
            left -= first - last - 1
            if left < 0:
                break
            filled.append((last, first))
        return self | Intervals.of(*filled)

    @property
    def first(self) -> int:
        """The least number. Raises ValueError where there is none."""
        if not self.ranges:
            raise ValueError("an empty set has no first number")
        return self.ranges[0][0]

    @property
    def last(self) -> int:
        """The largest number. Raises ValueError where there is none."""
        if not self.ranges:
            raise ValueError("an empty set has no last number")
        return self.ranges[-1][1]

    def groups(self, many: int) -> Iterator[Intervals]:
        """The set in pieces of ``many`` numbers each, the last one of what is left.

        >>> [str(g) for g in Intervals.of((1, 3), (7, 10)).groups(4)]
        ['1..3, 7', '8..10']
        """
        rest = self
        while rest:
            missing, ranges = many, []
            for first, last in rest.ranges:
                if missing <= 0:
                    break
                ranges.append((first, min(last, first + missing - 1)))
                missing -= last - first + 1
            group = Intervals.of(*ranges)
            yield group
            rest -= group

    @property
    def gaps(self) -> Intervals:
        """What is missing between its first and its last number."""
        return Intervals.of((self.first, self.last)) - self if self.ranges else self

    def __str__(self) -> str:
        return ", ".join(str(a) if a == b else f"{a}..{b}" for a, b in self.ranges) or "none"


def last_parts(parts: Intervals, many: int) -> Intervals:
    """The ``many`` greatest numbers of a set, or all.

    >>> str(last_parts(Intervals.of((1, 5), (9, 10)), 3))
    '5, 9..10'
    """
    found: list[tuple[int, int]] = []
    for first, last in reversed(parts.ranges):
        if many <= 0:
            break
        found.append((max(first, last - many + 1), last))
        many -= last - first + 1
    return Intervals.of(*found)
