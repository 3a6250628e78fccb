"""A build measures the inputs of a model, and costs are estimated from these sizes until the next build."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta, timezone
from typing import Any

READ_UP_TO = 2_000_000
"""Rows up to which all of a relation is read by each refresh that looks for some: that takes less than the statement
that would keep a copy."""

COPIED_ABOVE = 20_000_000
"""Rows up to which a relation is read rather than copied by the hash of a key: a copy has a dozen buckets or so."""

SORTED_UP_TO = 1_000_000
"""Rows up to which a relation is sorted for a join in less time than a statement takes that would avoid it."""


_EPOCH, _MICROSECOND = datetime(1970, 1, 1, tzinfo=timezone.utc), timedelta(microseconds=1)

_DAYS = "::date"
_WRITTEN = "="


def days_of(column: str) -> str:
    """What the days of a time are called beside the columns of its relation.

    >>> days_of("ordered_at"), time_of(days_of("ordered_at")), time_of("ordered_at")
    ('ordered_at::date', 'ordered_at', None)
    """
    return f"{column}{_DAYS}"


def time_of(column: str) -> str | None:
    """The time whose days are meant, None where a column itself is."""
    return column.removesuffix(_DAYS) if column.endswith(_DAYS) else None


def values_of(sql: str) -> str:
    """What the values of an expression over a relation's columns, in Spark SQL, are called beside these columns.

    >>> values_of("k % 2"), expression_of(values_of("k % 2")), expression_of("k")
    ('=k % 2', 'k % 2', None)
    """
    return f"{_WRITTEN}{sql}"


def expression_of(column: str) -> str | None:
    """The expression that is meant, None where a column is, or the days of one."""
    return column.removeprefix(_WRITTEN) if column.startswith(_WRITTEN) else None


@dataclass(frozen=True)
class KeyRange:
    """A column of whole numbers, ``low`` to ``high``, in the order of which ``rows`` rows lie, about.

    Such are keys that are counted up: rows that come together have numbers near each other. So are times, in
    microseconds since 1970.
    """

    low: int
    high: int
    rows: int

    @staticmethod
    def number(value: int | date) -> int:
        """A number as it is, or a time: one without a zone as if it were in UTC, of a date its midnight.

        >>> KeyRange.number(7), KeyRange.number(date(1970, 1, 2)), KeyRange.number(datetime(1970, 1, 1, 0, 0, 0, 5))
        (7, 86400000000, 5)
        """
        if isinstance(value, int):
            return value
        time = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)
        instant = time if time.tzinfo is not None else time.replace(tzinfo=timezone.utc)
        return (instant - _EPOCH) // _MICROSECOND


@dataclass(frozen=True)
class TableStatistics:
    """Rows per relation and distinct values per column of it, of the days of a time or of an expression; all as far as
    known.

    Immutable and in a fixed order, as it decides about a layout. ``appends`` says whether deltas of the model could be
    appended when this was measured: no other model read its change feed. ``changed`` has, of each relation that
    changed, in what share of the model's last refreshes it did; it is empty where too few of these are known.
    ``ranges`` has the columns in whose order rows lie. The model ``is_rebuilt`` where builds have stood in the place of
    its last refreshes, so that no inner view has been of any use.

    >>> measured = TableStatistics.of({"raw.b": 2, "raw.a": 1}, {("raw.b", "k"): 2})
    >>> measured.rows_of("raw.b"), measured.distinct_of("raw.b", "k"), measured.rows_of("raw.c")
    (2, 2, None)
    >>> TableStatistics.from_dict(measured.as_dict()) == measured
    True
    >>> TableStatistics.from_dict(measured.as_dict()["relations"]) == measured  # as it was recorded before
    True
    >>> ordered = TableStatistics.of({"raw.a": 9}, ranges={("raw.a", "id"): KeyRange(1, 9, 9)})
    >>> TableStatistics.from_dict(ordered.as_dict()) == ordered
    True
    """

    rows: tuple[tuple[str, int], ...]
    distinct: tuple[tuple[tuple[str, str], int], ...] = ()
    appends: bool = False
    changed: tuple[tuple[str, float], ...] = ()
    ranges: tuple[tuple[tuple[str, str], KeyRange], ...] = ()
    is_rebuilt: bool = False

    @staticmethod
    def of(
        rows: Mapping[str, int],
        distinct: Mapping[tuple[str, str], int] | None = None,
        *,
        appends: bool = False,
        changed: Mapping[str, float] | None = None,
        ranges: Mapping[tuple[str, str], KeyRange] | None = None,
    ) -> TableStatistics:
        counted = tuple(sorted((distinct or {}).items()))
        shares = tuple(sorted((changed or {}).items()))
        ordered = tuple(sorted((ranges or {}).items(), key=lambda entry: entry[0]))
        return TableStatistics(tuple(sorted(rows.items())), counted, appends, shares, ordered)

    def rows_of(self, relation: str) -> int | None:
        """The rows of a relation, None where nobody has counted them."""
        return dict(self.rows).get(relation)

    def distinct_of(self, relation: str, column: str) -> int | None:
        """The values of a column, about; None where nobody has counted them."""
        return dict(self.distinct).get((relation, column))

    def range_of(self, relation: str, column: str) -> KeyRange | None:
        """The values of a column in whose order the rows lie; None where they do not, or nobody has looked."""
        return dict(self.ranges).get((relation, column))

    def share_of(self, relation: str) -> float | None:
        """In what share of the last refreshes a relation changed, None where that is not known.

        >>> TableStatistics.of({}, changed={"raw.a": 0.25}).share_of("raw.b"), TableStatistics.of({}).share_of("raw.b")
        (0.0, None)
        """
        return dict(self.changed).get(relation, 0.0) if self.changed else None

    def as_dict(self) -> dict[str, Any]:
        """By relation its rows and its columns' distinct values, for the head."""
        found: dict[str, dict[str, Any]] = {name: {"rows": n, "distinct": {}} for name, n in self.rows}
        for (name, column), n in self.distinct:
            found[name]["distinct"][column] = n
        ranges: dict[str, dict[str, list[int]]] = {}
        for (name, column), known in self.ranges:
            ranges.setdefault(name, {})[column] = [known.low, known.high, known.rows]
        return {
            "relations": found,
            "appends": self.appends,
            "changed": dict(self.changed),
            **({"ranges": ranges} if ranges else {}),
            **({"is_rebuilt": True} if self.is_rebuilt else {}),
        }

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> TableStatistics:
        """What a head says. Those of before have the relations alone."""
        appends = data.get("appends")
        known: Mapping[str, Mapping[str, Any]] = data if appends is None else data["relations"]
        distinct = {(name, c): int(n) for name, entry in known.items() for c, n in entry["distinct"].items()}
        rows = {name: int(entry["rows"]) for name, entry in known.items()}
        ranges = {
            (name, column): KeyRange(*map(int, ends))
            for name, columns in (data.get("ranges", {}) if appends is not None else {}).items()
            for column, ends in columns.items()
        }
        found = TableStatistics.of(
            rows, distinct, appends=appends is True, changed=data.get("changed"), ranges=ranges
        )
        return replace(found, is_rebuilt=appends is not None and data.get("is_rebuilt") is True)
