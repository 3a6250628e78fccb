"""Payload columns of the same numbers are packed into one, of vectors (ADR 0083)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fivm_dbt.ir.factored import Product
from fivm_dbt.naming import PREFIX, unique_name
from fivm_dbt.plan.model.state import PayloadColumn
from fivm_dbt.rings.component import Component
from fivm_dbt.rings.numbers import Numbers
from fivm_dbt.rings.polynomial import Polynomial
from fivm_dbt.rings.vectors import Vectors, product_of


def packed(payload: tuple[PayloadColumn, ...]) -> tuple[PayloadColumn, ...]:
    """The columns of a payload, those of vectors last. Sums of doubles, which are not exact, stay as they are."""
    kinds: dict[Numbers, list[PayloadColumn]] = {}
    for column in payload:
        if column.numbers.is_exact:
            kinds.setdefault(column.numbers, []).append(column)
    taken = {p.name for p in payload}
    vectors = [v for numbers, own in kinds.items() if (v := _vector(numbers, own, taken)) is not None]
    gone = {c for v in vectors for c in v.members}
    return (*(p for p in payload if p.component not in gone), *vectors)


def _vector(numbers: Numbers, columns: Sequence[PayloadColumn], taken: set[str]) -> PayloadColumn | None:
    """One column of vectors with these as elements; None where one of them is a sum of several products."""
    products = [*_products(columns)]
    product = product_of(products) if len(products) == len(columns) else None
    if product is None:
        return None
    name = unique_name(f"{PREFIX}vector", taken)
    taken.add(name)
    lift = Polynomial((product,))
    component = Component(Vectors(numbers, len(columns)), lift)
    return PayloadColumn(name, component, (product,), tuple(c.component for c in columns))


def _products(columns: Sequence[PayloadColumn]) -> Iterator[Product]:
    """What is added up in each column, where that is one product."""
    for column in columns:
        products = column.products
        if products is None:
            lift = column.component.lift.with_presence_by(lambda _: None)
            products = lift.never_null.products
        if len(products) == 1:
            yield products[0]
