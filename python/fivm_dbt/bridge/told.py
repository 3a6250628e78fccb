"""dbt's user gets errors as dbt's own, and progress."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from dbt_common.exceptions import CompilationError, DbtRuntimeError

from fivm_dbt.engines.spark.delta_lake.environment import environment_error
from fivm_dbt.engines.spark.errors import first_line, has_stack
from fivm_dbt.errors import FivmError

_PATIENCE = 5.0
"""Seconds after which the steps of a refresh are told while it goes on."""


@contextmanager
def told(model: Any) -> Iterator[None]:
    """Raise our errors as dbt's: the user sees the text, and no traceback."""
    try:
        yield
    except FivmError as error:
        name = getattr(model, "identifier", None) or str(model)
        kind = CompilationError if error.code.fault in ("query", "config") else DbtRuntimeError
        raise kind(str(error.located(model=name))) from error
    except Exception as error:
        # The rest of Java's hundred lines is the cause of this one, which dbt logs with --debug.
        if not has_stack(error):
            raise
        raise DbtRuntimeError(first_line(error)) from error


def explained(error: Exception) -> Exception | None:
    """An adapter's error with what is wrong with Java, Spark or Delta, None where that is not its cause."""
    known = environment_error(str(error))
    if known is None or known.code.number in str(error):
        return None
    return DbtRuntimeError(f"{known}\nSpark says: {first_line(error)}")


def progress() -> Callable[[str], None]:
    """Steps go to the debug log; what takes long, or announces that it will, is told."""
    from dbt.events.types import JinjaLogDebug, JinjaLogInfo
    from dbt_common.events.contextvars import get_node_info
    from dbt_common.events.functions import fire_event

    started = time.monotonic()

    def tell(message: str) -> None:
        is_long = time.monotonic() - started > _PATIENCE or message.startswith(
            ("building", "finishing", "recomputing")
        )
        event = JinjaLogInfo if is_long else JinjaLogDebug
        fire_event(event(msg=f"fivm: {message}", node_info=get_node_info()))

    return tell


@cache
def tell_once(message: str) -> None:
    """What holds for all models of a run."""
    from dbt.adapters.events.logging import AdapterLogger

    AdapterLogger("fivm").info(f"fivm: {message}")
