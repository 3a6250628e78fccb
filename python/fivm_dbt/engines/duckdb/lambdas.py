"""Higher-order functions differ in DuckDB: AGGREGATE with a last step, and lambdas with an index."""

from __future__ import annotations

from sqlglot import exp


def to_duckdb_aggregate_array(node: exp.Expr) -> exp.Expr:
    """``AGGREGATE(array, start, merge, finish)``: LIST_REDUCE has no last step.

    >>> import sqlglot
    >>> call = sqlglot.parse_one("aggregate(x, 0, (a, b) -> a + b, a -> a + 1)", dialect="spark")
    >>> to_duckdb_aggregate_array(call).sql("duckdb")
    'LIST_TRANSFORM([LIST_REDUCE(x, LAMBDA a, b : a + b, 0)], LAMBDA a : a + 1)[1]'
    """
    finish = node.args.get("finish")
    if finish is None:
        return node
    reduced = exp.Reduce(
        this=node.this.copy(), initial=node.args["initial"].copy(), merge=node.args["merge"].copy()
    )
    finished = exp.Transform(this=exp.Array(expressions=[reduced]), expression=finish.copy())
    return exp.Bracket(this=finished, expressions=[exp.Literal.number(1)], offset=1)


def with_index_from_one(node: exp.Expr) -> exp.Expr:
    """``TRANSFORM`` and ``FILTER`` with ``(x, i) -> ...``: i counts from 0 in Spark and from 1 in DuckDB.

    >>> import sqlglot
    >>> with_index_from_one(sqlglot.parse_one("filter(x, (a, i) -> a > i)", dialect="spark")).sql("duckdb")
    'LIST_FILTER(x, LAMBDA a, i : a > (i - 1))'
    """
    body = node.args.get("expression")
    if not isinstance(body, exp.Lambda) or len(body.expressions) != 2:
        return node
    index = body.expressions[1].name
    for name in list(body.this.find_all(exp.Identifier)):
        if name.name == index and not isinstance(name.parent, (exp.Dot, exp.PropertyEQ, exp.Column)):
            before = exp.Sub(this=name.copy(), expression=exp.Literal.number(1))
            name.replace(exp.paren(before, copy=False))
    return node
