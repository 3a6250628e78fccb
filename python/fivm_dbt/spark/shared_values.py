"""Values that many columns of a query have are computed once, in a query below it.

The products of a covariance all have whether its row counts, which asks each of its variables for NULL. Written out in
each of them it is most of a statement. Spark finds out that it is the same, but only after it has read, resolved and
rewritten every copy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from sqlglot import exp

from fivm_dbt.ir.node import Node
from fivm_dbt.ir.scalar import column_ast, identifier
from fivm_dbt.naming import PREFIX
from fivm_dbt.spark.select import Reader, select_columns

_TIMES, _NODES = 3, 8
"""How often a value has to be there, and how large it is at least, to be a column of its own."""

_MOST_RENAMED = 2
"""How many columns may get another name below. For each Spark doubles what it infers of a value that has them all."""

_NO_VALUES = (
    exp.Column, exp.Identifier, exp.Literal, exp.DataType, exp.DataTypeParam, exp.Alias, exp.Array, exp.Paren,
)  # fmt: skip


def select_shared(columns: list[exp.Expr], node: Node, reader: Reader) -> exp.Select:
    """``SELECT columns FROM node``, as :func:`select_columns` writes it, over a query with the values they share."""
    shared = _shared(columns)
    if not shared:
        return select_columns(columns, node, reader)
    above = [_replaced(column, shared) for column in columns]
    leaves = dict.fromkeys(
        (c.table, c.name) for column in above for c in column.find_all(exp.Column) if c.table
    )
    often = Counter(name.lower() for _, name in leaves)
    renamed = {leaf: f"{PREFIX}{leaf[0]}_{leaf[1]}" for leaf in leaves if often[leaf[1].lower()] > 1}
    if len(renamed) > _MOST_RENAMED:
        return select_columns(columns, node, reader)

    def below(each: exp.Expr) -> exp.Expr:
        if isinstance(each, exp.Column) and each.table:
            return column_ast("", renamed.get((each.table, each.name), each.name))
        return each

    inner = [
        exp.alias_(column_ast(*leaf), identifier(renamed[leaf])) if leaf in renamed else column_ast(*leaf)
        for leaf in leaves
    ]
    inner += [exp.alias_(value.copy(), identifier(name)) for value, name in shared.items()]
    rows = select_columns(inner, node, reader).subquery("shared", copy=False)
    return exp.select(*(column.transform(below, copy=False) for column in above)).from_(rows, copy=False)


def _shared(columns: Sequence[exp.Expr]) -> dict[exp.Expr, str]:
    """The values that are computed once, largest first where one has another, by the names of their columns."""
    counts = Counter(n for column in columns for n in _computed(column) if not isinstance(n, _NO_VALUES))
    often = {value for value, times in counts.items() if times >= _TIMES and _size(value) >= _NODES}
    found: dict[exp.Expr, str] = {}
    for column in columns:
        for value in column.walk(prune=lambda n: n in often):
            if value in often:
                found.setdefault(value, f"{PREFIX}shared_{len(found) + 1}")
    return found


def _replaced(column: exp.Expr, shared: dict[exp.Expr, str]) -> exp.Expr:
    def visit(each: exp.Expr) -> exp.Expr:
        name = shared.get(each)
        return each if name is None else column_ast("", name)

    return column.transform(visit)


def _computed(value: exp.Expr) -> Iterator[exp.Expr]:
    """The parts of a value that are computed whatever the row is.

    A branch of CASE may be there to keep an error from happening, and the body of a lambda has variables of its own.
    """
    if isinstance(value, (exp.Query, exp.Lambda)):
        return
    yield value
    if isinstance(value, exp.Case):
        parts = [value.this, value.args["ifs"][0].this]
    elif isinstance(value, (exp.If, exp.Nvl2, exp.Coalesce, exp.And, exp.Or)):
        parts = [value.this]
    elif isinstance(value, exp.DecodeCase):
        parts = value.expressions[:1]
    else:
        parts = list(value.iter_expressions())
    for part in parts:
        if part is not None:
            yield from _computed(part)


def _size(value: exp.Expr) -> int:
    """The nodes of a value that compute something."""
    return sum(
        1 for n in value.walk() if not isinstance(n, (exp.Identifier, exp.DataType, exp.DataTypeParam))
    )
