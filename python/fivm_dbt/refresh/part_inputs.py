"""What a refresh of a viewdf model looks at first: which parts its inputs have, and where rows have changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from fivm_dbt.parts.intervals import Intervals
from fivm_dbt.plan.binding import BoundInput, staged_input
from fivm_dbt.plan.part_plan import PartInput, PartPlan
from fivm_dbt.plan.plan import Plan
from fivm_dbt.refresh.bind import Staged, tell_change
from fivm_dbt.refresh.dropped import being_dropped
from fivm_dbt.refresh.engine import ChangeFeedUnavailable, Commit, Row, VersionUnavailable
from fivm_dbt.refresh.journal import Entry, Journal
from fivm_dbt.refresh.known_parts import KnownParts
from fivm_dbt.refresh.observe import (
    Observed,
    RecordedInput,
    keeps_columns,
    observe,
    read_state,
    recorded_states,
)
from fivm_dbt.refresh.recorder import Recorder
from fivm_dbt.refresh.report import InputChange
from fivm_dbt.spark.capture import feed_query
from fivm_dbt.spark.part_catalog import InputParts, Recorded, add_parts, add_staged
from fivm_dbt.spark.part_queries import all_rows
from fivm_dbt.spark.parts import input_parts_query, islands_query, numbered, touched_parts_query
from fivm_dbt.spark.pieces import table


@dataclass(frozen=True)
class Upstream:
    """What another viewdf model says of its parts; where it was not asked, when and with which version of its root.

    ``watermark`` is the first part that late rows may still change, None where it does not say.
    """

    computed: Intervals
    dropped: Intervals
    watermark: int | None = None
    finished: Entry | None = None
    version: int | None = None

    def is_of(self, head: Commit) -> bool:
        """Whether nothing has been written since; another table of this name may have the same version."""
        if self.finished is None:
            return True
        return self.version == head.version and head.timestamp <= self.finished.recorded_at


class PartInputs:
    """The inputs of one refresh."""

    def __init__(self, plan: Plan, engine: Recorder) -> None:
        assert plan.parts is not None
        self.plan = plan
        self.engine = engine
        self.parts: PartPlan = plan.parts

    def upstream(self, journal: Journal) -> dict[str, Upstream]:
        """The parts of inputs that are viewdf models, as far as that is known without asking, as of many models that
        are refreshed one after the other it is.
        """
        return {
            relation: self._upstream(journal.beside(relation), relation)
            for relation in sorted({i.relation for i in self.others if i.is_computed})
        }

    def _upstream(self, journal: Journal, relation: str) -> Upstream:
        finished = journal.last_known(relation)
        if finished is None:
            return _asked(journal, relation)
        presentation = self.plan.input(relation).relation.presentation
        assert presentation is not None
        return replace(
            _told(finished), finished=finished, version=recorded_states(finished)[presentation.root]
        )

    def observe(
        self, journal: Journal, upstream: Mapping[str, Upstream], recorded: dict[str, RecordedInput]
    ) -> tuple[Mapping[str, Upstream], dict[str, Observed]]:
        """The inputs' newest versions with what other models say, asked again where they are newer than it was.

        Asked before the versions are read: what is there then has its rows.
        """
        observed = observe(self.plan, self.engine, recorded)
        late = [name for name, u in upstream.items() if not u.is_of(observed[name].head)]
        if not late:
            return upstream, observed
        asked = {name: _asked(journal.beside(name), name) for name in late}
        return {**upstream, **asked}, observe(self.plan, self.engine, recorded)

    @property
    def others(self) -> list[PartInput]:
        """The inputs by parts, one for each relation."""
        by_name = {i.relation: i for i in self.parts.inputs if i.relation != self.plan.relation}
        return [by_name[name] for name in sorted(by_name)]

    def touched(self, after: int) -> tuple[int, Intervals]:
        """The version of the root now, and the parts that interrupted attempts have written since that one.

        Raises ChangeFeedUnavailable, VersionUnavailable.
        """
        root = self.plan.root.relation
        to = self.engine.commits(root, None)[0].version
        if to == after:
            return to, Intervals()
        if to < after:
            raise VersionUnavailable(f"{root} was dropped and created anew")
        rows = self.engine.query(touched_parts_query(self.plan, after, to))
        return to, Intervals.numbers(int(str(row[0])) for row in rows)

    def look_at(self, item: PartInput, versions: Mapping[str, int], by: Recorded) -> Intervals:
        """Which parts an input has, by one scan of it: they are recorded at once."""
        self.engine.progress(f"{self.plan.model}: looking at the parts of {item.relation}")
        query = input_parts_query(item, all_rows(self.plan, item, versions), is_change=False)
        name = staged_input(self.plan, f"{item.relation}__parts")
        self.engine.stage(name, query)
        ranges = self.engine.query(islands_query(name))
        found = Intervals.of(*((int(str(a)), int(str(b))) for a, b in ranges))
        if found and item.own.is_fixed:
            self.engine.run(add_staged(self.plan, item.relation, item.own, name, by))
        elif found:
            changes = _changes(self.engine.query(numbered(name)))
            parts = InputParts(item.relation, item.own, changes)
            self.engine.run(add_parts(self.plan, self.parts.length, (), [parts], by))
        self.engine.unstage(name)
        return found

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
            change = InputChange(bound.name, bound.capture, came, 0, bound.old, bound.new)
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


def _asked(journal: Journal, relation: str) -> Upstream:
    state = read_state(journal.entries(relation))
    told, dropping = _told(state.finished), being_dropped(state)
    return replace(told, computed=told.computed - dropping, dropped=told.dropped | dropping)


def _told(finished: Entry | None) -> Upstream:
    known = KnownParts.of(finished.detail["parts"]) if finished is not None else KnownParts()
    return Upstream(known.computed - known.dropped, known.dropped, known.watermark)


def _changes(rows: Sequence[Row]) -> tuple[tuple[int, int], ...]:
    """Per part by how many rows an input has changed."""
    return tuple((int(str(part)), int(str(came)) - int(str(gone))) for part, came, gone in rows)
