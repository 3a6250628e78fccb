"""Queries may be nested deeper than Python's stack."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from fivm_dbt.errors import FivmError


@contextmanager
def within_the_stack(sql: str) -> Iterator[None]:
    """FIVM105 in the place of a RecursionError: trees of SQL are walked by functions that call themselves.

    >>> with within_the_stack("select 1"):
    ...     raise RecursionError
    Traceback (most recent call last):
    ...
    fivm_dbt.errors.FivmError: FIVM105 construct not supported incrementally: the query is nested too deeply
    what to do: divide it into several models
    more about it: fivm error FIVM105
    """
    try:
        yield
    except RecursionError:
        what = "the query is nested too deeply"
        raise FivmError("FIVM105", what, sql=sql, remedy="divide it into several models") from None
