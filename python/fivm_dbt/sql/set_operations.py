"""UNION, INTERSECT and EXCEPT become nodes that count, per row, the copies on either side.

``L ∩ R`` and ``L ∖ R`` are groups of ``L ⊎ R`` by the whole row with a count for each side; the counts are sums, so a
row comes and goes by addition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import BIGINT, INT
from fivm_dbt.errors import FivmError
from fivm_dbt.ir.aggregate import Aggregate, AggregateCall
from fivm_dbt.ir.node import Field, Item, Node
from fivm_dbt.ir.nodes import Explode, Filter, Map, UnionAll
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.naming import PREFIX, unique_name
from fivm_dbt.sql.lowered import Ctes, Lowered
from fivm_dbt.sql.parse import span_of, unsupported
from fivm_dbt.sql.typing import cast

if TYPE_CHECKING:
    from fivm_dbt.sql.domains import Domain
    from fivm_dbt.sql.lower import Lowering

_LEFT, _RIGHT = f"{PREFIX}left", f"{PREFIX}right"


def set_operation(
    lowering: Lowering, node: exp.SetOperation, ctes: Ctes, wanted: str, domain: Domain | None
) -> Lowered:
    """A set operation over two queries, with Spark's common types."""

    alias = lowering.alias(wanted)
    left = lowering.query(node.left, ctes, f"{wanted}_branch", domain)
    again = domain.again(lowering.alias) if domain is not None and domain.node is not None else domain
    right = lowering.query(node.right, ctes, f"{wanted}_branch", again)
    if node.args.get("by_name"):
        raise unsupported(node, "BY NAME is not Spark SQL", "list the columns in the same order")
    _check_width(left, right, node)
    # Both end in the columns of the domain, if there is one.
    types = [_common(lowering, f, g, node) for f, g in zip(left.node.fields, right.node.fields, strict=True)]
    branches = [_as_types(lowering, branch, types) for branch in (left, right)]
    if isinstance(node, exp.Union):
        both: Node = UnionAll(tuple(branches), alias)
        return Lowered(both if not node.args.get("distinct") else lowering.distinct(both, wanted), left.names)
    return Lowered(_counted(lowering, node, branches, alias, wanted), left.names)


def _check_width(left: Lowered, right: Lowered, node: exp.SetOperation) -> None:
    if len(left.names) != len(right.names):
        raise FivmError(
            "FIVM113",
            f"{len(left.names)} columns above, {len(right.names)} below",
            span=span_of(node.right),
            remedy="give both branches the same columns",
        )


def _common(lowering: Lowering, left: Field, right: Field, node: exp.Expr) -> SparkType:
    type_ = lowering.typer.common([left.type, right.type])
    if type_ is None:
        raise FivmError(
            "FIVM113",
            f"column {left.name} is {left.type} above and {right.type} below",
            span=span_of(node),
            remedy="CAST both to one type",
        )
    return type_


def _as_types(lowering: Lowering, branch: Lowered, types: list[SparkType]) -> Node:
    fields = branch.node.fields
    if [f.type for f in fields] == types:
        return branch.node
    items = tuple(Item(f.name, cast(f.scalar, f.type, t), t) for f, t in zip(fields, types, strict=False))
    return Map(branch.node, lowering.alias("branch"), items)


def _counted(
    lowering: Lowering, node: exp.SetOperation, branches: list[Node], alias: str, wanted: str
) -> Node:
    """The rows of INTERSECT and EXCEPT, from the number of their copies on either side."""
    names = _names(branches[0])
    tagged = []
    for branch, (here, there) in zip(branches, ((1, 0), (0, 1)), strict=True):
        columns = [Item(n, f.scalar, f.type) for n, f in zip(names, branch.fields, strict=True)]
        sides = [Item(_LEFT, Scalar.number(here), INT), Item(_RIGHT, Scalar.number(there), INT)]
        tagged.append(Map(branch, lowering.alias("side"), (*columns, *sides)))
    both = UnionAll(tuple(tagged), lowering.alias("sides"))
    keys = tuple(
        Item(n, Scalar.column(both.alias, n), f.type) for n, f in zip(names, both.fields, strict=False)
    )
    calls = tuple(
        AggregateCall(name, "sum", Scalar.column(both.alias, name), INT, BIGINT) for name in (_LEFT, _RIGHT)
    )
    grouped = Aggregate(both, lowering.alias("copies"), keys, calls)
    left, right = (Scalar.column(grouped.alias, name).sql for name in (_LEFT, _RIGHT))
    is_except, is_distinct = isinstance(node, exp.Except), bool(node.args.get("distinct"))
    if is_distinct:
        conditions = (f"{left} > 0", f"{right} = 0" if is_except else f"{right} > 0")
        kept: Node = Filter(grouped, tuple(Scalar.parse(c) for c in conditions))
    else:
        copies = f"{left} - {right}" if is_except else f"LEAST({left}, {right})"
        kept = repeated(lowering, Filter(grouped, (Scalar.parse(f"{copies} > 0"),)), copies)
    items = tuple(Item(k.name, Scalar.column(grouped.alias, k.name), k.type) for k in keys)
    return Map(kept, alias, items)


def repeated(lowering: Lowering, node: Node, copies: str) -> Explode:
    """Each row of ``node`` as often as ``copies``, which is above zero, says."""
    generator = Scalar.parse(f"EXPLODE(SEQUENCE(1, {copies}))")
    return Explode(node, lowering.alias("copy"), generator, (("copy_number", BIGINT),))


def _names(node: Node) -> list[str]:
    taken: set[str] = {_LEFT, _RIGHT}
    names = []
    for field in node.fields:
        names.append(unique_name(field.name, taken))
        taken.add(names[-1].lower())
    return names
