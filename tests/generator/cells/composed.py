"""Random queries combine any kind with any position, over whatever relations there are.

Where the systematic table has one query for each cell, over fixed tables, here relations, columns and conditions are
random, what is read may be a random query itself, and positions stand in each other up to three levels deep.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING

from generator.cells.cell import Cell, holds, shaped
from generator.cells.kinds import KINDS, Kind
from generator.cells.positions import CONDITIONS, POSITIONS, Around, Position, Shape, passing
from generator.cells.reading import FORMS, PLACES, Correlation, Reading, number_of
from generator.cells.refusals import not_yet, refused_by_spark
from generator.queries.joins import Source
from generator.queries.query import Query
from generator.queries.scalars import INT, Col

if TYPE_CHECKING:
    from generator.queries.sql import Queries

_NESTED = 0.25
_DEEPEST = 3
_DERIVED = 0.2


def composed(queries: Queries) -> Query:
    """A random cell over random relations; its columns are not known, so that nothing is built on it."""
    position, kind, form, place = _cell(queries.rng)
    return Composer(queries, kind, form, place).query(position)


def _cell(rng: random.Random) -> tuple[Position, Kind, str, str]:
    """One that Spark runs and the planner maintains."""
    while True:
        position, kind = rng.choice(list(POSITIONS.values())), rng.choice(list(KINDS.values()))
        form, place = "", ""
        if position.correlates and (kind.needs_outside or rng.random() < 0.7):
            form, place = rng.choice(list(FORMS)), rng.choice(PLACES)
        cell = Cell(position.name, kind.name, form, place)
        is_said = holds(position, kind) and (not form or kind.can_correlate)
        if is_said and refused_by_spark(cell) is None and not_yet(cell) is None:
            return position, kind, form, place


class Composer:
    """Writes one query; every name used as an alias is used once."""

    def __init__(self, queries: Queries, kind: Kind, form: str, place: str) -> None:
        self._queries = queries
        self._rng = queries.rng
        self._kind = kind
        self._form = form
        self._place = place
        self._depth = 0
        self._inside: str | None = None

    def query(self, position: Position) -> Query:
        outer = self._source()
        key, number = _key(outer.cols), number_of(outer.cols)
        around = Around(self._rng, outer, id=key, key=key, number=number, other=self._other)
        sql = position.write(around, self._make)
        cell = (position.name, self._kind.name, "correlated" if self._form else "uncorrelated")
        cells = frozenset() if self._depth or self._inside is None else frozenset(((*cell, self._inside),))
        return Query(sql, (), cells=cells)

    def _make(self, shape: Shape, outside: Sequence[Col]) -> str:
        """A query of the kind, or now and then rows that pass a condition with such a query in it."""
        rng = self._rng
        is_nested = self._depth + 1 < _DEEPEST and rng.random() < _NESTED
        # VALUES in the brackets of IN is a call of a function: it stays in the position that it was chosen for.
        if is_nested and self._kind.name != "VALUES":
            self._depth += 1
            form = FORMS[rng.choice(("equality", "null-safe", "inequality"))]
            return passing(
                rng,
                self._other,
                condition=rng.choice(CONDITIONS),
                make=self._make,
                shape=shape,
                outside=outside,
                form=form,
            )
        correlation = Correlation(tuple(outside), self._form, self._place) if self._form and outside else None
        is_single = shape == "value" and self._kind.is_unique and correlation is not None
        is_single = is_single and self._form != "inequality"
        reading = Reading(
            rng,
            self._one_of_each_key if is_single else self._source,
            correlation,
            is_narrow=shape != "rows",
            is_filtered=rng.random() < 0.3,
        )
        sql = shaped(self._kind, shape, reading)
        self._inside = reading.read[0] if reading.read else None
        return sql

    def _other(self) -> tuple[Source, Col, Col]:
        source = self._source()
        return source, _key(source.cols), number_of(source.cols)

    def _source(self) -> Source:
        """A relation, now and then a random query, that has a whole number."""
        queries, rng = self._queries, self._rng
        if rng.random() < _DERIVED:
            query = queries.body(rng.choice((0, 0, 1)))
            if any(type_ == INT for _, type_ in query.columns):
                alias = queries.alias("q")
                return Source(f"({query.sql}) AS {alias}", alias, query.columns)
        names = sorted(n for n, cols in queries.relations.items() if any(t == INT for _, t in cols))
        return queries.table(rng.choice(names))

    def _one_of_each_key(self) -> Source:
        """A relation with one row for each key."""
        table = self._source()
        alias, key, number = self._queries.alias("p"), _key(table.cols), number_of(table.cols)
        text = (
            f"(SELECT {key.ref} AS k, MAX({number.ref}) AS x FROM {table.text} GROUP BY {key.ref}) AS {alias}"
        )
        return Source(text, alias, (("k", INT), ("x", INT)))


def _key(columns: Sequence[Col]) -> Col:
    return next(c for c in columns if c.type == INT)
