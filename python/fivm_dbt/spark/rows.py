"""Rows that Python knows, as a query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp


def query_of_rows(columns: Mapping[str, str], rows: Sequence[tuple[object, ...]]) -> exp.Select:
    """A query that gives these rows, by the names and the types of their columns.

    >>> query_of_rows({"a": "INT", "b": "STRING"}, [(1, "two"), (None, None)]).sql("spark")
    "SELECT CAST(a AS INT) AS a, CAST(b AS STRING) AS b FROM VALUES (1, 'two'), (NULL, NULL) AS given(a, b)"
    >>> query_of_rows({"a": "INT"}, []).sql("spark")
    'SELECT CAST(a AS INT) AS a FROM VALUES (NULL) AS given(a) WHERE FALSE'
    """
    given = exp.values(list(rows) or [(None,) * len(columns)], alias="given", columns=list(columns))
    casts = [exp.alias_(exp.cast(exp.column(name), type_), name) for name, type_ in columns.items()]
    query = exp.select(*casts).from_(given)
    return query if rows else query.where(exp.false())
