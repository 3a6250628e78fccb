"""The normal equations of a least-squares fit come from moments (F-IVM article, 8.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fivm_dbt.learning.moments import INTERCEPT, Moments, Term

Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class NormalEquations:
    """Least squares of a label y by terms x, about their means.

    ``products`` are Σ (x − x̄)(x − x̄)ᵀ, ``label_products`` Σ (x − x̄)(y − ȳ), ``total`` Σ (y − ȳ)². Differences of large
    numbers are taken before they become doubles: a year or a price far from zero costs no digits.
    """

    terms: tuple[Term, ...]
    count: float
    means: Vector
    products: Vector
    label_mean: float
    label_products: Vector
    total: float

    @staticmethod
    def of(moments: Moments, label: str, terms: Sequence[Term]) -> NormalEquations:
        """Those of some rows; all zero where there are none."""
        y, n = Term(label), moments.count

        def mean(term: Term) -> float:
            return float(moments.of(term, INTERCEPT) / n) if n else 0.0

        size = len(terms)
        products = np.zeros((size, size))
        for i, one in enumerate(terms):
            for k in range(i, size):
                products[i, k] = products[k, i] = moments.about_means(one, terms[k])
        return NormalEquations(
            tuple(terms),
            count=float(n),
            means=np.array([mean(term) for term in terms], dtype=np.float64),
            products=products,
            label_mean=mean(y),
            label_products=np.array([moments.about_means(term, y) for term in terms], dtype=np.float64),
            total=moments.about_means(y, y),
        )

    def squared_error(self, intercept: float, weights: Vector) -> float:
        """Σ (y − intercept − wᵀx)² over these rows, of any parameters."""
        shift = self.label_mean - intercept - float(weights @ self.means)
        about = self.total - 2 * float(weights @ self.label_products)
        # Rounding must not make a perfect fit better than perfect.
        return max(0.0, about + float(weights @ self.products @ weights)) + self.count * shift * shift


def terms_of(
    moments: Moments, features: Sequence[str], reference: Mapping[str, str], *, is_full: bool
) -> tuple[Term, ...]:
    """The terms of features: a continuous one is a term, a categorical one a term for each of its categories.

    Beside an intercept these add up to one, so without ``is_full`` a category has no term: that of ``reference``, or
    the first one by its text.
    """
    found: list[Term] = []
    for name in features:
        if name not in moments.categorical:
            found.append(Term(name))
            continue
        categories = moments.categories.get(name, ())
        left_out = reference.get(name, None if is_full else next(iter(categories), None))
        found += [Term(name, category) for category in categories if category != left_out]
    return tuple(found)
