"""A refresh of a viewdf model first looks at its inputs: which parts are there, and where rows have changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fivm_dbt.features.viewdf.plan.model import PartInput, PartPlan, ViewdfPlan
from fivm_dbt.features.viewdf.refresh.known import KnownParts
from fivm_dbt.features.viewdf.spark.queries import all_rows
from fivm_dbt.features.viewdf.spark.statements import input_parts_query, islands_query
from fivm_dbt.parts.intervals import Intervals
from fivm_dbt.plan.model.head import RECORDING
from fivm_dbt.refresh.bind import Staged, tell_change
from fivm_dbt.refresh.engine import Row
from fivm_dbt.refresh.heads import noted, read_state
from fivm_dbt.refresh.observe import (
    Observed,
    RecordedInput,
    keeps_columns,
)
from fivm_dbt.refresh.recorder import Recorder
from fivm_dbt.refresh.report import InputChange
from fivm_dbt.spark.capture import change_query, feed_query
from fivm_dbt.spark.formats import FORMAT, ChangeFeedUnavailable, Commit, Touched
from fivm_dbt.spark.pieces import Query, table
from fivm_dbt.steps.binding import BoundInput, staged_input


@dataclass(frozen=True)
class Upstream:
    """What another viewdf model says of its parts.

    ``watermark`` is the first part that late rows may still change, None where it does not say.
    """

    computed: Intervals
    dropped: Intervals
    watermark: int | None = None


class PartInputs:
    """The inputs of one refresh."""

    def __init__(self, plan: ViewdfPlan, engine: Recorder) -> None:
        self.plan = plan
        self.engine = engine
        self.parts: PartPlan = plan.parts

    def upstream(self) -> dict[str, Upstream]:
        """The parts of inputs that are viewdf models, by their heads.

        Asked before the inputs' versions are read: what is there then has their rows.
        """
        names = sorted({i.relation for i in self.others if i.is_computed})
        return {name: _upstream(self.engine, self.plan.input(name).table) for name in names}

    @property
    def others(self) -> list[PartInput]:
        """The inputs by parts, one for each relation."""
        by_name = {i.relation: i for i in self.parts.inputs if i.relation != self.plan.relation}
        return [by_name[name] for name in sorted(by_name)]

    def look_at(self, item: PartInput, versions: Mapping[str, int]) -> Intervals:
        """Which parts an input has, by one scan of it."""
        self.engine.progress(f"{self.plan.model}: looking at the parts of {item.relation}")
        query = input_parts_query(item, all_rows(self.plan, item, versions), is_change=False)
        ranges = self.engine.query(islands_query(query))
        return Intervals.of(*((int(str(a)), int(str(b))) for a, b in ranges))

    def told(
        self, observed: Mapping[str, Observed], recorded: Mapping[str, RecordedInput]
    ) -> dict[str, Staged]:
        """The inputs by parts of which one statement tells, or none, in which parts rows have changed.

        Raises VersionUnavailable.
        """
        found = {}
        for item in self.others:
            now, before = observed[item.relation], recorded[item.relation]
            if not now.moved or not now.same_columns or before.snapshot is not None:
                continue
            if not self.engine.has_change_feed(now.table):
                continue
            bound = BoundInput(now.name, "change feed", before.commit.version, now.head.version)
            told = self._told_by_heads(bound, now) if item.is_computed else None
            told = told or self._told_by_feed(item, bound, (before.commit, now.head), now)
            if told is not None:
                tell_change(self.plan, self.engine, told.change)
                found[now.name] = told
        return found

    def _told_by_heads(self, bound: BoundInput, now: Observed) -> Staged | None:
        """What another viewdf model says of the parts that it has added since; None where it does not tell.

        Each of its commits has a head, and that with which a refresh ends has the parts that the refresh has written.
        """
        if not now.only_came:
            return None
        parts, rows, is_finished = Intervals(), 0, False
        commits = self.engine.commits(now.table, bound.old)
        for commit in reversed([c for c in commits if _is_between(bound, c)]):
            head = noted(commit, now.table)
            if head is None or commit.appended is None:
                return None
            covered = head[1]
            rows += commit.appended - 1  # without the head
            is_finished = "open" not in covered
            if is_finished:
                parts |= Intervals.read(covered["detail"][RECORDING]["changed"])
        return Staged(bound, _change(bound, rows, 0, "its heads"), parts=parts) if is_finished else None

    def _told_by_feed(
        self, item: PartInput, bound: BoundInput, between: Sequence[Commit], now: Observed
    ) -> Staged | None:
        """What the change feed of an input has, counted by part; None where it is not to be read."""
        try:
            parts = self._counted(item, bound, between, now)
        except ChangeFeedUnavailable:
            return None
        if parts is None or not keeps_columns(self.engine, now):
            return None
        came, gone = (sum(int(str(row[place])) for row in parts) for place in (1, 2))
        change = _change(bound, came, gone, bound.capture)
        return Staged(bound, change, parts=_numbers([r for r in parts if r[0] is not None]))

    def _counted(
        self, item: PartInput, bound: BoundInput, between: Sequence[Commit], now: Observed
    ) -> Sequence[Row] | None:
        """Per part how many rows came and went, net; None where rows went that may have been dropped for their age."""
        may_be_dropped = self.plan.input(bound.name).retention is not None
        if now.only_came or may_be_dropped:
            parts = self._counted_rows(item, feed_query(self.plan, bound, item.column), between)
            if not any(int(str(gone)) for _, _, gone in parts):
                return parts
        return None if may_be_dropped else self._counted_rows(item, change_query(self.plan, bound), between)

    def _counted_rows(self, item: PartInput, change: Query, between: Sequence[Commit]) -> Sequence[Row]:
        """Told to all models that read the same parts of the same change."""
        rows = change.subquery("feed", copy=False)
        return self.engine.told(input_parts_query(item, rows, is_change=True, has_null=True), between)

    def moved(self, item: PartInput, staged: Mapping[str, Staged]) -> Intervals:
        """The parts of an input in which rows have changed."""
        change = staged.get(item.relation)
        if change is not None and change.parts is not None:
            return change.parts
        if change is None or change.is_empty:
            return Intervals()
        rows = table(staged_input(self.plan, item.relation))
        found = self.engine.query(input_parts_query(item, rows, is_change=True))
        return _numbers(found)


def _is_between(bound: BoundInput, commit: Commit) -> bool:
    """Whether a commit has come since the version that is covered, up to that which is read, with rows."""
    assert bound.old is not None
    return bound.old < commit.version <= bound.new and FORMAT.touched(commit) is not Touched.FILES


def _change(bound: BoundInput, came: int, gone: int, how: str) -> InputChange:
    return InputChange(
        bound.name, how, inserted=came, deleted=gone, from_version=bound.old, to_version=bound.new
    )


def _upstream(engine: Recorder, table: str) -> Upstream:
    finished = read_state(engine, table).finished
    known = KnownParts.of(finished.detail["parts"]) if finished is not None else KnownParts()
    return Upstream(known.computed - known.dropped, known.dropped, known.watermark)


def _numbers(rows: Sequence[Row]) -> Intervals:
    """The parts of rows of :func:`input_parts_query`."""
    return Intervals.numbers(int(str(part)) for part, _, _ in rows)
