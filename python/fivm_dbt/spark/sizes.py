"""Sizes are asked for: of states, and of the inputs by which inner views are chosen."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from fivm_dbt.catalog.statistics import expression_of, time_of
from fivm_dbt.ir.scalar import Scalar, as_type, column_ast
from fivm_dbt.naming import PARTITION, PREFIX, VIEW
from fivm_dbt.spark.pieces import table


def sizes_query(states: str) -> exp.Select:
    """By the label of each view in the table of states, its rows and the partitions that these lie in."""
    rows = exp.Count(this=exp.Star())
    partitions = exp.Count(this=exp.Distinct(expressions=[exp.column(PARTITION)]))
    view = exp.column(VIEW)
    query = exp.select(view, exp.alias_(rows, "rows"), exp.alias_(partitions, "partitions"))
    return query.from_(table(states)).group_by(view.copy())


SAMPLED = 64
"""One row of so many is looked at, and one value of so many."""

FEW_VALUES = 100
"""So many values in a sample tell how many there are to a tenth. Columns with fewer have most of them in the rows."""

PIECE = f"{PREFIX}piece"
"""The number of the piece of a table that a row of a sample is of."""

_SEEN, _VALUE = f"{PREFIX}seen", f"{PREFIX}value"


def statistics_query(relation: str, columns: Sequence[str]) -> exp.Select:
    """The rows of a relation, and about how many values each of these columns has.

    >>> statistics_query("raw.a", ["k"]).sql("spark")
    'SELECT COUNT(*) AS c0, APPROX_COUNT_DISTINCT(k) AS c1 FROM raw.a'
    >>> from fivm_dbt.catalog.statistics import days_of
    >>> statistics_query("raw.a", [days_of("ordered_at")]).sql("spark")
    'SELECT COUNT(*) AS c0, APPROX_COUNT_DISTINCT(CAST(ordered_at AS DATE)) AS c1 FROM raw.a'
    >>> from fivm_dbt.catalog.statistics import values_of
    >>> statistics_query("raw.a", [values_of("CASE WHEN x > 1 THEN k END")]).sql("spark")
    'SELECT COUNT(*) AS c0, APPROX_COUNT_DISTINCT(CASE WHEN x > 1 THEN k END) AS c1 FROM raw.a'
    """
    calls: list[exp.Expr] = [exp.Count(this=exp.Star())]
    calls += [exp.ApproxDistinct(this=_value(column)) for column in columns]
    return exp.select(*(exp.alias_(call, f"c{i}") for i, call in enumerate(calls))).from_(table(relation))


def sample_query(relation: str, columns: Sequence[str]) -> exp.Select:
    """The same of one row of 64: rows, and by column the values of these, and the values whose hash is chosen.

    Few rows reach the aggregate, so that a pass costs what reading the columns does. The first count of values is
    near the truth where a column has some thousand of them, the second, times 64, where it has more.
    """
    names = [exp.column(f"{_VALUE}_{n}") for n in range(len(columns))]
    values = [exp.alias_(_value(c), name.name) for c, name in zip(columns, names, strict=True)]
    chosen: list[exp.Expr] = [exp.EQ(this=_hashed(name), expression=exp.Literal.number(0)) for name in names]
    seen = exp.column(_SEEN)
    share = exp.LT(this=exp.func("RAND", exp.Literal.number(1)), expression=exp.Literal.number(1 / SAMPLED))
    rows = exp.select(*values, exp.alias_(share, _SEEN)).from_(table(relation))
    calls: list[exp.Expr] = [exp.CountIf(this=seen.copy())]
    for name, is_chosen in zip(names, chosen, strict=True):
        calls += [exp.ApproxDistinct(this=_where(c, name)) for c in (seen, is_chosen)]
    query = exp.select(*(exp.alias_(call, f"c{i}") for i, call in enumerate(calls)))
    return query.from_(rows.subquery("sample")).where(exp.or_(seen.copy(), *(c.copy() for c in chosen)))


def pieces_query(sample: str, columns: Sequence[str]) -> exp.Select:
    """The rows of the pieces of a table, and those of the first one and of the second one.

    Then by column the values in the first piece, in the first two, in the third, and in all: counted one by one, as the
    difference of two of them matters.
    """
    piece = exp.column(PIECE)
    is_first, is_second = (exp.EQ(this=piece.copy(), expression=exp.Literal.number(n)) for n in (0, 1))
    counts = (exp.Count(this=exp.Star()), exp.CountIf(this=is_first), exp.CountIf(this=is_second))
    rows = exp.select(*(exp.alias_(count, f"rows_{n}") for n, count in enumerate(counts)))
    calls: list[exp.Expr] = [exp.Max(this=exp.column(f"rows_{n}")) for n in range(3)]
    for number in range(len(columns)):
        is_own = exp.EQ(this=exp.column(_PLACE), expression=exp.Literal.number(number))
        own = (exp.If(this=is_own.copy(), true=exp.column(n), false=exp.Literal.number(0)) for n in _KINDS)
        calls += [exp.Coalesce(this=exp.Sum(this=each), expressions=[exp.Literal.number(0)]) for each in own]
    query = exp.select(*(exp.alias_(call, f"c{i}") for i, call in enumerate(calls)))
    query = query.from_(rows.from_(table(sample)).subquery("counted"))
    if not columns:
        return query
    return query.join(_values_by_place(sample, columns).subquery("counts"), on=exp.true(), join_type="left")


_PLACE, _HASH, _BITS = "place", "hash", "bits"
_KINDS = ("in_first", "in_near", "in_far", "in_all")


def _values_by_place(sample: str, columns: Sequence[str]) -> exp.Select:
    """By the place of a column in the list how many values the pieces have. A value is a number in 64 bits."""
    hashes = [_where(_is_there(_value(c)), exp.func("XXHASH64", _value(c))) for c in columns]
    every = exp.func("POSEXPLODE", exp.Array(expressions=hashes), dialect="spark")
    names = exp.TableAlias(
        this=exp.to_identifier("found"), columns=list(map(exp.to_identifier, (_PLACE, _HASH)))
    )
    bit = exp.Anonymous(this="SHIFTLEFT", expressions=[exp.Literal.number(1), exp.column(PIECE)])
    found = exp.select(exp.column(_PLACE), exp.column(_HASH), exp.alias_(bit, _BITS)).from_(table(sample))
    found = found.lateral(exp.Lateral(this=every, view=True, alias=names))
    bits = exp.Anonymous(this="BIT_OR", expressions=[exp.column(_BITS)])
    each = exp.select(exp.column(_PLACE), exp.alias_(bits, _BITS)).from_(found.subquery("rows"))
    each = each.where(_is_there(exp.column(_HASH))).group_by(exp.column(_PLACE), exp.column(_HASH))

    def has(piece: int) -> exp.Expr:
        both = exp.BitwiseAnd(this=exp.column(_BITS), expression=exp.Literal.number(piece))
        return exp.GT(this=exp.paren(both), expression=exp.Literal.number(0))

    counts = (*(exp.CountIf(this=has(pieces)) for pieces in (1, 3, 4)), exp.Count(this=exp.Star()))
    named = (exp.alias_(count, name) for name, count in zip(_KINDS, counts, strict=True))
    return exp.select(exp.column(_PLACE), *named).from_(each.subquery("every")).group_by(exp.column(_PLACE))


def _is_there(value: exp.Expr) -> exp.Expr:
    return exp.Not(this=exp.Is(this=value, expression=exp.Null()))


def of_pieces(found: Sequence[int], times: float) -> tuple[int, ...]:
    """What :func:`statistics_query` would have answered of a table that has ``times`` the rows of its pieces.

    A thousand values that any row may have; days, of which no two pieces have the same; orders, each in two pieces that
    follow each other:

    >>> of_pieces((4000, 1000, 1000, 1000, 1000, 1000, 1000), 10), of_pieces((4000, 1000, 1000, 10, 20, 20, 40), 10)
    ((40000, 1000), (40000, 400))
    >>> of_pieces((4000, 1000, 1000, 900, 1700, 1700, 3400), 10)
    (40000, 32100)
    """
    rows, first, second, *values = found
    every = round(rows * times)
    counts = (values[n : n + len(_KINDS)] for n in range(0, len(values), len(_KINDS)))
    return (every, *(_values(every, (first, second), each) for each in counts))


def _values(rows: int, pieces: tuple[int, int], found: Sequence[int]) -> int:
    """The values of a column. There are as many as if further rows had new ones as the second piece has; or fewer.

    Values that any row may have are in pieces which are far apart too. How many there are follows from how many are in
    both, as for fish that were marked (Lincoln and Petersen).
    """
    first, near, far, seen = found
    growth = max(0, near - first) / max(1, pieces[1])
    bounds = [near + growth * (rows - sum(pieces)), float(rows)]
    if near + far > seen:
        bounds.append(near * far / (near + far - seen))
    return max(seen, round(min(bounds)))


def _value(column: str) -> exp.Expr:
    written = expression_of(column)
    if written is not None:
        return Scalar.parse(written).ast()
    time = time_of(column)
    return column_ast("", column) if time is None else as_type(column_ast("", time), "date")


def together(queries: Sequence[exp.Query]) -> exp.Query:
    """Some of these queries as one: rows with the number of each, and what it answers, filled up with NULL.

    >>> few = [statistics_query("raw.a", ["k"]), statistics_query("raw.b", [])]
    >>> together(few).sql("spark")
    'SELECT 0 AS number, COUNT(*) AS c0, APPROX_COUNT_DISTINCT(k) AS c1 FROM raw.a UNION ALL SELECT 1 AS number, COUNT(*) AS c0, NULL AS c1 FROM raw.b'
    """  # noqa: E501
    width = max(len(query.selects) for query in queries)
    numbered = []
    for number, query in enumerate(queries):
        calls = list(query.selects)
        calls += [exp.alias_(exp.Null(), f"c{i}") for i in range(len(calls), width)]
        first = exp.alias_(exp.Literal.number(number), "number")
        numbered.append(query.select(first, *calls, append=False))
    return numbered[0] if len(numbered) == 1 else exp.union(*numbered, distinct=False)


def sampled(found: Sequence[int]) -> tuple[int, ...]:
    """What :func:`statistics_query` would have answered, from the answer of :func:`sample_query`.

    >>> sampled((1000, 25, 0, 990, 180))
    (64000, 25, 11520)
    """
    rows, *values = found
    pairs = zip(values[::2], values[1::2], strict=True)
    of_all = (max(seen, SAMPLED * chosen if chosen >= FEW_VALUES else 0) for seen, chosen in pairs)
    return (SAMPLED * rows, *(min(n, SAMPLED * rows) for n in of_all))


def _hashed(column: exp.Expr) -> exp.Expr:
    number = exp.func("XXHASH64", column.copy())
    return exp.func("PMOD", number, exp.Literal.number(SAMPLED))


def _where(condition: exp.Expr, column: exp.Expr) -> exp.Expr:
    """The column where a condition holds, else NULL, which is no value."""
    return exp.If(this=condition.copy(), true=column.copy(), false=exp.Null())
