"""What is there when a refresh begins: the state that was left, and the version of every input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fivm_dbt.errors import FivmError
from fivm_dbt.plan.plan import Plan, PlanInput
from fivm_dbt.refresh.engine import Commit, MissingRelation, NotVersioned, Versions
from fivm_dbt.refresh.journal import Entry


@dataclass(frozen=True)
class RecordedInput:
    """An input as the last finished refresh left it. ``snapshot`` is the version of its own snapshot, if it has one."""

    table: str
    commit: Commit
    snapshot: int | None

    def as_dict(self) -> dict[str, Any]:
        return {
            "table": self.table,
            "version": self.commit.version,
            "timestamp": self.commit.timestamp,
            "operation": self.commit.operation,
            "snapshot": self.snapshot,
        }

    @staticmethod
    def of(data: dict[str, Any]) -> RecordedInput:
        commit = Commit(int(data["version"]), str(data["timestamp"]), str(data["operation"]))
        return RecordedInput(str(data["table"]), commit, data["snapshot"])


@dataclass(frozen=True)
class State:
    """What the journal says about a model: the last finished refresh, and one that was started and not finished."""

    finished: Entry | None
    unfinished: Entry | None
    next_refresh: int

    @property
    def inputs(self) -> dict[str, RecordedInput]:
        assert self.finished is not None
        return {name: RecordedInput.of(data) for name, data in self.finished.detail["inputs"].items()}


def read_state(entries: Sequence[Entry]) -> State:
    """The state from a model's newest journal entries."""
    finished = next((e for e in entries if e.event == "finished"), None)
    newest = entries[0] if entries else None
    unfinished = newest if newest is not None and newest.event == "started" else None
    return State(finished, unfinished, (newest.refresh if newest else 0) + (0 if unfinished else 1))


def recorded_states(finished: Entry) -> dict[str, int]:
    """The versions of the model's states when that refresh was finished.

    Empty for an entry of before they were written down, which is of an older ``STATE_VERSION`` and leads to a rebuild.
    """
    return {name: int(version) for name, version in finished.detail.get("states", {}).items()}


def locked(plan: Plan, by_whom: str) -> FivmError:
    """FIVM403: the model is being refreshed."""
    return FivmError(
        "FIVM403",
        f"refresh in progress {by_whom}",
        remedy="wait for it, or run again",
        model=plan.model,
    )


@dataclass(frozen=True)
class Observed:
    """An input now: its table (of a fivm model its root state), newest commit, and how that relates to the record.

    ``same_columns``: whether its columns have been the same ones ever since, so that a change feed tells what changed.
    Else a column of the same name may be another one, of which the feed says nothing, or lie where it does not look.
    Nor does the feed of a fivm model tell where rows are appended to its state, to be added up (``is_summed``).
    """

    name: str
    table: str
    head: Commit
    moved: bool
    recreated: bool
    forgotten: bool
    same_columns: bool = True
    is_summed: bool = False


def keeps_columns(engine: Versions, observed: Observed) -> bool:
    """Whether the columns are those that were observed still: a replacement changes what a feed has of versions before.

    Asked when a feed has been read.
    """
    since = observed.head.version
    return all(c.keeps_columns for c in engine.commits(observed.table, since) if c.version > since)


def observe(plan: Plan, engine: Versions, recorded: dict[str, RecordedInput]) -> dict[str, Observed]:
    """Every input's newest version. Raises FIVM301, FIVM302."""
    return {item.name: observe_input(plan, engine, item, recorded.get(item.name)) for item in plan.inputs}


def observe_input(
    plan: Plan, engine: Versions, item: PlanInput, record: RecordedInput | None, since: int | None = None
) -> Observed:
    """An input's newest version, and whether its columns have been the same since the recorded one, or ``since``."""
    presentation = item.relation.presentation
    table = presentation.root if presentation else item.name
    is_summed = presentation is not None and presentation.is_summed
    if since is None and record is not None:
        since = record.commit.version
    try:
        commits = engine.commits(table, since)
    except MissingRelation:
        raise FivmError(
            "FIVM302",
            f"{item.name} does not exist" + (f" ({table} is gone)" if table != item.name else ""),
            remedy="build it first, or correct the name",
            model=plan.model,
        ) from None
    except NotVersioned:
        raise FivmError(
            "FIVM301",
            f"{item.name} is not a Delta table, so its changes and old versions cannot be read",
            remedy="set file_format='delta' on that model or seed, or load the source as Delta",
            model=plan.model,
        ) from None
    head = commits[0]
    if record is None:
        return Observed(item.name, table, head, True, False, False)
    if record.table != table or head.version < record.commit.version:
        return Observed(item.name, table, head, True, True, False)
    then = next((c for c in commits if c.version == record.commit.version), None)
    if then is None:
        return Observed(item.name, table, head, True, False, True)
    same = then.timestamp == record.commit.timestamp and then.operation == record.commit.operation
    keeps = all(c.keeps_columns for c in commits if since is not None and c.version > since) and not is_summed
    moved = head.version > record.commit.version or not same
    return Observed(item.name, table, head, moved, not same, False, keeps, is_summed)
