"""Least squares is solved by Cholesky's factors, or by batch gradient descent (F-IVM article, 8.1).

Both minimise Σ (y − β − wᵀx)² + ρ·Σ w², ρ being the ridge, over variables that are scaled to the same variance: one in
cents and one in millions are then alike. The intercept β is not penalised.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fivm_dbt.learning.normal_equations import NormalEquations, Vector

ALIASED = 1e-9
"""A term of which so small a share of the variance is its own is one that those before it tell."""


@dataclass(frozen=True, eq=False)
class Solution:
    """Parameters, with ``weights`` of zero for terms that are ``aliased``: constant, or told by those before them.

    ``inverse`` is that of Σ (x − x̄)(x − x̄)ᵀ + ρI over the terms that are not.
    """

    intercept: float
    weights: Vector
    aliased: NDArray[np.bool_]
    iterations: int
    inverse: NDArray[np.float64]

    @property
    def rank(self) -> int:
        """How many parameters were found, the intercept among them."""
        return int(np.count_nonzero(~self.aliased)) + 1


@dataclass(frozen=True, eq=False)
class _Scaled:
    """The equations over terms that are not aliased, in units of their deviations."""

    kept: NDArray[np.intp]
    units: Vector
    matrix: NDArray[np.float64]
    lower: NDArray[np.float64]
    """Cholesky's factor of the matrix."""
    right: Vector


def cholesky(equations: NormalEquations, ridge: float) -> Solution:
    """The exact solution: w = (Q + ρI)⁻¹ c."""
    scaled = _scaled(equations, ridge)
    if not scaled.kept.size:
        return _solution(equations, scaled, np.zeros(0), 0)
    found = np.linalg.solve(scaled.lower.T, np.linalg.solve(scaled.lower, scaled.right))
    return _solution(equations, scaled, found, 1)


def gradient_descent(
    equations: NormalEquations, ridge: float, *, start: Vector, tolerance: float, most: int
) -> Solution:
    """Steps against the gradient from ``start`` until it is ``tolerance`` of that at zero, or ``most`` steps.

    Their length is Barzilai's and Borwein's: by the last step and by how the gradient changed over it.
    """
    scaled = _scaled(equations, ridge)
    at = start[scaled.kept] * scaled.units
    gradient = scaled.matrix @ at - scaled.right
    bound = tolerance * float(np.max(np.abs(scaled.right), initial=0.0))
    # The largest value of a matrix with ones in its diagonal is at most its size.
    length, steps = 1.0 / max(1, scaled.kept.size), 0
    while steps < most and float(np.max(np.abs(gradient), initial=0.0)) > bound:
        step = -length * gradient
        change = scaled.matrix @ step
        at, gradient, steps = at + step, gradient + change, steps + 1
        curved = float(step @ change)
        length = float(step @ step) / curved if curved > 0 else length
    return _solution(equations, scaled, at, steps)


def _scaled(equations: NormalEquations, ridge: float) -> _Scaled:
    """The equations in units of deviations, without terms that those before them tell.

    The rows of Cholesky's factor are made one after the other. The square of a row's last entry is the share of the
    term's variance that is its own; a term with less than ALIASED of it is left out, as R leaves it out.
    """
    penalised = equations.products + ridge * np.eye(len(equations.terms))
    variances = np.diag(penalised)
    units = np.sqrt(np.where(variances > 0, variances, 1.0))
    matrix = penalised / np.outer(units, units)
    lower = np.zeros_like(matrix)
    kept: list[int] = []
    for term in range(len(equations.terms)):
        if variances[term] <= 0:
            continue
        at = len(kept)
        row = np.zeros(at)
        for place, other in enumerate(kept):
            row[place] = (matrix[term, other] - row[:place] @ lower[place, :place]) / lower[place, place]
        own = matrix[term, term] - float(row @ row)
        if own <= ALIASED:
            continue
        lower[at, :at], lower[at, at] = row, np.sqrt(own)
        kept.append(term)
    places = np.array(kept, dtype=np.intp)
    right = equations.label_products[places] / units[places]
    return _Scaled(
        places,
        units=units[places],
        matrix=matrix[np.ix_(places, places)],
        lower=lower[: len(kept), : len(kept)],
        right=right,
    )


def _solution(equations: NormalEquations, scaled: _Scaled, found: Vector, iterations: int) -> Solution:
    weights = np.zeros(len(equations.terms))
    weights[scaled.kept] = found / scaled.units
    aliased = np.ones(len(equations.terms), dtype=np.bool_)
    aliased[scaled.kept] = False
    inverse = np.linalg.inv(scaled.matrix) if scaled.kept.size else np.zeros((0, 0))
    return Solution(
        equations.label_mean - float(weights @ equations.means),
        weights,
        aliased,
        iterations,
        inverse / np.outer(scaled.units, scaled.units),
    )
