"""A pattern whose separators are known has two inner views: its rows by period, and how many separate in each of a key.

It has none over an input that each refresh can read, and of one that lies in the order of time the second alone: its
rows near the change are read. No state of the pattern is kept. A change reads the rows between
the nearest periods with a separator, on either side (:mod:`fivm_dbt.features.match.delta.separators`). Patterns that
number their matches, or that look at rows beside their own by PREV and NEXT, are left to marks.
"""

from __future__ import annotations

from fivm_dbt.catalog.types import BIGINT, INT
from fivm_dbt.features.match.ir.match import Match
from fivm_dbt.features.match.ir.separated import PART, SEPARATORS, Near, Separated, Stored, separators_by_part
from fivm_dbt.features.match.plan.measured import are_often, chosen
from fivm_dbt.features.match.plan.rows import KeptColumns
from fivm_dbt.ir.node import Node
from fivm_dbt.ir.part_columns import period_of
from fivm_dbt.ir.rename import rebuilt
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.parts.length import Length
from fivm_dbt.plan.keep.kept_views import KeptViews, column_of
from fivm_dbt.plan.keep.time.time_class import TIME_CLASSES
from fivm_dbt.plan.keep.ways import WantedParts
from fivm_dbt.plan.model.view import TimeClass


def by_separators(kept: KeptViews, node: Match, parts: WantedParts, length: Length) -> Separated | None:
    """``node`` over kept rows, between its separators; None where these are not known, or rare."""
    separates = node.separates
    if separates is None or node.shifts or not parts.separates or _has_a_key_twice(node):
        return None
    time = next(i for i in node.columns if i.name == node.order[0].column)
    if not are_often(kept, node, period_of(time.value, time.type, length), separates, parts):
        return None
    # Of a key with few rows a day there would be as many counts as rows.
    length, _ = chosen(kept, node, parts, length)
    part = period_of(time.value, time.type, length)
    columns = KeptColumns(kept.alias())
    for item in (*node.partition, *node.columns):
        columns.column(item.name, item.value, item.type)
    period = columns.column(PART, part, BIGINT)
    columns.column(SEPARATORS, separates, INT)
    rows = columns.of(node.input)
    if not all(i.type.is_groupable for i in (*rows.items, *node.items)):
        return None
    kept.part_length = kept.part_length or length
    is_read = parts.are_read(kept.copied(node.input))
    is_near = not is_read and parts.lie_in_order(kept, node.input, (time.value,))
    scan: Node = rows
    if not is_read and not is_near:
        scan = kept.keep(rows, (), "the rows of a pattern, by period", column_of(period))
    table = scan.fields[0].table
    placed = {i.value: Scalar.column(table, i.name) for i in rows.items}
    match = rebuilt(node, (scan,), lambda value: placed.get(value, value))
    at = Scalar.column(table, column_of(period))
    if is_read:
        return Separated(match, at)
    counts = separators_by_part(match, at, kept.alias)
    names = tuple(k.name for k in counts.keys[:-1])
    reason = "how many rows of a key no match has, in each period"
    stored = kept.keep(counts, names, reason)
    near = Near(placed[time.value], length) if is_near else None
    return Separated(match, at, Stored(stored.relation, stored.columns), near)


@TIME_CLASSES.add(Separated)
def time_class_of_separated(node: Separated) -> TimeClass:
    """The rows of some parts are enough."""
    where = "between the nearest parts, on either side of the change, with a row that no match has"
    return TimeClass("windowed", f"the rows of an affected key {where}")


def _has_a_key_twice(node: Match) -> bool:
    return len({i.value for i in node.partition}) < len(node.partition)
