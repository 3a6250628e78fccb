"""``range(start, end, step)`` in FROM is a column ``id`` of numbers that never change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from fivm_dbt.catalog.types import BIGINT
from fivm_dbt.ir.node import Item, Node
from fivm_dbt.ir.nodes import Explode, Filter, Map
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.sql.expressions import unparenthesized
from fivm_dbt.sql.lowered import Lowered
from fivm_dbt.sql.parse import unsupported
from fivm_dbt.sql.values import one_row

if TYPE_CHECKING:
    from fivm_dbt.sql.lower import Lowering

_MOST = 1_000_000
"""An array of more numbers would not be a good way to make them."""
_ROOM = 2**63
"""Of a bigint, on either side of zero."""


def is_range(node: exp.Table) -> bool:
    """Whether an item of FROM is the table function ``range``."""
    return isinstance(node.this, exp.Anonymous) and node.this.name.lower() == "range"


def number_range(lowering: Lowering, node: exp.Table, wanted: str) -> Lowered:
    """``range(end)``, ``range(start, end)``, ``range(start, end, step)``, ``range(start, end, step, parts)``."""

    bounds = [_number(argument) for argument in node.this.expressions]
    if not 1 <= len(bounds) <= 4:
        raise unsupported(
            node, f"range with {len(bounds)} arguments", "give it an end, or start, end and step"
        )
    start, end = (0, bounds[0]) if len(bounds) == 1 else (bounds[0], bounds[1])
    step = bounds[2] if len(bounds) > 2 else 1
    if step == 0:
        raise unsupported(node, "range with a step of 0 has no end", "give it another step")
    number = max(0, -((start - end) // step))
    if number > _MOST:
        raise unsupported(node, f"a range of {number:,} numbers", "materialise the numbers as a table")
    last = start + max(0, number - 1) * step
    sequence = ", ".join(f"CAST({n} AS BIGINT)" for n in (start, last, step))
    alias = lowering.alias(f"{wanted}_numbers")
    generator = Scalar.parse(f"EXPLODE(SEQUENCE({sequence}))")
    rows: Node = Explode(one_row(lowering), alias, generator, (("id", BIGINT),))
    if not number:
        rows = Filter(rows, (Scalar.parse("FALSE"),))
    item = Item("id", Scalar.column(alias, "id"), BIGINT)
    return Lowered(Map(rows, lowering.alias(wanted), (item,)), ("id",))


def _number(node: exp.Expr) -> int:
    value = unparenthesized(node)
    sign = 1
    while isinstance(value, exp.Neg):
        sign, value = -sign, unparenthesized(value.this)
    if not isinstance(value, exp.Literal) or not value.this.isdigit():
        raise unsupported(node, f"{node.sql('spark')} is not a number", "write a number, or use a table")
    number = sign * int(value.this)
    if not -_ROOM <= number < _ROOM:
        raise unsupported(node, f"{number} does not fit into a bigint", "write a smaller number")
    return number
