"""How long the parts of a pattern are, and in how many buckets last marks lie, by the sizes of its input.

And whether a key has separators often enough to read all rows between them.
"""

from __future__ import annotations

from dataclasses import dataclass

from fivm_dbt.catalog.statistics import days_of, values_of
from fivm_dbt.delta.term import scans
from fivm_dbt.features.match.ir.match import Match
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.parts.length import DAY, Length
from fivm_dbt.plan.keep.kept_views import KeptViews
from fivm_dbt.plan.keep.ways import WantedParts

_ROWS_A_MARK = 4
"""So many rows a mark is to stand for, on the average. It costs as much as a dozen rows to make."""
_LENGTHS = ((DAY, 1), (Length.of("month"), 30), (Length.of("year"), 365))
"""Lengths of parts, and about how many days each has."""
_KEYS_A_BUCKET, _BUCKETS = 10_000, 16
"""A change writes the buckets of its keys anew: few keys are one file, and few of many lie in some of many."""

SEPARATED_FROM = 0.25
"""The share of a key's parts that have a separator, from which on none of the pattern's state is kept. A change of a
part reads those up to the next ones, four on either side on the average, while a mark reads its part alone."""


@dataclass(frozen=True)
class MeasuredKeys:
    """The keys of a pattern, and how many rows one of them has on a day, on the average."""

    keys: int
    rows_a_day: float

    @property
    def length(self) -> Length:
        """A day, or longer where a key has so few rows of a day that a mark would stand for a few of them."""
        long_enough = (part for part, days in _LENGTHS if self.rows_a_day * days >= _ROWS_A_MARK)
        return next(long_enough, _LENGTHS[-1][0])

    @property
    def buckets(self) -> int:
        """Those of last marks."""
        return min(_BUCKETS, 1 + self.keys // _KEYS_A_BUCKET)


def chosen(kept: KeptViews, node: Match, parts: WantedParts, given: Length) -> tuple[Length, int]:
    """The length of the parts of a pattern, the ``given`` one where nothing was measured, and the number of buckets."""
    measured = _measured(kept, node, parts) if parts.is_chosen and not node.recognizer.per_part else None
    if measured is None:
        return given, parts.buckets or _BUCKETS
    return measured.length, parts.buckets or measured.buckets


def are_often(kept: KeptViews, node: Match, part: Scalar, separates: Scalar, parts: WantedParts) -> bool:
    """Whether so many parts of keys have a row that ``separates``. Where nothing was measured they are taken to have.

    ``part`` and ``separates``, which is 1 of such a row, are over the rows of the pattern.
    """
    copied = kept.copied(node.input)
    tables = {scan.alias for scan in scans(node.input)}
    used = [part, separates, *(k.value for k in node.partition)]
    if copied is None or not parts.is_chosen or not all(value.tables <= tables for value in used):
        return True

    def bare(value: Scalar) -> str:
        return value.substitute(lambda column: Scalar.column("", column[1])).sql

    pair = f"STRUCT({', '.join([*(bare(k.value) for k in node.partition), bare(part)])})"
    every, separated = values_of(pair), values_of(f"CASE WHEN {bare(separates)} = 1 THEN {pair} END")
    kept.measurable.setdefault(copied.relation, set()).update((every, separated))
    if parts.measured is None:
        return True
    found = [parts.measured.distinct_of(copied.relation, values) for values in (every, separated)]
    of_all, of_these = (0 if n is None else n for n in found)
    return of_these >= SEPARATED_FROM * of_all


def _measured(kept: KeptViews, node: Match, parts: WantedParts) -> MeasuredKeys | None:
    """What was measured; None where nothing was, or where the keys and the time are no columns of an input."""
    copied = kept.copied(node.input)
    at = next(i for i in node.columns if i.name == node.order[0].column).value
    keys = [i.value for i in node.partition]
    if copied is None or not keys or not all(value.is_column for value in (at, *keys)):
        return None
    names = [name for value in keys for _, name in value.columns]
    ((_, time),) = at.columns
    kept.measurable.setdefault(copied.relation, set()).update((*names, days_of(time)))
    if parts.measured is None:
        return None
    rows = parts.measured.rows_of(copied.relation)
    days, *values = (parts.measured.distinct_of(copied.relation, c) for c in (days_of(time), *names))
    known = [n for n in values if n]
    if not rows or not days or len(known) < len(values):
        return None
    return MeasuredKeys(max(known), rows / (max(known) * days))
