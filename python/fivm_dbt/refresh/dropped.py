"""Parts of an input may have been dropped since the last refresh.

A viewdf model has written down which of its parts it has dropped. Of other relations it is old parts that have lost
all the rows they had. Either follows from the two versions alone, so that a refresh that is begun again finds the same:
no viewdf model drops a part that somebody who reads it has not seen (:mod:`fivm_dbt.features.viewdf`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from fivm_dbt.errors import FivmError
from fivm_dbt.parts.intervals import Intervals
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.refresh.heads import read_state
from fivm_dbt.refresh.observe import Coverage
from fivm_dbt.refresh.recorder import Recorder
from fivm_dbt.spark.dropped import losing_parts_query, newest_query, rows_left_query
from fivm_dbt.spark.part_time import counted
from fivm_dbt.steps.binding import BoundInput

Dropped = Mapping[str, Intervals]
"""By input the parts that have been dropped, and whose results are kept."""


def dropped_in(plan: Plan, engine: Recorder, bound: BoundInput, staged: str) -> Intervals:
    """The parts whose rows a staged change takes away because of their age (:class:`Retention`)."""
    item = plan.input(bound.name)
    if item.retention is None:
        return Intervals()
    came = _numbers(engine.query(losing_parts_query(item, staged)))
    losing = Intervals.numbers(came)
    if not losing:
        return losing
    if item.relation.presentation is not None:
        return losing & _dropped_by(engine, item.table)
    # Nothing older than that can make a part old enough, months being of different lengths.
    column = item.relation.column(item.retention.column)
    assert column is not None
    since = counted(column.type, item.retention.length).start_of(losing.first - 1) + item.retention.age
    ((newest,),) = engine.query(newest_query(plan, item, bound.new, since))
    if newest is None:
        return Intervals()
    old = item.retention.old(losing, int(str(newest)))
    if not old:
        return old
    left = _numbers(engine.query(rows_left_query(plan, item, bound.new, old)))
    # What is left has come since: no row that was there is there still.
    return Intervals.numbers(part for part in old if left.get(part, 0) == came[part])


def _dropped_by(engine: Recorder, table: str) -> Intervals:
    """The parts that a viewdf model has dropped: its head says so from the same commit on."""
    finished = read_state(engine, table).finished
    return Intervals.read(finished.detail["parts"]["dropped"] if finished is not None else "none")


def recorded_drops(covered: Coverage) -> dict[str, Intervals]:
    """By input the parts of which a model has results that it could not compute again."""
    return {name: Intervals.read(text) for name, text in covered.detail.get("dropped", {}).items()}


def check_rebuild(plan: Plan, dropped: Dropped, reason: str) -> None:
    """Raise FIVM206 where a rebuild that nobody has asked for would lose what was computed from dropped parts."""
    gone = ", ".join(f"{name}[{parts}]" for name, parts in sorted(dropped.items()) if parts)
    if gone:
        raise FivmError(
            "FIVM206",
            f"{plan.model} has to be rebuilt ({reason}), but has results of parts that were dropped: {gone}",
            remedy="undo the change, or accept that they are lost: run with --full-refresh",
            model=plan.model,
        )


def _numbers(rows: Iterable[Sequence[object]]) -> dict[int, int]:
    return {int(str(part)): int(str(many)) for part, many in rows}
