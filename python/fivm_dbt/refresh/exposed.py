"""A model with ``fivm_expose: table`` is a table: after each refresh it is brought to what the states show.

That is a commit of its own, after that of the states. Its note says which version of the states it has. So a run that
was cut off between the two is completed by the next one, and a table that somebody else has written to is copied anew.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from time import time_ns
from typing import Any

from fivm_dbt.plan.model.head import Note
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.refresh.observe import RecordedInput, observe_input
from fivm_dbt.refresh.recorder import Recorder
from fivm_dbt.spark.exposed import (
    Bounds,
    as_input,
    bounding,
    bounds_query,
    changed_rows,
    copied,
    followed,
    staged_rows,
)
from fivm_dbt.spark.formats import (
    FORMAT,
    ChangeFeedUnavailable,
    Commit,
    MissingRelation,
    NotVersioned,
    Touched,
)
from fivm_dbt.spark.pieces import Statement

_SHOWS = "fivm_shows"


def bring_up_to_date(plan: Plan, engine: Recorder) -> bool:
    """Make the table what the states show; whether it was not."""
    newest = engine.commits(plan.state_relation, None)[0]
    found = _shown(plan, engine)
    if found is not None and found[1].commit == _alike(newest):
        return False
    if found is None or not _can_follow(plan, engine, found[1]):
        engine.clear_the_way()
        _commit(plan, engine, copied(plan, newest.version), newest)
        return True
    _follow(plan, engine, found[0], found[1].commit, newest)
    return True


def _follow(plan: Plan, engine: Recorder, own: int, since: Commit, newest: Commit) -> None:
    """Apply what has changed since a version of the states to the table at its version ``own``."""
    name = staged_rows(plan)
    try:
        engine.stage(name, changed_rows(plan, since.version, newest.version))
    except ChangeFeedUnavailable:
        _commit(plan, engine, copied(plan, newest.version), newest)
        return
    column, bounds = bounding(plan), None
    if column is not None:
        ((low, high, has_null),) = engine.query(bounds_query(plan, column))
        bounds = Bounds(column, low, high, bool(has_null))
    if bounds is None or not bounds.is_empty:
        _commit(plan, engine, followed(plan, own, bounds), newest)
    engine.unstage(name)


def _shown(plan: Plan, engine: Recorder) -> tuple[int, RecordedInput] | None:
    """The version of the table, and the version of the states that it has; None where nobody can say that."""
    try:
        commits = engine.commits(plan.relation, None)
        if _keeps_rows(commits[0]):
            commits = engine.commits(plan.relation, 0)
    except (MissingRelation, NotVersioned):
        return None
    last = next((c for c in commits if not _keeps_rows(c)), None)
    told = _noted(last) if last is not None else None
    if told is None or told.get("states") != plan.state_relation:
        return None
    commit = Commit(int(told["version"]), str(told["timestamp"]), str(told["operation"]))
    return commits[0].version, RecordedInput(plan.state_relation, commit, None)


def _keeps_rows(commit: Commit) -> bool:
    return FORMAT.touched(commit) is Touched.FILES or commit.operation in FORMAT.describing


def _noted(commit: Commit) -> Mapping[str, Any] | None:
    try:
        found = json.loads(commit.note or "null")
    except ValueError:
        return None
    return found.get(_SHOWS) if isinstance(found, dict) else None


def _can_follow(plan: Plan, engine: Recorder, recorded: RecordedInput) -> bool:
    """Whether the change feed of the states tells what has changed since, and rows can be compared."""
    observed = observe_input(plan, engine, as_input(plan), recorded)
    is_told = observed.same_columns and not (observed.recreated or observed.forgotten or observed.is_summed)
    return is_told and all(c.type.is_groupable for c in plan.shown)


def _alike(commit: Commit) -> Commit:
    return Commit(commit.version, commit.timestamp, commit.operation)


def _commit(plan: Plan, engine: Recorder, statement: Statement, newest: Commit) -> None:
    told = {
        "states": plan.state_relation,
        "version": newest.version,
        "timestamp": newest.timestamp,
        "operation": newest.operation,
    }
    # A number that is greater than any that the table has had.
    note = Note(plan.relation, time_ns() // 1000, json.dumps({_SHOWS: told}))
    try:
        engine.commit(statement, note)
    except Exception as error:
        if not FORMAT.is_conflict(error):
            raise
        # Whoever was faster has written a version of the states too, and the next run goes on from that.
        engine.progress(f"{plan.model}: another run has written the table meanwhile")
