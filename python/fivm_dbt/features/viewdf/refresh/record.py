"""The catalog of parts records what a refresh has done, once its head says that it is finished.

The catalog is a table of its own, for people: a refresh that is cut off before it is written has that done by the next
one. The head has what is to be recorded, as ranges of parts, and whether it is shows the part that is recorded last.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from itertools import zip_longest
from typing import Any

from fivm_dbt.features.viewdf.plan.model import PartPlan, ViewdfPlan
from fivm_dbt.features.viewdf.refresh.inputs import PartInputs
from fivm_dbt.features.viewdf.refresh.known import KnownParts
from fivm_dbt.features.viewdf.refresh.writer import AT_ONCE
from fivm_dbt.features.viewdf.spark.catalog import add_parts, mark_dropped, mark_merged, recorded_query
from fivm_dbt.features.viewdf.spark.statements import part_rows
from fivm_dbt.parts.intervals import Intervals
from fivm_dbt.refresh.bind import versions_text
from fivm_dbt.refresh.catalog_table import create_once
from fivm_dbt.refresh.history import RECORDING
from fivm_dbt.refresh.observe import Coverage
from fivm_dbt.refresh.recorder import Recorder
from fivm_dbt.spark.formats import MissingRelation
from fivm_dbt.spark.part_catalog import InputParts, PartEntry, Recorded, forget_model, record_parts

_RANGES = 200
"""A head has so many ranges at most; what lies between them is recorded again where that has to be repeated."""


@dataclass(frozen=True, kw_only=True)
class Recording:
    """Parts that were ``computed``, of which some have ``changed``; those of ``inputs`` in which rows have.

    ``dropped`` and ``merged`` are own parts that were, ``lost`` those of inputs that were dropped there.
    """

    is_build: bool
    computed: Intervals
    changed: Intervals
    inputs: Mapping[str, Intervals] = field(default_factory=dict)
    lost: Mapping[str, Intervals] = field(default_factory=dict)
    dropped: Intervals = field(default_factory=Intervals)
    merged: Intervals = field(default_factory=Intervals)

    def as_dict(self) -> dict[str, Any]:
        return {
            "is_build": self.is_build,
            "computed": _text(self.computed),
            "changed": _text(self.changed),
            "inputs": {name: _text(parts) for name, parts in self.inputs.items() if parts},
            "lost": {name: _text(parts) for name, parts in self.lost.items() if parts},
            "dropped": _text(self.dropped),
            "merged": _text(self.merged),
        }

    @staticmethod
    def of(data: Mapping[str, Any]) -> Recording:
        return Recording(
            is_build=data["is_build"],
            computed=Intervals.read(data["computed"]),
            changed=Intervals.read(data["changed"]),
            inputs={name: Intervals.read(text) for name, text in data["inputs"].items()},
            lost={name: Intervals.read(text) for name, text in data["lost"].items()},
            dropped=Intervals.read(data["dropped"]),
            merged=Intervals.read(data["merged"]),
        )

    def last(self, model: str) -> tuple[str, int] | None:
        """The relation and number of a part that the last statement records; None where there is nothing to record."""
        inputs, lost = (sorted((n, p) for n, p in m.items() if p) for m in (self.inputs, self.lost))
        in_order = [*inputs, (model, self.computed), *lost, (model, self.dropped), (model, self.merged)]
        found = [(name, parts.last) for name, parts in in_order if parts]
        return found[-1] if found else None


class PartRecord:
    """Writes into the catalog of parts for one refresh."""

    def __init__(self, plan: ViewdfPlan, engine: Recorder, inputs: PartInputs) -> None:
        self._plan = plan
        self._parts: PartPlan = plan.parts
        self._engine = engine
        self._inputs = inputs

    def write(
        self,
        recording: Recording,
        by: Recorded,
        before: KnownParts,
        changes: Sequence[InputParts],
        appended: int | None,
    ) -> int:
        """Record what a refresh has done; how many rows of parts it has written.

        ``before`` is what was known, and is in the catalog; ``changes`` say by how many rows parts of inputs have
        changed, ``appended`` how many rows the only part has, where that is known.
        """
        create_once(self._plan, self._engine)
        if recording.is_build:
            self._forget(recording, by)
        rows = 0
        for own, inputs in _batches(recording.computed, changes):
            entries = self._entries(own, recording.changed, appended)
            rows += sum(e.rows for e in entries if e.is_changed)
            is_known = own & before.computed or any(i.parts & _seen(before, i) for i in inputs)
            write = record_parts if is_known else add_parts
            self._engine.run(write(self._plan, self._parts.length, entries, inputs, by))
        self._mark(recording, by)
        return rows

    def complete(self, finished: Coverage) -> None:
        """Record what the last refresh was to record, where it was cut off before that."""
        recording = Recording.of(finished.detail[RECORDING])
        last = recording.last(self._plan.relation)
        if last is None or self._is_recorded(last, finished.refresh, recording):
            return
        self._engine.progress(f"recording the parts of refresh {finished.refresh} of {self._plan.model}")
        create_once(self._plan, self._engine)
        known = KnownParts.of(finished.detail["parts"])
        versions = {name: int(data["version"]) for name, data in finished.detail["inputs"].items()}
        by = Recorded(finished.refresh, datetime.fromisoformat(finished.recorded_at), versions_text(versions))
        inputs: list[InputParts] = []
        if recording.is_build:
            self._look_again(recording, by, versions)
        else:
            inputs = self._counted(recording, known, versions)
        for own, groups in _batches(recording.computed & known.computed - known.dropped, inputs):
            entries = self._entries(own, recording.changed, None)
            statement = record_parts(self._plan, self._parts.length, entries, groups, by, is_counted=True)
            self._engine.run(statement)
        self._mark(recording, by)

    def _is_recorded(self, last: tuple[str, int], refresh: int, recording: Recording) -> bool:
        try:
            rows = self._engine.query(recorded_query(self._plan, *last))
        except MissingRelation:
            return False
        numbers = [int(str(number)) for (number,) in rows]
        # Refreshes of a state that has been lost have had greater numbers, and a build records everything anew.
        return refresh in numbers if recording.is_build else any(number >= refresh for number in numbers)

    def _forget(self, recording: Recording, by: Recorded) -> None:
        """Record of a build the parts of its inputs, and nothing else that was there."""
        self._engine.run(forget_model(self._plan))
        for item in self._inputs.others:
            if recording.inputs.get(item.relation):
                self._inputs.record_all(item, by)

    def _look_again(self, recording: Recording, by: Recorded, versions: Mapping[str, int]) -> None:
        for item in self._inputs.others:
            if recording.inputs.get(item.relation):
                self._inputs.look_at(item, versions)
        self._forget(recording, by)

    def _counted(
        self, recording: Recording, known: KnownParts, versions: Mapping[str, int]
    ) -> list[InputParts]:
        """The parts of inputs with all their rows: by how many these have changed is not known any more."""
        found = []
        for item in self._inputs.others:
            parts = recording.inputs.get(item.relation, Intervals()) & known.seen[item.relation]
            if parts:
                found += self._inputs.counted(item, parts, versions).groups(AT_ONCE)
        return found

    def _entries(self, parts: Intervals, changed: Intervals, appended: int | None) -> list[PartEntry]:
        """Parts with their rows: of a single new one its commit says it, others are counted."""
        if not parts:
            return []
        if appended is not None:
            return [PartEntry(part, appended, True) for part in parts]
        counted = self._engine.query(part_rows(self._plan, parts))
        rows = {int(str(part)): int(str(many)) for part, many in counted}
        return [PartEntry(part, rows.get(part, 0), part in changed) for part in parts]

    def _mark(self, recording: Recording, by: Recorded) -> None:
        """Record which parts are not there any more, and which lie in the files of longer periods."""
        for name, parts in sorted(recording.lost.items()):
            if parts:
                self._engine.run(mark_dropped(self._plan, name, parts, by.refresh))
        if recording.dropped:
            self._engine.run(mark_dropped(self._plan, self._plan.relation, recording.dropped, by.refresh))
        for period, merged in sorted(self._by_period(recording.merged).items()):
            self._engine.run(mark_merged(self._plan, merged, period, by.refresh))

    def _by_period(self, parts: Intervals) -> dict[date, Intervals]:
        found: dict[date, list[int]] = {}
        for part in parts:
            found.setdefault(self._parts.period_of(part), []).append(part)
        return {period: Intervals.numbers(numbers) for period, numbers in found.items()}


def _batches(own: Intervals, inputs: Sequence[InputParts]) -> Iterator[tuple[Intervals, list[InputParts]]]:
    """What is recorded in one statement each: own parts, and with them parts of inputs, but these never last."""
    groups, batches = list(own.groups(AT_ONCE)), _few(inputs)
    missing = max(0, len(batches) - len(groups)) if groups else 0
    # Own parts come last, by which it is told whether everything is recorded.
    for group, batch in zip_longest([Intervals()] * missing + groups, batches):
        yield group or Intervals(), batch or []


def _few(inputs: Sequence[InputParts]) -> list[list[InputParts]]:
    """Parts of inputs, so many together as are recorded in one statement."""
    batches: list[list[InputParts]] = []
    for item in inputs:
        if not item.changes:
            continue
        if not batches or sum(len(i.changes) for i in batches[-1]) + len(item.changes) > AT_ONCE:
            batches.append([])
        batches[-1].append(item)
    return batches


def _seen(known: KnownParts, item: InputParts) -> Intervals:
    return known.seen.get(item.relation, Intervals())


def _text(parts: Intervals) -> str:
    return str(parts.at_most(_RANGES))
