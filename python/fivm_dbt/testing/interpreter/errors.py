"""The interpreter says when it does not know what a text means."""

from __future__ import annotations

from sqlglot import exp


class NotUnderstood(Exception):
    """A construct whose meaning is not written down here, and where it stands."""

    def __init__(self, construct: str, node: exp.Expr | None = None) -> None:
        self.construct = construct
        starts = [] if node is None else [n.meta["start"] for n in node.walk() if "start" in n.meta]
        self.position: int | None = min(starts, default=None)
        super().__init__(construct if self.position is None else f"{construct} at {self.position}")
