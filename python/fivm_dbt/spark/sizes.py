"""Sizes are asked for: of states, and of the inputs by which inner views are chosen."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from fivm_dbt.catalog.statistics import time_of
from fivm_dbt.ir.scalar import as_type, column_ast
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

_SEEN, _VALUE = f"{PREFIX}seen", f"{PREFIX}value"


def statistics_query(relation: str, columns: Sequence[str]) -> exp.Select:
    """The rows of a relation, and about how many values each of these columns has.

    >>> statistics_query("raw.a", ["k"]).sql("spark")
    'SELECT COUNT(*) AS c0, APPROX_COUNT_DISTINCT(k) AS c1 FROM raw.a'
    >>> from fivm_dbt.catalog.statistics import days_of
    >>> statistics_query("raw.a", [days_of("ordered_at")]).sql("spark")
    'SELECT COUNT(*) AS c0, APPROX_COUNT_DISTINCT(CAST(ordered_at AS DATE)) AS c1 FROM raw.a'
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


def _value(column: str) -> exp.Expr:
    time = time_of(column)
    return column_ast("", column) if time is None else as_type(column_ast("", time), "date")


def together(queries: Sequence[exp.Select]) -> exp.Query:
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
