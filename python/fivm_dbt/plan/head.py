"""What a table of states covers, and by which commit: its head (ADR 0028)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class HeadId:
    """A head by its number and by an id that no other commit has: after RESTORE the numbers come again."""

    number: int
    commit: str


@dataclass(frozen=True)
class NextHead:
    """The head that a writer sets, with its ``coverage`` as JSON. ``before`` is None where there is no table yet."""

    before: HeadId | None
    commit: str
    coverage: str
    replaces: bool = False
    """Whether there is a table that has lost its head: it is replaced, and nothing compared."""

    @property
    def number(self) -> int:
        return 1 if self.before is None else self.before.number + 1

    @property
    def id(self) -> HeadId:
        return HeadId(self.number, self.commit)
