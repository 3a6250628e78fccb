"""Conditions on the clock become operators of their own, as low in the tree as they can stand.

``σ_{p(t) ∧ q} R = σ_p(t)(σ_q R)``, and of a join ``σ_p(t)(R ⋈ S) = σ_p(t) R ⋈ S`` where p reads R alone: the rows that
enter or leave are then found in R, by comparisons with literals. Comparisons with the clock in other places (a CASE in
the select list, the condition of an aggregate) become columns of a ClockMap below.
"""

from __future__ import annotations

from dataclasses import replace

from fivm_dbt.catalog.types import BOOLEAN
from fivm_dbt.errors import FivmError
from fivm_dbt.ir.clock import bounds, clock_kinds, comparisons, position, row_columns, with_columns
from fivm_dbt.ir.clock_nodes import ClockFilter, ClockMap
from fivm_dbt.ir.local import Local
from fivm_dbt.ir.node import Field, Item, Node, scalars_of
from fivm_dbt.ir.nodes import Filter, Join, Map
from fivm_dbt.ir.one_sided import OneSided
from fivm_dbt.ir.rename import rebuilt
from fivm_dbt.ir.scalar import ColumnId, Scalar
from fivm_dbt.naming import PREFIX, unique_name


def separate_clock(node: Node) -> Node:
    """``node`` with ClockFilter and ClockMap for everything that reads the clock.

    Raises FIVM106 for a clock that is compared with nothing, or in the condition of a join that keeps rows without one.
    """
    node = node.with_inputs(tuple(separate_clock(child) for child in node.inputs))
    if not any(clock_kinds(scalar) for scalar in scalars_of(node)):
        return node
    if isinstance(node, Filter):
        timed, plain = _split(node.predicates)
        return _pushed_all(Filter(node.input, plain) if plain else node.input, timed)
    if isinstance(node, Join):
        timed, plain = _split(node.predicates)
        return _pushed_all(Join(node.factors, plain), timed)
    if isinstance(node, OneSided):
        return _joined(node)
    if isinstance(node, Map):
        _check_compared(node)
        return ClockMap(node.input, node.alias, node.items)
    if isinstance(node, Local):
        _check_compared(node)
        return _over_flags(node)
    raise _refused(next(s for s in scalars_of(node) if clock_kinds(s)), "among VALUES or in a generator")


def _split(predicates: tuple[Scalar, ...]) -> tuple[tuple[Scalar, ...], tuple[Scalar, ...]]:
    """The conditions on the clock, BETWEEN as two of them, and the others."""
    timed = tuple(b for p in predicates if clock_kinds(p) for b in bounds(p))
    return timed, tuple(p for p in predicates if not clock_kinds(p))


def _joined(node: OneSided) -> Node:
    """A condition on the right side alone is a filter of it, whatever happens to the rows on the left."""
    timed, plain = _split(node.predicates)
    left, right = node.left, node.right
    for predicate in timed:
        if row_columns(predicate) <= right.ids:
            right = _pushed(right, predicate)
        elif not node.keeps_unmatched and row_columns(predicate) <= left.ids:
            left = _pushed(left, predicate)
        else:
            what = "in a condition on rows that this join keeps without a partner"
            raise _refused(predicate, what, "put it into WHERE of a subquery: LEFT JOIN LATERAL (SELECT ...)")
    return replace(node, left=left, right=right, predicates=plain)


def _pushed_all(node: Node, predicates: tuple[Scalar, ...]) -> Node:
    for predicate in predicates:
        node = _pushed(node, predicate)
    return node


def _pushed(node: Node, predicate: Scalar) -> Node:
    """``σ_p node`` with p at the lowest operator that has all its columns."""
    columns = row_columns(predicate)
    if isinstance(node, Join) and columns:
        for position_, factor in enumerate(node.factors):
            if columns <= factor.ids:
                factors = list(node.factors)
                factors[position_] = _pushed(factor, predicate)
                return Join(tuple(factors), node.predicates)
    if isinstance(node, (Filter, ClockFilter)):
        inner = _pushed(node.input, predicate)
        is_deeper = not (isinstance(inner, ClockFilter) and inner.input is node.input)
        if is_deeper:
            return replace(node, input=inner)
        if isinstance(node, ClockFilter):
            return ClockFilter(node.input, (*node.predicates, predicate))
    elif node.passes_rows and columns <= node.inputs[0].ids:
        return node.with_inputs((_pushed(node.inputs[0], predicate), *node.inputs[1:]))
    return ClockFilter(node, (predicate,))


def _over_flags(node: Local) -> Node:
    """The operator over a ClockMap that has the comparisons with the clock as columns."""
    flags = dict.fromkeys(c for scalar in scalars_of(node) for c in comparisons(scalar))
    alias = f"{node.alias}_clock"
    column_of = {flag: (alias, f"{PREFIX}is_{i}") for i, flag in enumerate(flags, start=1)}
    items = [Item(name, flag, BOOLEAN) for flag, (_, name) in column_of.items()]
    rest = [with_columns(scalar, column_of) for scalar in scalars_of(node)]
    used = frozenset(c for scalar in rest for c in scalar.columns)
    meaning: dict[ColumnId, Scalar] = {}
    taken = {item.name for item in items}
    for field in node.input.fields:
        if field.id in used:
            name = unique_name(field.name, taken)
            taken.add(name.lower())
            items.append(Item(name, field.scalar, field.type))
            meaning[field.id] = Field(alias, name, field.type).scalar

    def change(scalar: Scalar) -> Scalar:
        return with_columns(scalar, column_of).substitute(meaning.get)

    below = ClockMap(node.input, alias, tuple(items))
    return rebuilt(node, (below,), change)


def _check_compared(node: Node) -> None:
    """FIVM106 where the clock is a value in itself: that of every row changes all the time."""
    for scalar in scalars_of(node):
        timed = comparisons(scalar)
        rest = with_columns(scalar, {c: ("", "compared") for c in timed})
        if clock_kinds(rest):
            raise _refused(rest, "outside of a comparison, where it changes every row as time passes")


def _refused(scalar: Scalar, where: str, remedy: str | None = None) -> FivmError:
    name, span = position(scalar)
    return FivmError(
        "FIVM106",
        f"{name} {where}",
        span=span,
        remedy=remedy
        or f"compare it with a column (d >= {name} - ...), or compute it where the model is read",
    )
