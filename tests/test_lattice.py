"""Whole matrices are products of whole ones as narrow as their rank, which have short rows."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from fivm_dbt.refresh.lattice import (
    Basis,
    Matrix,
    Vector,
    coefficients,
    hermite,
    inverse,
    pivots,
    reduced,
    short_basis,
    times,
    transposed,
    unit,
)
from fixtures.runs import by_run

SEEDS = by_run(range(12), long=range(12, 60))


def _matrix(rng: random.Random, rows: int, columns: int, most: int) -> Matrix:
    return tuple(tuple(rng.randint(-most, most) for _ in range(columns)) for _ in range(rows))


def _entries(matrix: Matrix) -> dict[int, dict[int, int]]:
    return {i: {j: value for j, value in enumerate(row) if value} for i, row in enumerate(matrix)}


def _rank(matrix: Matrix) -> int:
    """By fractions, which needs no prime."""
    rows = [list(map(Fraction, row)) for row in matrix]
    rank = 0
    for column in range(len(matrix[0])):
        first = next((n for n in range(rank, len(rows)) if rows[n][column]), None)
        if first is None:
            continue
        rows[rank], rows[first] = rows[first], rows[rank]
        for n in range(rank + 1, len(rows)):
            factor = rows[n][column] / rows[rank][column]
            rows[n] = [x - factor * y for x, y in zip(rows[n], rows[rank], strict=True)]
        rank += 1
    return rank


def _basis(matrix: Matrix) -> Basis:
    sample = _entries(matrix)
    found = pivots(sample, 20)
    assert found is not None
    rows, columns = found
    basis = short_basis(sample, rows, columns, [tuple(row[c] for c in columns) for row in matrix])
    assert basis is not None
    return basis


def _rows_of(basis: Basis, columns: int) -> Matrix:
    zero = (0,) * basis.rank
    return transposed([basis.basis.get(c, zero) for c in range(columns)])


class TestBasis:
    @pytest.mark.parametrize("seed", SEEDS)
    def test_the_product_of_the_factors_is_the_matrix(self, seed: int) -> None:
        """Of any rank, with rows and columns of zeros, with small and with large numbers."""
        rng = random.Random(seed)
        n, m, rank = rng.randint(1, 14), rng.randint(1, 14), rng.randint(1, 8)
        most = rng.choice([1, 1, 5, 1000, 10**9])
        matrix = [list(row) for row in times(_matrix(rng, n, rank, most), _matrix(rng, rank, m, most))]
        for row in rng.sample(range(n), n // 4):
            matrix[row] = [0] * m
        whole = tuple(tuple(row) for row in matrix)
        basis = _basis(whole)
        assert basis.rank == _rank(whole)
        if basis.rank:
            assert times(basis.coefficients, _rows_of(basis, m)) == whole
        self._is_told_by_weights(basis, whole)

    def _is_told_by_weights(self, basis: Basis, matrix: Matrix) -> None:
        """The factors are what the pivot columns and the pivot rows say, times small matrices."""
        left, right = basis.left, basis.right
        for row, counts in zip(matrix, basis.coefficients, strict=True):
            (found,) = times([[row[c] for c in basis.columns]], left.numerators) if counts else ((),)
            assert found == tuple(count * left.denominator for count in counts)
        for column, entries in basis.basis.items():
            (found,) = times([[matrix[r][column] for r in basis.rows]], right.numerators)
            assert found == tuple(entry * right.denominator for entry in entries)

    def test_rows_with_a_common_divisor_are_made_of_the_rows_that_they_add_up_to(self) -> None:
        """2 and 3 times a row have whole coefficients of the row alone, which is no row of the matrix."""
        assert _basis(((2, 4), (3, 6))).basis in ({0: (1,), 1: (2,)}, {0: (-1,), 1: (-2,)})

    @pytest.mark.parametrize("rank", range(2, 9))
    @pytest.mark.parametrize("most", [5, 10**6])
    def test_products_are_not_much_larger_than_their_sum(self, rank: int, most: int) -> None:
        """The triangular basis of eight products of millions has products of 10⁴⁸ times their sum."""
        rng = random.Random(rank)
        matrix = times(_matrix(rng, 30, rank, most), _matrix(rng, rank, 40, most))
        counts, entries = _basis(matrix).largest
        together = sum(c * e for c, e in zip(counts, entries, strict=True))
        assert together <= 4 * max(abs(value) for row in matrix for value in row)

    def test_a_sample_of_too_low_a_rank_has_no_whole_basis(self) -> None:
        sample = {1: {0: 6, 1: 6, 2: 1}}
        assert short_basis(sample, (1,), (0,), [(6,), (2,)]) is None, "a third of the row is not whole"

    def test_nothing(self) -> None:
        basis = short_basis({}, (), (), [(), ()])
        assert basis is not None
        assert (basis.rank, basis.coefficients, dict(basis.basis)) == (0, ((), ()), {})


class TestPivots:
    @pytest.mark.parametrize("seed", SEEDS)
    def test_their_minor_is_not_zero(self, seed: int) -> None:
        rng = random.Random(seed)
        matrix = times(_matrix(rng, 9, 4, 3), _matrix(rng, 4, 7, 3))
        found = pivots(_entries(matrix), 9)
        assert found is not None
        rows, columns = found
        assert len(rows) == len(columns) == _rank(matrix)
        minor = tuple(tuple(matrix[r][c] for c in columns) for r in rows)
        assert times(minor, inverse(minor).numerators) == tuple(
            tuple(inverse(minor).denominator * x for x in row) for row in unit(len(rows))
        )
        assert pivots(_entries(matrix), len(rows)) == found
        assert pivots(_entries(matrix), len(rows) - 1) is None


class TestHermite:
    @pytest.mark.parametrize("seed", SEEDS)
    def test_it_is_the_same_whatever_the_vectors_of_the_lattice(self, seed: int) -> None:
        rng = random.Random(seed)
        size = rng.randint(1, 6)
        vectors = [*_matrix(rng, 12, size, 20)]
        found = hermite(vectors, size)
        rng.shuffle(vectors)
        assert hermite([*vectors, (0,) * size, tuple(map(sum, zip(*vectors, strict=True)))], size) == found
        for n, row in enumerate(found):
            assert row[:n] == (0,) * n
            assert row[n] > 0
            assert all(0 <= row[m] < found[m][m] for m in range(n + 1, size))
        for vector in vectors:
            counts = coefficients(found, vector)
            assert counts is not None
            assert times([counts], found) == (vector,)


class TestReduced:
    @pytest.mark.parametrize("seed", SEEDS)
    def test_it_is_another_basis_of_the_same_lattice(self, seed: int) -> None:
        rng = random.Random(seed)
        size = rng.randint(1, 6)
        basis = hermite(_matrix(rng, size + 2, size, 10**6), size)
        made = reduced(times(basis, transposed(basis)))
        assert inverse(made).denominator == 1
        short = times(made, basis)
        assert hermite(short, size) == basis
        assert self._square(short[0]) <= 2 ** (size - 1) * min(map(self._square, basis)), "Cohen, 2.6.2"

    def _square(self, vector: Vector) -> int:
        return sum(value * value for value in vector)
