"""The registry turns SQL aggregates into payloads: the components of a call, and its result computed from them.

The rings of the functions are the files of this package, all of which are read here. A call without an argument counts
rows, which every state does.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib import import_module

from sqlglot import exp

from fivm_dbt import rings
from fivm_dbt.ir.aggregate import AggregateCall
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.rings.component import ROWS, Component
from fivm_dbt.rings.ring import RINGS, Ring

for _module in pkgutil.iter_modules(rings.__path__):
    if _module.name != "registry":
        import_module(f"{rings.__name__}.{_module.name}")


def ring_named(function: str) -> type[Ring] | None:
    """The ring of an aggregate function; None of one that is recomputed for affected keys."""
    return RINGS.get(function)


def ring_for(call: AggregateCall) -> Ring:
    """The ring that ``call`` is maintained in."""
    return RINGS[call.function](call)


def named_components(call: AggregateCall) -> Mapping[str, Component]:
    """The components that ``call`` needs besides :data:`ROWS`, by what its ring calls them."""
    return _named_components(ring_for(call)) if call.arguments else {}


@lru_cache(maxsize=1_000)
def _named_components(ring: Ring) -> Mapping[str, Component]:
    """A covariance of 39 variables has 820."""
    payload = ring.payload()
    return {
        name: Component(numbers, part)
        for (name, numbers), part in zip(ring.columns.items(), payload, strict=True)
    }


def components(call: AggregateCall) -> tuple[Component, ...]:
    """The components that ``call`` needs besides :data:`ROWS`."""
    return tuple(named_components(call).values())


def finish(call: AggregateCall, column: Callable[[Component], Scalar]) -> Scalar:
    """The result of ``call`` from its components' columns."""
    if not call.arguments:
        return column(ROWS)
    return ring_for(call).finish([column(component) for component in components(call)])


def called(call: AggregateCall) -> exp.Expr:
    """``call`` over the rows of a SELECT: the function itself, or its components where Spark does not have it."""
    if not call.arguments:
        return exp.Count(this=exp.Star())
    if ring_for(call).is_of_spark:
        return exp.func(call.function, *(value.ast() for value, _ in call.arguments), dialect="spark")

    return over_rows(call, Scalar.number(1)).ast()


def over_rows(call: AggregateCall, multiplicity: Scalar) -> Scalar:
    """``call`` over rows that count with a ``multiplicity`` each, as aggregates of its components."""

    def total(component: Component) -> Scalar:
        numbers = component.numbers
        added = numbers.total(component.term(multiplicity).ast())
        return Scalar(exp.Coalesce(this=numbers.stored(added), expressions=[numbers.zero()]))

    return finish(call, total)
