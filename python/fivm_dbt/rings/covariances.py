"""fivm_covariance(x1, ..., xm): count, sums and products of m variables, all that a least-squares fit needs.

Its values are triples (c, s, Q) of a number, m sums and m × m sums of products (F-IVM article, Definition 6)::

    a + b = (c + c′, s + s′, Q + Q′)
    a × b = (c·c′, c′·s + c·s′, c′·Q + c·Q′ + s·s′ᵀ + s′·sᵀ)

A value x of variable j is lifted to c = 1, s_j = x and Q_jj = x² (Definition 7), and a weight w to c = w. NULL is
lifted to zero, so that a row in which a variable is not known contributes nothing. Q is symmetric: of it the entries
on and above the diagonal are kept, row by row (Remark 4).

These are the monomials of degree 0, 1 and 2. A call may ask for those up to another degree (section 8.1 names them for
polynomial regression). A monomial of a joined row is one of the left row times one of the right row::

    (a × b)_α = Σ_{β ≤ α} (α choose β) · a_β · b_{α−β}
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, lru_cache, reduce
from itertools import combinations_with_replacement, product
from math import comb, prod
from operator import mul
from typing import ClassVar

from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import BIGINT, DOUBLE, INT
from fivm_dbt.functions.learning import COVARIANCE
from fivm_dbt.ir.scalar import Scalar, as_type
from fivm_dbt.rings.integers import INTEGERS, presence, presence_of_all
from fivm_dbt.rings.kinds import numbers_for
from fivm_dbt.rings.numbers import Numbers
from fivm_dbt.rings.polynomial import Polynomial
from fivm_dbt.rings.ring import Payload, Ring, ring_of
from fivm_dbt.rings.vectors import gathered

_ZERO, _ONE = Polynomial.number(0), Polynomial.number(1)


Monomial = tuple[int, ...]
"""The places of the variables that are multiplied, in order: ``x0²·x2`` is ``(0, 0, 2)``, and 1 is ``()``."""

MOST = 4
"""The highest degree: from there on the digits of a decimal are used up, and there are thousands of monomials."""


def of_degree(degree: int) -> str:
    """What a call is called in the plan that has the monomials up to a degree."""
    return COVARIANCE if degree == 2 else f"{COVARIANCE} of degree {degree}"


@ring_of(COVARIANCE)
class Covariances(Ring):
    """The covariance structure of degree m; arguments without a name are weights of the row, indicators among them."""

    is_of_spark = False
    degree: ClassVar[int] = 2

    @staticmethod
    def takes(type_: SparkType) -> bool:
        return type_.is_integral or type_.is_decimal

    @cached_property
    def columns(self) -> Mapping[str, Numbers]:
        types, of_weight = self._types, self._weight
        columns = {"count": numbers_for(of_weight) if of_weight else INTEGERS}
        for monomial in self._monomials[1:]:
            kind = "sum" if len(monomial) == 1 else "product"
            name = "_".join([kind, *(self._labels[i] for i in monomial)])
            columns[name] = numbers_for((*(types[i] for i in monomial), *of_weight))
        return columns

    def one(self) -> Payload:
        return (_ONE, *(_ZERO for _ in range(len(self.columns) - 1)))

    def multiply(self, left: Payload, right: Payload) -> Payload:
        a, b = (dict(zip(self._monomials, side, strict=True)) for side in (left, right))
        return tuple(
            _sum(*(_times(times, a[one], b[other]) for times, one, other in _splits(monomial)))
            for monomial in self._monomials
        )

    def lift(self, place: int, value: Scalar, type_: SparkType) -> Payload:
        own = Polynomial.of(value, type_)
        if place >= len(self.call.names):
            return (own, *(_ZERO for _ in range(len(self.columns) - 1)))
        # With its presence, which adds nothing, all entries have the same one.
        here = Polynomial.of(presence(value), INT)
        return tuple(
            reduce(mul, [own] * len(monomial), here) if set(monomial) <= {place} else _ZERO
            for monomial in self._monomials
        )

    def payload(self) -> Payload:
        """The product of the lifts at once: a weight, times the variables of the monomial, where all are known."""
        m = len(self.call.names)
        values = [Polynomial.of(*argument) for argument in self.call.arguments]
        present = [presence(value) for value, _ in self.call.arguments[:m]]
        known = [Polynomial.of(presence_of_all(present), INT)] if present else []
        count = reduce(mul, [*known, *values[m:]])
        found: dict[Monomial, Polynomial] = {(): count}
        for *others, last in self._monomials[1:]:
            below = found[tuple(others)]
            found[(*others, last)] = below * values[last] if others else values[last] * count
        return tuple(found.values())

    def finish(self, payload: Sequence[Scalar]) -> Scalar:
        types = [t for _, t in self.call.arguments]
        return Scalar(moments(self.call.names, types, payload, self.degree))

    @property
    def _types(self) -> list[SparkType]:
        return [type_ for _, type_ in self.call.arguments][: len(self.call.names)]

    @property
    def _weight(self) -> list[SparkType]:
        return [type_ for _, type_ in self.call.arguments][len(self.call.names) :]

    @cached_property
    def _labels(self) -> list[str]:
        """The names of the variables as parts of names of columns, each another one."""
        plain = ("".join(c if c.isalnum() else "_" for c in name.lower()) for name in self.call.names)
        return [f"{label}_{n}" if len(label) > 20 or label != name else label
                for n, (label, name) in enumerate(zip(plain, self.call.names, strict=True), start=1)]  # fmt: skip

    @cached_property
    def _monomials(self) -> list[Monomial]:
        return monomials(len(self.call.names), self.degree)


@ring_of(of_degree(1))
class Sums(Covariances):
    """The count and the sums alone."""

    degree = 1


@ring_of(of_degree(3))
class Cubes(Covariances):
    """With the products of three variables."""

    degree = 3


@ring_of(of_degree(4))
class Quartics(Covariances):
    """With the products of three and four variables."""

    degree = 4


def monomials(m: int, degree: int) -> list[Monomial]:
    """The monomials of m variables up to a degree, in their order.

    >>> monomials(2, 2)
    [(), (0,), (1,), (0, 0), (0, 1), (1, 1)]
    """
    return [each for d in range(degree + 1) for each in combinations_with_replacement(range(m), d)]


@lru_cache(maxsize=10_000)
def _splits(monomial: Monomial) -> list[tuple[int, Monomial, Monomial]]:
    """All ways to make a monomial of two, and how often each is there.

    >>> _splits((0, 0))
    [(1, (0, 0), ()), (2, (0,), (0,)), (1, (), (0, 0))]
    """
    powers = Counter(monomial)
    found = []
    for taken in product(*(range(power, -1, -1) for power in powers.values())):
        one = tuple(i for i, n in zip(powers, taken, strict=True) for _ in range(n))
        other = tuple(i for i, n in zip(powers, taken, strict=True) for _ in range(powers[i] - n))
        times = prod(comb(powers[i], n) for i, n in zip(powers, taken, strict=True))
        found.append((times, one, other))
    return found


def moments_type(variables: Sequence[SparkType], weight: SparkType | None, degree: int = 2) -> SparkType:
    """The type of the result. Values of a degree have the narrowest type that all of them have room in.

    >>> moments_type([SparkType.of("int"), SparkType.of("decimal(9,2)")], None).text
    'struct<count:bigint,variables:array<string>,sums:array<decimal(38,2)>,products:array<decimal(38,4)>>'
    """
    count, *types = _shown_types(variables, weight, degree)
    arrays = (f"{name}:array<{type_}>" for name, type_ in zip(_names_of(degree), types, strict=True))
    return SparkType.of(f"struct<count:{count},variables:array<string>,{','.join(arrays)}>")


def moments(
    names: Sequence[str], types: Sequence[SparkType], values: Sequence[Scalar], degree: int = 2
) -> exp.Struct:
    """The struct of count, variables, sums and so on from the values of all monomials.

    ``types`` are those of all arguments, weights behind the variables.
    """
    weight = types[len(names)] if len(types) > len(names) else None
    of_count, *shown = _shown_types(types[: len(names)], weight, degree)
    by_degree: list[list[Scalar]] = [[] for _ in range(degree + 1)]
    for monomial, value in zip(monomials(len(names), degree), values, strict=True):
        by_degree[len(monomial)].append(value)
    ((count,), *others) = by_degree
    fields = {
        "count": as_type(count.ast(), of_count.text),
        "variables": _list_of(names),
    }
    for name, own, type_ in zip(_names_of(degree), others, shown, strict=True):
        fields[name] = _array(own, type_)
    named = (exp.PropertyEQ(this=exp.to_identifier(key), expression=part) for key, part in fields.items())
    return exp.Struct(expressions=list(named))


def zero_moments(names: Sequence[str], types: Sequence[SparkType]) -> exp.Struct:
    """The struct of moments of no rows."""
    return moments(names, types, [Scalar.number(0)] * len(monomials(len(names), 2)))


def is_moments(type_: SparkType) -> bool:
    """Whether these are moments. No part of them is NULL.

    >>> is_moments(moments_type([SparkType.of("int")], None)), is_moments(SparkType.of("struct<count:bigint>"))
    (True, False)
    """
    return [name for name, _ in type_.struct_fields][:3] == ["count", "variables", "sums"]


def _names_of(degree: int) -> list[str]:
    """What the values of each degree are called, from sums on."""
    return ["sums", "products", *(f"degree_{d}" for d in range(3, degree + 1))][:degree]


def _list_of(names: Sequence[str]) -> exp.Expr:
    listed = exp.Array(expressions=[exp.Literal.string(name) for name in names])
    return listed if names else as_type(listed, "array<string>")


def _array(values: Sequence[Scalar], type_: SparkType) -> exp.Expr:
    return gathered(values, type_) if values else as_type(exp.Array(), f"array<{type_}>")


def cell_type(variables: Sequence[SparkType], weight: SparkType | None) -> SparkType:
    """The type of the value of a category: a count, or the sum of a continuous variable."""
    count, sums = _shown_types(variables, weight, 1)
    return sums if variables else count


def _shown_types(
    variables: Sequence[SparkType], weight: SparkType | None, degree: int
) -> Iterator[SparkType]:
    """Those of the count, of all sums, of all products, and so on."""
    of_weight = [] if weight is None else [weight]
    yield _widest([of_weight]) if of_weight else BIGINT
    for d in range(1, degree + 1):
        yield _widest([[*own, *of_weight] for own in combinations_with_replacement(variables, d)])


def _widest(products: Sequence[Sequence[SparkType]]) -> SparkType:
    """The type in which the products of such factors, and sums of them, are shown beside each other."""
    every = [t for factors in products for t in factors]
    if any(t.is_floating for t in every):
        return DOUBLE
    if not any(t.is_decimal for t in every):
        return BIGINT
    return SparkType.decimal(38, max(sum(t.scale for t in factors if t.is_decimal) for factors in products))


def _sum(*parts: Polynomial) -> Polynomial:
    some = [part for part in parts if part.products]
    if not some:
        return _ZERO
    total, *rest = some
    for part in rest:
        total = total + part
    return total


def _times(times: int, left: Polynomial, right: Polynomial) -> Polynomial:
    if not left.products or not right.products:
        return _ZERO
    return left * right if times == 1 else Polynomial.number(times) * left * right
