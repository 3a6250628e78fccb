"""Who holds a model's claim, and whether that process still lives."""

from __future__ import annotations

import os
import socket
import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

_live: set[str] = set()
_at_work: set[tuple[str, str]] = set()
_guard = threading.Lock()


def new_owner() -> dict[str, Any]:
    """The identity under which this refresh claims a model: host, process, its start, and a token of its own."""
    token = uuid.uuid4().hex
    with _guard:
        _live.add(token)
    return {
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "started": _start_of(os.getpid()),
        "token": token,
    }


@contextmanager
def only_refresh_here(journal: str, model: str) -> Iterator[bool]:
    """Whether this is the only refresh of ``model``, of that journal, in this process.

    Its staged deltas have names of the session, so that a second one would read them.
    """
    work = (journal, model)
    with _guard:
        is_only = work not in _at_work
        _at_work.add(work)
    try:
        yield is_only
    finally:
        if is_only:
            with _guard:
                _at_work.discard(work)


def release(owner: Mapping[str, Any]) -> None:
    """This process no longer works on the claim; another attempt may go on where it stopped."""
    with _guard:
        _live.discard(str(owner["token"]))


def is_alive(owner: Mapping[str, Any], claimed_at: datetime, lease: timedelta) -> bool:
    """Whether the claim's owner may still be working.

    On this machine the process table knows; of another machine nothing is known but the time since the claim.
    """
    if owner["host"] != socket.gethostname():
        return datetime.now(timezone.utc) - claimed_at < lease
    if owner["pid"] == os.getpid():
        with _guard:
            return owner["token"] in _live
    return _start_of(int(owner["pid"])) is not None and _start_of(int(owner["pid"])) == owner["started"]


def _start_of(pid: int) -> str | None:
    """Start time of a process, so that a reused process number is not taken for the old process; None if it is gone."""
    stat = Path(f"/proc/{pid}/stat")
    if stat.exists():
        return stat.read_text().rsplit(")", 1)[1].split()[19]
    if Path("/proc/self/stat").exists():
        return None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        return "unknown"
    return "unknown"
