"""A build writes a maintained model's states anew, and counts them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NoReturn

from fivm_dbt.errors import FivmError
from fivm_dbt.plan.model.plan import MaintainedPlan
from fivm_dbt.refresh.bind import bind, versions_read
from fivm_dbt.refresh.clock import read_clock
from fivm_dbt.refresh.closed import FirstOpen
from fivm_dbt.refresh.costs import NOTHING, Costs, known_after
from fivm_dbt.refresh.decide import Decision, choose_buckets, raised_alarm
from fivm_dbt.refresh.dropped import check_rebuild
from fivm_dbt.refresh.layout import state_sizes
from fivm_dbt.refresh.model_parts import record_partitions
from fivm_dbt.refresh.observe import Finished, Observed, State, observe
from fivm_dbt.refresh.publish import publish, write_snapshots
from fivm_dbt.refresh.report import Report
from fivm_dbt.refresh.run import Run
from fivm_dbt.refresh.runner import build_states
from fivm_dbt.spark.alarms import OVERFLOW
from fivm_dbt.spark.formats import FORMAT, Commit, Touched
from fivm_dbt.spark.state import TWICE
from fivm_dbt.steps.applying import StateSize, Tail, appends, fits_one_task
from fivm_dbt.steps.deletion_vectors import DeletionVectors


class BuildRun(Run[MaintainedPlan]):
    """The part of a run of a maintained model that builds it, and that knows what its states have."""

    anew: Mapping[str, int] = MappingProxyType({})
    """Of which views the last commit has written how many partitions anew."""
    costs = NOTHING
    """What refreshes and builds before this one have cost."""
    tail = Tail()
    """What is appended and not folded in, with the commit that is made next."""
    vectors = DeletionVectors()
    """What is deleted in their files, with the commit that is made next."""
    first_open: FirstOpen = MappingProxyType({})
    """Of views whose partitions are closed the first one that is not, with the commit that is made next."""

    def _state_detail(self) -> dict[str, Any]:
        measured = self.plan.measured
        return super()._state_detail() | ({"measured": measured.as_dict()} if measured is not None else {})

    @property
    def is_summed(self) -> bool:
        return bool(self.tail.views) or appends(self.plan, self.sizes)

    def _take_up(self, detail: Mapping[str, Any]) -> None:
        self.sizes = {view: StateSize(*size) for view, size in detail["sizes"].items()}
        self.anew = detail["anew"]
        self.tail = Tail.of(detail.get("tail"))
        self.vectors = DeletionVectors.of(detail.get("vectors"))
        self.first_open = detail.get("first_open", {})

    def _of_state(self) -> dict[str, Any]:
        known = {
            "tail": self.tail.as_dict(),
            "vectors": self.vectors.as_dict(),
            "costs": self.costs.as_dict(),
        }
        if self.first_open:
            known["first_open"] = dict(self.first_open)
        return {"anew": dict(self.anew), "base": self.base, **known}

    def _note_costs(self, detail: Mapping[str, Any], commit: Commit | None) -> None:
        self.costs = Costs.of(detail.get("costs"))
        if commit is not None:
            self.costs = known_after(self.costs, detail, commit.timestamp)

    def _measure(self, since: Sequence[Commit]) -> None:
        super()._measure(since)
        if since:
            self._note_sizes(next((c for c in since if FORMAT.touched(c) is not Touched.FILES), since[0]))

    def _note_sizes(self, commit: Commit) -> None:
        """Note how large the partitions are that a commit has written anew: they grow, and are merged into one day.

        Of several views the one whose partitions are the largest counts, with all rows: what the others have is little.
        """
        written = {view: anew for view, anew in self.anew.items() if anew and view in self.sizes}
        if commit.written is None or not written:
            return
        largest = max(
            sorted(written), key=lambda view: self.sizes[view].rows / max(1, self.sizes[view].partitions)
        )
        self.sizes[largest] = self.sizes[largest].grown(commit.written, written[largest])

    # Building

    def _build(
        self,
        state: State,
        reason: str | None,
        snapshots: frozenset[str] = frozenset(),
        costs: Costs = NOTHING,
    ) -> Report:
        """Compute the whole state at the inputs' newest versions. What is known of ``costs`` holds after it too."""
        check_rebuild(self.plan, self.dropped, reason or "no reason")
        self.decided(Decision(self._as_build("rebuilt"), reason))
        before = state.inputs if isinstance(state, Finished) else {}
        clock = read_clock(self.plan, self.engine, None)
        observed = observe(self.plan, self.engine, {})
        kept = snapshots | {i.name for i in self.plan.inputs if i.starts_with_snapshot}
        kept |= {name for name, record in before.items() if record.snapshot is not None and name in observed}
        buckets = choose_buckets(self.plan, self.engine, observed)
        binding = bind(self.plan, observed, buckets=buckets, clock=clock)
        self.engine.progress(f"building {self.plan.model}" + (f": {reason}" if reason else ""))
        recorded = write_snapshots(self.plan, self.engine, binding, kept & {i.name for i in self.plan.inputs})
        self.sizes, self.anew, self.tail, self.vectors, self.costs = {}, {}, Tail(), DeletionVectors(), costs
        self.first_open = {}
        self._tell(self._as_build("rebuilt"), reason)
        head, covered = self._built(state, observed, recorded, binding)
        try:
            build_states(self.plan, self.engine, replace(binding, head=head))
        except Exception as error:
            self._not_built(error)
        self._committed(head)
        self._count(state, covered, observed)
        publish(self.plan, self.engine, is_summed=self.is_summed)
        self._remove_orphans(state.finished)
        record_partitions(self.plan, self.engine, state.next_refresh, versions_read(binding), None)
        return self._report(self._as_build("rebuilt"), state.next_refresh, reason=reason)

    def _count(self, state: State, covered: Mapping[str, Any], observed: Mapping[str, Observed]) -> None:
        """Count what was built, where the way of writing depends on it, and have the head say so.

        It says then also how many rows of each input were read.
        """
        self.sizes = state_sizes(self.plan, self.engine, is_built=True)
        if self.sizes:
            read = dict(self.engine.measured().scans)
            rows = {o.name: read[o.table] for o in observed.values() if o.table in read}
            self.costs = replace(self.costs, rows=rows)
            kept = {k: v for k, v in covered["detail"].items() if k not in self._state_detail()}
            # Nobody needs to delete rows where deltas are appended, or of what one task writes anew.
            is_large = any(not fits_one_task(0, [(s, s.partitions)]) for s in self.sizes.values())
            allows_vectors = self._may_delete and is_large and not appends(self.plan, self.sizes)
            self._set_head(self._covered(state, kept), allows_vectors=allows_vectors)

    @property
    def _may_delete(self) -> bool:
        """Whether rows that change may be deleted in their files, instead of writing their partitions anew."""
        return self.engine.deletes_rows and self.plan.config.fivm_apply == "auto"

    def _not_built(self, error: Exception) -> NoReturn:
        raised = raised_alarm(error)
        self._check_overtaken(error)
        if raised == TWICE:
            raise self._twice() from error
        if raised != OVERFLOW:
            raise error
        raise FivmError(
            "FIVM402",
            "a product of sums in its view tree has more than 38 digits",
            remedy="CAST what is multiplied to fewer digits, or use fivm_strategy: first_order",
            model=self.plan.model,
        ) from error

    def _twice(self) -> FivmError:
        return FivmError(
            "FIVM405",
            "two rows of the model are the same, which fivm_trust_keys and the declared keys of its inputs rule out; "
            "nothing was written",
            remedy="correct the rows or the declared keys, or leave fivm_trust_keys out and run with --full-refresh",
            model=self.plan.model,
        )
