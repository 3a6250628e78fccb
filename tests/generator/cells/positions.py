"""A query can stand in positions: they are the columns of the table of kinds and positions.

To add a position, add a line to ``POSITIONS`` with its writer. It then holds every kind, in the systematic table as
well as in random queries. A position of several levels is written as one too: ``a > b`` is a ``b`` inside of an ``a``.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from generator.queries.joins import Source
from generator.queries.scalars import Col

Shape = Literal["rows", "column", "named", "value"]
"""What a position takes: any rows; one column of whole numbers; such a column called ``a``; a column with one row at
most."""

Make = Callable[[Shape, Sequence[Col]], str]
"""A query of a shape, which may name the columns given."""


@dataclass(frozen=True)
class Around:
    """The query around a position: the relation that it reads, with a column that names rows, a key, a number."""

    rng: random.Random
    source: Source
    id: Col
    key: Col
    number: Col
    other: Callable[[], tuple[Source, Col, Col]]
    """Another relation, with its key and a number."""

    @property
    def outside(self) -> tuple[Col, ...]:
        return self.key, self.number

    @property
    def shown(self) -> str:
        """Columns of the outer query, each under a name of its own."""
        return f"{self.id.ref} AS id, {self.key.ref} AS k"


@dataclass(frozen=True)
class Position:
    """``correlates`` says whether a query that stands there can name columns outside of it."""

    name: str
    write: Callable[[Around, Make], str]
    correlates: bool = True


def _from(o: Around, make: Make) -> str:
    return f"SELECT q.* FROM ({make('rows', ())}) AS q"


def _joined(o: Around, make: Make) -> str:
    side = o.rng.choice(("", "LEFT "))
    inner = make("named", ())
    return f"SELECT {o.shown}, q.a FROM {o.source.text} {side}JOIN ({inner}) AS q ON q.a = {o.key.ref}"


def _cte(o: Around, make: Make) -> str:
    return f"WITH c AS ({make('rows', ())}) SELECT c.* FROM c"


def _cte_twice(o: Around, make: Make) -> str:
    inner = make("named", ())
    return f"WITH c AS ({inner}) SELECT c1.a, c2.a AS b FROM c AS c1 JOIN c AS c2 ON c1.a >= c2.a"


def _branch(o: Around, make: Make) -> str:
    operator = o.rng.choice(("UNION ALL", "UNION", "EXCEPT", "INTERSECT"))
    return f"({make('column', ())}) {operator} SELECT {o.key.ref} FROM {o.source.text}"


def _lateral(o: Around, make: Make) -> str:
    comma = o.rng.choice((",", " JOIN"))
    return f"SELECT {o.shown}, q.* FROM {o.source.text}{comma} LATERAL ({make('rows', o.outside)}) AS q"


def _left_lateral(o: Around, make: Make) -> str:
    inner = make("rows", o.outside)
    return f"SELECT {o.shown}, q.* FROM {o.source.text} LEFT JOIN LATERAL ({inner}) AS q ON TRUE"


def _left_lateral_on(o: Around, make: Make) -> str:
    inner = make("named", o.outside)
    on = f"q.a >= {o.number.ref}"
    return f"SELECT {o.shown}, q.a FROM {o.source.text} LEFT JOIN LATERAL ({inner}) AS q ON {on}"


def _where(condition: Callable[[Around, Make], str]) -> Callable[[Around, Make], str]:
    def write(o: Around, make: Make) -> str:
        return f"SELECT {o.shown} FROM {o.source.text} WHERE {condition(o, make)}"

    return write


def _shown_as(value: Callable[[Around, Make], str]) -> Callable[[Around, Make], str]:
    def write(o: Around, make: Make) -> str:
        return f"SELECT {o.shown}, {value(o, make)} AS e FROM {o.source.text}"

    return write


def _exists(o: Around, make: Make) -> str:
    return f"EXISTS ({make('rows', o.outside)})"


def _not_exists(o: Around, make: Make) -> str:
    return f"NOT EXISTS ({make('rows', o.outside)})"


def _in(o: Around, make: Make) -> str:
    return f"{o.number.ref} IN ({make('column', o.outside)})"


def _not_in(o: Around, make: Make) -> str:
    return f"{o.number.ref} NOT IN ({make('column', o.outside)})"


def _left_of_in(o: Around, make: Make) -> str:
    other, _, number = o.other()
    return f"({make('value', o.outside)}) IN (SELECT {number.ref} FROM {other.text})"


def _compared(o: Around, make: Make) -> str:
    operator = o.rng.choice(("<=", ">", "=", "<=>"))
    return f"{o.number.ref} {operator} ({make('value', o.outside)})"


def _value(o: Around, make: Make) -> str:
    return f"({make('value', o.outside)})"


def _under_or(condition: Callable[[Around, Make], str]) -> Callable[[Around, Make], str]:
    return lambda o, make: f"({condition(o, make)} OR {o.number.ref} > 1)"


def _under_not(o: Around, make: Make) -> str:
    return f"NOT ({o.number.ref} > 0 AND {_exists(o, make)})"


def _in_case(o: Around, make: Make) -> str:
    return f"CASE WHEN {_exists(o, make)} THEN {o.number.ref} ELSE -1 END"


def _case_of_value(o: Around, make: Make) -> str:
    return f"CASE WHEN {o.number.ref} > 0 THEN ({make('value', o.outside)}) ELSE 0 END"


def _having(o: Around, make: Make) -> str:
    having = f"COUNT(*) >= ({make('value', (o.key,))})"
    return f"SELECT {o.key.ref} AS k, COUNT(*) AS n FROM {o.source.text} GROUP BY {o.key.ref} HAVING {having}"


def _having_exists(o: Around, make: Make) -> str:
    groups = f"FROM {o.source.text} GROUP BY {o.key.ref} HAVING EXISTS ({make('rows', (o.key,))})"
    return f"SELECT {o.key.ref} AS k, SUM({o.number.ref}) AS n {groups}"


def _on(side: str) -> Callable[[Around, Make], str]:
    def write(o: Around, make: Make) -> str:
        other, key, number = o.other()
        on = f"{key.ref} = {o.key.ref} AND {_exists(o, make)}"
        return f"SELECT {o.shown}, {number.ref} AS y FROM {o.source.text} {side}JOIN {other.text} ON {on}"

    return write


def _order_by(o: Around, make: Make) -> str:
    inner = make("value", o.outside)
    items = ", ".join(dict.fromkeys((o.id.ref, o.key.ref, o.number.ref)))
    return f"SELECT {items} FROM {o.source.text} ORDER BY ({inner}), {items} LIMIT 3"


def _argument(o: Around, make: Make) -> str:
    inner = make("value", o.outside)
    return f"SELECT {o.key.ref} AS k, SUM(({inner})) AS n FROM {o.source.text} GROUP BY {o.key.ref}"


def _counted(o: Around, make: Make) -> str:
    case = f"CASE WHEN {_exists(o, make)} THEN 1 ELSE 0 END"
    return f"SELECT {o.key.ref} AS k, SUM({case}) AS n FROM {o.source.text} GROUP BY {o.key.ref}"


def _group_key(o: Around, make: Make) -> str:
    inner = make("value", o.outside)
    return f"SELECT w.e, COUNT(*) AS n FROM (SELECT ({inner}) AS e FROM {o.source.text}) AS w GROUP BY w.e"


def _exists_in_branch(o: Around, make: Make) -> str:
    operator = o.rng.choice(("UNION ALL", "UNION", "EXCEPT"))
    first = _where(_exists)(o, make)
    other, key, number = o.other()
    return f"{first} {operator} SELECT {number.ref}, {key.ref} FROM {other.text}"


def _exists_in_cte(o: Around, make: Make) -> str:
    return f"WITH c AS ({_where(_exists)(o, make)}) SELECT k, COUNT(*) AS n FROM c GROUP BY k"


def _branch_of_exists(o: Around, make: Make) -> str:
    other, key, number = o.other()
    branch = f"SELECT {number.ref} AS a FROM {other.text} WHERE {key.ref} = {o.key.ref}"
    return f"EXISTS (({make('column', o.outside)}) {o.rng.choice(('UNION ALL', 'EXCEPT', 'INTERSECT'))} {branch})"


def _branch_of_lateral(o: Around, make: Make) -> str:
    other, key, number = o.other()
    branch = f"SELECT {number.ref} AS a FROM {other.text} WHERE {key.ref} = {o.key.ref}"
    inner = f"({make('column', o.outside)}) {o.rng.choice(('UNION ALL', 'UNION'))} {branch}"
    return f"SELECT {o.shown}, q.* FROM {o.source.text}, LATERAL ({inner}) AS q"


def _derived_in_value(o: Around, make: Make) -> str:
    return f"(SELECT MAX(d.a) FROM ({make('named', o.outside)}) AS d)"


def _derived_in_exists(o: Around, make: Make) -> str:
    return f"EXISTS (SELECT 1 FROM ({make('named', o.outside)}) AS d WHERE d.a > 0)"


def _cte_in_in(o: Around, make: Make) -> str:
    inner = make("named", o.outside)
    return f"{o.number.ref} IN (WITH w AS ({inner}) SELECT MIN(w.a) FROM w)"


def passing(
    rng: random.Random,
    other: Callable[[], tuple[Source, Col, Col]],
    condition: Callable[[Around, Make], str],
    make: Make,
    shape: Shape,
    outside: Sequence[Col],
    form: str = "=",
) -> str:
    """Rows of another relation that belong to the row outside and pass a condition."""
    source, key, number = other()
    passed = condition(Around(rng, source, id=key, key=key, number=number, other=other), make)
    items = f"{number.ref} AS a" if shape in ("column", "named") else f"{number.ref} AS a, {key.ref} AS b"
    if shape == "value":
        items = f"MAX({number.ref}) AS a"
    belongs = f"{key.ref} {form} {outside[0].ref} AND " if outside else ""
    return f"SELECT {items} FROM {source.text} WHERE {belongs}{passed}"


def _inside(
    outer: Callable[[Around, Make], str], inner: Callable[[Around, Make], str]
) -> Callable[[Around, Make], str]:
    """``outer``, over rows of another relation that belong to the row outside and pass ``inner``."""
    return lambda o, make: outer(
        o,
        lambda shape, outside: passing(
            o.rng, o.other, condition=inner, make=make, shape=shape, outside=outside
        ),
    )


def _values_inside(
    outer: Callable[[Around, Make], str], inner: Callable[[Around, Make], str]
) -> Callable[[Around, Make], str]:
    """``outer``, over ``inner`` as a value of rows of another relation."""

    def write(o: Around, make: Make) -> str:
        def inside(shape: Shape, outside: Sequence[Col]) -> str:
            other, key, number = o.other()
            value = inner(Around(o.rng, other, id=key, key=key, number=number, other=o.other), make)
            belongs = f" WHERE {key.ref} = {outside[0].ref}" if outside else ""
            rows = f"SELECT {value} AS a FROM {other.text}{belongs}"
            # Spark fails over some subqueries that stand in an aggregate of a subquery.
            return f"SELECT MAX(n.a) AS a FROM ({rows}) AS n" if shape == "value" else rows

        return outer(o, inside)

    return write


_LISTED = (
    Position("FROM", _from, correlates=False),
    Position("FROM, joined", _joined, correlates=False),
    Position("CTE", _cte, correlates=False),
    Position("CTE twice", _cte_twice, correlates=False),
    Position("branch", _branch, correlates=False),
    Position("LATERAL", _lateral),
    Position("LEFT LATERAL", _left_lateral),
    Position("LEFT LATERAL ON", _left_lateral_on),
    Position("EXISTS", _where(_exists)),
    Position("NOT EXISTS", _where(_not_exists)),
    Position("IN", _where(_in)),
    Position("NOT IN", _where(_not_in)),
    Position("left of IN", _where(_left_of_in)),
    Position("scalar in WHERE", _where(_compared)),
    Position("scalar in SELECT", _shown_as(_value)),
    Position("EXISTS in SELECT", _shown_as(_exists)),
    Position("IN in SELECT", _shown_as(_in)),
    Position("NOT IN in SELECT", _shown_as(_not_in)),
    Position("EXISTS below OR", _where(_under_or(_exists))),
    Position("IN below OR", _where(_under_or(_in))),
    Position("NOT IN below OR", _where(_under_or(_not_in))),
    Position("EXISTS below NOT", _where(_under_not)),
    Position("EXISTS in CASE", _shown_as(_in_case)),
    Position("scalar in CASE", _shown_as(_case_of_value)),
    Position("HAVING", _having),
    Position("EXISTS in HAVING", _having_exists),
    Position("ON", _on("")),
    Position("ON of LEFT JOIN", _on("LEFT ")),
    Position("ORDER BY", _order_by),
    Position("argument", _argument),
    Position("EXISTS in argument", _counted),
    Position("key of groups", _group_key),
    Position("EXISTS in branch", _exists_in_branch),
    Position("EXISTS in CTE", _exists_in_cte),
    Position("branch of EXISTS", _where(_branch_of_exists)),
    Position("branch of LATERAL", _branch_of_lateral),
    Position("scalar > FROM", _shown_as(_derived_in_value)),
    Position("EXISTS > FROM", _where(_derived_in_exists)),
    Position("IN > CTE", _where(_cte_in_in)),
    Position("EXISTS > EXISTS", _where(_inside(_exists, _exists))),
    Position("EXISTS > scalar", _where(_inside(_exists, _compared))),
    Position("NOT IN > EXISTS", _where(_inside(_not_in, _exists))),
    Position("scalar > IN", _shown_as(_inside(_value, _in))),
    Position("LATERAL > scalar", _values_inside(_lateral, _value)),
    Position("scalar > scalar", _shown_as(_values_inside(_value, _value))),
    Position("EXISTS > NOT EXISTS > scalar", _where(_inside(_exists, _inside(_not_exists, _compared)))),
    Position("scalar > EXISTS > IN", _shown_as(_inside(_value, _inside(_exists, _in)))),
)

CONDITIONS: tuple[Callable[[Around, Make], str], ...] = (
    _exists,
    _not_exists,
    _in,
    _not_in,
    _compared,
    _under_not,
    _under_or(_exists),
    _under_or(_not_in),
    _derived_in_exists,
)
"""Conditions with a query in them, which can stand in WHERE of any other one."""

POSITIONS: dict[str, Position] = {position.name: position for position in _LISTED}
