"""What a table of states covers, and by which commit: its head (ADR 0028)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_STATE = "fivm_state"


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

    def note(self, relation: str) -> str:
        """What a commit of the table ``relation`` has beside its rows: the same, to be read without a query."""
        named = {_STATE: relation, "number": self.number, "commit": self.commit}
        return json.dumps({**named, "covered": json.loads(self.coverage)}, sort_keys=True)


def noted_head(note: str | None, relation: str) -> tuple[HeadId, Mapping[str, Any]] | None:
    """The head of ``relation`` and what it covers, as the note of a commit has them; None where it is another one's.

    >>> noted_head(NextHead(HeadId(6, "x"), "y", '{"refresh": 3}').note("a.m"), "a.m")
    (HeadId(number=7, commit='y'), {'refresh': 3})
    >>> noted_head("by hand", "a.m"), noted_head('{"fivm_state": "a.n"}', "a.m"), noted_head(None, "a.m")
    (None, None, None)
    """
    try:
        told = json.loads(note or "null")
    except ValueError:
        return None
    if not isinstance(told, dict) or told.get(_STATE) != relation:
        return None
    return HeadId(int(told["number"]), str(told["commit"])), told["covered"]
