"""A refresh of a viewdf model first looks at its inputs: which parts are there, and where rows have changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fivm_dbt.features.viewdf.plan.model import PartInput, PartPlan, ViewdfPlan
from fivm_dbt.features.viewdf.refresh.known import KnownParts
from fivm_dbt.features.viewdf.spark.catalog import add_parts, add_staged
from fivm_dbt.features.viewdf.spark.queries import all_rows, some_rows
from fivm_dbt.features.viewdf.spark.statements import input_parts_query, islands_query, numbered
from fivm_dbt.parts.intervals import Intervals
from fivm_dbt.refresh.bind import Staged, tell_change
from fivm_dbt.refresh.engine import Row
from fivm_dbt.refresh.heads import read_state
from fivm_dbt.refresh.observe import (
    Observed,
    RecordedInput,
    keeps_columns,
)
from fivm_dbt.refresh.recorder import Recorder
from fivm_dbt.refresh.report import InputChange
from fivm_dbt.spark.capture import feed_query
from fivm_dbt.spark.formats import ChangeFeedUnavailable, VersionUnavailable
from fivm_dbt.spark.part_catalog import InputParts, Recorded
from fivm_dbt.spark.pieces import table
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
        return {name: _upstream(self.engine, name) for name in names}

    @property
    def others(self) -> list[PartInput]:
        """The inputs by parts, one for each relation."""
        by_name = {i.relation: i for i in self.parts.inputs if i.relation != self.plan.relation}
        return [by_name[name] for name in sorted(by_name)]

    def look_at(self, item: PartInput, versions: Mapping[str, int]) -> Intervals:
        """Which parts an input has, by one scan of it; with their rows they stay staged."""
        self.engine.progress(f"{self.plan.model}: looking at the parts of {item.relation}")
        query = input_parts_query(item, all_rows(self.plan, item, versions), is_change=False)
        name = self._staged(item)
        self.engine.stage(name, query)
        ranges = self.engine.query(islands_query(name))
        return Intervals.of(*((int(str(a)), int(str(b))) for a, b in ranges))

    def record_all(self, item: PartInput, by: Recorded) -> None:
        """Record all parts of an input that has been looked at."""
        name = self._staged(item)
        if item.own.is_fixed:
            self.engine.run(add_staged(self.plan, item.relation, item.own, name, by))
        else:
            parts = InputParts(item.relation, item.own, _changes(self.engine.query(numbered(name))))
            self.engine.run(add_parts(self.plan, self.parts.length, (), [parts], by))
        self.engine.unstage(name)

    def counted(self, item: PartInput, parts: Intervals, versions: Mapping[str, int]) -> InputParts:
        """How many rows parts of an input have at a version, none where that cannot be read any more."""
        query = input_parts_query(item, some_rows(self.plan, item, parts, versions), is_change=False)
        name = self._staged(item)
        try:
            self.engine.stage(name, query)
        except VersionUnavailable:
            return InputParts(item.relation, item.own, ())
        found = dict(_changes(self.engine.query(numbered(name))))
        self.engine.unstage(name)
        return InputParts(item.relation, item.own, tuple((p, found.get(p, 0)) for p in parts))

    def _staged(self, item: PartInput) -> str:
        return staged_input(self.plan, f"{item.relation}__parts")

    def appended(
        self, observed: Mapping[str, Observed], recorded: Mapping[str, RecordedInput]
    ) -> dict[str, Staged]:
        """The inputs by parts to which rows have only come, as their change feeds tell in one statement each.

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
            rows = feed_query(self.plan, bound).subquery("feed", copy=False)
            try:
                parts = self.engine.query(input_parts_query(item, rows, is_change=True, has_null=True))
            except ChangeFeedUnavailable:
                continue
            if not keeps_columns(self.engine, now):
                continue
            if any(int(str(gone)) for _, _, gone in parts):
                continue
            came = sum(int(str(row[1])) for row in parts)
            change = InputChange(
                bound.name,
                bound.capture,
                inserted=came,
                deleted=0,
                from_version=bound.old,
                to_version=bound.new,
            )
            tell_change(self.plan, self.engine, change)
            found[now.name] = Staged(bound, change, came=_changes([r for r in parts if r[0] is not None]))
        return found

    def moved(self, item: PartInput, staged: Mapping[str, Staged]) -> InputParts:
        """The parts of an input in which rows have changed."""
        change = staged.get(item.relation)
        if change is not None and change.came is not None:
            return InputParts(item.relation, item.own, change.came)
        if change is None or change.is_empty:
            return InputParts(item.relation, item.own, ())
        rows = table(staged_input(self.plan, item.relation))
        found = self.engine.query(input_parts_query(item, rows, is_change=True))
        return InputParts(item.relation, item.own, _changes(found))


def _upstream(engine: Recorder, relation: str) -> Upstream:
    finished = read_state(engine, relation).finished
    known = KnownParts.of(finished.detail["parts"]) if finished is not None else KnownParts()
    return Upstream(known.computed - known.dropped, known.dropped, known.watermark)


def _changes(rows: Sequence[Row]) -> tuple[tuple[int, int], ...]:
    """Per part by how many rows an input has changed."""
    return tuple((int(str(part)), int(str(came)) - int(str(gone))) for part, came, gone in rows)
