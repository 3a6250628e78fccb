"""Some aggregates of rows follow from aggregates of parts of them: ``f(A ⊎ B) = g(f'(A), f'(B))``."""

from __future__ import annotations

from collections.abc import Iterable

from fivm_dbt.catalog import SparkType
from fivm_dbt.functions.function import Aggregate as Function
from fivm_dbt.functions.lookup import named
from fivm_dbt.ir.calls import Call
from fivm_dbt.ir.scalar import Scalar

MOST_DIGITS = 28
"""Sums of decimals of more digits may overflow in a part and not in the whole, where others make up for it."""


def adds_up_by_parts(types: Iterable[SparkType]) -> bool:
    """Whether sums over arguments of these types are exact, in parts and then of these."""
    return not any(t.is_floating or (t.is_decimal and t.precision > MOST_DIGITS) for t in types)


def of_itself(whole: Scalar) -> Function | None:
    """The function of a call that is itself over parts, as MAX is; None of any other expression.

    >>> found = of_itself(Scalar.parse("MAX(a.x) FILTER (WHERE a.b)"))
    >>> found is not None and found.name, of_itself(Scalar.parse("MAX(DISTINCT a.x)"))
    ('max', None)
    """
    called = Call.of(whole)
    function = named(called.name) if called.name is not None else None
    if not isinstance(function, Function) or not function.of_itself or called.is_distinct:
        return None
    return function
