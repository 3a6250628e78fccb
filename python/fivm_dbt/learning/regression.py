"""A linear regression is trained from moments alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fivm_dbt.learning.config import RegressionConfig
from fivm_dbt.learning.moments import INTERCEPT, Moments, Term
from fivm_dbt.learning.normal_equations import NormalEquations, terms_of
from fivm_dbt.learning.solvers import Solution, cholesky, gradient_descent


@dataclass(frozen=True)
class Parameter:
    """A coefficient; None for a term that others tell. Its standard error is known without a ridge."""

    term: Term
    coefficient: float | None
    standard_error: float | None


@dataclass(frozen=True)
class Regression:
    """What was trained over ``count`` rows, the intercept first.

    ``loss`` is (Σ residual² + ρ·Σ w²) / count. ``r2`` is the share of the label's variance that is explained, of rows
    that were held out ``r2_holdout``; None where the label does not vary, or there are no rows.
    """

    parameters: tuple[Parameter, ...]
    count: float
    iterations: int
    loss: float | None
    r2: float | None
    r2_holdout: float | None

    @property
    def coefficients(self) -> dict[Term, float]:
        """By term its coefficient, zero where another one tells it."""
        return {p.term: p.coefficient or 0.0 for p in self.parameters}


def train(
    moments: Moments,
    config: RegressionConfig,
    features: Sequence[str],
    *,
    holdout: Moments | None = None,
    before: Mapping[Term, float] | None = None,
) -> Regression:
    """A regression of the label by ``features`` over the rows of ``moments``, judged by those of ``holdout`` too.

    Gradient descent begins at the parameters of ``before``.
    """
    terms = terms_of(moments, features, config.fivm_reference, is_full=config.fivm_ridge > 0)
    equations = NormalEquations.of(moments, config.fivm_label, terms)
    if not moments.count:
        nothing = [Parameter(term, None, None) for term in (INTERCEPT, *terms)]
        return Regression(tuple(nothing), count=0.0, iterations=0, loss=None, r2=None, r2_holdout=None)
    solution = _solved(equations, config, before or {})
    error = equations.squared_error(solution.intercept, solution.weights)
    penalty = config.fivm_ridge * float(solution.weights @ solution.weights)
    return Regression(
        tuple(_parameters(equations, solution, error, config.fivm_ridge)),
        count=equations.count,
        iterations=solution.iterations,
        loss=(error + penalty) / equations.count,
        r2=_explained(error, equations.total),
        r2_holdout=None if holdout is None else _judged(holdout, config.fivm_label, terms, solution),
    )


def _solved(equations: NormalEquations, config: RegressionConfig, before: Mapping[Term, float]) -> Solution:
    if config.fivm_solver == "cholesky":
        return cholesky(equations, config.fivm_ridge)
    start = np.array([before.get(term, 0.0) for term in equations.terms], dtype=np.float64)
    return gradient_descent(
        equations,
        config.fivm_ridge,
        start=start,
        tolerance=config.fivm_tolerance,
        most=config.fivm_max_iterations,
    )


def _parameters(
    equations: NormalEquations, solution: Solution, error: float, ridge: float
) -> Sequence[Parameter]:
    """The parameters with their standard errors: of w they are √(σ²·diag Q⁻¹), σ² being Σ residual² / (n − rank)."""
    free = equations.count - solution.rank
    variance = error / free if free > 0 and ridge == 0 else None
    kept = ~solution.aliased
    means = equations.means[kept]
    own = None if variance is None else variance * (1 / equations.count + means @ solution.inverse @ means)
    found = [Parameter(INTERCEPT, solution.intercept, None if own is None else float(np.sqrt(own)))]
    errors = iter(np.diag(solution.inverse))
    for term, weight, is_aliased in zip(equations.terms, solution.weights, solution.aliased, strict=True):
        if is_aliased:
            found.append(Parameter(term, None, None))
            continue
        spread = float(next(errors))
        found.append(
            Parameter(term, float(weight), None if variance is None else float(np.sqrt(variance * spread)))
        )
    return found


def _judged(holdout: Moments, label: str, terms: Sequence[Term], solution: Solution) -> float | None:
    equations = NormalEquations.of(holdout, label, terms)
    return _explained(equations.squared_error(solution.intercept, solution.weights), equations.total)


def _explained(error: float, total: float) -> float | None:
    return 1 - error / total if total > 0 else None
