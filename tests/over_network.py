"""A Spark server on loopback, and a connection of a test's own to it, beside that of dbt."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyhive import hive

from dbt_project import HERE, Project
from everyday import change, inner_views, is_exact, with_inner_view
from fivm_dbt.engines.spark.engine import Answer
from fivm_dbt.refresh.engine import Row


@dataclass(frozen=True)
class Rows:
    """What a statement has answered, as a frame of pyspark's is asked for it."""

    found: Sequence[Row]

    def collect(self) -> Sequence[Row]:
        return self.found


class Connection:
    """A connection to the server, with which a :class:`Project` and an engine can be used like a session."""

    def __init__(self, **options: Any) -> None:
        self._cursor = hive.connect(**options).cursor()

    def sql(self, statement: str) -> Rows:
        return Rows(self.execute(statement, fetch=True).rows)

    def execute(self, sql: str, *, fetch: bool) -> Answer:
        self._cursor.execute(sql)
        description = self._cursor.description or []
        rows = tuple(tuple(row) for row in self._cursor.fetchall()) if description else ()
        return Answer(tuple(column[0].split(".")[-1] for column in description), rows)


def free_port() -> int:
    """A port of loopback that nobody listens to."""
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def started_server(directory: Path, *options: str) -> Iterator[int]:
    """The port of a server of thrift_server.py with its tables in ``directory``."""
    number = free_port()
    command = [sys.executable, str(HERE / "thrift_server.py"), str(directory), str(number), *options]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=directory
    ) as server:
        assert server.stdout is not None and server.stdin is not None
        assert any(line == "ready\n" for line in server.stdout), "the server has not started"
        yield number
        server.stdin.close()
        server.terminate()


def goes_through_a_day(shop: Project) -> None:
    """Build, all kinds of changes, nothing: exact, also by the project's own tests, and by statements alone."""
    with_inner_view(shop)
    shop.dbt("build")
    assert is_exact(shop)
    change(shop)
    changed = shop.dbt("build")
    assert set(changed.actions().values()) == {"refreshed"}
    assert changed.figures("revenue_by_day")["rows_read"] is None, "over a network nobody tells what was read"
    assert is_exact(shop)
    assert inner_views(shop)
    before = shop.versions()
    nothing = shop.dbt("run", "--exclude", "customers")
    assert set(nothing.actions().values()) == {"no change"}
    assert shop.versions() == before
