"""Notes beside a node say where in the user's text it stands, and all copies of the node share them.

sqlglot copies the notes of each node with each copy of a tree: that was a sixth of the time of a plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlglot import exp


class Notes(dict[str, Any]):
    """The notes of a node, which nobody changes: :func:`note` gives the node others."""

    def __deepcopy__(self, _memo: object) -> Notes:
        return self


def share_notes(node: exp.Expr) -> None:
    """Have copies of a node share the notes that the parser has made beside it."""
    if node._meta is not None:
        node._meta = Notes(node._meta)


def notes(node: exp.Expr) -> Mapping[str, Any]:
    """What is noted beside a node. Who asks sqlglot for it gives each node that has nothing a dictionary of its own."""
    return node._meta or {}


def note(node: exp.Expr, **values: Any) -> None:
    """Note something beside a node, and not beside those that share its notes so far.

    >>> column = exp.column("a")
    >>> note(column, start=7)
    >>> copy = column.copy()
    >>> note(copy, end=8)
    >>> column.meta, copy.meta, copy.copy().meta is copy.meta
    ({'start': 7}, {'start': 7, 'end': 8}, True)
    """
    node._meta = Notes({**(node._meta or {}), **values})
