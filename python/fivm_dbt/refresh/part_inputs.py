"""What a refresh of a viewdf model looks at first: which parts its inputs have, and where rows have changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fivm_dbt.parts.intervals import Intervals
from fivm_dbt.plan.binding import staged_input
from fivm_dbt.plan.part_plan import PartInput, PartPlan
from fivm_dbt.plan.plan import Plan
from fivm_dbt.refresh.bind import Staged
from fivm_dbt.refresh.engine import Row, VersionUnavailable
from fivm_dbt.refresh.journal import Journal
from fivm_dbt.refresh.known_parts import KnownParts
from fivm_dbt.refresh.observe import read_state
from fivm_dbt.refresh.recorder import Recorder
from fivm_dbt.spark.part_catalog import InputParts, Recorded, record_parts, record_staged
from fivm_dbt.spark.part_queries import all_rows
from fivm_dbt.spark.parts import input_parts_query, islands_query, numbered, touched_parts_query
from fivm_dbt.spark.reads import table


@dataclass(frozen=True)
class Upstream:
    """What another viewdf model says of its parts."""

    computed: Intervals
    dropped: Intervals


class PartInputs:
    """The inputs of one refresh."""

    def __init__(self, plan: Plan, engine: Recorder) -> None:
        assert plan.parts is not None
        self.plan = plan
        self.engine = engine
        self.parts: PartPlan = plan.parts

    def upstream(self, journal: Journal) -> dict[str, Upstream]:
        """The parts of inputs that are viewdf models, read before their versions: what is there then has its rows."""
        found = {}
        for relation in sorted({i.relation for i in self.others if i.is_computed}):
            finished = read_state(journal.beside(relation).entries(relation)).finished
            known = KnownParts.of(finished.detail["parts"]) if finished is not None else KnownParts()
            found[relation] = Upstream(known.computed - known.dropped, known.dropped)
        return found

    @property
    def others(self) -> list[PartInput]:
        """The inputs by parts, one for each relation."""
        by_name = {i.relation: i for i in self.parts.inputs if i.relation != self.plan.relation}
        return [by_name[name] for name in sorted(by_name)]

    def touched(self, after: int) -> Intervals:
        """The parts that interrupted attempts have written since this version of the root.

        Raises ChangeFeedUnavailable, VersionUnavailable.
        """
        root = self.plan.root.relation
        to = self.engine.commits(root, None)[0].version
        if to == after:
            return Intervals()
        if to < after:
            raise VersionUnavailable(f"{root} was dropped and created anew")
        rows = self.engine.query(touched_parts_query(self.plan, after, to))
        return Intervals.numbers(int(str(row[0])) for row in rows)

    def look_at(self, item: PartInput, versions: Mapping[str, int], by: Recorded) -> Intervals:
        """Which parts an input has, by one scan of it: they are recorded at once."""
        self.engine.progress(f"{self.plan.model}: looking at the parts of {item.relation}")
        query = input_parts_query(item, all_rows(self.plan, item, versions), is_change=False)
        name = staged_input(self.plan, f"{item.relation}__parts")
        self.engine.stage(name, query)
        ranges = self.engine.query(islands_query(name))
        found = Intervals.of(*((int(str(a)), int(str(b))) for a, b in ranges))
        if found and item.own.is_fixed:
            self.engine.run(record_staged(self.plan, item.relation, item.own, name, by))
        elif found:
            changes = _changes(self.engine.query(numbered(name)))
            parts = InputParts(item.relation, item.own, changes)
            self.engine.run(record_parts(self.plan, self.parts.length, (), [parts], by))
        self.engine.unstage(name)
        return found

    def moved(self, item: PartInput, staged: Mapping[str, Staged]) -> InputParts:
        """The parts of an input in which rows have changed."""
        change = staged.get(item.relation)
        if change is None or change.is_empty:
            return InputParts(item.relation, item.own, ())
        rows = table(staged_input(self.plan, item.relation))
        found = self.engine.query(input_parts_query(item, rows, is_change=True))
        return InputParts(item.relation, item.own, _changes(found))


def _changes(rows: Sequence[Row]) -> tuple[tuple[int, int], ...]:
    """Per part by how many rows an input has changed."""
    return tuple((int(str(part)), int(str(came)) - int(str(gone))) for part, came, gone in rows)
