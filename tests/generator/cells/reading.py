"""A query of any kind reads relations, and hangs together with the query around it.

A :class:`Reading` is all that the writers of ``kinds`` see, so that one text serves the systematic table of kinds
and positions, where the relations are fixed, and random queries, where they are whatever stands there.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from generator.queries.joins import Source
from generator.queries.scalars import INT, Col

FORMS = {"equality": "=", "null-safe": "<=>", "inequality": "<="}
"""How a column inside is compared with one outside."""

PLACES = ("where", "on", "derived", "cte")
"""Where that comparison stands: in WHERE, in ON of a join, in a derived table, in a CTE of a derived table."""


@dataclass(frozen=True)
class Correlation:
    """The columns of the query around that may be named, how they are compared, and where."""

    outside: tuple[Col, ...]
    form: str = "equality"
    place: str = "where"

    @property
    def column(self) -> Col:
        """What is compared: in the systematic table the key."""
        return self.outside[0]


@dataclass(frozen=True)
class Rows:
    """One relation that is read: its FROM clause with the conditions of its WHERE, a key, a number, any column."""

    clause: str
    conditions: tuple[str, ...]
    key: Col
    number: Col
    any: Col

    @property
    def k(self) -> str:
        return self.key.ref

    @property
    def x(self) -> str:
        return self.number.ref

    def select(self, items: str, *more: str, tail: str = "") -> str:
        """``SELECT items FROM ... WHERE ...`` with ``more`` conditions."""
        conditions = [*self.conditions, *more]
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return f"SELECT {items} FROM {self.clause}{where}{tail}"


@dataclass
class Reading:
    """``source`` gives a relation to read; ``is_narrow`` asks for one column, a whole number, and no other."""

    rng: random.Random
    source: Callable[[], Source]
    correlation: Correlation | None = None
    is_narrow: bool = False
    is_filtered: bool = False
    """Whether rows are filtered by more than the correlation."""
    read: list[str] = field(default_factory=list)
    """The tables read so far."""

    @property
    def outside(self) -> Sequence[Col]:
        return () if self.correlation is None else self.correlation.outside

    def plain(self) -> Source:
        """A relation without any condition."""
        source = self.source()
        if source.table is not None:
            self.read.append(source.table)
        return source

    def rows(self, *, joins: bool = False) -> Rows:
        """Rows to read, those that belong to the row outside; ``joins`` says that the kind adds joins of its own."""
        source = self.plain()
        clause, conditions = source.text, []
        key, number = _key(source.cols, self.correlation), number_of(source.cols)
        if self.correlation is not None:
            condition = f"{key.ref} {FORMS[self.correlation.form]} {self.correlation.column.ref}"
            place = self.correlation.place
            if place in ("derived", "cte"):
                inside = (
                    f"SELECT {', '.join(c.ref for c in source.cols)} FROM {source.text} WHERE {condition}"
                )
                if place == "cte":
                    name = f"w{source.alias}"
                    inside = f"WITH {name} AS ({inside}) SELECT * FROM {name}"
                clause = f"({inside}) AS {source.alias}"
            elif place == "on" and not joins:
                other = self.plain()
                clause += f" JOIN {other.text} ON {_key(other.cols, None).ref} = {key.ref} AND {condition}"
            else:
                conditions.append(condition)
        if self.is_filtered:
            conditions.append(f"{number.ref} > 0")
        return Rows(clause, tuple(conditions), key, number, source.cols[-1])


def _key(columns: Sequence[Col], correlation: Correlation | None) -> Col:
    wanted = correlation.column.type if correlation is not None else INT
    return next(c for c in columns if c.type == wanted)


def number_of(columns: Sequence[Col]) -> Col:
    """The last whole number, so that it is another column than the key where there are two."""
    return [c for c in columns if c.type == INT][-1]
