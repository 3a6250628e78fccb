"""A plan is made without Python's collector of garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collected_later() -> Iterator[None]:
    """Have garbage collected afterwards.

    A plan makes many trees whose nodes refer to their parents, some megabytes of them. The collector would look at all
    objects of the process once and again meanwhile, a fifth of the time of a plan.

    >>> with collected_later():
    ...     gc.isenabled()
    False
    >>> gc.isenabled()
    True
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
