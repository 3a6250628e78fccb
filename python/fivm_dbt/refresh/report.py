"""A report says what a refresh did, for the log line, for ``run_results.json`` and for ``fivm replay``."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

Action = Literal["built", "refreshed", "no change", "rebuilt", "recomputed", "waiting"]
"""``waiting``: inputs moved, but the model is lazy, and nobody asked for their changes to be applied."""


@dataclass(frozen=True)
class InputChange:
    """The net change of one input: how it was captured, rows that came and went, between which versions."""

    relation: str
    capture: str
    inserted: int
    deleted: int
    from_version: int | None
    to_version: int


@dataclass(frozen=True)
class InnerChange:
    """What came to the state of an inner view."""

    relation: str
    rows_merged: int
    partitions: int
    product: str | None = None
    """What its change was found to be the product of, for people."""

    @property
    def text(self) -> str:
        what = f"{self.rows_merged:,} rows into {self.partitions} partitions of {self.relation}"
        return what if self.product is None else f"{what} ({self.product})"


@dataclass(frozen=True)
class PartChange:
    """What was done about time parts, as ranges of their numbers.

    ``computed`` for the first time, ``again`` because of late data, ``changed`` those of the latter whose content is
    another now; ``rows`` that were written. ``pending`` are to be computed again, outside the range that was asked
    for, and ``waiting`` says what the next part waits for. ``too_late`` are parts that late data would change had
    retention not dropped them, and ``given_up`` those that are never computed as what they need has been dropped.
    """

    computed: str = "none"
    again: str = "none"
    changed: str = "none"
    rows: int = 0
    pending: str = "none"
    waiting: str | None = None
    too_late: str = "none"
    given_up: str = "none"

    def texts(self) -> list[str]:
        found = []
        if self.computed != "none":
            found.append(f"parts {self.computed} computed")
        if self.again != "none":
            found.append(f"parts {self.again} computed again, {self.changed} changed")
        if self.computed != "none" or self.again != "none":
            found.append(f"{self.rows:,} rows written")
        if self.pending != "none":
            found.append(f"parts {self.pending} are still to be computed again")
        if self.too_late != "none":
            found.append(f"rows came too late for parts {self.too_late}, which fivm_retention has dropped")
        if self.given_up != "none":
            found.append(
                f"parts {self.given_up} given up, as fivm_retention has dropped what they are computed from"
            )
        if self.waiting is not None:
            found.append(f"waiting: {self.waiting}")
        return found


@dataclass(frozen=True)
class Report:
    """One model's run. ``seconds`` are wall-clock; None means that the connection cannot tell. ``expected`` was
    a refresh of so many seconds, or a build in its place.

    ``recomputed`` is the reason why this model is recomputed instead of maintained, whatever this run did.
    """

    model: str
    action: Action
    refresh: int
    reason: str | None = None
    inputs: tuple[InputChange, ...] = ()
    partitions: int = 0
    rows_merged: int = 0
    inner_views: tuple[InnerChange, ...] = ()
    statements: tuple[str, ...] = ()
    rows_read: int | None = None
    bytes_read: int | None = None
    files_read: int | None = None
    scans: tuple[tuple[str, int], ...] = ()
    state_bytes: int | None = None
    expected: tuple[float, float] | None = None
    seconds: float = 0.0
    rolled_forward: bool = False
    recomputed: str | None = None
    parts: PartChange | None = None

    def as_dict(self) -> dict[str, Any]:
        """For JSON: statements are counted, not listed."""
        data = asdict(self)
        data["statements"] = len(self.statements)
        data["scans"] = [{"relation": relation, "rows": rows} for relation, rows in self.scans]
        data["inputs"] = [asdict(change) for change in self.inputs]
        data.pop("model")
        return data

    def line(self) -> str:
        """The line that ``dbt run`` prints.

        >>> Report("daily", "no change", 4, seconds=0.25).line()
        'daily: no change; 0 statements; read n/a rows, n/a bytes; state n/a bytes; 0.2 s'
        >>> Report("top", "recomputed", 4, recomputed="fivm_policy: full").line().split("; ")[0]
        'top: recomputed: fivm_policy: full'
        """
        why = "; ".join(w for w in (self.reason, self._why_recomputed()) if w)
        action = f"{self.action}: {why}" if why else self.action
        parts = [f"{self.model}: {action}"]
        parts += [f"{c.relation} +{c.inserted:,} -{c.deleted:,} ({c.capture})" for c in self.inputs]
        if self.parts is not None:
            parts += self.parts.texts()
        elif self.action == "refreshed":
            parts += [v.text for v in self.inner_views]
            parts.append(f"{self.rows_merged:,} rows merged into {self.partitions} partitions")
        parts.append(f"{len(self.statements)} statements")
        parts.append(f"read {_number(self.rows_read)} rows, {_number(self.bytes_read)} bytes")
        parts.append(f"state {_number(self.state_bytes)} bytes")
        parts.append(f"{self.seconds:.1f} s{self._as_expected()}")
        return "; ".join(parts)

    def _as_expected(self) -> str:
        if self.expected is None:
            return ""
        refresh, build = self.expected
        return f" (expected {refresh:.1f} s, a build {build:.1f} s)"

    def _why_recomputed(self) -> str | None:
        """A build and a run without changes say too that the model is not maintained."""
        if self.recomputed is None or self.action == "recomputed":
            return self.recomputed
        return f"is recomputed: {self.recomputed}"


def _number(value: int | None) -> str:
    return "n/a" if value is None else f"{value:,}"
