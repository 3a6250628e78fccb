"""A payload is a sum of products, before it is known in which relation each factor is.

They add and multiply as symbols. How they are written as SQL is for the numbers that they are added up in.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass

from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import BIGINT, INT
from fivm_dbt.ir.factored import Product
from fivm_dbt.ir.scalar import Scalar, as_type
from fivm_dbt.rings.integers import is_presence, presence_of_all
from fivm_dbt.rings.numbers import Typed


@dataclass(frozen=True)
class Polynomial:
    """``Σ products``, each combination of factors once. A factor that is NULL is zero.

    >>> from fivm_dbt.catalog.types import BIGINT
    >>> x, y = (Polynomial.of(Scalar.column("r", name), BIGINT) for name in "xy")
    >>> ((x + y) * (x + -y)).sql
    'r.x * r.x - r.y * r.y'
    """

    products: tuple[Product, ...]

    @staticmethod
    def of(value: Scalar, type_: SparkType) -> Polynomial:
        """A value by itself."""
        return Polynomial((Product(1, ((value, type_),)),))

    @staticmethod
    def number(value: int) -> Polynomial:
        return Polynomial((Product(value, ()),) if value else ())

    @property
    def sql(self) -> str:
        """For people."""
        return " + ".join(p.sql for p in self.products).replace("+ - ", "- ") or "0"

    @property
    def is_plain(self) -> bool:
        """Whether it is a value by itself."""
        return (
            len(self.products) == 1
            and self.products[0].coefficient == 1
            and len(self.products[0].factors) == 1
        )

    @property
    def never_null(self) -> Polynomial:
        """The same with zeros in place of factors that are NULL."""
        return Polynomial(
            tuple(Product(p.coefficient, tuple(map(zero_for_null, p.factors))) for p in self.products)
        )

    def with_presence_by(self, place: Callable[[Scalar], Hashable]) -> Polynomial:
        """The same with one indicator in place of several of one place, which are multiplied."""
        known: dict[tuple[Typed, ...], Typed] = {}
        return _collected(_with_presence(product, place, known) for product in self.products)

    def __add__(self, other: Polynomial) -> Polynomial:
        return _collected((*self.products, *other.products))

    def __neg__(self) -> Polynomial:
        return Polynomial(tuple(Product(-p.coefficient, p.factors) for p in self.products))

    def __mul__(self, other: Polynomial) -> Polynomial:
        return _collected(_times(one, another) for one in self.products for another in other.products)


def _with_presence(
    product: Product, place: Callable[[Scalar], Hashable], known: dict[tuple[Typed, ...], Typed]
) -> Product:
    kept: list[Typed] = []
    present: dict[Hashable, list[Typed]] = {}
    for factor in product.factors:
        if not is_presence(factor[0]):
            kept.append(factor)
        else:
            present.setdefault(place(factor[0]), []).append(factor)
    for group in present.values():
        key = tuple(group)
        if key not in known:
            known[key] = (presence_of_all([value for value, _ in group]), INT)
        kept.append(known[key])
    return Product(product.coefficient, tuple(kept))


def zero_for_null(factor: Typed) -> Typed:
    """A value with zero in place of NULL; what cannot be NULL stays as it is."""
    value, type_ = factor
    if value.as_number is not None or is_presence(value):
        return factor
    zero = exp.Literal.number(0)
    missing: exp.Expr = zero if type_ in (INT, BIGINT) else as_type(zero, type_.text)
    return Scalar(exp.Coalesce(this=value.ast(), expressions=[missing])), type_


def _collected(products: Iterable[Product]) -> Polynomial:
    total: dict[tuple[Typed, ...], int] = {}
    for product in products:
        total[product.factors] = total.get(product.factors, 0) + product.coefficient
    return Polynomial(tuple(Product(n, factors) for factors, n in total.items() if n))


def _times(one: Product, other: Product) -> Product:
    """An indicator times itself is itself; the rest in a fixed order."""
    kept: list[Typed] = []
    for factor in sorted((*one.factors, *other.factors), key=lambda f: f[0].sql):
        if factor in kept and is_presence(factor[0]):
            continue
        kept.append(factor)
    return Product(one.coefficient * other.coefficient, tuple(kept))
