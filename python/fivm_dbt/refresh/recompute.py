"""A recomputed model's state is written from the user's own text over pinned inputs, in one commit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fivm_dbt.plan.model.head import NextHead
from fivm_dbt.plan.model.plan import Plan, RecomputedPlan
from fivm_dbt.plan.model.recompute import InputReach, RecomputedParts
from fivm_dbt.refresh.observe import Observed, RecordedInput, keeps_columns
from fivm_dbt.refresh.oracle import recompute_sql
from fivm_dbt.refresh.recorder import Recorder
from fivm_dbt.spark.formats import FORMAT, ChangeFeedUnavailable
from fivm_dbt.spark.near_changes import Range, daily, in_ranges, times_of
from fivm_dbt.spark.pieces import Condition
from fivm_dbt.spark.reads import presented
from fivm_dbt.spark.recomputed import recomputed_rows, write_rows
from fivm_dbt.spark.validate import validate
from fivm_dbt.steps.binding import Binding


@dataclass(frozen=True)
class Touched:
    """The rows of a result that changes can reach, a condition on its state; and of each input, what these need."""

    rows: Condition
    inputs: Mapping[str, Condition]


def write_recomputed(
    plan: Plan, engine: Recorder, binding: Binding, head: NextHead, touched: Touched | None = None
) -> None:
    """``CREATE OR REPLACE TABLE state AS SELECT ... FROM (text)``, or REPLACE WHERE for the rows that are ``touched``.

    Either sets the head. Its change feed has every old row as deleted and every new one as inserted, which nets to the
    change for whoever reads this model. Raises FIVM901 where a read is not pinned.
    """
    clock = binding.clock.new if binding.clock is not None else None
    versions = {b.name: b.new for b in binding.inputs}
    within = touched.inputs if touched is not None else {}
    rows = recomputed_rows(plan, recompute_sql(plan, versions, clock, within))
    if touched is not None:
        rows = rows.where(touched.rows.copy(), copy=False)
    validate(rows.sql(dialect="spark"), ())
    written = write_rows(plan, rows, head, None if touched is None else touched.rows)
    engine.commit(written, head.note(plan.state_relation))


def find_touched(
    plan: RecomputedPlan,
    engine: Recorder,
    observed: Mapping[str, Observed],
    recorded: Mapping[str, RecordedInput],
) -> Touched | None:
    """The rows that the changes of the moved inputs can reach, by the times in their change feeds.

    ``result[t] ← input[t + low .. t + high]`` is turned around for those that moved, and taken as it is for those that
    are read. None where all rows have to be computed: an input moved whose times are not related to the result's, one
    has no change feed, or rows without a time came or went that are in the reach of others.
    """
    parts = plan.recompute.parts
    if parts is None:
        return None
    ranges: list[Range] = []
    for moved in (o for o in observed.values() if o.moved):
        reach = parts.reach(moved.name)
        if reach is None or moved.recreated or moved.forgotten or not moved.same_columns:
            return None
        if not engine.has_change_feed(moved.table):
            return None
        found = _reached(plan, engine, reach, recorded[moved.name].commit.version, moved.head.version)
        if found is None or not keeps_columns(engine, moved):
            return None
        ranges += found
    rows = in_ranges(parts.column, parts.type, ranges, or_null=True)
    return None if rows is None else Touched(rows, dict(_needed(parts, ranges)))


def _reached(plan: Plan, engine: Recorder, reach: InputReach, old: int, new: int) -> list[Range] | None:
    """The times of the result that a change of an input reaches; None where that may be any."""
    presentation = plan.input(reach.relation).relation.presentation
    source = FORMAT.changes(reach.relation if presentation is None else presentation.root, old, new)
    if presentation is not None:
        source = presented(presentation, source).subquery("changed")
    try:
        days = engine.query(daily(reach.column, reach.type).from_(source))
    except ChangeFeedUnavailable:
        return None
    is_open = reach.low is None or reach.high is None
    if is_open and any(first is None for first, _ in days):
        # In the order of time rows without one come first, and a frame may reach from any row to them.
        return None
    times = times_of(days, reach.type)
    if times is None:
        return None
    return [
        (
            None if reach.high is None else first - reach.high,
            None if reach.low is None else last - reach.low,
        )
        for first, last in times.ranges
    ]


def _needed(parts: RecomputedParts, ranges: list[Range]) -> list[tuple[str, Condition]]:
    """Of each input whose times are known, the condition on the rows that the result's rows in ``ranges`` need."""
    found = []
    for reach in parts.inputs:
        moved: list[Range] = [
            (
                None if low is None or reach.low is None else low + reach.low,
                None if high is None or reach.high is None else high + reach.high,
            )
            for low, high in ranges
        ]
        test = in_ranges(reach.column, reach.type, moved, or_null=True)
        if test is not None:
            found.append((reach.relation, test))
    return found
