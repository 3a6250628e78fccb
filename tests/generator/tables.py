"""Random tables and random changes of them have few keys, small values, NULLs and duplicates."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from fivm_dbt.testing.scenario import RawRow

Rows = list[RawRow]

TYPES = {
    "k": "int",
    "g": "string",
    "x": "int",
    "y": "bigint",
    "m": "decimal(8,2)",
    "d": "date",
    "f": "boolean",
}
"""Every column name has one type, so that NATURAL joins are well typed."""

_VALUES: dict[str, list[object]] = {
    "k": [1, 2, 3],
    "g": ["a", "b", "ab"],
    "x": [-3, -2, -1, 0, 1, 2, 3],
    "y": [-3, -2, -1, 0, 1, 2, 3],
    "m": ["-3.00", "-1.25", "-0.50", "0.00", "0.25", "1.50", "3.00"],
    "d": ["2024-01-30", "2024-02-01", "2024-02-29", "2024-04-10"],
    "f": [True, False],
}
_NULLS = 0.18
_TABLES = ("r", "s", "t", "u")


def random_tables(rng: random.Random) -> dict[str, tuple[tuple[str, str], ...]]:
    """Three or four tables; each has the key ``k`` and one to four other columns."""
    tables = {}
    for name in _TABLES[: rng.choice((3, 3, 4))]:
        others = set(rng.sample([c for c in TYPES if c != "k"], rng.randint(1, 3)))
        if rng.random() < 0.5:
            others.add("d")  # a table without dates has no late rows
        columns = ["k", *sorted(others)]
        tables[name] = tuple((column, TYPES[column]) for column in columns)
    return tables


def random_row(rng: random.Random, columns: tuple[tuple[str, str], ...]) -> RawRow:
    return tuple(None if rng.random() < _NULLS else rng.choice(_VALUES[name]) for name, _ in columns)


def random_rows(rng: random.Random, columns: tuple[tuple[str, str], ...], count: int) -> Rows:
    """Rows of which about every fifth is a copy of another one."""
    rows: Rows = []
    for _ in range(count):
        rows.append(rng.choice(rows) if rows and rng.random() < 0.2 else random_row(rng, columns))
    return rows


@dataclass
class Delta:
    """The change of one table in one step."""

    insert: Rows = field(default_factory=list)
    delete: Rows = field(default_factory=list)

    @property
    def inverse(self) -> Delta:
        return Delta(list(self.delete), list(self.insert))


class Stream:
    """Random changes of tables, step by step, each of which can be undone."""

    def __init__(
        self, rng: random.Random, tables: dict[str, tuple[tuple[str, str], ...]], initial: dict[str, Rows]
    ) -> None:
        self._rng = rng
        self._tables = tables
        self._rows = {name: list(initial.get(name, [])) for name in tables}
        # A row that keeps coming and going, in one table.
        self._blinking = rng.choice(sorted(tables))
        self._blinker = random_row(rng, tables[self._blinking])

    def step(self) -> dict[str, Delta]:
        """The next step: nothing, one table, or several at once."""
        names = sorted(self._tables)
        changed = self._rng.sample(names, self._rng.choice((0, 1, 1, 1, 2, 2, 2, len(names))))
        deltas = {name: self._change(name) for name in sorted(changed)}
        return {name: delta for name, delta in deltas.items() if delta.insert or delta.delete}

    def thinned(self) -> dict[str, Delta]:
        """A step after which about every third row is left: groups disappear, and whole results."""
        deltas = {}
        for name in sorted(self._tables):
            deltas[name] = Delta(delete=[row for row in self._rows[name] if self._rng.random() < 0.65])
            self._apply(name, deltas[name])
        return {name: delta for name, delta in deltas.items() if delta.delete}

    def _change(self, name: str) -> Delta:
        rng, delta = self._rng, Delta()
        kind = rng.choices(
            ("insert", "delete", "update", "mixed", "copy", "blink", "empty", "key", "no keys", "nothing"),
            (4, 6, 7, 7, 2, 3, 3, 2, 1, 1),
        )[0]
        if len(self._rows[name]) < 4 and rng.random() < 0.7:
            delta.insert += random_rows(rng, self._tables[name], rng.randint(4, 8))
        elif kind in ("insert", "mixed"):
            delta.insert += random_rows(rng, self._tables[name], rng.randint(1, 3))
        if kind in ("delete", "mixed"):
            delta.delete += self._some(name, rng.randint(1, 3))
        if kind in ("update", "mixed"):
            rest = [row for row in self._rows[name] if row not in delta.delete]
            for row in rng.sample(rest, min(len(rest), rng.randint(1, 2))):
                delta.delete.append(row)
                delta.insert.append(self._updated(name, row))
        if kind == "copy" and self._rows[name]:
            delta.insert += [rng.choice(self._rows[name])] * rng.randint(1, 2)
        if kind == "blink" and name == self._blinking:
            side = delta.delete if self._blinker in self._rows[name] else delta.insert
            side.append(self._blinker)
        if kind == "empty":
            delta.delete += self._rows[name]
        if kind == "key" and self._rows[name]:
            # All rows of a key go.
            key = rng.choice(self._rows[name])[0]
            delta.delete += [row for row in self._rows[name] if row[0] == key]
        if kind == "no keys":
            # All keys become NULL.
            delta.delete += [row for row in self._rows[name] if row[0] is not None]
            delta.insert += [(None, *row[1:]) for row in delta.delete]
        if kind == "nothing" and self._rows[name]:
            # A commit whose net change is nothing.
            row = rng.choice(self._rows[name])
            delta.delete.append(row)
            delta.insert.append(row)
        self._apply(name, delta)
        return delta

    def _some(self, name: str, count: int) -> Rows:
        rows = self._rows[name]
        return self._rng.sample(rows, min(count, len(rows)))

    def _updated(self, name: str, row: RawRow) -> RawRow:
        position = self._rng.randrange(len(row))
        return (*row[:position], random_row(self._rng, self._tables[name])[position], *row[position + 1 :])

    def _apply(self, name: str, delta: Delta) -> None:
        for row in delta.delete:
            self._rows[name].remove(row)
        self._rows[name] += delta.insert
