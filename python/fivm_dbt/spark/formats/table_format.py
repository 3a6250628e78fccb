"""What a table format has to give, what it tells of a table's versions, and the errors that a refresh knows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Protocol

from sqlglot import exp

from fivm_dbt.plan.model.head import Note


class Need(Enum):
    """What a table is wanted to do, beside what every table does."""

    CHANGES = "its changes are recorded from now on"
    ONE_WRITER = "of two commits that have read the same version one fails"
    MANY_COMMITS = "its log is not summed up after every few of them"
    LONG_PARTITIONS = "values that it is partitioned by are no names of folders"
    COMPACTION = "small files are put together after a commit"


class Touched(IntEnum):
    """What a commit may have changed; each kind may have changed what stands before it too."""

    FILES = 0
    """Where rows lie, and properties."""
    ROWS = 1
    """Rows, while each column is the same one: its id, place in the files and type. A change feed can be read."""
    COLUMNS = 2
    """Anything."""


@dataclass(frozen=True)
class Commit:
    """One version of a table: number, commit time (ISO text) and operation, as its history says.

    The number alone does not identify a version: numbers restart when a table is dropped and created anew.
    ``note`` is what its writer has put beside it (:meth:`TableFormat.numbered`).
    ``growth`` is by how many bytes the commit made the table larger, ``size`` how many it has after one that created it
    with all of its rows, ``written`` how many rows a WRITE wrote,
    ``appended`` the same of one that took no file away, ``rows_written`` how many rows came or went at most, None where
    the history does not say. ``overwrites`` says that everything was written anew, by which the
    columns may be others too.
    """

    version: int
    timestamp: str
    operation: str
    growth: int | None = None
    size: int | None = None
    written: int | None = None
    appended: int | None = None
    rows_written: int | None = None
    overwrites: bool = False
    note: str | None = None


@dataclass(frozen=True)
class Question:
    """A statement that asks something about a table, and which columns of its answer are read, in this order."""

    sql: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class ChangeType:
    """The column of a change feed that tells what a row of it is, and its values for rows that came and that went.

    Rows that an update has written may have the last of these values.
    """

    name: str
    came: tuple[str, ...]
    went: tuple[str, ...]


RECENT_COMMITS = 10
"""A few commits cost a question no more than one, and mostly reach back far enough."""


class MissingRelation(Exception):
    """The relation does not exist."""


class NotVersioned(Exception):
    """The relation exists but is no table of the format."""


class ChangeFeedUnavailable(Exception):
    """The change feed does not cover the wanted range: switched off in between, cleaned up, or schema changed."""


class VersionUnavailable(Exception):
    """An old version was asked for whose files or log entries are gone."""


class TableFormat(Protocol):
    """Tables with versions 0, 1, 2, ..., each an atomic commit. ``R@v`` below is the bag of rows of ``R`` at ``v``.

    Statements are Spark SQL. Where the session is in this process an engine may know shorter ways to the same answers.
    """

    @property
    def name(self) -> str:
        """As after USING, in lower case."""

    @property
    def change_type(self) -> ChangeType:
        """What tells the sign of a row of :meth:`changes`."""

    @property
    def reads(self) -> str:
        """A regular expression, for any case, of what :meth:`pinned` and :meth:`changes` write.

        Its groups are ``pin`` with ``version``, or ``table`` with ``first`` and ``last``.
        """

    @property
    def faults(self) -> Mapping[type[Exception], tuple[str, ...]]:
        """Its error conditions by the errors above; those of Spark itself are known elsewhere."""

    @property
    def place_of_row(self) -> tuple[exp.Expr, exp.Expr]:
        """Columns of any row that is read: the path of the file that it lies in, and its number there."""

    def pinned(self, name: str, version: int) -> exp.Expr:
        """``R@version``, whatever is committed while it is read. VersionUnavailable where its files are gone."""

    def changes(self, name: str, after: int, to: int) -> exp.Expr:
        """The rows that came and went: ``R@to = R@after + came − went``, as bags. A row may come and go.

        ChangeFeedUnavailable where not every version between has its changes.
        """

    def properties(
        self,
        needs: Collection[Need] = (),
        *,
        found_by: Sequence[str] | None = None,
        named: Iterable[str] = (),
    ) -> dict[str, str]:
        """Those of a table that does what is needed.

        Rows are ``found_by`` the values of these columns, without a look into other files; None is what the format
        takes itself. Columns are ``named`` so, with whatever letters.
        """

    def numbered(self, note: Note) -> dict[str, str]:
        """Settings with which a statement commits with the text of ``note``, if no commit has reached its number.

        Of several writers with one number one commits. Any other one fails (:meth:`is_conflict`), or does nothing.
        """

    def is_conflict(self, error: BaseException) -> bool:
        """Whether a statement failed because another commit came before it, or created the table."""

    def history(self, name: str, count: int) -> Question:
        """The last commits, newest first: the arguments of :meth:`commit`. Versions have no gaps.

        MissingRelation, or NotVersioned.
        """

    def commit(
        self,
        version: object,
        time: object,
        operation: object,
        metrics: object,
        parameters: object,
        note: object,
    ) -> Commit:
        """A row of the history. It is equal by whatever way the history was asked for."""

    def touched(self, commit: Commit) -> Touched:
        """What a commit may have changed. What is not known may have changed anything."""

    @property
    def describing(self) -> frozenset[str]:
        """The operations that change no row, and maybe no more than what columns are described by."""

    def size(self, name: str) -> Question:
        """The bytes of the newest version."""

    def compacted(self, name: str, where: exp.Expr) -> exp.Expr:
        """Rows that meet a condition on partitions into as few files as there can be: ``R@(v + 1) = R@v``."""
