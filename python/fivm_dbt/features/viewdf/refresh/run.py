"""A refresh of a viewdf model finds ready parts and parts that late data changed, and computes them (ViewDF, 4).

Computing a part again gives the same rows, so that an interrupted refresh needs no more than to be begun anew: from the
versions of the last finished one. What it had written already, its last head tells; these parts are computed again with
those that follow from them, at the versions of now: what the attempt has read may be gone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from fivm_dbt.features.viewdf.plan.model import PartPlan, ViewdfPlan
from fivm_dbt.features.viewdf.refresh.inputs import PartInputs, Upstream
from fivm_dbt.features.viewdf.refresh.known import KnownParts
from fivm_dbt.features.viewdf.refresh.swap import begin, beside
from fivm_dbt.features.viewdf.refresh.table import PartTable
from fivm_dbt.features.viewdf.refresh.wanted import PartsWanted
from fivm_dbt.features.viewdf.refresh.work import Found, PartRefresh
from fivm_dbt.features.viewdf.refresh.writer import PartWriter
from fivm_dbt.features.viewdf.spark.catalog import parts_view
from fivm_dbt.features.viewdf.spark.statements import part_rows
from fivm_dbt.naming import parts_of
from fivm_dbt.parts.intervals import Intervals
from fivm_dbt.plan.model.head import RECORDING
from fivm_dbt.refresh.bind import Staged, bind, stage_inputs
from fivm_dbt.refresh.decide import Decision, lost_inputs, unreadable, why_rebuild
from fivm_dbt.refresh.dropped import check_rebuild, recorded_drops
from fivm_dbt.refresh.engine import Expected
from fivm_dbt.refresh.executor import RUNS
from fivm_dbt.refresh.heads import had_head, with_nothing, with_open
from fivm_dbt.refresh.observe import Coverage, Finished, Observed, State, observe
from fivm_dbt.refresh.publish import drop_states, publish, show_again, write_snapshots
from fivm_dbt.refresh.recorder import Recorder
from fivm_dbt.refresh.report import Action, InputChange, PartChange, Report
from fivm_dbt.refresh.run import Run, TimeRange
from fivm_dbt.spark.formats import VersionUnavailable
from fivm_dbt.steps.binding import Binding

_ON_REQUEST = "full refresh"


@dataclass(frozen=True)
class _Moved:
    """What has changed of the parts of inputs: which are known now, by which rows, and which are there no more."""

    known: KnownParts
    changed: Mapping[str, Intervals]
    inputs: Mapping[str, Intervals]
    lost: Mapping[str, Intervals]


@RUNS.add(ViewdfPlan)
class PartRun(Run[ViewdfPlan]):
    """One call of a refresh of a viewdf model."""

    def __init__(self, plan: ViewdfPlan, engine: Recorder, is_lazy: bool, within: TimeRange) -> None:
        super().__init__(plan, engine, is_lazy, within)
        self.parts: PartPlan = plan.parts
        self.inputs = PartInputs(plan, engine)
        self.wanted = PartsWanted(plan.parts, within)

    # What there is

    def execute(self, full_refresh: bool, state: State | None = None) -> Report:
        state = self._left(state)
        upstream = self.inputs.upstream()
        if full_refresh:
            return self._build(state, upstream, _ON_REQUEST)
        if not isinstance(state, Finished):
            return self._build(state, upstream, self._why_missing(state))
        self.dropped = recorded_drops(state.finished)
        reason = why_rebuild(self.plan, state.finished) or self._load(state)
        if reason is None and state.unfinished is not None and state.unfinished.detail["kind"] == "build":
            reason = "a build was interrupted"
        if reason is not None:
            return self._build(state, upstream, reason)
        return self._refresh(state, upstream)

    def _gone(self, upstream: Mapping[str, Upstream]) -> dict[str, Intervals]:
        """By input the parts that have been dropped."""
        return self.dropped | {name: u.dropped for name, u in upstream.items()}

    # Building

    def _build(
        self,
        state: State,
        upstream: Mapping[str, Upstream],
        reason: str | None,
        snapshots: frozenset[str] = frozenset(),
    ) -> Report:
        """Compute every part that is ready, from nothing. ``snapshots``: inputs to keep a snapshot of from now on."""
        observed = observe(self.plan, self.engine, {})
        if state.finished is not None and reason != _ON_REQUEST:
            check_rebuild(self.plan, self._gone(upstream), reason or "")
        self.decided(Decision(self._as_build("rebuilt"), reason))
        binding = bind(self.plan, observed, buckets=1)
        self.engine.progress(f"building {self.plan.model}" + (f": {reason}" if reason else ""))
        self._tell(self._as_build("rebuilt"), reason)
        table, place = self._begun(state)
        found = self._found_of_all(state, upstream, observed, binding, snapshots)
        work = PartRefresh(self, self.wanted, found, table, place)
        first = work.compute()
        work.end()
        self.engine.run(parts_view(self.plan))
        publish(self.plan, self.engine)
        self._remove_orphans(state.finished)
        return self._finish_parts(found, work, first, self._as_build("rebuilt"), reason)

    def _begun(self, state: State) -> tuple[PartTable, PartTable]:
        """The table of the state, which says from now on that a build is open, and the one to be written."""
        is_there = self.head is not None or had_head(self.plan, self.engine)
        table = PartTable(self.plan, self.engine, self.head)
        opened = with_open(self._covered_before(state), self.plan, {"kind": "build"}, 0)
        self.base, self.state_bytes = -1, None
        return table, begin(self.plan, self.engine, table, opened, is_there=is_there)

    def _found_of_all(
        self,
        state: State,
        upstream: Mapping[str, Upstream],
        observed: dict[str, Observed],
        binding: Binding,
        snapshots: frozenset[str],
    ) -> Found:
        """What a build starts from: all parts that inputs have."""
        kept = snapshots | {i.name for i in self.plan.inputs if i.starts_with_snapshot}
        return Found(
            state=state,
            covered=self._covered_before(state),
            observed=observed,
            binding=binding,
            known=self._looked_at({b.name: b.new for b in binding.inputs}, upstream),
            dropped=self._gone(upstream),
            is_build=True,
            watermarks=_watermarks(upstream),
            snapshots=write_snapshots(self.plan, self.engine, binding, kept),
        )

    def _covered_before(self, state: State) -> Mapping[str, object]:
        """What is covered while a build is open: what was, where there are heads that say it."""
        if state.finished is not None and self.head is not None:
            return state.finished.as_dict()
        return with_nothing(self.plan, state.next_refresh)

    def _looked_at(self, versions: Mapping[str, int], upstream: Mapping[str, Upstream]) -> KnownParts:
        """The parts that inputs have."""
        known = KnownParts()
        for item in self.inputs.others:
            if item.is_computed:
                known = known.with_seen(item.relation, upstream[item.relation].computed)
            else:
                known = known.with_seen(item.relation, self.inputs.look_at(item, versions))
        return known

    # Refreshing

    def _refresh(self, state: Finished, upstream: Mapping[str, Upstream]) -> Report:
        """Compute the parts that have become ready, and those that late data has changed."""
        self._complete(state.finished)
        observed = observe(self.plan, self.engine, state.inputs)
        lost = lost_inputs(self.plan, observed, state.inputs)
        if lost is not None:
            return self._build(state, upstream, lost[0], lost[1])
        known = KnownParts.of(state.finished.detail["parts"])
        new_upstream = {name: u.computed - known.seen.get(name, Intervals()) for name, u in upstream.items()}
        has_moved = any(o.moved for o in observed.values()) or any(new_upstream.values())
        if not has_moved and state.unfinished is None and not self.wanted.has_work(known):
            return self._show_unchanged(state.finished)
        self.decided(Decision("refreshed", None, observed))
        self.engine.expect(self._expected(observed))
        try:
            told = self.inputs.told(observed, state.inputs)
            staged = stage_inputs(self.plan, self.engine, observed, state.inputs, known=told)
        except VersionUnavailable as error:
            return self._build(state, upstream, unreadable(self.plan, error))
        self._note_dropped(staged)
        self._tell("refreshed", changes=tuple(s.change for s in staged.values()))
        found = self._found(state, upstream, observed, staged, known)
        table = PartTable(self.plan, self.engine, self.head, self.base)
        work = PartRefresh(self, self.wanted, found, table, table)
        first = work.compute()
        work.end()
        self.shown_again = show_again(self.plan, self.engine)
        return self._finish_parts(found, work, first, "refreshed", None)

    def _expected(self, observed: Mapping[str, Observed]) -> list[Expected]:
        """What is read: parts of the inputs by parts and of the state, and others as a whole."""
        by_parts = {item.relation for item in self.inputs.others}
        read = [Expected(o.table, o.head.version, is_near=o.name in by_parts) for o in observed.values()]
        return [*read, Expected(self.plan.state_relation, self.base, is_near=True)]

    def _complete(self, finished: Coverage) -> None:
        """Do what comes after the last commit, where the last refresh was cut off there."""
        self._complete_build(finished)
        if finished.detail["kind"] != "build" and not _is_older(finished):
            return
        drop_states(self.engine, [beside(self.plan)])
        catalog = parts_view(self.plan)
        if not self.engine.is_view_of(parts_of(self.plan.relation), catalog.expression.sql(dialect="spark")):
            self.engine.run(catalog)

    def _found(
        self,
        state: Finished,
        upstream: Mapping[str, Upstream],
        observed: dict[str, Observed],
        staged: Mapping[str, Staged],
        before: KnownParts,
    ) -> Found:
        """What a refresh starts from, with the parts that have changed."""
        binding = bind(self.plan, observed, buckets=1, staged=staged)
        recorded = {name: record.snapshot for name, record in state.inputs.items()}
        kept = {name for name, version in recorded.items() if version is not None} & binding.changed
        moved = self._moved(before, upstream, staged)
        touched = Intervals()
        if state.unfinished is not None:
            touched = Intervals.read(state.unfinished.detail["written"])
        return Found(
            state=state,
            covered=state.finished.as_dict(),
            observed=observed,
            binding=binding,
            staged=staged,
            known=moved.known,
            before=before,
            changed=moved.changed,
            dropped=self._gone(upstream),
            is_build=False,
            is_again=state.unfinished is not None,
            is_first_record=_is_older(state.finished),
            touched=touched,
            inputs=moved.inputs,
            lost=moved.lost,
            watermarks=_watermarks(upstream),
            snapshots=recorded | write_snapshots(self.plan, self.engine, binding, kept),
        )

    def _moved(
        self, known: KnownParts, upstream: Mapping[str, Upstream], staged: Mapping[str, Staged]
    ) -> _Moved:
        changed: dict[str, Intervals] = {}
        inputs: dict[str, Intervals] = {}
        lost: dict[str, Intervals] = {}
        for item in self.inputs.others:
            moved = inputs[item.relation] = self.inputs.moved(item, staged)
            gone = upstream[item.relation].dropped if item.relation in upstream else Intervals()
            changed[item.relation] = (moved & known.effective(item)) - gone
            arrived = upstream[item.relation].computed if item.is_computed else moved
            known = known.with_seen(item.relation, arrived)
            if item.relation in staged and staged[item.relation].dropped:
                lost[item.relation] = staged[item.relation].dropped
        return _Moved(known, changed, inputs, lost)

    # Telling

    def _finish_parts(
        self,
        found: Found,
        work: PartRefresh,
        first: int | None,
        action: Action,
        reason: str | None,
    ) -> Report:
        """Say what has been done."""
        commits = self.engine.commits(self.plan.state_relation, max(self.base, 0))
        self._measure([c for c in commits if c.version > self.base])
        rows = self._rows(work.writer)
        late = Intervals() if first is None else self.wanted.too_late(first, found.known, found.changed)
        return self._part_report(found, work, action=action, reason=reason, rows=rows, late=late)

    def _rows(self, writer: PartWriter) -> int:
        """How many rows the parts have that were written, as the writer knows it or the table."""
        if writer.rows is not None:
            return writer.rows
        counted = self.engine.query(part_rows(self.plan, writer.changed))
        return sum(int(str(many)) for part, many in counted if int(str(part)) in writer.changed)

    def _show_unchanged(self, finished: Coverage) -> Report:
        self.shown_again = show_again(self.plan, self.engine)
        known = KnownParts.of(finished.detail["parts"])
        report = self._report("no change", finished.refresh)
        return replace(report, parts=PartChange(waiting=self.wanted.waiting(known)))

    def _part_report(
        self,
        found: Found,
        work: PartRefresh,
        action: Action,
        reason: str | None,
        rows: int,
        late: Intervals,
    ) -> Report:
        writer, known = work.writer, work.known
        again, changed = writer.computed - work.ready, writer.changed
        inputs: tuple[InputChange, ...] = tuple(s.change for s in found.staged.values())
        is_same = action == "refreshed" and not writer.computed
        report = self._report(
            "no change" if is_same else action,
            found.state.next_refresh,
            reason=reason,
            inputs=inputs,
            rolled=found.is_again,
        )
        parts = PartChange(
            computed=str(work.ready),
            again=str(again),
            changed=str(changed & again),
            rows=rows,
            pending=str(known.pending),
            waiting=self.wanted.waiting(known),
            too_late=str(late),
            given_up=str(work.given_up),
        )
        return replace(report, parts=parts, rows_merged=parts.rows, partitions=len(changed))


def _is_older(finished: Coverage) -> bool:
    """Whether an older version of fivm has set the head, which recorded parts elsewhere."""
    return "versions" not in finished.detail[RECORDING]


def _watermarks(upstream: Mapping[str, Upstream]) -> dict[str, int | None]:
    return {name: found.watermark for name, found in upstream.items()}
