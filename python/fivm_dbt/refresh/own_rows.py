"""An engine may write deltas itself in the place of a statement: with the change feed, and with marks on what goes."""

from __future__ import annotations

from fivm_dbt.plan.model.head import NextHead
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.refresh.recorder import OwnRows, Recorder
from fivm_dbt.refresh.writes import Write
from fivm_dbt.spark.added import superseded
from fivm_dbt.spark.replace import new_rows, replaced_rows
from fivm_dbt.steps.binding import Binding, staged_old
from fivm_dbt.steps.marking import BROADCAST_ROWS


def own_rows(plan: Plan, engine: Recorder, write: Write, binding: Binding, head: NextHead) -> OwnRows | None:
    """What the engine may write, None for the rows of the statement.

    Where rows are to be marked, they are staged with their places. If no commit has allowed that yet, their partitions
    are written anew once more.
    """
    if not write.is_told and not write.marked:
        return None
    assert not binding.tails, "no tail of a model that others read, and none beside marks"
    before = binding.version_before
    if not write.marked or not engine.has_marks(plan.state_relation):
        rows = new_rows(plan, write.every, before, head, is_small=write.is_small, is_told=write.is_told)
        return OwnRows(rows, tells_changes=write.is_told, allows_marks=bool(write.marked))
    for place in write.marked:
        is_small = write.rows <= BROADCAST_ROWS
        old = superseded(plan, place.view, before, place.of_own(), is_small=is_small)
        engine.stage(staged_old(plan, place.view), old)
    rows = new_rows(
        plan,
        write.places,
        before,
        head,
        is_small=write.adds_few,
        is_told=write.is_told,
        marked=write.marked,
    )
    return OwnRows(
        rows,
        tells_changes=write.is_told,
        instead=replaced_rows(plan, write.places),
        marked=tuple(staged_old(plan, place.view) for place in write.marked),
    )
