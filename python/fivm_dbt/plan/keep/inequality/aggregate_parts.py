"""An aggregate over payloads is a set of sums of its components, from which its calls are computed."""

from __future__ import annotations

from fivm_dbt.ir.aggregate import Aggregate, AggregateCall
from fivm_dbt.ir.build import coalesce
from fivm_dbt.ir.node import Item
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.rings.component import ROWS, Component
from fivm_dbt.rings.registry import components, finish


def parts_of(result: Aggregate) -> tuple[tuple[str, Component, Scalar], ...]:
    """Each component of a factored aggregate under a name, with what a row of its input adds to it; first the rows."""
    assert result.factored is not None
    one = Scalar.number(1)
    made: dict[Component, Scalar] = {ROWS: ROWS.numbers.sum_of((result.factored.rows,), one)}
    for call, parts in zip(result.calls, result.factored.calls, strict=True):
        for component, products in zip(components(call), parts, strict=True):
            made.setdefault(component, component.numbers.sum_of(products, one))
    return tuple((f"part_{n}", component, value) for n, (component, value) in enumerate(made.items()))


def summed(parts: tuple[tuple[str, Component, Scalar], ...]) -> tuple[AggregateCall, ...]:
    """The components as calls of an aggregate that is evaluated as it stands."""
    return tuple(AggregateCall(name, "sum", value, c.type, c.type) for name, c, value in parts)


def shown(
    result: Aggregate, alias: str, keys: tuple[tuple[Item, str], ...], *, is_global: bool = False
) -> tuple[Item, ...]:
    """The columns of ``result`` over sums of its parts in the relation ``alias``, which calls its ``keys`` so."""
    places = {component: (name, component) for name, component, _ in parts_of(result)}

    def column(component: Component) -> Scalar:
        name, known = places[component]
        if not is_global:
            return Scalar.column(alias, name)
        # Over no rows at all there is a row, and its sums are NULL.
        return coalesce(Scalar.column(alias, name), Scalar(known.numbers.zero()))

    items = [Item(key.name, Scalar.column(alias, name), key.type) for key, name in keys]
    items += [Item(call.name, finish(call, column), call.type) for call in result.calls]
    return tuple(items)
