"""Higher-order functions differ in DuckDB: AGGREGATE with a last step, and lambdas with an index."""

from __future__ import annotations

from sqlglot import exp

from fivm_dbt.engines.duckdb.unsupported import UnsupportedStatement


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


def to_duckdb_arrays_zip(node: exp.Expr) -> exp.Expr:
    """``ARRAYS_ZIP`` of columns, whose names the fields of the structs have.

    >>> import sqlglot
    >>> call = sqlglot.parse_one("arrays_zip(x, y)", dialect="spark")
    >>> to_duckdb_arrays_zip(call).sql("duckdb").partition(" THEN ")[2]
    "LIST_TRANSFORM(RANGE(1, 1 + GREATEST(LEN(x), LEN(y))), LAMBDA place : {'x': x[place], 'y': y[place]}) END"
    """
    arrays = node.expressions
    if not all(isinstance(array, exp.Column) for array in arrays):
        raise UnsupportedStatement("ARRAYS_ZIP of anything but columns")

    def element(array: exp.Expr) -> exp.Expr:
        return exp.Bracket(this=array.copy(), expressions=[exp.to_identifier("place")], offset=1)

    lengths = [exp.Anonymous(this="LEN", expressions=[array.copy()]) for array in arrays]
    last = exp.Anonymous(this="GREATEST", expressions=lengths)
    one = exp.Literal.number(1)
    places = exp.Anonymous(this="RANGE", expressions=[one, exp.Add(this=one.copy(), expression=last)])
    fields = [exp.PropertyEQ(this=exp.to_identifier(a.name), expression=element(a)) for a in arrays]
    each = exp.Lambda(this=exp.Struct(expressions=fields), expressions=[exp.to_identifier("place")])
    is_null = exp.or_(*(exp.Is(this=array.copy(), expression=exp.Null()) for array in arrays))
    known = exp.Not(this=exp.paren(is_null))
    return exp.Case(ifs=[exp.If(this=known, true=exp.Transform(this=places, expression=each))])


def to_duckdb_zip(node: exp.Expr) -> exp.Expr:
    """``ZIP_WITH(left, right, (a, b) -> ...)``: a list of pairs, by their places.

    >>> import sqlglot
    >>> call = sqlglot.parse_one("zip_with(x, y, (a, b) -> a + b)", dialect="spark")
    >>> to_duckdb_zip(call).sql("duckdb")
    'LIST_TRANSFORM(LIST_ZIP(x, y), LAMBDA a_b : a_b[1] + a_b[2])'
    """
    left, right, body = node.expressions
    names = [name.name for name in body.expressions]
    pair = "_".join(names)
    inner = body.this.copy()
    for name in list(inner.find_all(exp.Identifier)):
        if name.name in names and not isinstance(name.parent, (exp.Dot, exp.PropertyEQ, exp.Column)):
            place = exp.Literal.number(names.index(name.name) + 1)
            element = exp.Bracket(this=exp.to_identifier(pair), expressions=[place], offset=1)
            if name is inner:
                inner = element
            else:
                name.replace(element)
    zipped = exp.Anonymous(this="LIST_ZIP", expressions=[left.copy(), right.copy()])
    each = exp.Lambda(this=inner, expressions=[exp.to_identifier(pair)])
    return exp.Transform(this=zipped, expression=each)


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
