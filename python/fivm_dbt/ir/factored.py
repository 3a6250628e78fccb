"""A factorised aggregate has payloads: sums of products of what its inputs have added up already."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from fivm_dbt.catalog.types import SparkType
from fivm_dbt.ir.scalar import Scalar

Entry = tuple[tuple[int, int], ...]
"""An entry of a product of vectors: which factors it has, and which element of each, counted from 0; -1 of a number."""


@dataclass(frozen=True)
class Product:
    """``coefficient × Π factors``. A factor is a value of the aggregate's input with its type, and never NULL.

    A product of vectors has ``entries``: each is a product of elements of some of the factors.
    """

    coefficient: int
    factors: tuple[tuple[Scalar, SparkType], ...]
    entries: tuple[Entry, ...] = ()

    @property
    def sql(self) -> str:
        """For people: how it is computed goes by the numbers that it is added up in.

        >>> v, n = ((Scalar.column("a", name), SparkType("bigint")) for name in "vn")
        >>> Product(-2, (v, n)).sql, Product(1, (v, n), (((0, 3), (1, -1)), ((1, -1),))).sql
        ('- 2 * a.v * a.n', '[a.v[3] * a.n, a.n]')
        """
        parts = [scalar.sql for scalar, _ in self.factors]
        if self.entries:
            shown = ([parts[f] + (f"[{n}]" if n >= 0 else "") for f, n in entry] for entry in self.entries)
            return f"[{', '.join(' * '.join(entry) or '1' for entry in shown)}]"
        if abs(self.coefficient) != 1 or not parts:
            parts.insert(0, str(abs(self.coefficient)))
        return ("- " if self.coefficient < 0 else "") + " * ".join(parts)


class Summed(Protocol):
    """What products are added up in: numbers of a ring (:class:`fivm_dbt.rings.numbers.Numbers`)."""

    @property
    def type(self) -> SparkType: ...

    @property
    def is_exact(self) -> bool: ...

    def sum_of(self, products: tuple[Product, ...], multiplicity: Scalar) -> Scalar: ...

    def partial(self, value: Scalar) -> Scalar: ...


@dataclass(frozen=True)
class Factored:
    """What stands for the rows and for the payload components of an aggregate over views of a view tree.

    ``rows`` is how many rows of the query an input row stands for. ``calls`` gives per call and per component of it
    the sum of products; NULLs of the query are zeros here (F-IVM article, section 3: payloads multiply in a join and
    add up in a marginalisation).
    """

    rows: Product
    calls: tuple[tuple[tuple[Product, ...], ...], ...]

    @property
    def scalars(self) -> Iterator[Scalar]:
        """Every value that is used."""
        for product in (self.rows, *(p for call in self.calls for component in call for p in component)):
            yield from (scalar for scalar, _ in product.factors)
