"""A staged delta may be a sum of few products, and its factors are staged (F-IVM article, section 6).

It is read as a matrix whose rows have one block of keys and whose columns the others. Rows that are multiples of each
other are one term ``u ⊗ v``: v is such a row divided by the divisor of all its entries, u how many times v each row is.
A term whose v is nearly that of the largest one becomes an over-approximation: the largest one's v for its rows too,
and a correction that takes away what is too much. With more than two blocks v is a matrix itself and is split again.
Where all that saves too little, products that overlap are looked for (:mod:`fivm_dbt.refresh.overlapping`).

    ``D = ⊎_t u_t ⊗ v_t``        ``u ⊗ v' = u ⊗ v ⊎ u ⊗ (v' − v)``

Nothing is taken on trust: the product of the factors is compared with what was staged before anyone reads them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import gcd

from fivm_dbt.catalog import SparkType
from fivm_dbt.delta.products import FactorisedDelta
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.plan.model.view import View
from fivm_dbt.refresh.engine import Row
from fivm_dbt.refresh.overlapping import MAX_RANK, Names, overlapping
from fivm_dbt.refresh.recorder import Recorder
from fivm_dbt.spark.factors import (
    Matrix,
    MatrixTerm,
    Query,
    corrected_left,
    corrected_right,
    differences_query,
    groups_query,
    left_query,
    per_term,
    profile_query,
    rest_query,
    right_query,
    rows_of,
    sizes_query,
    staged_rows,
)
from fivm_dbt.steps.binding import staged_input

MAX_TERMS = 64
"""A sum of more products is not looked for: each is a row of literals in a statement."""

MAX_KEYS = 100_000
"""A matrix with more rows is not split: a number of each row may have to come here for the greatest common divisor."""

WORTH = 2
"""Factors are used where they have so many times fewer rows than the delta."""


@dataclass(frozen=True)
class Found:
    """A delta of so many ``rows`` as the sum of ``terms`` products, of ``values`` rows in all factors together."""

    view: str
    rows: int
    terms: int
    values: int

    @property
    def text(self) -> str:
        """For people.

        >>> Found("v", 10_000, 1, 200).text
        'one product: 200 values for 10,000 rows'
        """
        what = "one product" if self.terms == 1 else f"a sum of {self.terms} products"
        return f"{what}: {self.values:,} values for {self.rows:,} rows"


def factorised(plan: Plan, view: View, engine: Recorder) -> Found | None:
    """Stage the factors of what is staged for ``view``; None where it is no sum of few products."""
    assert view.split is not None
    search = _Search(plan, view, view.split, engine)
    found = search.found()
    if found is None:
        search.forget()
    return found


class _Search:
    def __init__(self, plan: Plan, view: View, split: FactorisedDelta, engine: Recorder) -> None:
        self.plan = plan
        self.view = view
        self.split = split
        self.engine = engine
        self.staged: list[str] = []
        self.terms = 1

    def found(self) -> Found | None:
        blocks = [[name for name, _ in factor.keys] for factor in self.split.factors]
        source = staged_rows(self.plan, self.view)
        ((rows, *keys),) = _numbers(self.engine.query(sizes_query(source, blocks)))
        if sum(keys) * WORTH > rows or max(keys[:-1]) > MAX_KEYS:
            # Each factor has at least a row for each of its keys.
            return None
        payload = self.split.factors[-1].payload
        rest = source
        values = 0
        for number, block in enumerate(blocks[:-1]):
            before = () if number == 0 else (self._term(number - 1),)
            right = tuple(name for later in blocks[number + 1 :] for name in later)
            matrix = Matrix(rest, (*before, *block), right, payload)
            sizes = self._split(matrix, number)
            if sizes is None:
                return None
            values += sizes[0]
            if number + 2 == len(blocks):
                values += sizes[1]
            rest = rows_of(self._right(number))
        if values * WORTH > rows or self.engine.query(rest_query(self.plan, self.view, self.split)):
            return None
        return Found(self.view.name, rows, self.terms, values)

    def _split(self, matrix: Matrix, number: int) -> tuple[int, int] | None:
        """Stage the factors of a matrix: how many rows the left and the right one have; None for too many terms."""
        name, term = self.split.factors[number].name, self._term(number)
        profile = self._stage(f"{name}_profile", profile_query(matrix))
        groups = self.engine.query(groups_query(profile, len(matrix.payload)))
        terms = _matrix_terms(groups, matrix.payload)
        sizes = {t.number: (size, t.entries) for size, t in terms}
        cells = sum(size * entries for size, entries in sizes.values())
        if len(terms) > MAX_TERMS:
            return self._overlapping(matrix, number, cells // WORTH)
        listed = [t for _, t in terms]
        if len(terms) == 1:
            left = self._stage(name, left_query(matrix, profile, listed, term))
            self._stage(self._right_name(number), right_query(matrix, left, term))
            return self._of_terms(1, *sizes[1])
        left = self._stage(f"{name}_found", left_query(matrix, profile, listed, term))
        right = self._stage(f"{self._right_name(number)}_found", right_query(matrix, left, term))
        others = [t.number for t in listed[1:]]
        more = per_term(differences_query(matrix, right, term, others), term)
        differ = {n: count for n, count in _numbers(self.engine.query(more))}
        corrected = [n for n in others if sizes[n][0] + differ.get(n, 0) < sizes[n][1]]
        left_rows = sum(size for size, _ in sizes.values()) + sum(sizes[n][0] for n in corrected)
        right_rows = sum(differ.get(n, 0) if n in corrected else e for n, (_, e) in sizes.items())
        if len(terms) > MAX_RANK or (left_rows + right_rows) * WORTH > cells:
            fewer = self._overlapping(matrix, number, min(left_rows + right_rows - 1, cells // WORTH))
            if fewer is not None:
                return fewer
        self._stage(name, corrected_left(matrix, left, term, corrected))
        self._stage(self._right_name(number), corrected_right(matrix, right, term, corrected))
        return self._of_terms(len(terms), left_rows, right_rows)

    def _overlapping(self, matrix: Matrix, number: int, most: int) -> tuple[int, int] | None:
        """The same by as many terms as the matrix has rank; None if there are more rows than that."""
        names = Names(self.split.factors[number].name, self._right_name(number), self._term(number))
        found = overlapping(matrix, names, self.engine.query, self._stage)
        if found is None or found.left + found.right > most:
            return None
        found.stage()
        return self._of_terms(found.terms, found.left, found.right)

    def _of_terms(self, terms: int, left: int, right: int) -> tuple[int, int]:
        self.terms = max(self.terms, terms)
        return left, right

    def _term(self, number: int) -> str:
        """The term that a factor shares with the next one."""
        return self.split.factors[number].terms[-1]

    def _right_name(self, number: int) -> str:
        """What is left of the delta after a split: the last factor, or what is split next."""
        factors = self.split.factors
        return factors[-1].name if number + 2 == len(factors) else f"{factors[number].name}_rest"

    def _right(self, number: int) -> str:
        return staged_input(self.plan, self._right_name(number))

    def _stage(self, name: str, query: Query) -> str:
        staged = staged_input(self.plan, name)
        self.engine.stage(staged, query)
        self.staged.append(staged)
        return staged

    def forget(self) -> None:
        """Nobody reads what has been staged."""
        for name in reversed(self.staged):
            self.engine.unstage(name)


def _matrix_terms(
    groups: Iterable[Row], payload: Sequence[tuple[str, SparkType]]
) -> list[tuple[int, MatrixTerm]]:
    """The terms, the one of most cells first, each with how many rows of the matrix it has.

    ``divisor = gcd of the pivots``: every row is a whole multiple of the primitive one, and has its pivot in the same
    place, so that the pivots tell the multiples.
    """
    sizes: dict[tuple[int, Decimal], int] = {}
    divisors: dict[tuple[int, Decimal], list[int]] = {}
    for entries, signature, *pivots, size in groups:
        key = (int(str(entries)), Decimal(str(signature)))
        sizes[key] = sizes.get(key, 0) + int(str(size))
        known = divisors.setdefault(key, [0] * len(payload))
        for n, (pivot, (_, type_)) in enumerate(zip(pivots, payload, strict=True)):
            if pivot is not None:
                known[n] = gcd(known[n], int(Decimal(str(pivot)).scaleb(_scale(type_))))
    ordered = sorted(sizes, key=lambda key: (-key[0] * sizes[key], key))
    return [
        (
            sizes[key],
            MatrixTerm(
                number,
                key[0],
                key[1],
                tuple(
                    Decimal(d or 1).scaleb(-_scale(type_))
                    for d, (_, type_) in zip(divisors[key], payload, strict=True)
                ),
            ),
        )
        for number, key in enumerate(ordered, start=1)
    ]


def _scale(type_: SparkType) -> int:
    return type_.scale if type_.is_decimal else 0


def _numbers(rows: Iterable[Row]) -> list[tuple[int, ...]]:
    return [tuple(int(str(value)) for value in row) for row in rows]
