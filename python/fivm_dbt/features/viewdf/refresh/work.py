"""A refresh of a viewdf model acts on what it found: compute parts, drop old ones, set the head.

Each statement is one commit with a head. While others are to come it says what the last finished refresh covers, and
what has been written since: whoever goes on after an interruption computes these parts again. The last one says what
this refresh covers. Where it is known to be the last one before it runs, nothing more is to be committed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

from fivm_dbt.features.viewdf.plan.model import PartPlan, ViewdfPlan
from fivm_dbt.features.viewdf.refresh.known import KnownParts, check_not_dropped, merged_now
from fivm_dbt.features.viewdf.refresh.order import PartOrder
from fivm_dbt.features.viewdf.refresh.record import Recording
from fivm_dbt.features.viewdf.refresh.retention import (
    NEEDS,
    Droppable,
    needs,
    read_by_nobody,
    too_old,
    watermark,
)
from fivm_dbt.features.viewdf.refresh.swap import show
from fivm_dbt.features.viewdf.refresh.table import PartTable
from fivm_dbt.features.viewdf.refresh.wanted import PartsWanted
from fivm_dbt.features.viewdf.refresh.writer import PartWriter
from fivm_dbt.features.viewdf.spark.statements import compact_periods, drop_parts
from fivm_dbt.parts.intervals import Intervals
from fivm_dbt.plan.model.head import RECORDING
from fivm_dbt.refresh.bind import Staged, versions_read
from fivm_dbt.refresh.heads import with_open
from fivm_dbt.refresh.observe import Observed, State
from fivm_dbt.refresh.run import Run
from fivm_dbt.spark.merge import write_head
from fivm_dbt.steps.binding import Binding


@dataclass(frozen=True, kw_only=True)
class Found:
    """What a refresh starts from: the inputs' versions, and what is known of parts with what has changed of them."""

    state: State
    covered: Mapping[str, Any]
    """What the head says to be covered until this refresh is finished."""
    observed: dict[str, Observed]
    binding: Binding
    staged: Mapping[str, Staged] = field(default_factory=dict)
    known: KnownParts
    before: KnownParts = field(default_factory=KnownParts)
    """What was known when the last refresh was finished."""
    changed: Mapping[str, Intervals] = field(default_factory=dict)
    dropped: Mapping[str, Intervals]
    is_build: bool
    is_again: bool = False
    is_first_record: bool = False
    """Whether the heads of before say nothing of parts: an older version of fivm has set them."""
    touched: Intervals = field(default_factory=Intervals)
    """Parts that an interrupted attempt may have written."""
    inputs: Mapping[str, Intervals] = field(default_factory=dict)
    """Parts of inputs in which rows have changed."""
    lost: Mapping[str, Intervals] = field(default_factory=dict)
    """Parts of inputs that have been dropped since."""
    watermarks: Mapping[str, int | None]
    """Of inputs that are viewdf models."""
    snapshots: Mapping[str, int | None]
    """The versions of own snapshots of inputs."""

    @property
    def versions(self) -> dict[str, int]:
        return {b.name: b.new for b in self.binding.inputs}

    @property
    def kind(self) -> str:
        return "build" if self.is_build else "parts"


@dataclass(frozen=True)
class _Old:
    """Parts that can go, and by period those whose files are to be put together."""

    droppable: Droppable
    merged: Mapping[date, Intervals]

    def __bool__(self) -> bool:
        return bool(self.droppable.parts or self.merged)


class PartRefresh:
    """One refresh: ``state`` is the table that is shown, ``place`` the one that is written, of a rebuild another."""

    def __init__(
        self, run: Run[ViewdfPlan], wanted: PartsWanted, found: Found, state: PartTable, place: PartTable
    ) -> None:
        self._run = run
        self._parts: PartPlan = run.plan.parts
        self._wanted = wanted
        self._found = found
        self._state = state
        self._place = place
        stored = len(found.before.computed)
        size = None if run.state_bytes is None or not stored else run.state_bytes / stored
        self.writer = PartWriter(place.plan, run.engine, place, found.touched, size)
        self.writer.covering = self._covering
        self.known = found.known
        """What is known in the end."""
        self.ready = Intervals()
        self.given_up = Intervals()
        """Parts that are never computed, as they came later than retention allows."""
        self._order: PartOrder | None = None
        self._pending = Intervals()
        self.covered: Mapping[str, Any] = {}
        """What is covered in the end."""

    def compute(self) -> int | None:
        """Compute the parts that are ready, and those that late data has changed; the first part of the model."""
        found, known = self._found, self._found.known
        first = self._wanted.first(known)
        gone = {**found.dropped, self._run.plan.relation: known.dropped}
        ready = affected = Intervals()
        if first is not None:
            ready, affected = self._wanted.found(
                first, known, found.changed, found.binding.changed, found.touched, gone
            )
        stray = found.touched - known.computed - ready
        if stray:
            # An interrupted attempt has computed them from rows that are gone.
            self.writer.drop(stray)
        if first is None:
            return None
        asked = self._wanted.asked
        self._pending, affected = affected - asked, affected & asked
        given_up = self.given_up = self._wanted.given_up(known, ready, gone)
        ready -= given_up
        check_not_dropped(self._parts, ready | affected, gone)
        self._announce(ready, affected)
        self.ready = ready
        known = replace(known, computed=known.computed | given_up, dropped=known.dropped | given_up)
        self.known = replace(known, first=first, computed=known.computed | ready)
        place, engine = self._place, self._run.engine
        self._order = PartOrder(
            place.plan,
            engine,
            place=place,
            writer=self.writer,
            versions=found.versions,
            known=known,
            asked=asked,
        )
        self._order.compute(first, ready, affected)
        return first

    def end(self) -> None:
        """Put old parts away, and have the head say what is covered now, unless the last commit has."""
        if self.writer.is_ended:
            return
        old, plan, engine = self._decide_old(), self._run.plan, self._run.engine
        self._tell_kept(old.droppable)
        gone = old.droppable.parts
        if gone:
            engine.progress(f"{plan.model}: dropping {len(gone):,} parts ({gone}), older than fivm_retention")
        merged = [self.known.merged, *old.merged.values()]
        self.known = replace(
            self.known,
            dropped=self.known.dropped | gone,
            merged=Intervals.of(*(r for parts in merged for r in parts.ranges)),
        )
        self.covered = self._ended()
        if self._place is not self._state:
            show(engine, self._state, self._place, self.covered, gone)
            self._merge(old.merged)
            return
        self._merge(old.merged)
        if gone:
            self._state.write(lambda head: drop_parts(plan, gone, head), self.covered)
        else:
            self._state.write(lambda head: write_head(plan, head), self.covered)

    # The heads

    def _covering(self, is_last: bool) -> Mapping[str, Any]:
        """What the next commit of parts covers, the last one if nothing is to be put away."""
        if is_last and self._place is self._state:
            old = self._decide_old()
            if not old:
                self._tell_kept(old.droppable)
                self.covered = self._ended()
                return self.covered
        opened = {"kind": self._found.kind, "written": str(self.writer.written)}
        return with_open(self._found.covered, self._run.plan, opened, self._place.written + 1)

    def _ended(self) -> dict[str, Any]:
        """What is covered once this refresh is finished."""
        found, run = self._found, self._run
        detail = run._detail(found.kind, found.observed, dict(found.snapshots), found.binding)
        detail |= {"parts": self.known.as_dict(), NEEDS: needs(self._parts, self.known)}
        return run._covered(found.state, {**detail, RECORDING: self._recorded().as_dict(self._parts)})

    def _recorded(self) -> Recording:
        found, writer = self._found, self.writer
        is_all = found.is_build or found.is_first_record
        known = self.known.computed if found.is_first_record else Intervals()
        before = KnownParts() if found.is_first_record else found.before
        return Recording(
            versions=versions_read(found.binding),
            computed=writer.computed | known,
            changed=writer.changed | known,
            inputs=found.known.seen if is_all else found.inputs,
            lost=found.lost,
            dropped=self.known.dropped - before.dropped,
            merged=self.known.merged - before.merged,
        )

    # Old parts

    def _decide_old(self) -> _Old:
        """What is known in the end, and the parts that are to be put away then."""
        pending = self._pending | (self._order.pending if self._order is not None else Intervals())
        known = replace(self.known, pending=pending if self._order is not None else self.known.pending)
        known = replace(known, watermark=watermark(self._parts, known, self._found.watermarks))
        self.known = known
        # After an interruption nobody knows which of the commits since the others have seen.
        is_new = self._found.is_build or self._found.is_again
        version = None if is_new else self._run.base
        written = self.writer.changed | self._found.touched
        found = read_by_nobody(self._parts, too_old(self._parts, known), self._run.engine, version, written)
        without = replace(known, dropped=known.dropped | found.parts)
        return _Old(found, merged_now(self._parts, without))

    def _merge(self, merged: Mapping[date, Intervals]) -> None:
        """Have the files of these periods, and of all before them, put together."""
        if not merged:
            return
        plan, last = self._run.plan, max(merged)
        self._run.engine.progress(f"{plan.model}: merging the files of {len(merged):,} periods up to {last}")
        before = self._parts.period_of(merged[last].last + 1)
        self._run.engine.compact(compact_periods(plan, before))

    # Telling

    def _announce(self, ready: Intervals, affected: Intervals) -> None:
        many = len(ready) + len(affected)
        if many:
            how = "together" if self._parts.together is not None else "one after the other"
            self._run.engine.progress(
                f"{self._run.plan.model}: {len(ready):,} parts to compute ({ready}), {len(affected):,} again "
                f"({affected}), {how}"
            )

    def _tell_kept(self, found: Droppable) -> None:
        if found.kept:
            self._run.engine.progress(
                f"{self._run.plan.model}: keeping {len(found.kept):,} parts ({found.kept}) that are older than "
                f"fivm_retention, which {', '.join(found.waiting)} may still read"
            )
