"""An engine may write deltas itself in the place of a statement: with the change feed, and with deletion vectors."""

from __future__ import annotations

from fivm_dbt.plan.model.head import NextHead
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.refresh.recorder import OwnRows, Recorder
from fivm_dbt.refresh.writes import Write
from fivm_dbt.spark.added import superseded
from fivm_dbt.spark.replace import new_rows, replaced_rows
from fivm_dbt.steps.binding import Binding, staged_old
from fivm_dbt.steps.deletion_vectors import BROADCAST_ROWS


def own_rows(plan: Plan, engine: Recorder, write: Write, binding: Binding, head: NextHead) -> OwnRows | None:
    """What the engine may write, None for the rows of the statement.

    Where rows are to be deleted, they are staged with their places. If no commit has allowed that yet, their partitions
    are written anew once more.
    """
    if not write.is_told and not write.deleted:
        return None
    assert not binding.tails, "no tail of a model that others read, and none beside vectors"
    before = binding.version_before
    if not write.deleted or not engine.has_vectors(plan.state_relation):
        rows = new_rows(plan, write.every, before, head, is_small=write.is_small, is_told=write.is_told)
        return OwnRows(rows, tells_changes=write.is_told, allows_vectors=bool(write.deleted))
    for place in write.deleted:
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
        deleted=write.deleted,
    )
    return OwnRows(
        rows,
        tells_changes=write.is_told,
        instead=replaced_rows(plan, write.places, write.closed),
        deleted=tuple(staged_old(plan, place.view) for place in write.deleted),
    )
