"""By which statements a staged delta reaches its state: one, one per partition, or one for what only comes besides."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import TIMESTAMP
from fivm_dbt.plan.plan import Plan, View
from fivm_dbt.refresh.engine import Row
from fivm_dbt.spark.reads import Bounds

MAX_LITERALS = 1000
"""Above this many touched partitions a MERGE is not restricted to them: the list would cost more than it saves."""


_MICROSECOND, _EPOCH = datetime.timedelta(microseconds=1), datetime.datetime(1970, 1, 1)
_FIRST = (datetime.datetime(1, 1, 2) - _EPOCH) // _MICROSECOND
_LAST = (datetime.datetime(9999, 12, 30) - _EPOCH) // _MICROSECOND
"""Between these microseconds times can be written down as literals."""


@dataclass(frozen=True)
class Write:
    """A statement that brings so many ``rows`` of a delta into some partitions of a state."""

    partitions: tuple[exp.Expr, ...]
    rows: int
    bounds: Bounds | None
    is_replaced: bool

    @property
    def known(self) -> tuple[exp.Expr, ...] | None:
        """The partitions, if they are few enough to be written into the statement."""
        return self.partitions if len(self.partitions) <= MAX_LITERALS else None


def writes(plan: Plan, view: View, touched: Sequence[Row], *, is_replaced: bool) -> tuple[Write, ...]:
    """The statements by which a delta is written, in an order that a repeated attempt has too.

    ``touched`` is what :func:`fivm_dbt.spark.state.touched_query` gives. Where a state is bounded, and to some of its
    partitions keys only come, these are written within their bounds: as nothing of them is there yet, that adds files
    and reads none. The others are first, as they may raise an alarm.
    """
    may_append = view.state.bounded_by is not None and plan.config.fivm_apply != "merge"
    if _is_by_partition(plan, view):
        groups = [[row] for row in touched]
    elif may_append and len(touched) <= MAX_LITERALS:
        groups = [[row for row in touched if _only_comes(row) is comes] for comes in (False, True)]
    else:
        groups = [list(touched)]
    return tuple(_write(view, group, may_append, is_replaced) for group in groups if group)


def _write(view: View, group: Sequence[Row], may_append: bool, is_replaced: bool) -> Write:
    literals = tuple(literal(row[0], view.state.partitioning.type) for row in group)
    rows = sum(int(str(row[1])) for row in group)
    bounds = _bounds(view, group)
    if bounds is None:
        return Write(literals, rows, None, is_replaced)
    if may_append and all(_only_comes(row) for row in group):
        return Write(literals, rows, bounds, is_replaced=True)
    return Write(literals, rows, None if is_replaced else bounds, is_replaced)


def _bounds(view: View, group: Sequence[Row]) -> Bounds | None:
    """The bounds of a delta in some partitions of a bounded state; None where one of them has no time, or one that no
    literal has."""
    key = view.state.bounding
    if key is None or any(row[-2] is None for row in group):
        return None
    low, high = min(int(str(row[-2])) for row in group), max(int(str(row[-1])) for row in group)
    is_written = key.type != TIMESTAMP or _FIRST <= low <= high <= _LAST
    return Bounds(key.name, key.type, low, high) if is_written else None


def _only_comes(row: Row) -> bool:
    """Whether in a touched partition of a bounded state, which has bounds, no key of the delta loses rows."""
    return int(str(row[-3])) > 0 and row[-2] is not None


def _is_by_partition(plan: Plan, view: View) -> bool:
    """Whether each partition has a MERGE of its own.

    Not where doubles are added up, or steps: a MERGE of nothing but their rest, or of steps that undo each other, is no
    commit, and those that are done are counted.
    """
    has_rest = view.step is not None or any(p.component.type.is_floating for p in view.state.payload)
    return plan.config.fivm_merge == "per_partition" and not has_rest


def literal(value: object, type_: SparkType) -> exp.Expr:
    """A partition value, or its text, as a literal of its type."""
    if value is None:
        return exp.Null()
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if isinstance(value, (int, Decimal, str)) and type_.is_integral:
        return exp.Literal.number(int(value))
    if isinstance(value, datetime.datetime) and type_.text == "date":
        value = value.date()
    text = exp.Literal.string(str(value))
    return text if type_.is_string else exp.cast(text, type_.text, dialect="spark")
