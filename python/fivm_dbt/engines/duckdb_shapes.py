"""Clauses of Spark that DuckDB does not have, or reads differently, written as it would write them."""

from __future__ import annotations

from sqlglot import exp


def to_duckdb_select(node: exp.Select) -> exp.Select:
    """LATERAL VIEW as joins, and groupings as DuckDB spells them; changes ``node``.

    >>> import sqlglot
    >>> sql = "select a, count(*) as n from r group by a with rollup"
    >>> to_duckdb_select(sqlglot.parse_one(sql, dialect="spark")).sql("duckdb")
    'SELECT a, COUNT(*) AS n FROM r GROUP BY ROLLUP (a) HAVING COUNT(*) > 0'
    """
    views = node.args.get("laterals") or []
    if views:
        node.set("laterals", None)
        for view in views:
            node.append("joins", _joined(view))
    group = node.args.get("group")
    if group is not None:
        _spell_grouping(node, group)
    return node


def _joined(view: exp.Lateral) -> exp.Join:
    """A LATERAL VIEW as the join with a subquery that sees what stands before it."""
    call, alias = view.this, view.args.get("alias")
    query = exp.Subquery(this=_stacked(call) if isinstance(call, exp.Stack) else _unnested(call))
    lateral = exp.Lateral(this=query, alias=alias)
    if view.args.get("outer") or isinstance(call, exp.ExplodeOuter):
        return exp.Join(this=lateral, side="LEFT", on=exp.true())
    return exp.Join(this=lateral, kind="CROSS")


def _unnested(call: exp.Expr) -> exp.Select:
    """The rows of EXPLODE and POSEXPLODE."""
    array = call.this
    items: list[exp.Expr] = [exp.Anonymous(this="UNNEST", expressions=[array.copy()])]
    if isinstance(call, exp.Posexplode):
        number = exp.Anonymous(this="GENERATE_SUBSCRIPTS", expressions=[array.copy(), exp.Literal.number(1)])
        items.insert(0, exp.Sub(this=number, expression=exp.Literal.number(1)))
    return exp.Select(expressions=items)


def _stacked(call: exp.Stack) -> exp.Query:
    """The rows of STACK: its values, as many in each; the last one is filled up with NULLs."""
    count, values = int(call.this.name), call.expressions
    width = -(-len(values) // count)
    filled = [*values, *(exp.Null() for _ in range(width * count - len(values)))]
    rows = [
        exp.Select(expressions=[value.copy() for value in filled[start : start + width]])
        for start in range(0, len(filled), width)
    ]
    return rows[0] if len(rows) == 1 else exp.union(*rows, distinct=False)


def _spell_grouping(node: exp.Select, group: exp.Group) -> None:
    """``GROUP BY a, b WITH ROLLUP``; and of no rows no group, not even that of the empty set."""
    sets = [s for kind in ("rollup", "cube", "grouping_sets") for s in group.args.get(kind) or []]
    inline = [e for e in group.expressions if isinstance(e, (exp.Rollup, exp.Cube, exp.GroupingSets))]
    if not sets and not inline:
        return
    for kind in ("rollup", "cube"):
        written = group.args.get(kind) or []
        if written and not written[0].expressions:
            written[0].set("expressions", group.expressions)
            group.set("expressions", [])
    is_there = exp.GT(this=exp.Count(this=exp.Star()), expression=exp.Literal.number(0))
    having = node.args.get("having")
    node.set("having", exp.Having(this=is_there if having is None else exp.and_(having.this, is_there)))


def to_duckdb_pivot(node: exp.Subquery) -> exp.Expr:
    """PIVOT as a GROUP BY with a filter per value; needs the names of the columns that are grouped by.

    >>> import sqlglot
    >>> sql = "select * from (select g, i, n from r) pivot (sum(n) for i in (1 as a))"
    >>> print(to_duckdb_pivot(sqlglot.parse_one(sql, dialect="spark").find(exp.Subquery)).sql("duckdb"))
    (SELECT g, SUM(n) FILTER(WHERE i IS NOT DISTINCT FROM 1) AS a FROM (SELECT g, i, n FROM r) GROUP BY g)
    """
    pivots = node.args.get("pivots") or []
    if len(pivots) != 1 or pivots[0].args.get("unpivot") or not isinstance(node.this, exp.Select):
        return node
    pivot = pivots[0]
    fields, calls = pivot.args.get("fields") or [], pivot.expressions
    if len(fields) != 1 or not isinstance(fields[0].this, exp.Column) or node.this.is_star:
        return node
    column = fields[0].this
    used = {c.name.lower() for call in calls for c in call.find_all(exp.Column)} | {column.name.lower()}
    kept = [n for n in node.this.named_selects if n.lower() not in used]
    items: list[exp.Expr] = [exp.column(name) for name in kept]
    for value in fields[0].expressions:
        literal = value.this if isinstance(value, exp.PivotAlias) else value
        name = value.args["alias"].name if isinstance(value, exp.PivotAlias) else literal.name
        for call in calls:
            aggregate = call.this if isinstance(call, exp.Alias) else call
            full = f"{name}_{call.alias_or_name}" if len(calls) > 1 else name
            where = exp.Where(this=exp.NullSafeEQ(this=column.copy(), expression=literal.copy()))
            items.append(exp.alias_(exp.Filter(this=aggregate.copy(), expression=where), full))
    alias = pivot.args.get("alias")
    inner = exp.Subquery(this=node.this.copy())
    query = exp.Select(expressions=items).from_(inner)
    if kept:
        query = query.group_by(*(exp.column(name) for name in kept))
    return exp.Subquery(this=query, alias=alias.copy() if alias is not None else node.args.get("alias"))
