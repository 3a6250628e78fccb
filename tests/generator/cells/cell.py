"""The table of positions and kinds has a query of a kind in a position in each cell.

Complete by construction: :func:`cells` is the product of both registries and of the ways to correlate, without what
cannot be said (a position that sees no outer column holds no query that names one).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from zlib import crc32

from generator.cells.kinds import KINDS, Kind
from generator.cells.positions import POSITIONS, Around, Position, Shape
from generator.cells.reading import FORMS, PLACES, Correlation, Reading
from generator.cells.refusals import refused_by_spark
from generator.queries.joins import Source
from generator.queries.scalars import INT, STRING, Col

TABLES = {
    "o": (("id", "int"), ("k", "int"), ("v", "int")),
    "s": (("k", "int"), ("x", "int"), ("g", "string")),
    "u": (("k", "int"), ("y", "int")),
    "p": (("k", "int"), ("x", "int")),
}
"""The tables of all cells. ``p`` has at most one row of a key, for values that are not aggregated."""

_TYPES = {"int": INT, "string": STRING}


@dataclass(frozen=True, order=True)
class Cell:
    """``form`` and ``place`` say how the query is correlated, both empty where it is not."""

    position: str
    kind: str
    form: str = ""
    place: str = ""

    @property
    def is_correlated(self) -> bool:
        return bool(self.form)

    def __str__(self) -> str:
        how = f", {self.form} in {self.place}" if self.form else ""
        return f"{self.position} / {self.kind}{how}"

    @cached_property
    def _written(self) -> tuple[str, str | None]:
        return written(self)

    @property
    def sql(self) -> str:
        return self._written[0]

    @property
    def reads(self) -> str | None:
        """The table that the query in this cell reads first, if any."""
        return self._written[1]


def holds(position: Position, kind: Kind) -> bool:
    """Whether a kind can be said in a position at all."""
    return position.correlates or not kind.needs_outside


def cells(forms: Sequence[str] = tuple(FORMS), places: Sequence[str] = PLACES) -> Iterator[Cell]:
    """Every cell, correlated in each of these ways where it can be, and not."""
    for position, kind in product(POSITIONS.values(), KINDS.values()):
        if not holds(position, kind):
            continue
        if not kind.needs_outside:
            yield Cell(position.name, kind.name)
        if position.correlates and kind.can_correlate:
            for form, place in product(forms, places):
                yield Cell(position.name, kind.name, form, place)


def each_cell_once(turn: int = 0) -> Iterator[Cell]:
    """Every position with every kind: uncorrelated, and correlated in one of the ways.

    Another ``turn`` takes other ways, as many turns as there are ways take all; one that Spark refuses is left to the
    next that it runs. Every other cell of the first turn is correlated by an equality in WHERE, as people write it.
    """
    ways = list(product(FORMS, PLACES))
    for cell in cells(("equality",), ("where",)):
        if cell.is_correlated:
            number = crc32(f"{cell.position}/{cell.kind}".encode())
            first = (number // 2 * (number % 2) + turn) % len(ways)
            tried = [Cell(cell.position, cell.kind, *way) for way in (*ways[first:], *ways[:first])]
            yield next((c for c in tried if refused_by_spark(c) is None), tried[0])
        else:
            yield cell


def each_pair_once() -> Iterator[Cell]:
    """Every position with every kind in one cell: of three that can be correlated two are."""
    for cell in each_cell_once():
        position, kind = POSITIONS[cell.position], KINDS[cell.kind]
        has_two = position.correlates and kind.can_correlate and not kind.needs_outside
        is_plain = crc32(f"{cell.kind}/{cell.position}".encode()) % 3 == 0
        if not has_two or cell.is_correlated != is_plain:
            yield cell


class _Tables:
    """Gives relations under aliases that are used once: ``s``, then ``s1``, ``s2``."""

    def __init__(self) -> None:
        self._used: dict[str, int] = {}

    def source(self, table: str) -> Source:
        number = self._used.get(table, 0)
        self._used[table] = number + 1
        alias = f"{table}{number}" if number else table
        columns = tuple((name, _TYPES[type_]) for name, type_ in TABLES[table])
        return Source(f"{table} AS {alias}" if number else table, alias, columns, table)


def written(cell: Cell) -> tuple[str, str | None]:
    """The query of a cell, and the table that what stands in the position reads first."""
    rng = random.Random(crc32(str(cell).encode()))
    tables, kind, position = _Tables(), KINDS[cell.kind], POSITIONS[cell.position]
    read: list[str] = []
    outer = tables.source("o")
    id_, key, number = outer.cols

    def other() -> tuple[Source, Col, Col]:
        source = tables.source("u")
        return source, source.cols[0], source.cols[1]

    def make(shape: Shape, outside: Sequence[Col]) -> str:
        correlation = Correlation(tuple(outside), cell.form, cell.place) if cell.form and outside else None
        reading = _reading(rng, tables, shape, kind, correlation)
        sql = shaped(kind, shape, reading)
        read.extend(reading.read)
        return sql

    sql = position.write(Around(rng, outer, id=id_, key=key, number=number, other=other), make)
    return sql, read[0] if read else None


def _reading(
    rng: random.Random, tables: _Tables, shape: Shape, kind: Kind, correlation: Correlation | None
) -> Reading:
    """Where one row at most is wanted of a kind that has as many as it reads, it reads ``p``; else ``s`` and ``u``."""
    names = iter(("s",))
    is_single = shape == "value" and is_single_over_unique(kind, correlation)

    def source() -> Source:
        return tables.source("p" if is_single else next(names, "u"))

    return Reading(rng, source, correlation, is_narrow=shape != "rows", is_filtered=rng.random() < 0.2)


def is_single_over_unique(kind: Kind, correlation: Correlation | None) -> bool:
    return kind.is_unique and correlation is not None and correlation.form != "inequality"


def shaped(kind: Kind, shape: Shape, reading: Reading) -> str:
    """A query of a kind in a shape: where it may have several rows and one is wanted, the greatest is taken."""
    sql = kind.write(reading)
    if shape == "value" and kind.count == "any" and not is_single_over_unique(kind, reading.correlation):
        return f"SELECT MAX(m.a) AS a FROM ({sql}) AS m(a)"
    return f"SELECT m.a FROM ({sql}) AS m(a)" if shape == "named" and kind.name == "VALUES" else sql
