"""Statements have pieces: tables by name, queries by the row or in one task, and the union of queries."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypeVar

import sqlglot
from sqlglot import exp

from fivm_dbt.ir.dialect import SparkText
from fivm_dbt.ir.scalar import identifier

if TYPE_CHECKING:
    from fivm_dbt.plan.model.state import StateTable

Statement = exp.Expr
"""A statement; whoever runs it does not look into it."""
Condition = exp.Expr
"""What rows of a table have to meet."""
Query = exp.Query
"""Something that has rows."""

Q = TypeVar("Q", bound=exp.Query)


def table(name: str) -> exp.Table:
    """A relation by its canonical name."""
    return exp.to_table(name, dialect="spark")


def everything(source: exp.Expr) -> exp.Select:
    """All of a FROM item."""
    return exp.select("*").from_(source)


def whole(name: str) -> exp.Select:
    """All of a relation.

    >>> whole("raw.a").sql("spark")
    'SELECT * FROM raw.a'
    """
    return everything(table(name))


def any_row(name: str) -> exp.Select:
    """A row of a relation that has any."""
    return exp.select("1").from_(table(name)).limit(1)


def drop(name: str, kind: Literal["TABLE", "VIEW"]) -> exp.Drop:
    """``DROP TABLE IF EXISTS``, or of a view."""
    return exp.Drop(tables=[table(name)], kind=kind, exists=True)


def pretty(statement: Statement | str) -> str:
    """A statement on several lines, for people; arrays of numbers fill theirs.

    >>> print(pretty("SELECT ARRAY(" + ", ".join(map(str, range(1000, 1030))) + ") AS n"))
    SELECT
      ARRAY(
        1000, 1001, 1002, 1003, 1004, 1005, 1006, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 1015, 1016,
        1017, 1018, 1019, 1020, 1021, 1022, 1023, 1024, 1025, 1026, 1027, 1028, 1029
      ) AS n
    """
    node = sqlglot.parse_one(statement, dialect=SparkText) if isinstance(statement, str) else statement
    return _LINES_OF_NUMBERS.sub(_filled, node.sql(dialect="spark", pretty=True))


_LINES_OF_NUMBERS = re.compile(r"^( *)\d+(?:,\n *\d+){10,}$", re.MULTILINE)


def _filled(found: re.Match[str]) -> str:
    indent, numbers = found.group(1), " ".join(found.group().split())
    return textwrap.fill(numbers, 110, initial_indent=indent, subsequent_indent=indent)


def by_row(query: exp.Query) -> exp.Query:
    """An aggregate without its aggregation: what each row by itself is the sum, the first, the last and the count of.

    >>> import sqlglot
    >>> by_row(sqlglot.parse_one("SELECT d, COUNT(*) AS n, MIN(x), SUM(x) FROM t GROUP BY d ORDER BY d")).sql()
    'SELECT d, 1 AS n, x, x FROM t'
    """
    result = query.copy()
    for select in list(result.find_all(exp.Select)):
        for part in ("group", "order"):
            select.set(part, None)
        for call in list(select.find_all(exp.AggFunc)):
            call.replace(exp.Literal.number(1) if isinstance(call, exp.Count) else call.this)
    return result


def in_one_task(query: exp.Select) -> exp.Select:
    """Have a query computed by one task, without a shuffle."""
    one = exp.Anonymous(this="COALESCE", expressions=[exp.Literal.number(1)])
    query.set("hint", exp.Hint(expressions=[one]))
    return query


def as_both(rows: exp.Query, *, is_small: bool) -> exp.Subquery:
    """Rows that are added up, as a FROM item; what ``is_small`` is read by one task, and so needs no shuffle."""
    both = rows.subquery(identifier("both"), copy=False)
    if not is_small:
        return both
    return in_one_task(exp.select("*").from_(both, copy=False)).subquery(identifier("both"), copy=False)


def is_any(sums: Iterable[exp.Expr]) -> exp.Expr:
    """Whether one of the sums of a key is not zero; NULL, after an overflow, is not."""
    moved = (exp.NullSafeNEQ(this=s.copy(), expression=exp.Literal.number(0)) for s in sums)
    return exp.or_(*moved, copy=False)


def any_moved(state: StateTable, sums: Mapping[str, exp.Expr]) -> exp.Expr:
    """The same of sums of components of a state, by their names."""
    moved = (state.numbers(name).is_moved(total.copy()) for name, total in sums.items())
    return exp.or_(*moved, copy=False)


def union_all(queries: Sequence[Q]) -> Q | exp.Union:
    """``query UNION ALL query ...``; a query alone as it is."""
    return queries[0] if len(queries) == 1 else exp.union(*queries, distinct=False, copy=False)
