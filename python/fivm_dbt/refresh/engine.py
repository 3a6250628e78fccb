"""An engine runs the executor's Spark SQL: this is what a refresh needs from a database.

Two engines exist: Spark (through dbt's connection or a SparkSession) and DuckDB, which transpiles every statement
and keeps copies of old versions, so that thousands of refreshes can be tested in seconds.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from fivm_dbt.catalog import Column, KeyRange
from fivm_dbt.ir.clock import Clock
from fivm_dbt.plan.model.head import Note
from fivm_dbt.refresh.answers import Answers
from fivm_dbt.spark.formats import Commit

Row = tuple[object, ...]


@dataclass(frozen=True)
class Metrics:
    """What statements read: rows and bytes, the rows per table, and files. None where the engine cannot tell."""

    rows_read: int | None = None
    bytes_read: int | None = None
    scans: tuple[tuple[str, int], ...] = ()
    files_read: int | None = None


@dataclass(frozen=True)
class Expected:
    """A table that statements will read at a version, as a whole; ``is_restricted``: or some partitions of it.

    ``is_near``: only rows of it that meet a condition. ``reads``: at how many places at most.
    """

    relation: str
    version: int
    is_restricted: bool = False
    is_near: bool = False
    reads: int = 1


@dataclass(frozen=True)
class WrittenFile:
    """A file that a commit has added to a table: the values of the columns that it is partitioned by, and its rows."""

    place: Mapping[str, str | None]
    rows: int


class Versions(Protocol):
    """What can be asked about the versions of a table."""

    def commits(self, relation: str, since: int | None) -> Sequence[Commit]:
        """Commits newest first: all with version >= ``since``, or only the newest one when ``since`` is None.

        Where the table's newest version is lower than ``since``, its newest commit alone.
        Raises MissingRelation or NotVersioned.
        """


class Readable(Versions, Protocol):
    """What can be asked about the rows of a table, and its versions."""

    def query(self, sql: str) -> Sequence[Row]:
        """Run a query and return all its rows. Only for small results. Raises MissingRelation."""


class Engine(Readable, Protocol):
    """A database that runs the Spark SQL of a plan. Errors of a statement pass through as they are."""

    @property
    def name(self) -> str:
        """``spark`` or ``duckdb``."""

    @property
    def session(self) -> Hashable:
        """The same of engines that see what each other has staged."""

    @property
    def answers(self) -> Answers:
        """What others have asked: of engines for which a name means the same table."""

    @property
    def writes_changes(self) -> bool:
        """Whether a commit that replaces rows can say what the change feed has of them (:class:`Written`).

        Else it has all rows that went and all that came.
        """

    @property
    def deletes_rows(self) -> bool:
        """Whether a commit can delete rows of a file, and leave the file (:class:`Written`)."""

    def has_vectors(self, relation: str) -> bool:
        """Whether a commit of the table has allowed that rows of its files are deleted."""

    @property
    def defers(self) -> bool:
        """Whether it can count the rows of a query where that is read (:meth:`defer`)."""

    def run(self, sql: str) -> None:
        """Run a statement that returns nothing of interest."""

    def commit(self, sql: str, note: Note) -> None:
        """Run a statement that commits with a note, or is passed over where one of its number has committed before.

        Of two that run at once one is an error. After RESTORE and CLONE the text of the newest commit is not ours.
        """

    def describe(self, sql: str) -> tuple[Column, ...]:
        """Names and types of a query's result, without running it."""

    def has_change_feed(self, relation: str) -> bool:
        """Whether the table records its changes now."""

    def expect(self, tables: Sequence[Expected]) -> None:
        """Say what will be staged from, in the place of what was said before.

        An engine may look up beside other statements what it has to know of it.
        """

    def stage(self, name: str, sql: str) -> None:
        """Evaluate a query once and keep its rows for this session under ``name``.

        Raises ChangeFeedUnavailable or VersionUnavailable where that is the cause.
        """

    def stage_all(self, staged: Sequence[tuple[str, str]]) -> None:
        """Stage several queries, by name, that do not read each other: at once where the engine can do that.

        Raises as :meth:`stage`; then none of them is there.
        """

    def defer(self, name: str, sql: str, counts: Sequence[str]) -> None:
        """Have a query run where ``name`` is read, in one statement and there once; ``counts``, if any, are aggregates.

        Only of an engine that ``defers``. What :meth:`stage` raises may be raised there.
        """

    def counted(self, name: str) -> Row | None:
        """The aggregates of a deferred query, from where it was read; None where its rows were not needed there."""

    def staged_rows(self, name: str, sql: str) -> Sequence[Row] | None:
        """The rows of a query that maps each row of a staged result by itself; None where it would be a job.

        That is a look at rows that lie in this process, and no statement.
        """

    def unstage(self, name: str) -> None:
        """Forget a staged result; nothing happens where there is none."""

    def compact(self, sql: str) -> None:
        """Run a statement that puts files together; nothing happens where tables have none."""

    def files(self, relation: str, columns: Sequence[str]) -> Sequence[Mapping[str, KeyRange]]:
        """Of each file of a table the values of these columns, which are whole numbers: of those that it tells.

        Of a table of states, of the files of what its model shows. Nothing where that takes a statement over all rows.
        """

    def sample(self, name: str, relation: str) -> float | None:
        """Lay some rows of a large table under ``name``, and say how many times as many the table has, about.

        They are three pieces of it, which the column PIECE numbers: two follow each other, and one lies far from them.
        None where that would take as long as all rows; nothing is there then.
        """

    def size(self, relation: str) -> int | None:
        """Bytes of the table's current version, None if unknown. Raises MissingRelation or NotVersioned."""

    def written(self, relation: str) -> Sequence[WrittenFile] | None:
        """The files that the newest commit of a table has added; None where no log tells of their rows."""

    def exists(self, relation: str) -> bool:
        """Whether a table or view of this name exists."""

    def is_view_of(self, relation: str, query: str) -> bool:
        """Whether there is a view of this name, and its text is this one."""

    def clock(self) -> Clock:
        """What the clock says now, all of it at one moment; the date and the local time are those of the session."""

    def start_measuring(self, tag: str) -> None:
        """Attribute the statements of this thread to ``tag`` from now on."""

    def measured(self, tag: str) -> Metrics:
        """What the statements attributed to ``tag`` have read."""
