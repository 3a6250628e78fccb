"""Sizes are asked for: of states, and of the inputs by which inner views are chosen."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from fivm_dbt.ir.scalar import column_ast
from fivm_dbt.naming import PARTITION, VIEW
from fivm_dbt.spark.pieces import table


def sizes_query(states: str) -> exp.Select:
    """By the label of each view in the table of states, its rows and the partitions that these lie in."""
    rows = exp.Count(this=exp.Star())
    partitions = exp.Count(this=exp.Distinct(expressions=[exp.column(PARTITION)]))
    view = exp.column(VIEW)
    query = exp.select(view, exp.alias_(rows, "rows"), exp.alias_(partitions, "partitions"))
    return query.from_(table(states)).group_by(view.copy())


def statistics_query(relation: str, columns: Sequence[str]) -> exp.Select:
    """The rows of a relation, and about how many values each of these columns has.

    >>> statistics_query("raw.a", ["k"]).sql("spark")
    'SELECT COUNT(*) AS c0, APPROX_COUNT_DISTINCT(k) AS c1 FROM raw.a'
    """
    calls: list[exp.Expr] = [exp.Count(this=exp.Star())]
    calls += [exp.ApproxDistinct(this=column_ast("", column)) for column in columns]
    return exp.select(*(exp.alias_(call, f"c{i}") for i, call in enumerate(calls))).from_(table(relation))
