"""A query over one part of each reference becomes a query over many: everything agrees in the part.

With ``P(Q)`` for the rows of Q(j) for all parts j, each with its j in the column PART:

    P(R[low(j) .. high(j)]) = rows of R with each j whose range they lie in    P(σ Q) = σ P(Q)    P(π Q) = π,j P(Q)
    P(Q ⋈ S) = P(Q) ⋈_j P(S)    P(γ_K Q) = γ_{K,j} P(Q)    P(W_K Q) = W_{K,j} P(Q)    P(Q ∪ S) = P(Q) ∪ P(S)

What does not depend on j, a dimension, is joined as it is. An aggregate without GROUP BY has a row for every j, also
where Q has none: it is joined to the list of the parts that are asked for. Where other rows would be needed for parts
of which nothing is known, there is no P(Q), and the parts are computed one by one.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from fivm_dbt.catalog.types import BIGINT
from fivm_dbt.functions.nothing import named_over_nothing
from fivm_dbt.ir.aggregate import Aggregate, AggregateCall
from fivm_dbt.ir.frames import partitioned_by
from fivm_dbt.ir.node import Field, Item, Node
from fivm_dbt.ir.nodes import Distinct, Join, Map, UnionAll
from fivm_dbt.ir.one_sided import OneSided, OuterJoin
from fivm_dbt.ir.reads import Scan
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.ir.window import Window

WANTED = "__fivm_parts_wanted"
"""The relation with the parts that are asked for: one column, their numbers."""


class OneByOne(Exception):
    """The parts cannot be computed together; the text says why."""


@dataclass(frozen=True)
class _Parted:
    """A node with its part, None where it does not depend on one."""

    node: Node
    part: Field | None


def by_part(node: Node, references: Collection[str], column: str) -> Map:
    """The rows of ``node`` for many parts: its fields, then ``column``. ``references`` are the relations read by parts.

    Raises OneByOne.
    """
    found = _by_part(node, frozenset(references), column)
    if found.part is None:
        raise OneByOne("it reads no part")
    items = [Item(f.name, f.scalar, f.type) for f in node.fields]
    return Map(found.node, "parts", (*items, Item(column, found.part.scalar, BIGINT)))


def _by_part(node: Node, references: frozenset[str], column: str) -> _Parted:
    if isinstance(node, Scan):
        if node.relation not in references:
            return _Parted(node, None)
        return _Parted(
            replace(node, columns=(*node.columns, (column, BIGINT))), Field(node.alias, column, BIGINT)
        )
    if not node.inputs:
        return _Parted(node, None)
    below = [_by_part(child, references, column) for child in node.inputs]
    if all(b.part is None for b in below):
        return _Parted(node.with_inputs(tuple(b.node for b in below)), None)
    return _of_parted(node, below, column)


def _of_parted(node: Node, below: list[_Parted], column: str) -> _Parted:
    """The rule of one operator, of which at least one input depends on the part."""
    first = below[0]
    if isinstance(node, Map):
        assert first.part is not None
        items = (*node.items, Item(column, first.part.scalar, BIGINT))
        return _Parted(replace(node, input=first.node, items=items), Field(node.alias, column, BIGINT))
    if isinstance(node, Join):
        parts = [b.part for b in below if b.part is not None]
        same = tuple(_equal(parts[0], other) for other in parts[1:])
        return _Parted(Join(tuple(b.node for b in below), (*node.predicates, *same)), parts[0])
    if isinstance(node, OneSided):
        return _joined(node, *below)
    if node.passes_rows or isinstance(node, Distinct):
        return _Parted(node.with_inputs((first.node,)), first.part)
    if isinstance(node, Aggregate):
        return _aggregate(node, first, column)
    if isinstance(node, Window):
        return _window(node, first, column)
    if isinstance(node, UnionAll):
        return _union(node, below, column)
    raise OneByOne(f"{type(node).__name__} is evaluated for one part at a time")


def _joined(node: OneSided, left: _Parted, right: _Parted) -> _Parted:
    if left.part is None:
        raise OneByOne("rows that are not of a part are kept in an outer or semi join with rows of parts")
    same = () if right.part is None else (_equal(left.part, right.part),)
    joined = replace(node, left=left.node, right=right.node, predicates=(*node.predicates, *same))
    return _Parted(joined, left.part)


def _aggregate(node: Aggregate, below: _Parted, column: str) -> _Parted:
    assert below.part is not None
    keys = (*node.keys, Item(column, below.part.scalar, BIGINT))
    if node.is_global:
        return _global(node, replace(node, input=below.node, keys=keys, is_global=False), column)
    return _Parted(replace(node, input=below.node, keys=keys), Field(node.alias, column, BIGINT))


def _global(node: Aggregate, grouped: Aggregate, column: str) -> _Parted:
    """``wanted ⟕_j γ_j(Q)``, with what each call is over nothing where there is no partner."""
    alias = f"{node.alias}_some"
    wanted = Scan(WANTED, f"{node.alias}_wanted", ((column, BIGINT),))
    some = replace(grouped, alias=alias)
    joined = OuterJoin(wanted, some, (_equal(wanted.fields[0], Field(alias, column, BIGINT)),))
    items = []
    for call in node.calls:
        value = Scalar.column(alias, call.name)
        empty = _over_nothing(call)
        if not empty.is_null:
            value = value.unless_null((alias, column), empty)
        items.append(Item(call.name, value, call.type))
    part = Item(column, wanted.fields[0].scalar, BIGINT)
    return _Parted(Map(joined, node.alias, (*items, part)), Field(node.alias, column, BIGINT))


def _over_nothing(call: AggregateCall) -> Scalar:
    found = named_over_nothing(call.function, call.type)
    if found is None:
        raise OneByOne(f"what {call.function} is over a part without rows is not known here")
    return Scalar(found)


def _window(node: Window, below: _Parted, column: str) -> _Parted:
    assert below.part is not None
    part = below.part.scalar
    items = (
        *(replace(i, value=partitioned_by(i.value, part)) for i in node.items),
        Item(column, part, BIGINT),
    )
    partition = (*node.partition, Item(column, part, BIGINT))
    changed = replace(node, input=below.node, partition=partition, items=items)
    return _Parted(changed, Field(node.alias, column, BIGINT))


def _union(node: UnionAll, below: list[_Parted], column: str) -> _Parted:
    if any(b.part is None for b in below):
        raise OneByOne("rows that are not of a part are united with rows of parts")
    branches = []
    for number, (branch, parted) in enumerate(zip(node.branches, below, strict=True)):
        assert parted.part is not None
        items = [Item(f.name, f.scalar, f.type) for f in branch.fields]
        alias = f"{node.alias}_of_{number + 1}"
        branches.append(Map(parted.node, alias, (*items, Item(column, parted.part.scalar, BIGINT))))
    return _Parted(UnionAll(tuple(branches), node.alias), Field(node.alias, column, BIGINT))


def _equal(one: Field, other: Field) -> Scalar:
    return Scalar.equal(one.id, other.id)
