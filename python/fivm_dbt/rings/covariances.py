"""fivm_covariance(x1, ..., xm): count, sums and products of m variables, all that a least-squares fit needs.

Its values are triples (c, s, Q) of a number, m sums and m × m sums of products (F-IVM article, Definition 6)::

    a + b = (c + c′, s + s′, Q + Q′)
    a × b = (c·c′, c′·s + c·s′, c′·Q + c·Q′ + s·s′ᵀ + s′·sᵀ)

A value x of variable j is lifted to c = 1, s_j = x and Q_jj = x² (Definition 7), and a weight w to c = w. NULL is
lifted to zero, so that a row in which a variable is not known contributes nothing. Q is symmetric: of it the entries
on and above the diagonal are kept, row by row (Remark 4).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, reduce
from itertools import combinations_with_replacement
from operator import mul

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


@ring_of(COVARIANCE)
class Covariances(Ring):
    """The covariance structure of degree m; arguments without a name are weights of the row, indicators among them."""

    is_of_spark = False

    @staticmethod
    def takes(type_: SparkType) -> bool:
        return type_.is_integral or type_.is_decimal

    @cached_property
    def columns(self) -> Mapping[str, Numbers]:
        types, of_weight = self._types, self._weight
        columns = {"count": numbers_for(of_weight) if of_weight else INTEGERS}
        for label, type_ in zip(self._labels, types, strict=True):
            columns[f"sum_{label}"] = numbers_for((type_, *of_weight))
        for i, j in self._pairs:
            name = f"product_{self._labels[i]}_{self._labels[j]}"
            columns[name] = numbers_for((types[i], types[j], *of_weight))
        return columns

    def one(self) -> Payload:
        return (_ONE, *(_ZERO for _ in range(len(self.columns) - 1)))

    def multiply(self, left: Payload, right: Payload) -> Payload:
        (c, *a), (d, *b) = left, right
        m = len(self.call.names)
        s, t = a[:m], b[:m]
        linear = (_sum(_times(d, x), _times(c, y)) for x, y in zip(s, t, strict=True))
        quadratic = (
            _sum(_times(d, q), _times(c, r), *_crossed(s, t, i, j))
            for (i, j), q, r in zip(self._pairs, a[m:], b[m:], strict=True)
        )
        return (c * d, *linear, *quadratic)

    def lift(self, place: int, value: Scalar, type_: SparkType) -> Payload:
        own = Polynomial.of(value, type_)
        m = len(self.call.names)
        if place >= m:
            return (own, *(_ZERO for _ in range(len(self.columns) - 1)))
        # With its presence, which adds nothing, all entries have the same one.
        here = Polynomial.of(presence(value), INT)
        sums = (own * here if i == place else _ZERO for i in range(m))
        products = (own * own * here if i == j == place else _ZERO for i, j in self._pairs)
        return (here, *sums, *products)

    def payload(self) -> Payload:
        """The product of the lifts at once: ``c = w``, ``s_i = w·x_i`` and ``Q_ij = w·x_i·x_j`` where all are known."""
        m = len(self.call.names)
        values = [Polynomial.of(*argument) for argument in self.call.arguments]
        present = [presence(value) for value, _ in self.call.arguments[:m]]
        known = [Polynomial.of(presence_of_all(present), INT)] if present else []
        count = reduce(mul, [*known, *values[m:]])
        sums = [value * count for value in values[:m]]
        return (count, *sums, *(sums[i] * values[j] for i, j in self._pairs))

    def finish(self, payload: Sequence[Scalar]) -> Scalar:
        count, *others = payload
        m = len(self.call.names)
        types = [t for _, t in self.call.arguments]
        return Scalar(moments(self.call.names, types, count, others[:m], others[m:]))

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
    def _pairs(self) -> list[tuple[int, int]]:
        return pairs(len(self.call.names))


def pairs(m: int) -> list[tuple[int, int]]:
    """The places of the products of m variables, in their order.

    >>> pairs(3)
    [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)]
    """
    return list(combinations_with_replacement(range(m), 2))


def moments_type(variables: Sequence[SparkType], weight: SparkType | None) -> SparkType:
    """The type of the result. Sums have the narrowest type that all of them have room in, and so have products.

    >>> moments_type([SparkType.of("int"), SparkType.of("decimal(9,2)")], None).text
    'struct<count:bigint,variables:array<string>,sums:array<decimal(38,2)>,products:array<decimal(38,4)>>'
    """
    count, sums, products = _shown_types(variables, weight)
    return SparkType.of(
        f"struct<count:{count},variables:array<string>,sums:array<{sums}>,products:array<{products}>>"
    )


def moments(
    names: Sequence[str],
    types: Sequence[SparkType],
    count: Scalar,
    sums: Sequence[Scalar],
    products: Sequence[Scalar],
) -> exp.Expr:
    """The struct of count, variables, sums and products; ``types`` are those of all arguments."""
    weight = types[len(names)] if len(types) > len(names) else None
    shown = _shown_types(types[: len(names)], weight)
    fields = {
        "count": as_type(count.ast(), shown[0].text),
        "variables": exp.Array(expressions=[exp.Literal.string(name) for name in names]),
        "sums": _array(sums, shown[1]),
        "products": _array(products, shown[2]),
    }
    named = (exp.PropertyEQ(this=exp.to_identifier(key), expression=part) for key, part in fields.items())
    return exp.Struct(expressions=list(named))


def _array(values: Sequence[Scalar], type_: SparkType) -> exp.Expr:
    return gathered(values, type_) if values else as_type(exp.Array(), f"array<{type_}>")


def cell_type(variables: Sequence[SparkType], weight: SparkType | None) -> SparkType:
    """The type of the value of a category: a count, or the sum of a continuous variable."""
    count, sums, _ = _shown_types(variables, weight)
    return sums if variables else count


def _shown_types(
    variables: Sequence[SparkType], weight: SparkType | None
) -> tuple[SparkType, SparkType, SparkType]:
    """Those of the count, of all sums and of all products."""
    of_weight = [] if weight is None else [weight]
    once = [[t, *of_weight] for t in variables]
    twice = [[variables[i], variables[j], *of_weight] for i, j in pairs(len(variables))]
    count = _widest([of_weight]) if of_weight else BIGINT
    return count, _widest(once), _widest(twice)


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


def _times(left: Polynomial, right: Polynomial) -> Polynomial:
    return left * right if left.products and right.products else _ZERO


def _crossed(
    s: Sequence[Polynomial], t: Sequence[Polynomial], i: int, j: int
) -> tuple[Polynomial, Polynomial]:
    """Entry (i, j) of ``s·tᵀ + t·sᵀ``."""
    return _times(s[i], t[j]), _times(s[j], t[i])
