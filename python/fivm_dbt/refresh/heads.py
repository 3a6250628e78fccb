"""Heads of tables of states say what is known of a model; a commit sets the next (ADR 0028, 0033)."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping
from datetime import datetime, timezone
from time import time_ns
from typing import Any

from fivm_dbt.naming import COVERAGE
from fivm_dbt.plan.model.head import HeadId, NextHead, as_json, noted_head
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.refresh.decide import without_head
from fivm_dbt.refresh.engine import Readable
from fivm_dbt.refresh.observe import Coverage, Finished, State
from fivm_dbt.refresh.recorder import Recorder
from fivm_dbt.spark.formats import FORMAT, Commit, MissingRelation, NotVersioned, Touched
from fivm_dbt.spark.heads import head_query
from fivm_dbt.spark.pieces import whole

_NO_SUCH_COLUMN = re.compile(r"UNRESOLVED_COLUMN|not found in FROM clause")


def now() -> str:
    """This moment, UTC."""
    return datetime.now(timezone.utc).isoformat(timespec="microseconds")


def coverage(plan: Plan, refresh: int, detail: Mapping[str, Any]) -> dict[str, Any]:
    """What the states cover after a refresh."""
    return Coverage(refresh, plan.plan_hash, detail, now()).as_dict()


def with_open(
    finished: Mapping[str, Any], plan: Plan, started: Mapping[str, Any], done: int
) -> dict[str, Any]:
    """What they cover while so many statements of several are ``done``: as before, and what is open."""
    return {**finished, "open": {**started, "done": done}, "open_plan_hash": plan.plan_hash}


def with_nothing(plan: Plan, refresh: int) -> dict[str, Any]:
    """What they cover before their first build, the refresh of this number, is finished."""
    return coverage(plan, refresh - 1, {})


def next_head(before: HeadId, covered: Mapping[str, Any]) -> NextHead:
    """The head after ``before``."""
    return NextHead(before, before.number + 1, uuid.uuid4().hex, as_json(covered))


def first_head(before: HeadId | None, covered: Mapping[str, Any], *, replaces: bool) -> NextHead:
    """The head of a build over a table whose last number is not known, since there is none, or others wrote to it.

    Its number is greater than any that the table has had: the microseconds since 1970, and no refresh is as short
    as one.
    """
    number = max(time_ns() // 1000, 0 if before is None else before.number + 1)
    return NextHead(before, number, uuid.uuid4().hex, as_json(covered), replaces)


def has_set(head: HeadId, commit: Commit, relation: str) -> bool:
    """Whether a commit of a table has set this head, as its note tells."""
    found = noted_head(commit.note, relation)
    return found is not None and found[0] == head


def head_of_build(
    before: HeadId | None,
    newest: Commit | None,
    covered: Mapping[str, Any],
    relation: str,
    *,
    replaces: bool,
) -> NextHead:
    """The head of a build: the next one where the ``newest`` commit has set the one ``before``, else a first one."""
    if before is not None and newest is not None and has_set(before, newest, relation):
        return next_head(before, covered)
    return first_head(before, covered, replaces=replaces)


def had_head(plan: Plan, engine: Recorder) -> bool:
    """Whether there is a table of states, of which somebody has taken the head; raises FIVM404 for another table."""
    if not engine.exists(plan.state_relation):
        return False
    columns = engine.describe(whole(plan.state_relation).sql(dialect="spark"))
    if COVERAGE not in {c.name for c in columns}:
        raise without_head(plan)
    return True


def read_state(engine: Readable, name: str) -> State:
    """What a table of states says by its head, which mostly comes with the look at its newest commit.

    Where somebody took the head, what the last commit told that has set one. Nothing where there is no such table.
    """
    try:
        newest = engine.commits(name, None)[0]
        found = noted(newest, name) or _asked(engine, name, newest.version)
        if found is not None:
            return _state(found[1], found[0], newest.version)
        told = (noted(commit, name) for commit in engine.commits(name, 0))
        known = next((f for f in told if f is not None), None)
    except (MissingRelation, NotVersioned):
        return State()
    return State(version=newest.version) if known is None else _state(known[1], None, newest.version)


def since_head(engine: Readable, name: str, state: Finished) -> tuple[list[Commit], Commit | None]:
    """The commits of a table of states from that of its head on, newest first, and that of the head.

    None of it where its history is not kept any more. What others have written since the head was read is not among
    them: it is met where the head is compared.
    """
    base = int(state.finished.detail["base"])
    since = [c for c in engine.commits(name, max(base, 0)) if base < c.version <= state.version]
    own = [c for c in since if FORMAT.touched(c) is not Touched.FILES]
    return since, own[-1] if own else None


def noted(commit: Commit, name: str) -> tuple[HeadId, Mapping[str, Any]] | None:
    """The head as a commit of a table tells it, if that is the one that has set it.

    Its writer has started from the version before: a note that is beside another version came there by mistake.
    Whoever believes a wrong one writes nothing, as the head is compared with the row.
    """
    found = noted_head(commit.note, name)
    if found is None or found[1]["detail"]["base"] + 1 != commit.version:
        return None
    return found


def _asked(engine: Readable, name: str, version: int) -> tuple[HeadId, Mapping[str, Any]] | None:
    try:
        rows = engine.query(head_query(name, version).sql(dialect="spark"))
    except Exception as error:
        if _NO_SUCH_COLUMN.search(str(error)):
            return None
        raise
    if not rows:
        return None
    ((number, commit, covered),) = rows
    return HeadId(int(str(number)), str(commit)), json.loads(str(covered))


def _state(covered: Mapping[str, Any], head: HeadId | None, version: int) -> State:
    """What a head says: the refresh that is finished, and after it one that is open.

    While a first build is open none is finished.
    """
    number, at = int(covered["refresh"]), str(covered["recorded_at"])
    finished = Coverage(number, str(covered["plan_hash"]), covered["detail"], at)
    if "open" not in covered:
        return Finished(finished, None, head, version)
    is_first = "kind" not in covered["detail"]
    unfinished = Coverage(number + 1, str(covered["open_plan_hash"]), covered["open"], at)
    if is_first:
        return State(None, unfinished, head, version)
    return Finished(finished, unfinished, head, version)
