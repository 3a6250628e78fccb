"""One call of a refresh: its claim in the journal, what it leaves there, and its report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any

from fivm_dbt.parts.intervals import Intervals
from fivm_dbt.plan.applying import StateSize
from fivm_dbt.plan.binding import Binding
from fivm_dbt.plan.plan import Plan
from fivm_dbt.refresh.bind import Staged
from fivm_dbt.refresh.clock import finished_clock
from fivm_dbt.refresh.engine import Commit
from fivm_dbt.refresh.journal import Entry, Journal
from fivm_dbt.refresh.observe import Observed, RecordedInput, State
from fivm_dbt.refresh.owner import new_owner, release
from fivm_dbt.refresh.recorder import Recorder
from fivm_dbt.refresh.report import Action, InnerChange, Report
from fivm_dbt.refresh.runner import Merged


class Overtaken(Exception):
    """A claim came too late."""


class Run:
    """What is common to the refreshes of all models: :meth:`_execute` says what happens between claim and report."""

    def __init__(self, plan: Plan, engine: Recorder, journal: Journal, is_lazy: bool) -> None:
        self.plan = plan
        self.is_lazy = is_lazy
        self.engine = engine
        self.journal = journal
        self.started = perf_counter()
        self.owner = new_owner()
        self.states: dict[str, int] = {}
        self.shown_again = False
        """Whether the model's view was gone, or altered, and has been put back."""
        self.state_bytes: int | None = None
        self.sizes: dict[str, StateSize] = {}
        self.dropped: dict[str, Intervals] = {}
        """Of which inputs' dropped parts the model has results."""

    def execute(self, full_refresh: bool, entries: Sequence[Entry] | None = None) -> Report:
        try:
            return self._execute(full_refresh, entries)
        finally:
            release(self.owner)

    def _execute(self, full_refresh: bool, entries: Sequence[Entry] | None) -> Report:
        raise NotImplementedError

    def _note_dropped(self, staged: Mapping[str, Staged]) -> None:
        """Of parts that are not there any more there are results from now on that nobody can compute again."""
        for name, found in staged.items():
            if found.dropped:
                self.dropped[name] = self.dropped.get(name, Intervals()) | found.dropped

    # Journal and report

    def _claim(self, state: State, detail: dict[str, Any]) -> Entry:
        """Claim the next refresh, or the next attempt of an unfinished one. Raises FIVM403 when another was faster."""
        attempt = state.unfinished.attempt + 1 if state.unfinished is not None else 0
        full = {**detail, "owner": self.owner}
        entry = Entry(self.plan.relation, state.next_refresh, attempt, "started", self.plan.plan_hash, full)
        if not self.journal.claim(entry):
            raise Overtaken
        return entry

    def _finish(self, claim: Entry, detail: dict[str, Any], commits: Sequence[Commit] | None = None) -> None:
        """Record the end; ``commits`` are the root's since the last finished refresh, where they are known."""
        seconds = round(perf_counter() - self.started, 3)
        self._measure_state(commits)
        entry = Entry(
            claim.model,
            claim.refresh,
            claim.attempt,
            "finished",
            claim.plan_hash,
            {**detail, "seconds": seconds, **self._state_detail()},
        )
        self.journal.append(entry)

    def _measure_state(self, commits: Sequence[Commit] | None) -> None:
        """Note the state's version and size; its history tells both, if it tells how much every commit added."""
        name = self.plan.state_relation
        since = self.states.get(name)
        commits = self.engine.commits(name, since) if commits is None else commits
        growth = [c.growth for c in commits if since is not None and c.version > since]
        is_known = bool(growth) and commits[-1].version == since and None not in growth
        if self.state_bytes is not None and is_known:
            self.state_bytes += sum(g for g in growth if g is not None)
        else:
            self.state_bytes = self.engine.size(name)
        self.states[name] = commits[0].version

    def _state_detail(self) -> dict[str, Any]:
        """What every finished entry has about the states, and what they were laid out by."""
        measured = self.plan.measured
        return {
            "states": dict(self.states),
            "state_bytes": self.state_bytes,
            "sizes": {name: [size.rows, size.partitions] for name, size in self.sizes.items()},
            **({"measured": measured.as_dict()} if measured is not None else {}),
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
        written = merged if self.plan.is_factorized else (root,) if root is not None else ()
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
            seconds=round(perf_counter() - self.started, 3),
            rolled_forward=rolled,
            recomputed=self.plan.recompute.reason if self.plan.recompute is not None else None,
        )

    def _aside(self, rolled: bool) -> str | None:
        """What has been done besides."""
        if rolled:
            return "an interrupted refresh was finished first"
        return "its view was dropped or altered, and has been put back" if self.shown_again else None


def _inner_change(merged: Merged) -> InnerChange:
    product = None if merged.product is None else merged.product.text
    return InnerChange(merged.view, merged.rows, merged.partitions, product)
