"""Rows that Python knows, as a query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from fivm_dbt.spark.reads import written


def query_of_rows(columns: Mapping[str, str], rows: Sequence[tuple[object, ...]]) -> exp.Select:
    """A query that gives these rows, by the names and the types of their columns.

    >>> query_of_rows({"a": "int", "b": "string"}, [(1, "two"), (None, None)]).sql("spark")
    "SELECT CAST(r.a AS INT) AS a, CAST(r.b AS STRING) AS b FROM VALUES (1, 'two'), (NULL, NULL) AS r(a, b)"
    >>> query_of_rows({"a": "int"}, []).sql("spark")
    'SELECT CAST(r.a AS INT) AS a FROM VALUES (NULL) AS r(a) WHERE FALSE'
    """
    nothing: list[tuple[object, ...]] = [(None,) * len(columns)]
    literals = [[exp.convert(value) for value in row] for row in rows or nothing]
    query = written(literals, columns, "r")
    return query if rows else query.where(exp.false())
