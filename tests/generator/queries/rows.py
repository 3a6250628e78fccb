"""Random constructs make rows of values or values of rows: VALUES, LATERAL VIEW, PIVOT, UNPIVOT, pipes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from generator.constructs import Place
from generator.queries.joins import From, Source
from generator.queries.query import Block, Query
from generator.queries.scalars import BIGINT, INT, STRING, Col, Scalars, Type, summed
from generator.queries.subqueries import scalar_subquery

if TYPE_CHECKING:
    from generator.queries.sql import Queries


def values(queries: Queries) -> Source:
    """A few rows written out: columns ``k`` and ``g``, of the types that these names have everywhere."""
    rng, alias = queries.rng, queries.alias("v")
    rows = [
        f"({rng.choice(('1', '2', '3', 'NULL'))}, {rng.choice(_WORDS)})" for _ in range(rng.randint(1, 3))
    ]
    listed = ", ".join(["(1, 'a')", *rows])  # so that each column has a type
    return Source(f"VALUES {listed} AS {alias}(k, g)", alias, (("k", INT), ("g", STRING)))


_WORDS = ("'a'", "'b'", "'ab'", "NULL")


def alike(scalars: Scalars, count: int = 2) -> list[Col]:
    """Columns of one type, as many as an array shall have; [] if there are not two."""
    found = [c for c in scalars.keys if sum(d.type == c.type for d in scalars.keys) > 1]
    if not found:
        return []
    type_ = scalars.rng.choice(found).type
    same = [c for c in scalars.keys if c.type == type_]
    return scalars.rng.sample(same, min(count, len(same)))


def sequence(scalars: Scalars) -> str:
    """A short array; it runs downwards where its end is below its start."""
    column = scalars.rng.choice(scalars.of("int"))
    return f"SEQUENCE({scalars.rng.randint(-1, 1)}, {column.ref} % 3)"


def lateral(queries: Queries, block: Block, clause: From) -> None:
    """LATERAL VIEW, or a subquery that sees the relations before it, at the end of a FROM clause."""
    rng = queries.rng
    scalars = Scalars(rng, clause.columns)
    place = Place(clause.columns, block.depth)
    name = queries.menu.choose(rng, "lateral", place, block.want)
    if name is None:
        return
    block.use(name)
    alias = queries.alias("l")
    column = f"e{alias[1:]}"
    if name == "lateral subquery":
        text, type_ = scalar_subquery(queries, block, scalars, column)
        clause.text += f", LATERAL {text} AS {alias}"
        clause.columns.append(Col(f"{alias}.{column}", column, type_))
        clause.shown.append(clause.columns[-1])
        return
    array, type_ = _array(name, scalars)
    outer = "OUTER " if name == "lateral view outer" else ""
    if name == "lateral view posexplode":
        clause.text += f" LATERAL VIEW {outer}POSEXPLODE({array}) {alias} AS p{alias[1:]}, {column}"
        clause.columns.append(Col(f"{alias}.p{alias[1:]}", f"p{alias[1:]}", INT))
        clause.shown.append(clause.columns[-1])
    else:
        clause.text += f" LATERAL VIEW {outer}EXPLODE({array}) {alias} AS {column}"
    clause.columns.append(Col(f"{alias}.{column}", column, type_))
    clause.shown.append(clause.columns[-1])


def _array(name: str, scalars: Scalars) -> tuple[str, Type]:
    if name in ("lateral view outer", "lateral view sequence"):
        array = sequence(scalars)
        if name == "lateral view outer" and scalars.rng.random() < 0.5:
            array = f"CASE WHEN {scalars.predicate(0)} THEN {array} END"
        return array, INT
    chosen = alike(scalars) or [scalars.rng.choice(scalars.keys)]
    return f"ARRAY({', '.join(c.ref for c in chosen)})", chosen[0].type


def pivot(queries: Queries, block: Block) -> Query | None:
    """``PIVOT`` over a projection, so that the columns that it groups by are few."""
    rng = queries.rng
    source = queries.source(block, block.child_wanted())
    scalars = Scalars(rng, source.cols)
    pivoted = [c for c in scalars.keys if c.type in (INT, STRING)]
    summed_up = [c for c in scalars.summable]
    kept = scalars.keys
    if not pivoted or not summed_up or len(kept) < 2:
        return None
    column, number, group = rng.choice(pivoted), rng.choice(summed_up), rng.choice(kept)
    functions = [f for f in ("SUM", "MAX", "MIN", "COUNT") if queries.menu.allows(f.lower())] or ["SUM"]
    function = rng.choice(functions)
    block.use("pivot", function.lower())
    literals = ("1", "2", "3") if column.type == INT else ("'a'", "'b'", "'ab'")
    chosen = rng.sample(literals, rng.randint(1, 2))
    listed = ", ".join(f"{literal} AS p{number_}" for number_, literal in enumerate(chosen))
    inner = f"SELECT {group.ref} AS g0, {column.ref} AS i0, {number.ref} AS n0 FROM {source.text}"
    type_ = {"SUM": summed(number.type), "COUNT": BIGINT}.get(function, number.type)
    columns = (("g0", group.type), *((f"p{i}", type_) for i in range(len(chosen))))
    return block.finish(f"SELECT * FROM ({inner}) PIVOT ({function}(n0) FOR i0 IN ({listed}))", columns)


def unpivot(queries: Queries, block: Block) -> Query | None:
    """``UNPIVOT`` of two columns of one type; without INCLUDE NULLS their NULLs are left out."""
    rng = queries.rng
    source = queries.source(block, block.child_wanted())
    scalars = Scalars(rng, source.cols)
    chosen = alike(scalars)
    if len(chosen) < 2:
        return None
    block.use("unpivot")
    kept = rng.choice(scalars.keys)
    nulls = rng.choice(("", " INCLUDE NULLS", " EXCLUDE NULLS"))
    inner = f"SELECT {kept.ref} AS c0, {chosen[0].ref} AS u0, {chosen[1].ref} AS u1 FROM {source.text}"
    columns = (("c0", kept.type), ("label", STRING), ("val", chosen[0].type))
    return block.finish(
        f"SELECT c0, label, val FROM ({inner}) UNPIVOT{nulls} (val FOR label IN (u0, u1))", columns
    )


def pipe(queries: Queries, block: Block) -> Query:
    """``FROM ... |> WHERE ... |> AGGREGATE ... GROUP BY ...``, and other operators of pipes."""
    rng = queries.rng
    source = queries.source(block, block.child_wanted())
    scalars = Scalars(rng, source.cols)
    block.use("pipe")
    text = f"FROM {source.text}"
    if rng.random() < 0.5 and scalars.keys and queries.menu.allows("where"):
        block.use("where")
        text += f" |> WHERE {scalars.predicate(0)}"
    keys, numbers = scalars.keys, scalars.summable
    if keys and rng.random() < 0.6 and queries.menu.allows("group by"):
        key = rng.choice(keys)
        block.use("group by", "count")
        first, second = ("n0", "n1") if key.name not in ("n0", "n1") else ("n2", "n3")
        items, columns = [f"COUNT(*) AS {first}"], [(first, BIGINT)]
        if numbers and queries.menu.allows("sum"):
            number = rng.choice(numbers)
            block.use("sum")
            items.append(f"SUM({number.ref}) AS {second}")
            columns.append((second, summed(number.type)))
        text += f" |> AGGREGATE {', '.join(items)} GROUP BY {key.ref}"
        return block.finish(text, ((key.name, key.type), *columns))
    shown: Sequence[Col] = rng.sample(scalars.columns, min(2, len(scalars.columns)))
    items = [f"{c.ref} AS c{number}" for number, c in enumerate(shown)]
    return block.finish(
        f"{text} |> SELECT {', '.join(items)}", tuple((f"c{i}", c.type) for i, c in enumerate(shown))
    )
