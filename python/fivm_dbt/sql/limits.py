"""ORDER BY with LIMIT and OFFSET keeps the rows whose position in that order is within the limits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from fivm_dbt.catalog.types import INT
from fivm_dbt.errors import FivmError
from fivm_dbt.ir.node import Item, Node
from fivm_dbt.ir.nodes import Filter, Map
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.ir.window import Window
from fivm_dbt.naming import PREFIX, unique_name
from fivm_dbt.sql.expressions import unparenthesized
from fivm_dbt.sql.functions import is_aggregate
from fivm_dbt.sql.generators import is_generator
from fivm_dbt.sql.group_keys import is_aggregated
from fivm_dbt.sql.lowered import Lowered
from fivm_dbt.sql.parse import span_of, unsupported

if TYPE_CHECKING:
    from fivm_dbt.sql.lower import Lowering

_POSITION = f"{PREFIX}position"


def order_of(node: exp.Expr) -> list[exp.Ordered]:
    """The ORDER BY of a query that has a LIMIT or OFFSET; without those an order has no meaning for a relation."""
    if node.args.get("limit") is None and node.args.get("offset") is None:
        return []
    order = node.args.get("order")
    return list(order.expressions) if order is not None else []


def without_idle_limits(query: exp.Query) -> exp.Query:
    """A query in which no aggregate without GROUP BY has a LIMIT that leaves the one row that it has.

    >>> from fivm_dbt.sql.parse import parse
    >>> without_idle_limits(parse("select count(*) as n from r order by n limit 1")).sql("spark")
    'SELECT COUNT(*) AS n FROM r'
    >>> without_idle_limits(parse("select explode(collect_set(x)) as e from r limit 1")).sql("spark")
    'SELECT EXPLODE(COLLECT_SET(x)) AS e FROM r LIMIT 1'
    """
    for select in query.find_all(exp.Select):
        limit, offset = select.args.get("limit"), select.args.get("offset")
        if limit is None or select.args.get("group") or _generates(select):
            continue
        values = [("", value.unalias()) for value in select.expressions]
        if _number(limit, 0) > 0 and _number(offset, 0) == 0 and is_aggregated(select, values):
            for key in ("limit", "offset", "order"):
                select.set(key, None)
    return query


def _generates(select: exp.Select) -> bool:
    return any(is_generator(part) for item in select.expressions for part in item.walk())


def order_items(node: exp.Expr, projections: Sequence[tuple[str, exp.Expr]]) -> list[int | exp.Expr]:
    """What a SELECT is ordered by: columns of its result, from 0, and expressions over what is in FROM.

    Spark sorts what the select list gives, so that a position or a name in it goes before a column of FROM, by itself
    and in expressions.
    """
    names = [name for name, _ in projections]
    named = {name.lower(): value for name, value in reversed(projections)}

    def over_from(value: exp.Expr) -> exp.Expr:
        if isinstance(value, exp.Column) and not value.table and value.name.lower() in named:
            return exp.paren(named[value.name.lower()])
        if is_aggregate(value) or isinstance(value, exp.Query):
            return value  # what it is over is no part of the result
        for child in list(value.iter_expressions()):
            new = over_from(child)
            if new is not child:
                child.replace(new)
        return value

    items: list[int | exp.Expr] = []
    for by in order_of(node):
        position = _output(by, names) if not _is_qualified(by) else None
        items.append(over_from(by.this.copy()) if position is None else position)
    return items


def _is_qualified(by: exp.Ordered) -> bool:
    inner = unparenthesized(by.this)
    return isinstance(inner, exp.Column) and bool(inner.table)


def _output(by: exp.Ordered, names: Sequence[str]) -> int | None:
    """The column of the result, from 0, that an item of ORDER BY names; None for any other expression."""
    inner = unparenthesized(by.this)
    if isinstance(inner, exp.Column):
        return next((i for i, n in enumerate(names) if n.lower() == inner.name.lower()), None)
    if not isinstance(inner, exp.Literal) or inner.is_string or not inner.this.isdigit():
        return None
    if not 1 <= int(inner.this) <= len(names):
        raise FivmError(
            "FIVM102",
            f"ORDER BY {inner.this}, but there are {len(names)} columns",
            span=span_of(by),
            remedy="use a position of the select list",
        )
    return int(inner.this) - 1


def limited_rows(
    lowering: Lowering,
    node: exp.Expr,
    rows: Lowered,
    wanted: str,
    carried: int = 0,
    items: Sequence[int | exp.Expr] | None = None,
) -> Lowered:
    """The rows that LIMIT and OFFSET leave.

    ``carried`` columns after those of the output are of a correlation: the limits hold for each of their values. The
    order is made total by all columns of the output: rows that are equal in all of them are the same to whoever
    reads the model. ``items`` are those of :func:`order_items`, whose expressions are the last columns of ``rows``;
    without them only columns of the output can be ordered by. Raises FIVM107 where there is no ORDER BY.
    """

    limit, offset = node.args.get("limit"), node.args.get("offset")
    if limit is None and offset is None:
        return rows
    if node.args.get("order") is None:
        raise FivmError(
            "FIVM107",
            "without ORDER BY any rows may be returned, so there is nothing to be equal to",
            span=span_of(node.args.get("limit") or node.args["offset"]),
            remedy="add ORDER BY, or leave LIMIT out",
        )
    outputs = rows.node.fields[: len(rows.names)]
    first = _number(offset, 0)
    last = first + _number(limit, 0) if limit is not None else None
    outer = rows.node.fields[len(rows.names) : len(rows.names) + carried]
    computed = iter(rows.node.fields[len(rows.names) + carried :])
    order = order_of(node)
    by_outputs = list(items) if items is not None else [_named_output(by, rows.names) for by in order]
    lowering.completions.of_limit(node, by_outputs, outputs)
    fields = [outputs[item] if isinstance(item, int) else next(computed) for item in by_outputs]
    keys = [_ordered(by, field.scalar) for by, field in zip(order, fields, strict=True)]
    keys += [exp.Ordered(this=f.scalar.ast(), nulls_first=True) for f in outputs]
    per_outer_row = [f.scalar.ast() for f in outer]
    position = exp.Window(this=exp.RowNumber(), partition_by=per_outer_row, order=exp.Order(expressions=keys))
    names: set[str] = set()
    shown = []
    for field in (*outputs, *outer):
        name = unique_name(field.name, names | {_POSITION})
        names.add(name.lower())
        shown.append(Item(name, field.scalar, field.type))
    alias = lowering.alias(f"{wanted}_ordered")
    partition = tuple(Item(f.name, f.scalar, f.type) for f in outer)
    window = Window(rows.node, alias, partition, (*shown, Item(_POSITION, Scalar(position), INT)))
    column = Scalar.column(alias, _POSITION).sql
    within = [f"{column} > {first}"] if first else []
    within += [f"{column} <= {last}"] if last is not None else []
    kept: Node = Filter(window, tuple(Scalar.parse(w) for w in within)) if within else window
    named = tuple(Item(i.name, Scalar.column(alias, i.name), i.type) for i in shown)
    return Lowered(Map(kept, lowering.alias(wanted), named), rows.names)


def _named_output(by: exp.Ordered, names: Sequence[str]) -> int:
    position = _output(by, names)
    if position is None:
        raise unsupported(by, f"ORDER BY {by.sql('spark')}: not an output column", "order by output columns")
    return position


def _ordered(by: exp.Ordered, value: Scalar) -> exp.Ordered:
    return exp.Ordered(this=value.ast(), desc=by.args.get("desc"), nulls_first=by.args.get("nulls_first"))


def _number(node: exp.Expr | None, default: int) -> int:
    if node is None:
        return default
    value = unparenthesized(node.expression)
    if not isinstance(value, exp.Literal) or not value.this.isdigit():
        raise unsupported(node, f"{node.sql('spark').strip()} is not a number", "write a number")
    return int(value.this)
