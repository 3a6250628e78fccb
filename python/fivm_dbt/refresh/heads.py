"""What the heads of state tables say about models, in the form of the journal: one entry per model, always complete."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from time import time_ns
from typing import Any

from sqlglot import exp

from fivm_dbt.naming import COVERAGE, sibling
from fivm_dbt.plan.head import HeadId, NextHead, as_json, noted_head
from fivm_dbt.plan.plan import Plan
from fivm_dbt.refresh.decide import without_head
from fivm_dbt.refresh.engine import Commit, Engine, MissingRelation, NotVersioned
from fivm_dbt.refresh.journal import Entry, Journal, now
from fivm_dbt.refresh.recorder import Recorder
from fivm_dbt.spark.heads import head_query
from fivm_dbt.spark.pieces import table

_NO_SUCH_COLUMN = re.compile(r"UNRESOLVED_COLUMN|not found in FROM clause")


def coverage(plan: Plan, refresh: int, detail: Mapping[str, Any]) -> dict[str, Any]:
    """What the states cover after a refresh: its number, the plan, and what a *finished* entry has."""
    return {"refresh": refresh, "plan_hash": plan.plan_hash, "detail": dict(detail), "recorded_at": now()}


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


def head_of(finished: Entry | None) -> HeadId | None:
    """The head that an entry was read from, None where it is of the journal's table."""
    found = finished.detail.get("head") if finished is not None else None
    return None if found is None else HeadId(int(found["number"]), str(found["commit"]))


def had_head(plan: Plan, engine: Recorder) -> bool:
    """Whether there is a table of states, of which somebody has taken the head; raises FIVM404 for another table."""
    if not engine.exists(plan.state_relation):
        return False
    columns = engine.describe(exp.select("*").from_(table(plan.state_relation)).sql(dialect="spark"))
    if COVERAGE not in {c.name for c in columns}:
        raise without_head(plan)
    return True


class HeadedJournal:
    """A journal that asks the model's table of states first.

    Models that have no such table, as those of older layouts, are in the ``inner`` journal.
    """

    def __init__(self, inner: Journal, engine: Engine) -> None:
        self._inner = inner
        self._engine = engine

    @staticmethod
    def over(journal: Journal, engine: Engine) -> Journal:
        return journal if isinstance(journal, HeadedJournal) else HeadedJournal(journal, engine)

    @property
    def name(self) -> str:
        return self._inner.name

    def beside(self, relation: str) -> Journal:
        return HeadedJournal(self._inner.beside(relation), self._engine)

    def entries(self, model: str) -> Sequence[Entry]:
        found = self._from_head(model)
        return self._inner.entries(model) if found is None else found

    def last_known(self, model: str) -> Entry | None:
        return self._inner.last_known(model)

    def last_build(self, model: str) -> Entry | None:
        found = self._from_head(model)
        return self._inner.last_build(model) if found is None else found[-1]

    def append(self, entry: Entry) -> None:
        self._inner.append(entry)

    def note(self, entry: Entry) -> None:
        self._inner.note(entry)

    def _from_head(self, model: str) -> list[Entry] | None:
        """The entries that the head stands for, newest first; None where there is no such table, or it has no head."""
        name = sibling(model, "state")
        try:
            newest = self._engine.commits(name, None)[0]
            found = _noted(newest, name) or self._asked(name, newest.version)
        except (MissingRelation, NotVersioned):
            return None
        except Exception as error:
            if _NO_SUCH_COLUMN.search(str(error)):
                return None
            raise
        if found is None:
            return None
        (id_, covered), version = found, newest.version
        head = {"number": id_.number, "commit": id_.commit, "version": version}
        return entries_of(model, covered, {"head": head, "states": {name: version}})

    def _asked(self, name: str, version: int) -> tuple[HeadId, Mapping[str, Any]] | None:
        rows = self._engine.query(head_query(name, version).sql(dialect="spark"))
        if not rows:
            return None
        ((number, commit, covered),) = rows
        return HeadId(int(str(number)), str(commit)), json.loads(str(covered))


def _noted(newest: Commit, name: str) -> tuple[HeadId, Mapping[str, Any]] | None:
    """The head as the newest commit tells it, if that is the one that has set it.

    Its writer has started from the version before: a note that is beside another version came there by mistake.
    Whoever believes a wrong one writes nothing, as the head is compared with the row.
    """
    found = noted_head(newest.note, name)
    if found is None or found[1]["detail"]["base"] + 1 != newest.version:
        return None
    return found


def entries_of(model: str, covered: Mapping[str, Any], read: Mapping[str, Any]) -> list[Entry]:
    """The entries of a coverage: that of the refresh that is finished, and before it that of one which is open.

    While a first build is open none is finished.
    """
    number, at = int(covered["refresh"]), str(covered["recorded_at"])
    detail = {
        **covered["detail"],
        **read,
        "coverage": {k: v for k, v in covered.items() if not k.startswith("open")},
    }
    finished = Entry(model, number, 0, "finished", str(covered["plan_hash"]), detail, at)
    if "open" not in covered:
        return [finished]
    is_first = "kind" not in covered["detail"]
    started = replace(
        finished,
        refresh=number + 1,
        event="started",
        plan_hash=str(covered["open_plan_hash"]),
        detail={**covered["open"], **read} if is_first else covered["open"],
    )
    return [started] if is_first else [started, finished]
