"""One call of a refresh: what it leaves behind, and its report."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter
from typing import Any

from fivm_dbt.parts.intervals import Intervals
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.refresh.bind import Staged
from fivm_dbt.refresh.clock import finished_clock
from fivm_dbt.refresh.heads import now
from fivm_dbt.refresh.observe import Observed, RecordedInput, State
from fivm_dbt.refresh.recorder import Recorder
from fivm_dbt.refresh.report import Action, InnerChange, Report
from fivm_dbt.refresh.runner import Merged
from fivm_dbt.steps.applying import StateSize
from fivm_dbt.steps.binding import Binding


class Overtaken(Exception):
    """A commit came too late."""


class Run:
    """What is common to the refreshes of all models: :meth:`execute` is what differs."""

    def __init__(self, plan: Plan, engine: Recorder, is_lazy: bool) -> None:
        self.plan = plan
        self.is_lazy = is_lazy
        self.engine = engine
        self.started = perf_counter()
        self.started_at = now()
        self.told: dict[str, Any] = {}
        """What the head says for people of this refresh."""
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

    # Report

    def _state_detail(self) -> dict[str, Any]:
        """What every head has about the states, and what they were laid out by."""
        measured = self.plan.measured
        return {
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
