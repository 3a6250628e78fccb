"""A run of random scenarios covers constructs: shares of steps, construct by event, parent by child."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from fivm_dbt.testing.outcome import ModelRun
from fivm_dbt.testing.scenario import Change, RawRow, Scenario, Step
from generator.cells.table import Seen
from generator.cells.table import table as table_of_cells
from generator.constructs import CONSTRUCTS
from generator.queries.query import Nesting, Query

EVENTS = ("insert", "delete", "update", "NULL key", "late row", "empty group")
"""What happens in a step, to the inputs of a query; the last to its result: something disappears."""

_DATE = "d"
Cell = tuple[str, str]


@dataclass(frozen=True)
class Coverage:
    """Counted in pairs of a model and a step, in distinct queries, and in constructs.

    ``cells`` counts (construct, event), ``nestings`` (parent, child), ``accepted`` queries per construct,
    ``refused`` (construct, code), ``queries_in`` what the table of positions and kinds has. ``interpreted`` are the
    pairs that were compared with the second oracle too; ``not_understood`` counts, among the others, why not.
    """

    queries: int = 0
    pairs: int = 0
    with_deletes: int = 0
    with_null_keys: int = 0
    with_rows: int = 0
    refreshed: int = 0
    refusals: int = 0
    too_large: int = 0
    cells: Counter[Cell] = field(default_factory=Counter)
    nestings: Counter[Nesting] = field(default_factory=Counter)
    accepted: Counter[str] = field(default_factory=Counter)
    refused: Counter[Cell] = field(default_factory=Counter)
    queries_in: Seen = field(default_factory=Counter)
    interpreted: int = 0
    queries_interpreted: int = 0
    not_understood: Counter[str] = field(default_factory=Counter)

    def __add__(self, other: Coverage) -> Coverage:
        return Coverage(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    @staticmethod
    def of_query(query: Query) -> Coverage:
        """One query that the planner accepts."""
        return Coverage(1, nestings=Counter(query.nestings), accepted=Counter(query.uses))

    @staticmethod
    def of_refusal(query: Query, code: str) -> Coverage:
        return Coverage(refusals=1, refused=Counter((name, code) for name in query.uses))

    @staticmethod
    def of_interpreted(runs: Iterable[ModelRun], *, is_build: bool = False) -> Coverage:
        """The pairs of a step that were compared with the second oracle; those of the build count as queries."""
        runs = tuple(runs)
        checked = sum(run.is_interpreted for run in runs)
        if is_build:
            return Coverage(queries_interpreted=checked)
        others = Counter(run.not_interpreted for run in runs if run.not_interpreted is not None)
        return Coverage(interpreted=checked, not_understood=others)

    @property
    def share_interpreted(self) -> float:
        """The pairs that the second oracle has checked, as a share of those that it was asked for."""
        return self.interpreted / max(1, self.pairs_asked)

    @property
    def pairs_asked(self) -> int:
        """The pairs that the second oracle was asked for."""
        return self.interpreted + self.not_understood.total()

    def shares(self) -> dict[str, float]:
        """Each kind of pair as a share of all pairs."""
        names = ("with_deletes", "with_null_keys", "with_rows", "refreshed")
        return {name: getattr(self, name) / max(1, self.pairs) for name in names}

    def missing_cells(self, constructs: Iterable[str]) -> list[Cell]:
        """Events that never met one of ``constructs``."""
        return [(name, event) for name in constructs for event in EVENTS if not self.cells[name, event]]

    def missing_nestings(self, constructs: Collection[str]) -> list[Nesting]:
        """Pairs of families of which no member of one stood in a subquery of a member of the other."""
        families = list(dict.fromkeys(CONSTRUCTS[name].family for name in constructs))
        seen = self.family_nestings()
        return [(p, c) for p in families for c in families if not seen[p, c]]

    def family_nestings(self) -> Counter[Nesting]:
        seen: Counter[Nesting] = Counter()
        for (parent, child), count in self.nestings.items():
            seen[CONSTRUCTS[parent].family, CONSTRUCTS[child].family] += count
        return seen

    def as_dict(self) -> dict[str, Any]:
        """For a JSON file; :meth:`from_dict` reads it."""
        data = {f.name: getattr(self, f.name) for f in fields(self)}
        return {n: sorted(v.items()) if isinstance(v, Counter) else v for n, v in data.items()}

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Coverage:
        def value(raw: Any) -> Any:
            if not isinstance(raw, list):
                return raw
            return Counter({tuple(key) if isinstance(key, list) else key: count for key, count in raw})

        return Coverage(**{name: value(raw) for name, raw in data.items()})

    def __str__(self) -> str:
        shares = ", ".join(f"{name.replace('_', ' ')} {share:.0%}" for name, share in self.shares().items())
        counts = f"{self.queries} queries, {self.pairs} pairs of query and step"
        second = f"; {self.interpreted} of {self.pairs_asked} pairs, {self.queries_interpreted} queries, interpreted"
        rest = f"{self.refusals} other queries refused, {self.too_large} too large"
        return f"{counts}; {shares}; {rest}{second if self.pairs_asked else ''}"

    def tables(self) -> str:
        """For people: per construct what the planner said and what happened, all nestings, kinds and positions,
        and what the second oracle did not understand, most frequent first."""
        parts = [self._construct_table(), self._nesting_table(), table_of_cells(self.queries_in)]
        if self.not_understood:
            others = self.not_understood.most_common()
            parts.append("\n".join(f"not understood, {n} times: {construct}" for construct, n in others))
        return "\n\n".join(parts)

    def _construct_table(self) -> str:
        lines = [f"{'construct':<26}{'accepted':>9}  {'refused':<16}" + "".join(f"{e:>12}" for e in EVENTS)]
        for name in CONSTRUCTS:
            codes = {code: n for (construct, code), n in sorted(self.refused.items()) if construct == name}
            refused = ", ".join(f"{code} {n}" for code, n in codes.items())
            cells = "".join(f"{self.cells[name, event]:>12}" for event in EVENTS)
            lines.append(f"{name:<26}{self.accepted[name]:>9}  {refused:<16}{cells}")
        return "\n".join(lines)

    def _nesting_table(self) -> str:
        """Rows are parents, columns children, numbered as the rows are."""
        families = list(dict.fromkeys(c.family for c in CONSTRUCTS.values()))
        seen = self.family_nestings()
        head = f"{'parent > child':<26}" + "".join(f"{n:>5}" for n in range(1, len(families) + 1))
        lines = [head]
        for number, parent in enumerate(families, start=1):
            counts = "".join(f"{seen[parent, child] or '.':>5}" for child in families)
            lines.append(f"{f'{number} {parent}':<26}{counts}")
        return "\n".join(lines)


class Events:
    """Follows the tables of a scenario and says what each step does to each of them."""

    def __init__(self, scenario: Scenario) -> None:
        self._dates = {
            table: next((i for i, (name, _) in enumerate(columns) if name == _DATE), None)
            for table, columns in scenario.tables.items()
        }
        self._newest: dict[str, str] = {}
        self._sizes = {table: len(scenario.initial.get(table, ())) for table in scenario.tables}
        for table, rows in scenario.initial.items():
            self._see(table, rows)

    def of_step(self, step: Step) -> dict[str, set[str]]:
        """Per changed table its events."""
        found = {table: self._of_change(table, change) for table, change in step.delta.items()}
        for table, change in step.delta.items():
            self._see(table, change.insert)
            self._sizes[table] += len(change.insert) - len(change.delete)
        return found

    def is_empty(self, table: str) -> bool:
        """Whether a table has no rows after the last step; a model always has some, as far as is known here."""
        return self._sizes.get(table) == 0

    def _of_change(self, table: str, change: Change) -> set[str]:
        events = set()
        if change.insert:
            events.add("insert")
        if change.delete:
            events.add("delete")
        if any(_is_update(old, new) for old in change.delete for new in change.insert):
            events.add("update")
        if any(row[0] is None for row in (*change.insert, *change.delete)):
            events.add("NULL key")
        newest = self._newest.get(table, "")
        if any(date < newest for date in self._dates_of(table, change.insert)):
            events.add("late row")
        return events

    def _see(self, table: str, rows: Iterable[RawRow]) -> None:
        self._newest[table] = max([self._newest.get(table, ""), *self._dates_of(table, rows)])

    def _dates_of(self, table: str, rows: Iterable[RawRow]) -> list[str]:
        position = self._dates[table]
        return [] if position is None else [row[position] for row in rows if row[position] is not None]


def _is_update(old: RawRow, new: RawRow) -> bool:
    return [a == b for a, b in zip(old, new, strict=True)].count(False) == 1
