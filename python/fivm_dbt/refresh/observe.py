"""A refresh observes what is there: the state that was left, and the version of every input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fivm_dbt.errors import FivmError
from fivm_dbt.plan.model.head import HeadId
from fivm_dbt.plan.model.inputs import PlanInput
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.refresh.engine import Versions
from fivm_dbt.spark.formats import FORMAT, Commit, MissingRelation, NotVersioned, Touched


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
class Coverage:
    """What the states of a model cover after a refresh: ``detail`` has versions, layout and figures as JSON.

    Of a refresh that is open it has what whoever goes on needs to know.
    """

    refresh: int
    plan_hash: str
    detail: Mapping[str, Any]
    recorded_at: str

    def as_dict(self) -> dict[str, Any]:
        return {
            "refresh": self.refresh,
            "plan_hash": self.plan_hash,
            "detail": dict(self.detail),
            "recorded_at": self.recorded_at,
        }


@dataclass(frozen=True)
class State:
    """What a model's table of states says: a refresh that was begun and not finished; of a first build no more.

    ``version`` is that of the table, -1 where there is none; ``head`` is None there too, and where somebody took it.
    """

    finished: Coverage | None = None
    unfinished: Coverage | None = None
    head: HeadId | None = None
    version: int = -1

    @property
    def next_refresh(self) -> int:
        """The number of the next refresh, or of the one that was begun."""
        if self.unfinished is not None:
            return self.unfinished.refresh
        return 1 if self.finished is None else self.finished.refresh + 1


@dataclass(frozen=True)
class Finished(State):
    """It says what the last finished refresh covers too."""

    finished: Coverage

    @property
    def inputs(self) -> dict[str, RecordedInput]:
        return {name: RecordedInput.of(data) for name, data in self.finished.detail["inputs"].items()}


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
    ``rows_written`` is how many rows have been written or removed since, at most; None is not known. ``only_came``
    says that the commits since have added rows alone, as far as they tell.
    """

    name: str
    table: str
    head: Commit
    moved: bool
    recreated: bool
    forgotten: bool
    same_columns: bool = True
    is_summed: bool = False
    rows_written: int | None = None
    only_came: bool = False


def keeps_columns(engine: Versions, observed: Observed) -> bool:
    """Whether the columns are those that were observed still: a replacement changes what a feed has of versions before.

    Asked when a feed has been read.
    """
    since = observed.head.version
    return _keep_columns(engine.commits(observed.table, since), since)


def _keep_columns(commits: Sequence[Commit], since: int) -> bool:
    return all(FORMAT.touched(c) is not Touched.COLUMNS for c in commits if c.version > since)


def observe(plan: Plan, engine: Versions, recorded: dict[str, RecordedInput]) -> dict[str, Observed]:
    """Every input's newest version. Raises FIVM301, FIVM302."""
    return {item.name: observe_input(plan, engine, item, recorded.get(item.name)) for item in plan.inputs}


def observe_input(
    plan: Plan, engine: Versions, item: PlanInput, record: RecordedInput | None, since: int | None = None
) -> Observed:
    """An input's newest version, and whether its columns have been the same since the recorded one, or ``since``."""
    presentation = item.relation.presentation
    table = item.table
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
            remedy=f"set file_format='{FORMAT.name}' on that model or seed, or load the source as Delta",
            model=plan.model,
        ) from None
    head = commits[0]
    if record is None:
        return Observed(item.name, table, head=head, moved=True, recreated=False, forgotten=False)
    if record.table != table or head.version < record.commit.version:
        return Observed(item.name, table, head=head, moved=True, recreated=True, forgotten=False)
    then = next((c for c in commits if c.version == record.commit.version), None)
    if then is None:
        return Observed(item.name, table, head=head, moved=True, recreated=False, forgotten=True)
    same = then.timestamp == record.commit.timestamp and then.operation == record.commit.operation
    keeps = not is_summed and (since is None or _keep_columns(commits, since))
    moved = head.version > record.commit.version or not same
    return Observed(
        item.name,
        table,
        head=head,
        moved=moved,
        recreated=not same,
        forgotten=False,
        same_columns=keeps,
        is_summed=is_summed,
        rows_written=_rows_written(commits, record.commit.version) if same else None,
        only_came=same and _only_came(commits, record.commit.version),
    )


def _rows_written(commits: Sequence[Commit], since: int) -> int | None:
    rows = [0 if FORMAT.touched(c) is Touched.FILES else c.rows_written for c in commits if c.version > since]
    return None if None in rows else sum(r for r in rows if r is not None)


def _only_came(commits: Sequence[Commit], since: int) -> bool:
    later = (c for c in commits if c.version > since)
    return all(c.appended is not None or FORMAT.touched(c) is Touched.FILES for c in later)
