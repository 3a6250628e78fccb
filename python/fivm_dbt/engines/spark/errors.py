"""Error conditions of Spark and of the format come down to the few causes that a refresh can act on."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from fivm_dbt.spark.formats import (
    FORMAT,
    ChangeFeedUnavailable,
    MissingRelation,
    NotVersioned,
    VersionUnavailable,
)

T = TypeVar("T")

# First match wins. The conditions are also found in text, because dbt hands on the text alone.
_CAUSES: Mapping[type[Exception], tuple[str, ...]] = {
    ChangeFeedUnavailable: (),
    VersionUnavailable: ("FAILED_READ_FILE.FILE_NOT_EXIST", "FILE_NOT_EXIST"),
    MissingRelation: ("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND"),
    NotVersioned: ("EXPECT_TABLE_NOT_VIEW",),
}
"""Conditions of Spark itself, beside those of the format."""


def translated(execute: Callable[[], T]) -> T:
    """What ``execute`` gives; its error is raised as the engine error that it amounts to (:func:`cause`)."""
    _, before, _ = sys.exc_info()
    try:
        return execute()
    except Exception as error:
        known = cause(error, before)
        if known is None:
            raise
        raise known from error


def conditions(error: BaseException, before: BaseException | None = None) -> Iterator[str]:
    """Every error condition that the error, its text or its causes name, up to the one that was there ``before``."""
    for one in _chain(error, before):
        condition = getattr(one, "getCondition", None) or getattr(one, "getErrorClass", None)
        if callable(condition) and (name := condition()):
            yield str(name)
        yield from re.findall(r"\[([A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)?)\]", str(one))


def _chain(error: BaseException, before: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    one: BaseException | None = error
    # An error can be its own cause.
    while one is not None and one is not before and id(one) not in seen:
        seen.add(id(one))
        yield one
        one = one.__cause__ or one.__context__


def cause(error: BaseException, before: BaseException | None = None) -> Exception | None:
    """The engine error that a Spark error amounts to, None if it is none of those.

    ``before`` is what was being handled when the statement was sent. Python has it as the context of the error, of
    which it is no cause: a state that is built because files of an input are gone asks for tables that are not there.

    >>> cause(RuntimeError("[DELTA_VERSION_NOT_FOUND] Cannot time travel Delta table to version 7."))
    VersionUnavailable('[DELTA_VERSION_NOT_FOUND] Cannot time travel Delta table to version 7.')
    """
    named = set(conditions(error, before))
    named |= {name.split(".")[0] for name in named}
    for kind, names in _CAUSES.items():
        if named.intersection((*names, *FORMAT.faults[kind])):
            return kind(first_line(error))
    if "java.io.FileNotFoundException" in str(error):
        return VersionUnavailable(first_line(error))
    return None


_HEADING = re.compile(
    r"(Runtime|Database|Compilation) Error.*|An error occurred while calling .*|JVM stacktrace:"
)
_THROWN = re.compile(r"^(?:: |\*|Caused by: )*(?:(?:[a-z]\w*\.)+[\w$]*(?:Exception|Error|Throwable)\b:? ?)+")
_WRAPPED = re.compile(r"^(?:Error (?:running query|operating \w+|executing query)[^:\[]*: ?)")
_MAX_LINE = 400


def has_stack(error: BaseException) -> bool:
    """Whether the text of an error goes on with where in Java it was thrown."""
    return re.search(r"\n\s+at [\w.$/<>]+\(", str(error)) is not None


def first_line(error: BaseException) -> str:
    """What is wrong in one line: without headings and names of classes, with the last of Java's causes.

    >>> hive = "org.apache.hive.service.cli.HiveSQLException: Error running query: "
    >>> first_line(RuntimeError(f"Runtime Error\\n  {hive}[X_Y] no such thing\\n\\tat org.apache.A.b(A.scala:1)"))
    '[X_Y] no such thing'
    >>> java = "An error occurred while calling o2.localCheckpoint.\\n: org.apache.spark.SparkException: Job aborted."
    >>> first_line(RuntimeError(f"{java}\\n\\tat org.apache.A.b(A.scala:1)\\nCaused by: java.io.IOException: No space"))
    'Job aborted. (No space)'
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = [line for line in lines if not _HEADING.fullmatch(line) and not line.startswith("at ")]
    causes = [_plain(line) for line in told if line.startswith("Caused by: ")]
    own = [_plain(line) for line in told if not line.startswith("Caused by: ")]
    what = next((line for line in own if line), type(error).__name__)
    last = next((line for line in reversed(causes) if line), "")
    if last and last not in what:
        what = f"{_cut(what)} ({last})"
    return _cut(what)


def _plain(line: str) -> str:
    """A line of a stack without what threw it; a condition is said first."""
    line = _THROWN.sub("", _WRAPPED.sub("", _THROWN.sub("", line)))
    condition = re.search(r"\[[A-Z][A-Z0-9_.]+\]", line)
    return line[condition.start() :] if condition is not None else line


def _cut(line: str) -> str:
    return line if len(line) <= _MAX_LINE else f"{line[:_MAX_LINE]}..."
