"""A recomputed model's state is written from the user's own text over pinned inputs, in one commit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fivm_dbt.plan.model.head import NextHead
from fivm_dbt.plan.model.plan import Plan, RecomputedPlan
from fivm_dbt.plan.model.recompute import RecomputedParts
from fivm_dbt.refresh.oracle import recompute_sql
from fivm_dbt.refresh.reach import ChangesByTime, needed
from fivm_dbt.refresh.recorder import Recorder
from fivm_dbt.spark.near_changes import Range, in_ranges
from fivm_dbt.spark.pieces import Condition
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


def find_touched(plan: RecomputedPlan, changes: ChangesByTime) -> Touched | None:
    """The rows that the changes of the moved inputs can reach, by the times in their change feeds.

    None where all rows have to be computed: an input moved whose times are not related to the result's, one has no
    change feed, or rows without a time came or went that are in the reach of others.
    """
    parts = plan.recompute.parts
    if parts is None or not changes.are_told:
        return None
    ranges: list[Range] = []
    for name in sorted(changes.moved):
        reach = parts.reach(name)
        found = None if reach is None else changes.reached(reach)
        if found is None:
            return None
        ranges += found
    rows = in_ranges(parts.column, parts.type, ranges, or_null=True)
    return None if rows is None else Touched(rows, dict(_needed(parts, ranges)))


def _needed(parts: RecomputedParts, ranges: list[Range]) -> list[tuple[str, Condition]]:
    """Of each input whose times are known, the condition on the rows that the result's rows in ``ranges`` need."""
    tests = ((i.relation, in_ranges(i.column, i.type, needed(i, ranges), or_null=True)) for i in parts.inputs)
    return [(relation, test) for relation, test in tests if test is not None]
