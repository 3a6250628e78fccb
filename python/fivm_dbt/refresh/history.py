"""The commits of a table of states tell people what the last refreshes of a model have done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fivm_dbt.naming import split_name
from fivm_dbt.parts.intervals import Intervals
from fivm_dbt.plan.model.head import RECORDING
from fivm_dbt.refresh.costs import seconds_between
from fivm_dbt.refresh.engine import Engine
from fivm_dbt.refresh.heads import noted
from fivm_dbt.spark.formats import Commit, MissingRelation, NotVersioned
from fivm_dbt.spark.pieces import Query
from fivm_dbt.spark.rows import query_of_rows

_HEADINGS = (
    "model",
    "refresh",
    "at (UTC)",
    "action",
    "changed",
    "rows",
    "seconds",
    "expected",
    "state bytes",
    "reason",
)

_COLUMNS = {
    "model": "STRING",
    "refresh": "BIGINT",
    "recorded_at": "TIMESTAMP",
    "action": "STRING",
    "changed": "STRING",
    "rows_merged": "BIGINT",
    "seconds": "DOUBLE",
    "expected_seconds": "DOUBLE",
    "expected_build_seconds": "DOUBLE",
    "state_bytes": "BIGINT",
    "reason": "STRING",
}
"""Of the table of refreshes, which ``models/monitoring/monitoring.yml`` describes."""


@dataclass(frozen=True)
class Refreshed:
    """A refresh: ``changed`` are its inputs and time parts, ``rows`` what came to the model's own state.

    ``seconds`` are those from its begin to its commit, ``expected`` were those of a refresh and of a build, ``bytes``
    is the size of the state after it. None is not known.
    """

    model: str
    number: int
    at: str
    action: str
    changed: str
    rows: int | None
    seconds: float | None
    expected: tuple[float, float] | None
    bytes: int | None
    reason: str

    def texts(self) -> tuple[str, ...]:
        """
        >>> at = "2024-05-01T12:00:00.25+00:00"
        >>> Refreshed("a.m", 3, at, "refreshed", "raw.r +1 -0", 1, 2.04, (1, 9.96), None, "").texts()
        ('m', '3', '2024-05-01 12:00:00', 'refreshed', 'raw.r +1 -0', '1', '2.0', '1.0 / 10.0', '', '')
        """
        seconds = "" if self.seconds is None else f"{self.seconds:.1f}"
        expected = "" if self.expected is None else " / ".join(f"{s:.1f}" for s in self.expected)
        rows, size = ("" if n is None else f"{n:,}" for n in (self.rows, self.bytes))
        at = self.at[:19].replace("T", " ")
        name = split_name(self.model)[-1]
        return (
            name,
            str(self.number),
            at,
            self.action,
            self.changed,
            rows,
            seconds,
            expected,
            size,
            self.reason,
        )

    @property
    def values(self) -> tuple[str | int | float | None, ...]:
        """In the order of the columns of the table of refreshes."""
        expected = self.expected or (None, None)
        changed, reason = self.changed or None, self.reason or None
        figures = (self.rows, self.seconds, *expected, self.bytes)
        return (self.model, self.number, self.at, self.action, changed, *figures, reason)


def history(engine: Engine, model: str, name: str, limit: int) -> list[Refreshed]:
    """The last finished refreshes of a model, newest first: as far back as the history of its table of states is kept.

    That is the table ``name``.
    """
    try:
        newest = engine.commits(name, None)[0].version
        # A refresh is mostly one commit.
        since = max(0, newest - 2 * limit)
        found = list(_finished(engine.commits(name, since), name))
        if len(found) <= limit and since > 0:
            found = list(_finished(engine.commits(name, 0), name))
        size = engine.size(name)
    except (MissingRelation, NotVersioned):
        return []
    after: list[int | None] = [size, *(covered["detail"]["state_bytes"] for _, covered in found)]
    told = zip(found, after, strict=False)
    return [_refreshed(model, commit, covered, size) for (commit, covered), size in told][:limit]


def table_of(found: Sequence[Refreshed]) -> list[str]:
    """Refreshes as lines of text under headings."""
    rows = [_HEADINGS, *(refreshed.texts() for refreshed in found)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]


def query_of(found: Sequence[Refreshed]) -> Query:
    """Refreshes as a query, for the table that dashboards read.

    >>> query_of([]).sql("spark")[:39]
    'SELECT CAST(r.model AS STRING) AS model'
    """
    return query_of_rows(_COLUMNS, [refreshed.values for refreshed in found])


def _finished(commits: Sequence[Commit], name: str) -> Iterator[tuple[Commit, Mapping[str, Any]]]:
    """The last commit of each refresh that has been finished, with what it says to be covered."""
    last = None
    for commit in commits:
        head = noted(commit, name)
        if head is None or "open" in head[1]:
            continue
        covered = head[1]
        refresh = (covered["refresh"], covered["detail"].get("started_at"))
        if refresh != last:
            yield commit, covered
        last = refresh


def _refreshed(model: str, commit: Commit, covered: Mapping[str, Any], size: int | None) -> Refreshed:
    detail = covered["detail"]
    return Refreshed(
        model,
        int(covered["refresh"]),
        at=str(covered["recorded_at"]),
        # What is recorded for people heads of before have not.
        action=str(detail.get("action", detail["kind"])),
        changed=", ".join(_changed(detail)),
        rows=detail.get("rows"),
        seconds=seconds_between(detail.get("started_at"), commit.timestamp),
        expected=_pair(detail.get("expected")),
        bytes=size,
        reason=str(detail.get("reason", "")),
    )


def _pair(expected: Sequence[float] | None) -> tuple[float, float] | None:
    return None if expected is None else (float(expected[0]), float(expected[1]))


def _changed(detail: Mapping[str, Any]) -> Iterator[str]:
    inputs = sorted(detail.get("changed", {}).items())
    yield from (f"{name} +{came:,} -{gone:,}" for name, (came, gone) in inputs)
    if RECORDING in detail:
        for what in ("computed", "dropped"):
            parts = Intervals.read(detail[RECORDING][what])
            if parts:
                yield f"parts {parts} {what}"
