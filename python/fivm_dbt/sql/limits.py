"""ORDER BY with LIMIT and OFFSET: the rows whose position, counted in that order, is within the limits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from fivm_dbt.catalog.types import INT
from fivm_dbt.errors import FivmError
from fivm_dbt.ir.nodes import Field, Filter, Item, Map, Node, Window
from fivm_dbt.ir.scalar import Scalar, grouped
from fivm_dbt.naming import PREFIX, unique_name
from fivm_dbt.sql.expressions import unparenthesized
from fivm_dbt.sql.functions import is_aggregate
from fivm_dbt.sql.parse import span_of, unsupported

if TYPE_CHECKING:
    from fivm_dbt.sql.aggregation import Projections
    from fivm_dbt.sql.lower import Lowered, Lowering

_POSITION = f"{PREFIX}position"


def order_of(node: exp.Expr) -> list[exp.Ordered]:
    """The ORDER BY of a query that has a LIMIT or OFFSET; without those an order has no meaning for a relation."""
    if node.args.get("limit") is None and node.args.get("offset") is None:
        return []
    order = node.args.get("order")
    return list(order.expressions) if order is not None else []


def ordered_by(by: exp.Ordered, projections: Projections) -> exp.Expr:
    """What an item of ORDER BY means below the select list.

    A number is a position in it, and a name is one of its columns before it is a column of FROM, unlike in GROUP BY.
    Inside an aggregate names are columns of FROM.
    """
    value = unparenthesized(by.this)
    if isinstance(value, exp.Literal) and value.this.isdigit():
        position = int(value.this) - 1
        if not 0 <= position < len(projections):
            raise unsupported(
                by, f"ORDER BY {value.this}: there is no such column", "order by output columns"
            )
        return projections[position][1].copy()
    outputs = {name.lower(): meant for name, meant in reversed(projections)}

    def visit(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Query) or is_aggregate(node):
            return node
        if isinstance(node, exp.Column):
            meant = None if node.table else outputs.get(node.name.lower())
            return node if meant is None else grouped(meant.copy())
        for child in list(node.iter_expressions()):
            new = visit(child)
            if new is not child:
                child.replace(new)
        return node

    return visit(value.copy())


def limited_rows(lowering: Lowering, node: exp.Expr, rows: Lowered, wanted: str, carried: int = 0) -> Lowered:
    """The rows that LIMIT and OFFSET leave.

    ``carried`` columns after those of the output are of a correlation: the limits hold for each of their values. The
    order is made total by all columns of the output: rows that are equal in all of them are the same to whoever
    reads the model. Raises FIVM107 where there is no ORDER BY.
    """
    from fivm_dbt.sql.lower import Lowered

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
    ordered = order_of(node)
    outer = rows.node.fields[len(rows.names) : len(rows.names) + carried]
    hidden = rows.node.fields[len(rows.names) + carried :]
    keys = [
        _ordered(by, field.scalar)
        for by, field in zip(ordered, _order_fields(ordered, outputs, hidden, rows.names), strict=True)
    ]
    keys += [exp.Ordered(this=f.scalar.ast(), nulls_first=True) for f in outputs]
    per_outer_row = [f.scalar.ast() for f in outer]
    position = exp.Window(this=exp.RowNumber(), partition_by=per_outer_row, order=exp.Order(expressions=keys))
    names: set[str] = set()
    items = []
    for field in (*outputs, *outer):
        name = unique_name(field.name, names | {_POSITION})
        names.add(name.lower())
        items.append(Item(name, field.scalar, field.type))
    alias = lowering.alias(f"{wanted}_ordered")
    partition = tuple(Item(f.name, f.scalar, f.type) for f in outer)
    window = Window(rows.node, alias, partition, (*items, Item(_POSITION, Scalar(position), INT)))
    column = Scalar.column(alias, _POSITION).sql
    within = [f"{column} > {first}"] if first else []
    within += [f"{column} <= {last}"] if last is not None else []
    kept: Node = Filter(window, tuple(Scalar.parse(w) for w in within)) if within else window
    shown = tuple(Item(i.name, Scalar.column(alias, i.name), i.type) for i in items)
    return Lowered(Map(kept, lowering.alias(wanted), shown), rows.names)


def _order_fields(
    ordered: list[exp.Ordered],
    outputs: tuple[Field, ...],
    hidden: tuple[Field, ...],
    names: tuple[str, ...],
) -> list[Field]:
    """What each ORDER BY item means: a hidden column computed for it, else an output column by name or position."""
    if hidden:
        return list(hidden)
    found = []
    for by in ordered:
        inner = unparenthesized(by.this)
        if isinstance(inner, exp.Column):
            position = next((i for i, n in enumerate(names) if n.lower() == inner.name.lower()), None)
        elif isinstance(inner, exp.Literal) and inner.this.isdigit():
            position = int(inner.this) - 1
        else:
            position = None
        if position is None or not 0 <= position < len(outputs):
            raise unsupported(
                by, f"ORDER BY {by.sql('spark')}: not an output column", "order by output columns"
            )
        found.append(outputs[position])
    return found


def _ordered(by: exp.Ordered, value: Scalar) -> exp.Ordered:
    return exp.Ordered(this=value.ast(), desc=by.args.get("desc"), nulls_first=by.args.get("nulls_first"))


def _number(node: exp.Expr | None, default: int) -> int:
    if node is None:
        return default
    value = unparenthesized(node.expression)
    if not isinstance(value, exp.Literal) or not value.this.isdigit():
        raise unsupported(node, f"{node.sql('spark').strip()} is not a number", "write a number")
    return int(value.this)
