"""The head of a table of states says what the states cover, and by which commit (ADR 0028)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_STATE = "fivm_state"

RECORDING = "recording"
"""Key of a head's detail: the parts that a refresh has ``computed`` and ``dropped``, as texts, among others."""


@dataclass(frozen=True)
class HeadId:
    """A head by its number and by an id that no other commit has: after RESTORE the numbers come again."""

    number: int
    commit: str


@dataclass(frozen=True)
class Written:
    """That a commit writes the rows of a query, and does nothing else, into a table that was at version ``after``.

    With ``instead``, a condition on what the table is partitioned by, they go in the place of the rows where it holds.
    Where it is on anything else a statement has to do it. A query that ``tells_changes`` has a column of them: its
    rows with one are those of the change feed, all others those of the table. Else the feed has all rows that go, and
    all that come.

    Rows whose places are staged under the names ``deleted`` go too, and the files in which they lie stay. A commit
    before that ``allows_vectors``.
    """

    query: str
    after: int
    instead: str | None = None
    tells_changes: bool = False
    deleted: tuple[str, ...] = ()
    allows_vectors: bool = False


@dataclass(frozen=True)
class Note:
    """What a commit has beside its rows: the number of its head, which only one commit of the table gets, and a text.

    A commit whose number is not greater than that of an earlier one is not made, and there is no error
    (ADR 0033): who wants to know looks for the text in the history.
    """

    table: str
    number: int
    text: str
    written: Written | None = None

    @property
    def application(self) -> str:
        """Whose number it is: each table is an application of its own."""
        return f"fivm {self.table}"


@dataclass(frozen=True)
class NextHead:
    """The head that a writer sets, with its ``coverage`` as JSON. ``before`` is None where there is no table yet."""

    before: HeadId | None
    number: int
    commit: str
    coverage: str
    replaces: bool = False
    """Whether there is a table that has lost its head, and is replaced."""

    @property
    def id(self) -> HeadId:
        return HeadId(self.number, self.commit)

    def note(self, relation: str) -> Note:
        """What a commit of the table ``relation`` has beside its rows: the same, to be read without a query."""
        named = {_STATE: relation, "number": self.number, "commit": self.commit}
        return Note(relation, self.number, as_json({**named, "covered": json.loads(self.coverage)}))


def as_json(value: Mapping[str, Any]) -> str:
    """As JSON that Spark takes as it is, in strings and in settings: it puts values in the place of ``${...}``.

    >>> as_json({"b": "${x}", "a": 1})
    '{"a": 1, "b": "\\\\u0024{x}"}'
    """
    return json.dumps(value, sort_keys=True).replace("$", "\\u0024")


def noted_head(note: str | None, relation: str) -> tuple[HeadId, Mapping[str, Any]] | None:
    """The head of ``relation`` and what it covers, as the note of a commit has them; None where it is another one's.

    >>> noted_head(NextHead(HeadId(6, "x"), 7, "y", '{"refresh": 3}').note("a.m").text, "a.m")
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
