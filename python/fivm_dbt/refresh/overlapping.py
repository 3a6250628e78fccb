"""A delta may be a sum of products that overlap: its rows are then sums of few rows, and no multiples of each other.

    ``D = ⊎_t u_t ⊗ v_t``        the rank-r update of a matrix (F-IVM article, section 6)

As many terms are found as the matrix has rank, component by component of the payload, with whole numbers for u and v
(:mod:`fivm_dbt.refresh.lattice`):

1. Some rows of the matrix are read, and tell as many columns as they have rank.
2. Of all rows the entries in these columns are read, and a check of the others. Rows that the sample's do not add up
   to join it, and the columns are chosen again.
3. The factors are written as sums of what is in these columns, and in as many rows.

A refresh that would be right without factors must not fail with them. So nothing is found where a number might leave
its type on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import BIGINT
from fivm_dbt.refresh.engine import Row
from fivm_dbt.refresh.lattice import Basis, Entries, Vector, inverse, pivots, short_basis
from fivm_dbt.spark.factors import Matrix, Query
from fivm_dbt.spark.rank_factors import (
    DIGITS,
    PRIMES,
    Combination,
    checked_query,
    combined_query,
    more_rows_query,
    multiplier,
    numbered_query,
    picked_query,
    sample_query,
    vectors_query,
)

MAX_RANK = 8
"""Sums of more products are not found."""

SAMPLE = 2 * MAX_RANK
"""So many rows are read at first, and again of those that the first ones do not add up to."""

TURNS = 3
"""How often there is a sample."""

MAX_VALUES = 400_000
"""A matrix is left as it is where so many of its entries would have to come here."""

GROWTH = 16
"""How many times the largest entry all the products of a cell may have together, without their signs.

What meets factors adds up more than what meets their product does, and only their sum has the product's size.
"""

_BELOW = 10**DIGITS
_COUNTS_BELOW = 10**9
"""A number by which a decimal with many digits after the point is multiplied has to be smaller."""


@dataclass(frozen=True)
class Names:
    """What is staged under which name, and the column of the terms."""

    left: str
    right: str
    term: str


@dataclass(frozen=True)
class Overlapping:
    """A sum of so many products, of ``left`` and ``right`` rows, which ``stage`` writes."""

    terms: int
    left: int
    right: int
    stage: Callable[[], None]


def overlapping(
    matrix: Matrix,
    names: Names,
    query: Callable[[Query], Sequence[Row]],
    stage: Callable[[str, Query], str],
) -> Overlapping | None:
    """A matrix as a sum of products that may overlap; None where there are too many, or where numbers are too large."""
    search = _Search(matrix, names, query, stage)
    return search.found() if all(_is_read(type_) for _, type_ in matrix.payload) else None


@dataclass(frozen=True)
class _Component:
    """What is known of a payload column: a sample, and of all rows the entries in the pivot columns, and checks."""

    type: SparkType
    sample: Entries
    rows: Vector
    columns: Vector
    vectors: tuple[Vector, ...]
    checks: Vector

    @property
    def strangers(self) -> list[int]:
        """Checks of rows that are no sums of the pivot rows, the first ones of them."""
        prime = PRIMES[0]
        known = [sum(v * multiplier(c) for c, v in self.sample[row].items()) % prime for row in self.rows]
        back = inverse([[self.sample[row].get(c, 0) for c in self.columns] for row in self.rows])
        share = pow(back.denominator, -1, prime)
        weights = [
            sum(n * k for n, k in zip(row, known, strict=True)) * share % prime for row in back.numerators
        ]
        found: dict[int, None] = {}
        for vector, check in zip(self.vectors, self.checks, strict=True):
            if (sum(map(int.__mul__, vector, weights)) - check) % prime:
                found[check] = None
        return sorted(found)[:SAMPLE]

    @property
    def basis(self) -> Basis | None:
        """None where it is not whole, or not good for its type."""
        basis = short_basis(self.sample, self.rows, self.columns, self.vectors)
        return basis if basis is not None and self._fits(basis) else None

    def _fits(self, basis: Basis) -> bool:
        """Whether factors fit their types, products the type of the payload, and none is far too large for it."""
        counts, entries = basis.largest
        together = sum(map(int.__mul__, counts, entries))
        seen = [*(row.values() for row in self.sample.values()), *self.vectors]
        largest = max((abs(value) for row in seen for value in row), default=0)
        most = _COUNTS_BELOW if self.type.is_decimal else _BELOW
        return (
            max(counts, default=0) < most
            and max(entries, default=0) < _BELOW
            and together <= GROWTH * largest
            and (self.type.is_decimal or together < 2**62)
            and all(basis.left.denominator % p and basis.right.denominator % p for p in PRIMES)
        )


@dataclass(frozen=True)
class _Search:
    matrix: Matrix
    names: Names
    query: Callable[[Query], Sequence[Row]]
    stage: Callable[[str, Query], str]

    def found(self) -> Overlapping | None:
        matrix, left = self.matrix, self.names.left
        columns = self.stage(f"{left}_columns", numbered_query(matrix.source, matrix.right))
        sample = self.stage(f"{left}_sample_1", numbered_query(matrix.source, matrix.left, SAMPLE))
        for turn in range(1, TURNS + 1):
            samples = self._samples(sample, columns)
            chosen = [pivots(of, MAX_RANK) for of in samples or ()]
            pairs = [pair for pair in chosen if pair is not None]
            if samples is None or len(pairs) < len(chosen) or not any(picked for picked, _ in pairs):
                return None
            picks = [picked for _, picked in pairs]
            picked = self.stage(
                f"{left}_picked_{turn}",
                checked_query(matrix, matrix.left, matrix.right, columns, picks),
            )
            components, sizes = self._components(picked, samples, pairs)
            if not components:
                return None
            strangers = [component.strangers for component in components]
            if not any(strangers):
                return self._of(components, sizes, picked, sample)
            more = more_rows_query(sample, picked, matrix.left, strangers, most=SAMPLE, after=turn * SAMPLE)
            sample = self.stage(f"{left}_sample_{turn + 1}", more)
        return None

    def _samples(self, sample: str, columns: str) -> list[dict[int, dict[int, int]]] | None:
        """By component the entries of the sample by row and column; None if there are too many, or too large ones."""
        entries = self.query(sample_query(self.matrix, sample, columns, MAX_VALUES))
        if len(entries) == MAX_VALUES:
            return None
        samples: list[dict[int, dict[int, int]]] = [{} for _ in self.matrix.payload]
        # Whichever order they come in: the pivots are the first ones.
        for row, column, *values in sorted(entries, key=lambda e: (_number(e[0]), _number(e[1]))):
            for of, value, (_, type_) in zip(samples, values, self.matrix.payload, strict=True):
                whole = _whole(value, type_)
                if whole is None:
                    return None
                if whole:
                    of.setdefault(_number(row), {})[_number(column)] = whole
        return samples

    def _components(
        self, picked: str, samples: Sequence[Entries], pairs: Sequence[tuple[Vector, Vector]]
    ) -> tuple[list[_Component], list[int]]:
        """The components, and how many rows have the same vectors; nothing where there is too much to read."""
        width = sum(len(columns) + 1 for _, columns in pairs)
        most = MAX_VALUES // width
        read = self.query(vectors_query(picked, [columns for _, columns in pairs], most))
        if len(read) == most:
            return [], []
        found: list[_Component] = []
        first = 0
        for sample, (rows, columns), (_, type_) in zip(samples, pairs, self.matrix.payload, strict=True):
            last = first + len(columns)
            vectors = [tuple(_whole(value, type_) for value in row[first:last]) for row in read]
            checks = [_whole(row[last], BIGINT) for row in read]
            whole = [tuple(v for v in vector if v is not None) for vector in vectors]
            if whole != vectors or None in checks:
                return [], []
            own = tuple(check for check in checks if check is not None)
            found.append(_Component(type_, sample, rows, columns, tuple(whole), own))
            first = last + 1
        return found, [_number(row[-1]) for row in read]

    def _of(
        self, components: Sequence[_Component], sizes: Sequence[int], picked: str, sample: str
    ) -> Overlapping | None:
        found = [component.basis for component in components]
        bases = [basis for basis in found if basis is not None]
        if len(bases) < len(found):
            return None
        left = (size * _terms_of(b.coefficients[n] for b in bases) for n, size in enumerate(sizes))
        columns = {column for basis in bases for column in basis.basis}
        right = (_terms_of(basis.basis.get(column, ()) for basis in bases) for column in columns)
        return Overlapping(
            max(basis.rank for basis in bases),
            sum(left),
            sum(right),
            lambda: self._stage_factors(bases, picked, sample),
        )

    def _stage_factors(self, bases: Sequence[Basis], picked_left: str, sample: str) -> None:
        matrix, names = self.matrix, self.names
        terms = max(basis.rank for basis in bases)
        of = list(zip(matrix.payload, bases, strict=True))
        left = [Combination(name, type_, BIGINT, basis.left) for (name, type_), basis in of]
        self.stage(names.left, combined_query(picked_left, matrix.left, names.term, terms, left))
        picked = self.stage(
            f"{names.right}_picked",
            picked_query(matrix, matrix.right, matrix.left, sample, [basis.rows for basis in bases]),
        )
        right = [Combination(name, type_, type_, basis.right) for (name, type_), basis in of]
        self.stage(names.right, combined_query(picked, matrix.right, names.term, terms, right))


def _is_read(type_: SparkType) -> bool:
    # A decimal of so many digits has one more where it is multiplied by its last place.
    return type_ == BIGINT or (type_.is_decimal and type_.scale < DIGITS)


def _terms_of(vectors: Iterable[Sequence[int]]) -> int:
    """In how many terms one of the components is not zero."""
    return len({term for vector in vectors for term, value in enumerate(vector) if value})


def _whole(value: object, type_: SparkType) -> int | None:
    """A payload in units of its last digit; None for what has overflowed, and for decimals of too many digits."""
    if value is None:
        return None
    if not type_.is_decimal:
        return _number(value)
    exact = Decimal(str(value))
    return int(exact.scaleb(type_.scale)) if abs(exact) < Decimal(_BELOW).scaleb(-type_.scale) else None


def _number(value: object) -> int:
    return int(str(value))
