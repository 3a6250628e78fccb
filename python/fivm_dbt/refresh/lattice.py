"""A matrix of whole numbers is a product of two of whole numbers, with as many columns and rows between as its rank.

    ``M = C · V``        ``M`` is n × m of rank r, ``C`` n × r, ``V`` r × m

The sums of whole multiples of the rows of M are a lattice. ``V`` is a basis of it, so that each row of M has whole
coefficients ``C``, and each row of V is such a sum itself. r columns in which M has rank r (*pivot columns*) tell the
rows of M apart. So the lattice is looked at there alone:

1. r rows and r columns by elimination (:func:`pivots`);
2. a triangular basis of the lattice, its Hermite normal form (:func:`hermite`; Cohen, A Course in Computational
   Algebraic Number Theory, 2.4). Each row that comes makes it finer, so that all rows have to be seen;
3. a basis of short rows (:func:`reduced`, by Lenstra, Lenstra and Lovász; Cohen, 2.6). The triangular one has few
   large entries and many products that cancel each other; sums of these might leave the range of a type.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

PRIME = 2**31 - 1
"""Ranks are those modulo a large prime: never more than the rank, and less with a chance of one to two billions."""

Vector = tuple[int, ...]
Matrix = tuple[Vector, ...]
Entries = Mapping[int, Mapping[int, int]]
"""A matrix by names of rows and of columns, without its zeros."""


@dataclass(frozen=True)
class Weights:
    """A matrix of fractions over one ``denominator``."""

    numerators: Matrix
    denominator: int


@dataclass(frozen=True)
class Basis:
    """Of some rows of a matrix M the ``coefficients`` C, and by column of M the entries of V, which is the ``basis``.

    ``C[i, t] = Σ_s M[i, columns_s] · left[s, t]``        ``V[t, j] = Σ_s M[rows_s, j] · right[s, t]``
    """

    rows: Vector
    columns: Vector
    left: Weights
    right: Weights
    coefficients: tuple[Vector, ...]
    basis: Mapping[int, Vector]

    @property
    def rank(self) -> int:
        return len(self.rows)

    @property
    def largest(self) -> tuple[Vector, Vector]:
        """By term the largest coefficient and the largest entry of the basis, without their signs."""
        return _largest(self.coefficients, self.rank), _largest(self.basis.values(), self.rank)


def short_basis(sample: Entries, rows: Vector, columns: Vector, vectors: Sequence[Vector]) -> Basis | None:
    """A basis for rows that have these ``vectors`` in the pivot ``columns``; ``sample`` has the pivot rows in full.

    None where it is not whole, as the matrix has a greater rank than the sample.

    >>> found = short_basis({1: {1: 2, 2: 4, 3: 6}, 2: {1: 3, 2: 3, 3: 3}}, (1, 2), (1, 2), [(2, 4), (3, 3), (5, 7)])
    >>> assert found is not None
    >>> found.coefficients, found.basis
    (((2, 1), (1, 1), (3, 2)), {1: (-1, 4), 2: (1, 2), 3: (3, 0)})
    """
    triangular = hermite(vectors, len(rows))
    chosen = [coefficients(triangular, [sample[row].get(c, 0) for c in columns]) for row in rows]
    every = [coefficients(triangular, vector) for vector in vectors]
    names = sorted({column for row in rows for column in sample[row]})
    pivot_rows = [[sample[row].get(column, 0) for column in names] for row in rows]
    back = inverse([c for c in chosen if c is not None])
    long = times(back.numerators, pivot_rows)
    if any(value % back.denominator for row in long for value in row):
        return None
    long = tuple(tuple(value // back.denominator for value in row) for row in long)
    short = reduced(times(long, transposed(long)))
    again = inverse(short)
    assert again.denominator == 1
    return Basis(
        rows,
        columns,
        left=inverse(times(short, triangular)),
        right=Weights(transposed(times(short, back.numerators)), back.denominator),
        coefficients=times([c for c in every if c is not None], again.numerators),
        basis=dict(zip(names, transposed(times(short, long)), strict=True)),
    )


def _largest(vectors: Iterable[Vector], size: int) -> Vector:
    found = [0] * size
    for vector in vectors:
        found = [max(most, abs(value)) for most, value in zip(found, vector, strict=True)]
    return tuple(found)


def pivots(rows: Entries, most: int) -> tuple[Vector, Vector] | None:
    """Names of rows and of columns that have the rank of a matrix, of entries by row and column; None for ``most + 1``.

    >>> pivots({1: {1: 2, 2: 4}, 2: {1: 3, 2: 6}, 3: {2: 1}}, 2)
    ((1, 3), (1, 2))
    >>> pivots({1: {1: 1}, 2: {2: 1}, 3: {3: 1}}, 2) is None
    True
    """
    found: dict[int, tuple[int, dict[int, int]]] = {}
    for name, row in rows.items():
        left = {column: value % PRIME for column, value in row.items() if value % PRIME}
        for column, (_, own) in found.items():
            factor = left.get(column, 0)
            if factor:
                for c, value in own.items():
                    left[c] = (left.get(c, 0) - factor * value) % PRIME
                left = {c: value for c, value in left.items() if value}
        if not left:
            continue
        if len(found) == most:
            return None
        first = min(left)
        inverse = pow(left[first], -1, PRIME)
        found[first] = (name, {c: value * inverse % PRIME for c, value in left.items()})
    return tuple(name for name, _ in found.values()), tuple(found)


def hermite(vectors: Iterable[Sequence[int]], size: int) -> Matrix:
    """The upper triangular basis of what the whole multiples of some vectors add up to; they have full rank.

    >>> hermite([(4, 6), (6, 4)], 2)
    ((2, 8), (0, 10))
    """
    basis: dict[int, list[int]] = {}
    for vector in vectors:
        if _insert(basis, list(vector)):
            _tidy(basis)
    assert len(basis) == size
    return tuple(tuple(basis[n]) for n in range(size))


def _insert(basis: dict[int, list[int]], row: list[int]) -> bool:
    """Make the basis one of a lattice that has ``row`` too; whether that is another lattice."""
    is_new = False
    for n in range(len(row)):
        if not row[n]:
            continue
        own = basis.get(n)
        if own is None:
            basis[n] = row if row[n] > 0 else [-x for x in row]
            return True
        if row[n] % own[n]:
            is_new = True
            divisor, x, y = _euclid(own[n], row[n])
            a, b = own[n] // divisor, row[n] // divisor
            basis[n] = [x * p + y * q for p, q in zip(own, row, strict=True)]
            row = [a * q - b * p for p, q in zip(own, row, strict=True)]
        else:
            row = _less(row, row[n] // own[n], own)
    return is_new


def _tidy(basis: dict[int, list[int]]) -> None:
    """What is right of the diagonal is less than what stands below it on the diagonal."""
    for n in sorted(basis, reverse=True):
        for other in sorted(m for m in basis if m > n):
            basis[n] = _less(basis[n], basis[n][other] // basis[other][other], basis[other])


def _euclid(a: int, b: int) -> tuple[int, int, int]:
    """``divisor = x · a + y · b``, the greatest common one.

    >>> _euclid(4, -6)
    (2, -1, -1)
    """
    x, y, left_x, left_y = 1, 0, 0, 1
    while b:
        quotient, rest = divmod(a, b)
        a, b = b, rest
        x, left_x = left_x, x - quotient * left_x
        y, left_y = left_y, y - quotient * left_y
    return (a, x, y) if a > 0 else (-a, -x, -y)


def coefficients(triangular: Matrix, vector: Sequence[int]) -> Vector | None:
    """``c`` with ``c · triangular = vector``; None where it is not whole.

    >>> coefficients(((2, 8), (0, 10)), (6, 4)), coefficients(((2, 8), (0, 10)), (1, 4))
    ((3, -2), None)
    """
    left = list(vector)
    found = []
    for n, row in enumerate(triangular):
        factor, rest = divmod(left[n], row[n])
        if rest:
            return None
        found.append(factor)
        if factor:
            left = _less(left, factor, row)
    return tuple(found)


def reduced(gram: Matrix) -> Matrix:
    """A whole matrix of determinant ±1 that makes a basis short, from the scalar products of its vectors.

    >>> basis = ((1, 100), (0, 101))
    >>> times(reduced(times(basis, transposed(basis))), basis)
    ((-1, 1), (51, 50))
    """
    products = [list(row) for row in gram]
    made = [list(row) for row in unit(len(gram))]
    k = 1
    while k < len(made):
        shares, norms = _orthogonal(products, k + 1)
        for j in reversed(range(k)):
            times_j = round(shares[k][j])
            if times_j:
                made[k] = _less(made[k], times_j, made[j])
                products[k] = _less(products[k], times_j, products[j])
                for row in products:
                    row[k] -= times_j * row[j]
                shares[k] = [a - times_j * b for a, b in zip(shares[k], shares[j], strict=True)]
        if norms[k] >= (Fraction(3, 4) - shares[k][k - 1] ** 2) * norms[k - 1]:
            k += 1
            continue
        made[k - 1], made[k] = made[k], made[k - 1]
        products[k - 1], products[k] = products[k], products[k - 1]
        for row in products:
            row[k - 1], row[k] = row[k], row[k - 1]
        k = max(k - 1, 1)
    return tuple(tuple(row) for row in made)


def _orthogonal(products: Sequence[Sequence[int]], size: int) -> tuple[list[list[Fraction]], list[Fraction]]:
    """How much of each vector lies along the earlier ones, made orthogonal (Gram and Schmidt); squares of lengths."""
    shares = [[Fraction(int(i == j)) for j in range(size)] for i in range(size)]
    along = [[Fraction(0)] * size for _ in range(size)]
    for i in range(size):
        for j in range(i + 1):
            along[i][j] = products[i][j] - sum((shares[j][k] * along[i][k] for k in range(j)), Fraction(0))
            shares[i][j] = along[i][j] / along[j][j]
    return shares, [along[i][i] for i in range(size)]


def inverse(matrix: Sequence[Sequence[int]]) -> Weights:
    """Of a square matrix that has one.

    >>> inverse([[2, 0], [1, 1]])
    Weights(numerators=((1, 0), (-1, 2)), denominator=2)
    """
    size = len(matrix)
    rows = [[*map(Fraction, row), *map(Fraction, unit(size)[n])] for n, row in enumerate(matrix)]
    for n in range(size):
        first = next(m for m in range(n, size) if rows[m][n])
        rows[n], rows[first] = rows[first], rows[n]
        rows[n] = [x / rows[n][n] for x in rows[n]]
        for m in range(size):
            factor = rows[m][n]
            if m != n and factor:
                rows[m] = [x - factor * y for x, y in zip(rows[m], rows[n], strict=True)]
    found = [row[size:] for row in rows]
    denominator = lcm(*(x.denominator for row in found for x in row))
    return Weights(tuple(tuple(int(x * denominator) for x in row) for row in found), denominator)


def unit(size: int) -> Matrix:
    """Ones on the diagonal.

    >>> unit(2)
    ((1, 0), (0, 1))
    """
    return tuple(tuple(int(i == j) for j in range(size)) for i in range(size))


def times(left: Sequence[Sequence[int]], right: Sequence[Sequence[int]]) -> Matrix:
    """The product of two matrices.

    >>> times([(1, 2)], [(3,), (4,)])
    ((11,),)
    """
    columns = transposed(right)
    return tuple(tuple(sum(map(int.__mul__, row, column)) for column in columns) for row in left)


def transposed(matrix: Sequence[Sequence[int]]) -> Matrix:
    """Columns as rows.

    >>> transposed([(1, 2), (3, 4)])
    ((1, 3), (2, 4))
    """
    return tuple(zip(*matrix, strict=True))


def _less(row: Sequence[int], factor: int, other: Sequence[int]) -> list[int]:
    return [x - factor * y for x, y in zip(row, other, strict=True)]
