"""Sessions are recomputed from their own old rows: enough of a row is kept to find those near a change.

Between two rows of a session no more than the gap goes by, so any session that a changed row belonged to, or comes to
belong to, has a row at most a gap away from it. In blocks as long as the gap such rows lie in the block of the change
or in those beside it (:mod:`fivm_dbt.features.sessions.delta.sessions`).
"""

from __future__ import annotations

from dataclasses import replace

from fivm_dbt.catalog.types import BIGINT, DATE
from fivm_dbt.features.sessions.delta.sessions import days_between
from fivm_dbt.ir.aggregate import Aggregate
from fivm_dbt.ir.instants import aligned, timestamp, utc_day, utc_day_number
from fivm_dbt.ir.near import Days, Near
from fivm_dbt.ir.node import Item
from fivm_dbt.ir.reads import Scan
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.ir.sessions import SESSION_START, SESSION_UNTIL, Sessions
from fivm_dbt.naming import unique_name
from fivm_dbt.plan.keep.ways import OVER_KEPT, WITH_OWN_ROWS


@WITH_OWN_ROWS.add(Sessions)
def near_sessions(node: Sessions) -> Sessions:
    """``node`` with the time of each row, its block and the day of that in UTC among its columns."""
    block = aligned(node.at, node.gap)
    day = utc_day(utc_day_number(block))
    partition = (*node.partition, Item("block_us", block, BIGINT), Item("block_day", day, DATE))
    items = list(node.items)
    bounds = (*node.bounds, SESSION_UNTIL)
    for key in (*partition, Item("at_us", node.at, BIGINT)):
        if all(item.value != key.value for item in items):
            taken = {*bounds, *(i.name.lower() for i in items)}
            items.append(replace(key, name=unique_name(key.name, taken)))
    near = Near(block, day, node.gap, (-1, 1), (-1, 1))
    return replace(node, partition=partition, items=tuple(items), near=near, bounds=bounds)


@OVER_KEPT.add(Sessions)
def over_sessions(node: Aggregate, sessions: Sessions) -> Aggregate | None:
    """``node`` over a scan of the kept ``sessions`` by which it groups, with where their rows are.

    None where it groups by less, so that a group may have rows of several sessions.
    """
    rows = node.input
    near = sessions.near
    if not isinstance(rows, Scan) or near is None:
        return None
    names = {item.value: item.name for item in sessions.items}
    start = Scalar.column(rows.alias, SESSION_START)
    values = {k.value for k in node.keys}
    of = {Scalar.column(rows.alias, names[k.value]) for k in sessions.keys}
    if not of <= values or values.isdisjoint({start, timestamp(start)}):
        return None
    last = Scalar.parse(f"{Scalar.column(rows.alias, SESSION_UNTIL).sql} - {sessions.gap}")
    first_day, last_day = days_between(start, last, sessions.gap)
    return replace(node, near=Days(Scalar.column(rows.alias, names[near.day]), first_day, last_day))
