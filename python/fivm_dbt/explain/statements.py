"""A plan shows the statements of a build and of a refresh."""

from __future__ import annotations

from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.spark.merge import Way, write_deltas
from fivm_dbt.spark.pieces import pretty
from fivm_dbt.spark.places import TOUCHED, Place
from fivm_dbt.spark.statements import statement
from fivm_dbt.steps.applying import REPLACED_FILES, REPLACED_ROWS, anew_up_to, not_appended_to
from fivm_dbt.steps.binding import Binding, staged_input, staged_state
from fivm_dbt.steps.example import EXAMPLE_HEAD, EXAMPLE_TIMES, example
from fivm_dbt.steps.kinds import (
    Build,
    Count,
    Factorise,
    KeepSnapshot,
    Locate,
    StageChange,
    StageDelta,
    StageFactor,
    StageInput,
    StageKeys,
    StageState,
    Step,
    Write,
)
from fivm_dbt.steps.order import builds, captures, snapshots, updates
from fivm_dbt.viewtree.statistics import APPENDED_ROWS

_OLD, _NEW = 1, 2
"""The versions shown: every old side is version 1, every new side version 2."""


def statement_lines(plan: Plan) -> list[str]:
    """The statements of a build and of a refresh in which every input changed."""
    everything = example(plan, _OLD, _NEW)
    *deltas, write = updates(plan)
    kept = snapshots(item.name for item in plan.inputs if item.starts_with_snapshot)
    steps = (*builds(plan), *captures(plan), *deltas, *kept, write)
    return [line for step in steps for line in _statement(plan, step, everything)]


def sides(plan: Plan) -> str:
    """What the old and the new side are in the statements that are shown."""
    times = f"from {EXAMPLE_TIMES.old.timestamp_ntz} to {EXAMPLE_TIMES.new.timestamp_ntz}"
    versions = f"old side = version {_OLD}, new side = version {_NEW}"
    clock = f", {times}" if plan.clock_kinds else ""
    changed = f", changed rows {times}" if plan.times_read else ""
    return f"{versions}{clock}{changed}"


def _statement(plan: Plan, step: Step, binding: Binding) -> list[str]:
    """A statement under what it is for; nothing where the step has none.

    What is asked for partitions stands in the statements behind it; products have lines of their own.
    """
    match step:
        case Locate() | Count() | StageFactor() | Factorise():
            return []
        case Build():
            purpose = "build"
        case StageState(view):
            purpose = f"build of {view.name}, staged as {staged_state(plan, view)}"
        case StageInput(relation):
            purpose = f"staged as {staged_input(plan, relation)}"
        case StageKeys(_, key_set, _):
            where = "asked for the partitions that they lie in"
            if not key_set.is_inlined:
                where = f"staged as {staged_input(plan, key_set.name)}"
            what = "what the change meets first" if key_set.has_rows else "affected keys"
            purpose = f"{what}, {where}"
        case StageDelta(view):
            purpose = (
                f"staged as {staged_state(plan, view)}; terms of inputs that did not change are left out"
            )
        case StageChange(view):
            purpose = f"the change of this view, staged as {staged_input(plan, view.name)}"
        case KeepSnapshot(relation):
            purpose = f"the rows of {relation} that the next refresh compares with"
        case Write():
            places = [Place(view, (TOUCHED,)) for view in plan.stored if binding.is_changed_by(view)]
            if not places:
                return []
            written = write_deltas(plan, places, _OLD, EXAMPLE_HEAD, way=_way(plan))
            return [f"-- with the touched partitions as literals{_or_anew(plan)}", f"{pretty(written)};"]
    query = statement(plan, step, binding)
    return [] if query is None else [f"-- {purpose}", f"{pretty(query)};"]


def _way(plan: Plan) -> Way:
    """How large deltas are written, or all."""
    if plan.config.fivm_apply == "append":
        return "append" if not_appended_to(plan) is None else "merge"
    return "replace" if plan.config.fivm_apply == "replace" else "merge"


def _or_anew(plan: Plan) -> str:
    """What ``fivm_apply: auto`` may do instead."""
    if plan.config.fivm_apply != "auto":
        return ""
    most, fewer = (
        round(anew_up_to(plan, plan.top, REPLACED_FILES, writes_changes=writes)) for writes in (True, False)
    )
    over_thrift = f", over Thrift {fewer:,}" if fewer != most else ""
    by_changed = ", a million for each row that changes" if most > REPLACED_ROWS else ""
    anew = f"; written anew while partitions have up to {most:,} rows{by_changed}{over_thrift}"
    anew = f"{anew}; few changed rows of large ones are deleted in their files (fivm_apply)"
    if not_appended_to(plan) is not None:
        return anew
    return f"; appended while what is added up has up to {APPENDED_ROWS:,} rows{anew}"
