"""An alias may give names to columns, as in ``(SELECT ...) AS t(a, b)``."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from fivm_dbt.errors import FivmError
from fivm_dbt.sql.parse import span_of


def column_names(given: Sequence[str], own: Sequence[str], node: exp.Expr, of: str = "") -> Sequence[str]:
    """The names that are ``given``, one for each column, or where there are none the columns' own.

    >>> column_names([], ["a", "b"], exp.Null()), column_names(["x", "y"], ["a", "b"], exp.Null())
    (['a', 'b'], ['x', 'y'])
    """
    if given and len(given) != len(own):
        raise FivmError(
            "FIVM102",
            f"{len(given)} column names for {len(own)} columns{of and f' of {of}'}",
            span=span_of(node),
            remedy="name every column once",
        )
    return given or own
