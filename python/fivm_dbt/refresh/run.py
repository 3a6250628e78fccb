"""A run is one call of a refresh: what was left, its heads, what it shows, and its report.

Each commit of a refresh compares and sets the head of the model's table (ADR 0028, 0033). Nobody claims a model. Who
comes too late finds that the head is another one, and has written nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from itertools import takewhile
from time import perf_counter
from typing import Any, Generic, TypeVar

from fivm_dbt.naming import ROOT, sibling
from fivm_dbt.parts.intervals import Intervals
from fivm_dbt.plan.model.head import HeadId, NextHead
from fivm_dbt.plan.model.plan import FactorisedPlan, Plan
from fivm_dbt.plan.model.signature import inner_views, shortened
from fivm_dbt.refresh.bind import Staged
from fivm_dbt.refresh.clock import finished_clock
from fivm_dbt.refresh.decide import Decision, beheaded, changed_by_others, raised_alarm
from fivm_dbt.refresh.heads import (
    coverage,
    had_head,
    has_set,
    head_of_build,
    next_head,
    now,
    read_state,
    since_head,
)
from fivm_dbt.refresh.observe import Coverage, Finished, Observed, RecordedInput, State
from fivm_dbt.refresh.publish import drop_states, show_again, show_helpers
from fivm_dbt.refresh.recorder import OwnRows, Recorder
from fivm_dbt.refresh.report import Action, InnerChange, InputChange, Report
from fivm_dbt.refresh.runner import Merged
from fivm_dbt.spark.formats import FORMAT, Commit
from fivm_dbt.spark.heads import OVERTAKEN
from fivm_dbt.spark.merge import write_head
from fivm_dbt.steps.applying import StateSize
from fivm_dbt.steps.binding import Binding

TimeRange = tuple[datetime | None, datetime | None]
"""A range of time, either end of which may be open."""


class Overtaken(Exception):
    """A commit came too late."""


P = TypeVar("P", bound=Plan)


def _go_on(decision: Decision) -> None:
    """Do as is decided."""


class Run(Generic[P]):
    """What is common to the refreshes of all models: :meth:`execute` is what differs."""

    head: HeadId | None = None
    """The head that the next commit starts from, None where there is no table."""
    base = -1
    """The newest version of the table that is known."""
    is_new = False
    """Whether the model is built for the first time."""

    def __init__(self, plan: P, engine: Recorder, is_lazy: bool, within: TimeRange) -> None:
        self.plan = plan
        self.within = within
        """The times that are asked for, of a model that is computed by parts."""
        self.is_lazy = is_lazy
        self.engine = engine
        self.decided: Callable[[Decision], None] = _go_on
        """Hears what is done from here on. Before that no row of the model is computed or written."""
        self.started = perf_counter()
        self.started_at = now()
        self.told: dict[str, Any] = {}
        """What the head says for people of this refresh."""
        self.expected: tuple[float, float] | None = None
        """The seconds that the refresh was expected to take, and a build in its place, where both are known."""
        self.shown_again = False
        """Whether the model's view was gone, or altered, and has been put back."""
        self.state_bytes: int | None = None
        self.sizes: dict[str, StateSize] = {}
        self.dropped: dict[str, Intervals] = {}
        """Of which inputs' dropped parts the model has results."""

    def execute(self, full_refresh: bool, state: State | None = None) -> Report:
        """Bring the model up to date; ``state`` is what its head says, if it has just been read."""
        raise NotImplementedError

    def _note_dropped(self, staged: Mapping[str, Staged]) -> None:
        """Of parts that are not there any more there are results from now on that nobody can compute again."""
        for name, found in staged.items():
            if found.dropped:
                self.dropped[name] = self.dropped.get(name, Intervals()) | found.dropped

    # What was left

    def _left(self, state: State | None) -> State:
        """What the last refresh has left, and its head to start from."""
        state = read_state(self.engine, self.plan.state_relation) if state is None else state
        self.head = state.head
        is_there = self.engine.make_way is None and self.engine.exists(self.plan.relation)
        self.is_new = state.finished is None and not is_there
        return state

    def _why_missing(self, state: State) -> str | None:
        """Why a model without a finished refresh is built, None where it is new."""
        if self.is_new or state.version >= 0:
            return None
        return f"state table {self.plan.state_relation} is missing"

    def _as_build(self, again: Action) -> Action:
        """What a build is called, ``again`` where it is not the first one."""
        return "built" if self.is_new else again

    def _load(self, state: Finished) -> str | None:
        """Take up what the last refresh has left; why the state is not that, where somebody else has written to it."""
        if self.head is None:
            return beheaded(self.plan)
        detail = state.finished.detail
        self.base = state.version
        self.state_bytes = detail["state_bytes"]
        self._take_up(detail)
        since, own = since_head(self.engine, self.plan.state_relation, state)
        reason = changed_by_others(self.plan, since, own.version) if own is not None else None
        if reason is None:
            self._measure(since)
            self._note_costs(detail, own)
        return reason

    def _take_up(self, detail: Mapping[str, Any]) -> None:
        """Take up what else the head says of the state."""

    def _note_costs(self, detail: Mapping[str, Any], commit: Commit | None) -> None:
        """Note what the last refresh has cost, which its ``commit`` has finished."""

    def _of_state(self) -> dict[str, Any]:
        """What the head is to say of the state with the next commit."""
        return {"base": self.base}

    # The next head

    def _tell(
        self,
        action: Action,
        reason: str | None = None,
        changes: Sequence[InputChange] = (),
        rows: int | None = None,
        written: Mapping[str, int] | None = None,
    ) -> None:
        """Have the head say what is done, for people; and what next refreshes are estimated by (:class:`Spent`)."""
        changed = {c.relation: [c.inserted, c.deleted] for c in changes if c.inserted or c.deleted}
        known = {
            "reason": reason,
            "changed": changed or None,
            "written": written or None,
            "rows": rows,
            "expected": self.expected,
        }
        told = {key: value for key, value in known.items() if value is not None}
        self.told = {"action": action, "started_at": self.started_at, **told}

    def _covered(self, state: State, detail: Mapping[str, Any]) -> dict[str, Any]:
        """What the state covers with the next commit, which starts from the version ``base``."""
        every = {**detail, **self._state_detail(), **self._of_state(), **self.told}
        return coverage(self.plan, state.next_refresh, every | {"signature": shortened(self.plan.signature)})

    def _built(
        self, state: State, observed: dict[str, Observed], recorded: dict[str, int | None], binding: Binding
    ) -> tuple[NextHead, dict[str, Any]]:
        """The head of a build and what it covers. Its commit replaces the table, also one that has lost its head."""
        replaces = self.head is None and had_head(self.plan, self.engine)
        newest = self._newest() if self.head is not None or replaces else None
        self.base, self.state_bytes = -1 if newest is None else newest.version, None
        covered = self._covered(state, self._detail("build", observed, recorded, binding) | {"touched": None})
        name = self.plan.state_relation
        return head_of_build(self.head, newest, covered, name, replaces=replaces), covered

    def _set_head(self, covered: Mapping[str, Any], *, allows_vectors: bool = False) -> None:
        """A commit of the head alone, from which on rows may be deleted in their files if it ``allows_vectors``."""
        assert self.head is not None
        head = next_head(self.head, covered)
        written, note = write_head(self.plan, head), head.note(self.plan.state_relation)
        own = (
            OwnRows(written.expression, tells_changes=False, allows_vectors=True) if allows_vectors else None
        )
        try:
            self.engine.commit(written, note, self.base, own)
        except Exception as error:
            self._check_overtaken(error)
            raise
        self._committed(head)

    def _committed(self, head: NextHead) -> None:
        """A commit has set this head; raises Overtaken where it was passed over, since another one came before."""
        commits = self.engine.commits(self.plan.state_relation, max(self.base, 0))
        since = [c for c in commits if c.version > self.base]
        if not any(has_set(head.id, c, self.plan.state_relation) for c in since):
            raise Overtaken
        self.head = head.id
        self._measure(since)

    def _check_overtaken(self, error: Exception) -> None:
        """Raise Overtaken where a write failed since another was faster.

        A row of data may have raised an alarm before that of the head was met: over newer states a delta is wrong.
        """
        raised = raised_alarm(error)
        if isinstance(error, Overtaken) or raised == OVERTAKEN or FORMAT.is_conflict(error):
            raise Overtaken from error
        if raised is not None and read_state(self.engine, self.plan.state_relation).head != self.head:
            raise Overtaken from error

    def _newest(self) -> Commit:
        return self.engine.commits(self.plan.state_relation, None)[0]

    # Figures

    def _measure(self, since: Sequence[Commit]) -> None:
        """Note the version and the size of the state, after the commits ``since`` the one that both are known of."""
        later = list(takewhile(lambda commit: commit.size is None, since))
        before = self.state_bytes if len(later) == len(since) else since[len(later)].size
        growth = [c.growth for c in later if c.growth is not None]
        if before is not None and len(growth) == len(later):
            self.state_bytes = before + sum(growth)
        else:
            self.state_bytes = self.engine.size(self.plan.state_relation)
        if since:
            self.base = since[0].version

    # What is shown, and what is left behind

    def _wait(
        self, finished: Coverage, observed: dict[str, Observed], why: str | None, *, rolled: bool
    ) -> Report:
        """Leave the model as it is: the histories of its inputs keep what changed until somebody asks for it."""
        self._show()
        moved = [name for name, o in observed.items() if o.moved]
        reasons = [f"{', '.join(moved)} changed"] if moved else []
        reasons += [why] if why is not None else []
        return self._report(
            "waiting",
            finished.refresh,
            reason="; ".join(reasons) or "its result changes by itself",
            rolled=rolled,
        )

    @property
    def is_summed(self) -> bool:
        """Whether the model's view adds up rows of a key."""
        return False

    def _show(self) -> None:
        """Put the model's view back where it is gone or altered: what is shown is the states."""
        is_shown = show_again(self.plan, self.engine, is_summed=self.is_summed)
        self.shown_again = is_shown or self.shown_again

    def _complete_build(self, finished: Coverage) -> None:
        """Do the last things that a build does, where the last refresh was one and was cut off before them.

        That is to drop the root of an older layout, and to show the last inner view.
        """
        if finished.detail["kind"] != "build":
            return
        is_shown = not self.plan.helpers or self.engine.exists(self.plan.helpers[-1].name)
        if not is_shown or self.engine.exists(sibling(self.plan.kept_under, ROOT)):
            self._remove_orphans(finished)

    def _remove_orphans(self, last: Coverage | None) -> None:
        """Drop states of older layouts, a table each, and show the inner views in the place of the ``last`` ones."""
        before = inner_views(last.detail["signature"]) if last is not None else set()
        older = sorted(before | {view.name for view in self.plan.helpers})
        # Whether all of this has been done the root tells, which goes last.
        drop_states(self.engine, [*older, sibling(self.plan.kept_under, ROOT)])
        show_helpers(self.plan, self.engine, before)

    # Report

    def _state_detail(self) -> dict[str, Any]:
        """What every head has about the states, and what they were laid out by."""
        return {
            "state_bytes": self.state_bytes,
            "sizes": {name: [size.rows, size.partitions] for name, size in self.sizes.items()},
            **({"promises": self.plan.promises} if self.plan.promises else {}),
            **({"dropped": {n: str(p) for n, p in self.dropped.items()}} if self.dropped else {}),
        }

    def _detail(
        self, kind: str, observed: dict[str, Observed], snapshots: dict[str, int | None], binding: Binding
    ) -> dict[str, Any]:
        inputs = {
            o.name: RecordedInput(o.table, o.head, snapshots.get(o.name)).as_dict() for o in observed.values()
        }
        times = finished_clock(binding.clock)
        return {"kind": kind, "inputs": inputs, "buckets": binding.buckets, **times}

    def _report(
        self,
        action: Action,
        number: int,
        *,
        reason: str | None = None,
        inputs: tuple[Any, ...] = (),
        merged: tuple[Merged, ...] = (),
        rolled: bool = False,
    ) -> Report:
        self.engine.unstage_all()
        metrics = self.engine.measured()
        root = next((m for m in merged if m.view == self.plan.top.name), None)
        written = merged if isinstance(self.plan, FactorisedPlan) else (root,) if root is not None else ()
        return Report(
            model=self.plan.model,
            action=action,
            refresh=number,
            reason=reason or self._aside(rolled),
            inputs=inputs,
            partitions=sum(m.partitions for m in written),
            rows_merged=sum(m.rows for m in written),
            inner_views=tuple(_inner_change(m) for m in merged if m is not root),
            statements=tuple(self.engine.statements),
            rows_read=metrics.rows_read,
            bytes_read=metrics.bytes_read,
            files_read=metrics.files_read,
            scans=metrics.scans,
            state_bytes=self.state_bytes,
            expected=self.expected,
            seconds=round(perf_counter() - self.started, 3),
            rolled_forward=rolled,
            recomputed=self.plan.why_recomputed,
        )

    def _aside(self, rolled: bool) -> str | None:
        """What has been done besides."""
        if rolled:
            return "an interrupted refresh was finished first"
        return "its view was dropped or altered, and has been put back" if self.shown_again else None


def _inner_change(merged: Merged) -> InnerChange:
    product = None if merged.product is None else merged.product.text
    return InnerChange(merged.view, merged.rows, merged.partitions, product)
