"""How long the parts of a pattern are, and in how many buckets last marks lie, by the sizes of its input."""

from __future__ import annotations

from dataclasses import dataclass

from fivm_dbt.catalog.statistics import days_of
from fivm_dbt.features.match.ir.match import Match
from fivm_dbt.parts.length import DAY, Length
from fivm_dbt.plan.keep.kept_views import KeptViews
from fivm_dbt.plan.keep.ways import WantedParts

_ROWS_A_MARK = 4
"""So many rows a mark is to stand for, on the average. It costs as much as a dozen rows to make."""
_LENGTHS = ((DAY, 1), (Length.of("month"), 30), (Length.of("year"), 365))
"""Lengths of parts, and about how many days each has."""
_KEYS_A_BUCKET, _BUCKETS = 10_000, 16
"""A change writes the buckets of its keys anew: few keys are one file, and few of many lie in some of many."""


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
