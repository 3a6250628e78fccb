"""Delta's classes ask the active session of a JVM thread for their settings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from fivm_dbt.engines.spark.java import SESSION, java_class

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def active(session: SparkSession) -> Iterator[None]:
    """Have a session be the active one, and afterwards the one that was."""
    sessions = java_class(session, SESSION)
    before = sessions.getActiveSession()
    sessions.setActiveSession(session._jsparkSession)
    try:
        yield
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()
