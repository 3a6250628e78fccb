"""The degree-2 ring of F-IVM (section 5.2) has count, sums and products of m variables.

Every variance, covariance and regression follows from them.

``(c, s, Q) + (c′, s′, Q′)`` adds up everything, and
``(c, s, Q) × (c′, s′, Q′) = (c·c′, c′·s + c·s′, c′·Q + c·Q′ + s s′ᵀ + s′ sᵀ)`` is the payload of a product of
relations; lifting value x of variable i gives ``(1, x·eᵢ, x²·eᵢeᵢᵀ)``.

A state keeps the entries that a query needs as columns of their own, shared by all its calls: they are sums
(``sql/moments.py`` spells the calls out), so that this ring is written in SQL by those of its entries.
"""

from __future__ import annotations

from dataclasses import dataclass

Vector = tuple[float, ...]
Matrix = tuple[Vector, ...]


@dataclass(frozen=True)
class Moments:
    """A payload: how many rows, their sums, and the sums of their products."""

    count: float
    sums: Vector
    products: Matrix


class MomentRing:
    """The ring of :class:`Moments` over ``size`` variables."""

    name = "moments"
    has_inverse = True
    commutes = True

    def __init__(self, size: int) -> None:
        self.size = size

    def zero(self) -> Moments:
        return self._constant(0)

    def one(self) -> Moments:
        return self._constant(1)

    def lift(self, variable: int, value: float) -> Moments:
        """One row in which ``variable`` is ``value``."""
        sums = tuple(value if i == variable else 0 for i in range(self.size))
        return Moments(1, sums, _outer(sums, sums))

    def add(self, left: Moments, right: Moments) -> Moments:
        return Moments(
            left.count + right.count,
            _plus(left.sums, right.sums),
            tuple(_plus(a, b) for a, b in zip(left.products, right.products, strict=True)),
        )

    def negate(self, value: Moments) -> Moments:
        return self._scaled(value, -1)

    def multiply(self, left: Moments, right: Moments) -> Moments:
        sums = _plus(_times(right.count, left.sums), _times(left.count, right.sums))
        products = self.add(self._scaled(left, right.count), self._scaled(right, left.count)).products
        for cross in (_outer(left.sums, right.sums), _outer(right.sums, left.sums)):
            products = tuple(_plus(a, b) for a, b in zip(products, cross, strict=True))
        return Moments(left.count * right.count, sums, products)

    def is_zero(self, value: Moments) -> bool:
        return value == self.zero()

    def _constant(self, count: float) -> Moments:
        nothing = (0,) * self.size
        return Moments(count, nothing, (nothing,) * self.size)

    def _scaled(self, value: Moments, factor: float) -> Moments:
        products = tuple(_times(factor, row) for row in value.products)
        return Moments(factor * value.count, _times(factor, value.sums), products)


def _plus(left: Vector, right: Vector) -> Vector:
    return tuple(a + b for a, b in zip(left, right, strict=True))


def _times(factor: float, values: Vector) -> Vector:
    return tuple(factor * v for v in values)


def _outer(left: Vector, right: Vector) -> Matrix:
    return tuple(tuple(a * b for b in right) for a in left)
