"""Conditions on the bounds of sessions are refused, as Spark looks at them before there are sessions.

Spark moves a condition on group keys below GROUP BY, and takes the bounds of a session for keys like others. The rows
for which it does not hold are gone then, each as a session by itself, and what is left makes other sessions. What it
answers is not what the query says. A condition on an aggregate stays where it is written.
"""

from __future__ import annotations

from collections.abc import Mapping

from fivm_dbt.errors import FivmError
from fivm_dbt.ir.node import Node, scalars_of, used
from fivm_dbt.ir.scalar import ColumnId, Scalar
from fivm_dbt.ir.sessions import SESSION_LAST, SESSION_START, Sessions


def check_filtered_sessions(query: Node) -> None:
    """Raise FIVM105 where rows of sessions are told apart by group keys, the bounds of the session among them.

    Seen are HAVING, and WHERE above subqueries; not what Spark finds out through joins and set operations.
    """
    nodes = list(query.walk())
    if not any(isinstance(node, Sessions) for node in nodes):
        return
    conditions = (n for n in nodes if n.drops_rows and n.is_row_level)
    if any(_is_moved(c, node.inputs[0]) for node in conditions for c in scalars_of(node)):
        raise FivmError(
            "FIVM105",
            "Spark drops rows by a condition on the bounds of a session before there are sessions",
            remedy="compare MIN(session_window.start) or MAX(session_window.end), which are the same",
        )


def _is_moved(condition: Scalar, node: Node) -> bool:
    """Whether Spark moves a condition on the rows of a node below the groups of sessions that these come from."""
    while node.inputs:
        values = {column: node.shown_as(column) for column in condition.columns}
        if isinstance(node.inputs[0], Sessions):
            return _tells_sessions_apart(values, node, node.inputs[0])
        if None in values.values():
            return False
        condition, node = condition.substitute(values.get), node.inputs[0]
    return False


def _tells_sessions_apart(values: Mapping[ColumnId, Scalar | None], groups: Node, sessions: Sessions) -> bool:
    """Whether columns of groups, with the keys that they are, are keys and bounds, and some of them bounds."""
    bounds = {(sessions.alias, SESSION_START), (sessions.alias, SESSION_LAST)}
    # A session's start is a key, and its end is computed of calls, which no other operator over sessions has.
    calls = {(groups.fields[0].table, call.name): used(call.scalars) for call in getattr(groups, "calls", ())}
    ends = {column for column, value in values.items() if value is None}
    if not all(bounds & calls.get(column, frozenset()) for column in ends):
        return False
    return bool(ends or bounds & used(v for v in values.values() if v is not None))
