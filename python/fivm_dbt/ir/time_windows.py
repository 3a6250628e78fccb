"""A row may lie in several sliding windows of time; this operator repeats it for each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import gcd

from sqlglot import exp

from fivm_dbt.catalog.types import BIGINT
from fivm_dbt.ir.calls import Call
from fivm_dbt.ir.instants import aligned
from fivm_dbt.ir.node import Node
from fivm_dbt.ir.nodes import Explode
from fivm_dbt.ir.scalar import Scalar

WINDOW_START = "start_us"
"""The column of a window's start, in microseconds since 1970."""


@dataclass(frozen=True, kw_only=True)
class TimeWindows(Explode):
    """``input`` with a row for each window that contains the time ``at``: those that start in ``(at − length, at]``.

    All in microseconds: windows start at ``offset + n · slide``. ``at`` is an expression over the fields of ``input``.
    Rows of one pane, of length ``gcd(length, slide)``, lie in the same windows (Li et al., "No pane, no gain").
    """

    at: Scalar
    length: int
    slide: int
    offset: int

    @staticmethod
    def of(node: Node, alias: str, at: Scalar, length: int, slide: int, offset: int) -> TimeWindows:
        columns = ((WINDOW_START, BIGINT),)
        generator = _starts(at, length, slide, offset)
        return TimeWindows(node, alias, generator, columns, at=at, length=length, slide=slide, offset=offset)

    def over(self, node: Node, at: Scalar) -> TimeWindows:
        """The windows of other rows, whose time is ``at``."""
        return replace(self, input=node, generator=self.starts(at), at=at)

    def starts(self, at: Scalar) -> Scalar:
        """A generator of the starts of the windows that contain ``at``."""
        return _starts(at, self.length, self.slide, self.offset)

    @property
    def pane(self) -> Scalar:
        """The start of the pane in which a row lies."""
        return aligned(self.at, gcd(self.length, self.slide), self.offset)

    @property
    def described(self) -> str:
        start = f" start {self.offset}" if self.offset else ""
        return f"TimeWindows {self.alias} of {self.at.sql} length {self.length} slide {self.slide}{start}"


def _starts(at: Scalar, length: int, slide: int, offset: int) -> Scalar:
    """A generator of the starts of all windows that contain ``at``, the last one first."""
    last = aligned(at, slide, offset).sql
    return Scalar.parse(f"EXPLODE(SEQUENCE({last}, {at.sql} - {length} + 1, -{slide}))")


def is_bound_of_window(value: Scalar) -> bool:
    """Whether a value is the start or the end of a window of time."""
    ast = value.ast()
    is_local = isinstance(ast, exp.Cast) and ast.to.this == exp.DType.TIMESTAMPNTZ
    bound = Scalar(ast.this) if is_local else value
    return Call.of(bound).name == "timestamp_micros"
