"""Principal components are the eigenvectors of the covariance matrix, which moments tell (F-IVM article, 8.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fivm_dbt.learning.moments import Moments, Term


@dataclass(frozen=True)
class Component:
    """A direction in which rows differ: by variable its part in it, and the ``share`` of the variance along it."""

    share: float
    loadings: tuple[tuple[str, float], ...]


def principal_components(moments: Moments, names: Sequence[str], *, is_scaled: bool) -> list[Component]:
    """The components of continuous variables, the one with the most variance first; none of constants alone.

    With ``is_scaled`` variables count in units of their deviations: the matrix is that of correlations. The largest
    part of each direction is positive.
    """
    if moments.count <= 1:
        return []
    products = [[moments.about_means(Term(a), Term(b)) for b in names] for a in names]
    matrix = np.array(products) / float(moments.count - 1)
    deviations = np.sqrt(np.where(np.diag(matrix) > 0, np.diag(matrix), 1.0))
    if is_scaled:
        matrix = matrix / np.outer(deviations, deviations)
    values, vectors = np.linalg.eigh(matrix)
    total = float(values.clip(min=0).sum())
    if total <= 0:
        return []
    found = []
    for at in np.argsort(-values, kind="stable"):
        vector = vectors[:, at]
        vector = vector * np.sign(vector[np.argmax(np.abs(vector))])
        loadings = tuple((name, float(part)) for name, part in zip(names, vector, strict=True))
        found.append(Component(max(0.0, float(values[at])) / total, loadings))
    return found
