"""Some clauses of Spark are missing in DuckDB or mean something else: here they are written for DuckDB."""

from __future__ import annotations

from sqlglot import exp

from fivm_dbt.engines.duckdb.pivot import join_stack, stacked
from fivm_dbt.engines.duckdb.unsupported import UnsupportedStatement


def to_duckdb_select(node: exp.Select) -> exp.Select:
    """LATERAL VIEW and STACK as joins, and groupings as DuckDB spells them; changes ``node``.

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
    join_stack(node)
    _put_merged_first(node)
    group = node.args.get("group")
    if group is not None:
        _spell_grouping(node, group)
    return node


def _put_merged_first(node: exp.Select) -> None:
    """``*`` over USING begins with the columns that were merged, those of the last join first.

    >>> import sqlglot
    >>> sql = "select * from r join s using (a) join t using (b)"
    >>> to_duckdb_select(sqlglot.parse_one(sql, dialect="spark")).sql("duckdb")
    'SELECT b, a, * EXCLUDE (b, a) FROM r JOIN s USING (a) JOIN t USING (b)'
    """
    joins = node.args.get("joins") or []
    merged = list(dict.fromkeys(c.name for j in reversed(joins) for c in j.args.get("using") or []))
    if not merged or not any(isinstance(e, exp.Star) for e in node.expressions):
        return
    if not all(j.args.get("using") for j in joins):
        raise UnsupportedStatement("* over a join with USING beside others without")
    items: list[exp.Expr] = []
    for item in node.expressions:
        if isinstance(item, exp.Star):
            left_out = item.args.get("except_") or []
            gone = {e.name.lower() for e in left_out}
            items += [exp.column(exp.to_identifier(c)) for c in merged if c.lower() not in gone]
            names = dict.fromkeys(
                [*(c for c in merged if c.lower() not in gone), *(e.name for e in left_out)]
            )
            item.set("except_", [exp.column(exp.to_identifier(c)) for c in names])
        items.append(item)
    node.set("expressions", items)


def with_names(node: exp.Expr) -> exp.Expr:
    """The columns of VALUES are called col1, col2, ... where they have no names; changes ``node``."""
    alias = node.args.get("alias")
    if not isinstance(node.parent, (exp.From, exp.Join)) or (alias is not None and alias.args.get("columns")):
        return node
    first = node.expressions[0]
    width = len(first.expressions) if isinstance(first, exp.Tuple) else 1
    name = alias.this if alias is not None and alias.this else exp.to_identifier("fivm_values")
    columns = [exp.to_identifier(f"col{number}") for number in range(1, width + 1)]
    node.set("alias", exp.TableAlias(this=name, columns=columns))
    return node


def _joined(view: exp.Lateral) -> exp.Join:
    """A LATERAL VIEW as the join with a subquery that sees what stands before it."""
    call, alias = view.this, view.args.get("alias")
    query = exp.Subquery(this=stacked(call) if isinstance(call, exp.Stack) else _unnested(call))
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


def _spell_grouping(node: exp.Select, group: exp.Group) -> None:
    """``GROUP BY a, b WITH ROLLUP``; and of no rows no group, not even that of the empty set."""
    sets = [s for kind in ("rollup", "cube", "grouping_sets") for s in group.args.get(kind) or []]
    inline = [e for e in group.expressions if isinstance(e, (exp.Rollup, exp.Cube, exp.GroupingSets))]
    if (not sets and not inline) or _is_the_empty_set(group):
        return
    for kind in ("rollup", "cube"):
        written = group.args.get(kind) or []
        if written and not written[0].expressions:
            written[0].set("expressions", group.expressions)
            group.set("expressions", [])
    _spell_alike(node, group)
    is_there = exp.GT(this=exp.Count(this=exp.Star()), expression=exp.Literal.number(0))
    having = node.args.get("having")
    node.set("having", exp.Having(this=is_there if having is None else exp.and_(having.this, is_there)))


def _spell_alike(node: exp.Select, group: exp.Group) -> None:
    """``CUBE(r.k, k)`` has one column twice. DuckDB takes another spelling for another column, which it groups by too.

    After USING and NATURAL the bare name means the first table's column, but in RIGHT and FULL joins none of a table.
    """
    merging = [j for j in node.args.get("joins") or [] if j.args.get("using") or j.args.get("method")]
    if any(j.side in ("RIGHT", "FULL") for j in merging):
        return
    from_ = node.args.get("from_")
    first = from_.this.alias_or_name if from_ is not None else ""
    tables: dict[str, set[str]] = {}
    for column in group.find_all(exp.Column):
        tables.setdefault(column.name.lower(), set()).add(column.table)
    for name, spelled in tables.items():
        meant = {first} & spelled if merging else spelled - {""}
        if "" not in spelled or len(meant) != 1:
            continue
        (table,) = meant
        parts = (group, *node.expressions, node.args.get("having"))
        for column in [c for part in parts if part is not None for c in part.find_all(exp.Column)]:
            is_here = column.find_ancestor(exp.Select) is node
            if is_here and not column.table and column.name.lower() == name:
                column.set("table", exp.to_identifier(table))


def _is_the_empty_set(group: exp.Group) -> bool:
    """Whether it is GROUPING SETS (()) and nothing else, which is as no GROUP BY at all: one row, also of no rows."""
    items = [*group.expressions, *(group.args.get("grouping_sets") or [])]
    if len(items) != 1 or not isinstance(items[0], exp.GroupingSets):
        return False
    sets = items[0].expressions
    return len(sets) == 1 and isinstance(sets[0], exp.Tuple) and not sets[0].expressions
