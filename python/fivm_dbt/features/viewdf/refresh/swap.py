"""A viewdf model is built anew beside what is shown, so that readers never see some of its parts.

Its parts are many statements. They go into a table of their own, and in one commit the state becomes what this has.
Where nothing is shown yet, the state itself is filled, and shown in the end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from functools import cached_property, partial
from typing import Any

from fivm_dbt.features.viewdf.plan.model import ViewdfPlan
from fivm_dbt.features.viewdf.refresh.table import PartTable
from fivm_dbt.features.viewdf.spark.statements import copy_parts, create_parts
from fivm_dbt.naming import sibling
from fivm_dbt.parts.intervals import Intervals
from fivm_dbt.plan.model.state_layout import StateLayout
from fivm_dbt.refresh.publish import drop_states
from fivm_dbt.refresh.recorder import Recorder
from fivm_dbt.spark.merge import write_head


class _Beside(ViewdfPlan):
    """A plan whose states lie beside those that are shown."""

    @cached_property
    def layout(self) -> StateLayout:
        return replace(super().layout, relation=beside(self))


def beside(plan: ViewdfPlan) -> str:
    """The table that is filled while the state is shown."""
    return sibling(plan.kept_under, "next")


def begin(
    plan: ViewdfPlan, engine: Recorder, state: PartTable, opened: Mapping[str, Any], *, is_there: bool
) -> PartTable:
    """The table to write the parts into, empty: the ``state``, or one beside it where there are readers.

    The head says from now on that a build is open, unless there is none. ``is_there`` says whether there is a state.
    """
    if not (is_there and engine.exists(plan.relation)):
        state.begin(lambda head: create_parts(plan, head, is_replacing=is_there), opened, is_there=is_there)
        return state
    if state.head is not None:
        state.begin(lambda head: write_head(plan, head), opened, is_there=True)
    building = _Beside(**{f.name: getattr(plan, f.name) for f in fields(plan)})
    new = PartTable(building, engine)
    left = engine.exists(beside(plan))
    new.begin(lambda head: create_parts(building, head, is_replacing=True), opened, is_there=left)
    return new


def show(
    engine: Recorder, state: PartTable, built: PartTable, covered: Mapping[str, Any], gone: Intervals
) -> None:
    """Make what has been built beside it the state, but for parts that are old enough to go, in one commit."""

    copied = partial(copy_parts, state.plan, built.plan, built.version, gone)
    if state.head is None:
        state.begin(copied, covered, is_there=True)
    else:
        # By the head that said that the build is open: who has begun another one since comes first.
        state.write(copied, covered, is_whole=True)
    drop_states(engine, [built.plan.state_relation])
