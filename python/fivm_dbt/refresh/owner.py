"""One thread of this process at a time refreshes a model."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterator
from contextlib import contextmanager

_at_work: set[tuple[Hashable, str]] = set()
_guard = threading.Lock()


@contextmanager
def only_refresh_here(session: Hashable, model: str) -> Iterator[bool]:
    """Whether this is the only refresh of ``model``, in that session, in this process.

    Its staged deltas have names of the session, so that a second one would read them.
    """
    work = (session, model)
    with _guard:
        is_only = work not in _at_work
        _at_work.add(work)
    try:
        yield is_only
    finally:
        if is_only:
            with _guard:
                _at_work.discard(work)
