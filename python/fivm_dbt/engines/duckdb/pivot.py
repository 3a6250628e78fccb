"""PIVOT, UNPIVOT and STACK are written out for DuckDB, without a look at the columns of their relation."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from fivm_dbt.naming import PREFIX
from fivm_dbt.sql.functions import is_aggregate
from fivm_dbt.sql.pivot import cell_name, turned_columns

_NUMBERS = "BOOLEAN|TINYINT|SMALLINT|INTEGER|BIGINT|HUGEINT|FLOAT|DOUBLE|DECIMAL.*"
"""DuckDB's names of the types of which Spark's PIVOT makes NULL in a cell without rows."""


def without_pivots(ast: exp.Expr) -> exp.Expr:
    """``ast`` with every PIVOT as a GROUP BY, and every UNPIVOT as DuckDB spells it; changes ``ast``.

    >>> import sqlglot
    >>> sql = "select * from r pivot (count(n) for i in (1 as a))"
    >>> print(without_pivots(sqlglot.parse_one(sql, dialect="spark")).sql("duckdb"))
    SELECT * FROM (SELECT * EXCLUDE (n, i), CASE WHEN COUNT(*) FILTER(WHERE i IS NOT DISTINCT FROM 1) > 0 \
THEN COUNT(n) FILTER(WHERE i IS NOT DISTINCT FROM 1) END AS "a" FROM r GROUP BY ALL) AS r
    """
    for pivot in reversed(list(ast.find_all(exp.Pivot))):
        item = pivot.parent
        if not isinstance(item, (exp.Table, exp.Subquery)):
            continue
        if pivot.args.get("unpivot"):
            _label(pivot)
        elif item.args["pivots"][0] is pivot:
            _group(item)
    return ast


def _group(item: exp.Table | exp.Subquery) -> None:
    """Replace a FROM item by the subquery that its PIVOTs mean, the first one innermost."""
    pivots, joins, laterals = (item.args.get(key) for key in ("pivots", "joins", "laterals"))
    name = item.args.get("alias") or exp.TableAlias(this=exp.to_identifier(item.alias_or_name or "pivoted"))
    inner = item.copy()
    for key in ("pivots", "joins", "laterals"):
        inner.set(key, None)
    for number, pivot in enumerate(pivots or []):
        if pivot.args.get("unpivot"):
            inner.set("pivots", [*(p.copy() for p in (pivots or [])[number:])])
            break
        alias = pivot.args.get("alias") or exp.TableAlias(this=name.this.copy())
        inner = exp.Subquery(this=_grouped(inner, pivot), alias=alias.copy())
    inner.set("joins", joins)
    inner.set("laterals", laterals)
    item.replace(inner)


def _grouped(relation: exp.Expr, pivot: exp.Pivot) -> exp.Select:
    """A group for each value of the columns that PIVOT does not name."""
    (turned,) = pivot.args["fields"]
    keys = turned_columns(turned.this)
    named = [c for e in (*pivot.expressions, *keys) for c in e.find_all(exp.Column)]
    used = {c.name.lower(): exp.to_identifier(c.name, quoted=c.this.args.get("quoted")) for c in named}
    others = _are_other_types([call.unalias() for call in pivot.expressions])
    items: list[exp.Expr] = [exp.Star(except_=list(used.values()))]
    for value in turned.expressions:
        pairs = zip(keys, turned_columns(value), strict=True)
        condition = exp.and_(*(exp.NullSafeEQ(this=key.copy(), expression=v.copy()) for key, v in pairs))
        for call in pivot.expressions:
            name = cell_name(value, call, len(pivot.expressions))
            items.append(exp.alias_(_cell(call.unalias(), condition, others), name, quoted=True))
    group = exp.Group(all=True)
    return exp.Select(expressions=items, from_=exp.From(this=relation), group=group)


def _are_other_types(calls: Sequence[exp.Expr]) -> list[exp.Expr]:
    """Conditions of which one holds if not all of the aggregates are numbers or truth values."""
    kinds = [
        exp.Anonymous(this="TYPEOF", expressions=[call.copy()])
        for call in calls
        if not isinstance(call, (exp.Count, exp.Sum, exp.Avg))
    ]
    return [
        exp.not_(exp.Anonymous(this="REGEXP_FULL_MATCH", expressions=[kind, exp.Literal.string(_NUMBERS)]))
        for kind in kinds
    ]


def _cell(call: exp.Expr, condition: exp.Expr, others: Sequence[exp.Expr]) -> exp.Expr:
    """The aggregate over the rows of a cell; NULL if there are none and none of ``others`` holds."""

    def among(aggregate: exp.Expr) -> exp.Expr:
        return exp.Filter(this=aggregate.copy(), expression=exp.Where(this=condition.copy()))

    found = exp.paren(call.copy())
    for part in [p for p in found.walk(prune=is_aggregate) if is_aggregate(p)]:
        part.replace(among(part))
    there = exp.GT(this=among(exp.Count(this=exp.Star())), expression=exp.Literal.number(0))
    return exp.Case(ifs=[exp.If(this=exp.or_(there, *others), true=found.this)])


def _label(pivot: exp.Pivot) -> None:
    """Name the rows of UNPIVOT by their columns as they are written there."""
    for column in [c for c in pivot.args["fields"][0].expressions if isinstance(c, exp.Column)]:
        column.replace(exp.PivotAlias(this=column.copy(), alias=exp.Literal.string(column.name)))


def stacked(call: exp.Stack) -> exp.Query:
    """The rows of STACK: its values, as many in each; the last one is filled up with NULLs."""
    count, values = int(call.this.name), call.expressions
    width = width_of(call)
    filled = [*values, *(exp.Null() for _ in range(width * count - len(values)))]
    rows = [
        exp.Select(expressions=[value.copy() for value in filled[start : start + width]])
        for start in range(0, len(filled), width)
    ]
    return rows[0] if len(rows) == 1 else exp.union(*rows, distinct=False)


def width_of(call: exp.Stack) -> int:
    """How many columns STACK has."""
    return -(-len(call.expressions) // int(call.this.name))


def join_stack(node: exp.Select) -> None:
    """STACK in a select list as a join, under names that nothing in the query can mean.

    Not beside GROUP BY or window functions, which Spark computes first.

    >>> import sqlglot
    >>> node = sqlglot.parse_one("select id, stack(2, a, b) as x from r", dialect="spark")
    >>> join_stack(node)
    >>> print(node.sql("duckdb"))
    SELECT id, __fivm_stack_0 AS x FROM r CROSS JOIN LATERAL (SELECT a UNION ALL SELECT b) AS \
__fivm_stack(__fivm_stack_0)
    """
    found = [e for e in node.expressions if isinstance(e.this, exp.Stack) or isinstance(e, exp.Stack)]
    if len(found) != 1 or node.args.get("group") or any(e.find(exp.Window) for e in node.expressions):
        return
    (item,) = found
    call = item if isinstance(item, exp.Stack) else item.this
    table = f"{PREFIX}stack"
    columns = [exp.to_identifier(f"{table}_{number}") for number in range(width_of(call))]
    names = [exp.to_identifier(f"col{number}") for number in range(len(columns))]
    if isinstance(item, exp.Aliases):
        names = item.expressions
    elif isinstance(item, exp.Alias):
        names = [item.args["alias"]]
    shown = [exp.alias_(exp.column(c.copy()), n.copy()) for c, n in zip(columns, names, strict=True)]
    items: list[exp.Expr] = []
    for e in node.expressions:
        if isinstance(e, exp.Star):
            e.set("except_", [*(e.args.get("except_") or []), *(c.copy() for c in columns)])
        items += shown if e is item else [e]
    alias = exp.TableAlias(this=exp.to_identifier(table), columns=columns)
    lateral = exp.Lateral(this=exp.Subquery(this=stacked(call)), alias=alias)
    node.set("expressions", items)
    node.append("joins", exp.Join(this=lateral, kind="CROSS"))
