"""Conditions on the bounds of sessions are refused, as Spark looks at them before there are sessions.

Spark moves a condition on group keys below GROUP BY, and takes the bounds of a session for keys like others. The rows
for which it does not hold are gone then, each as a session by itself, and what is left makes other sessions. What it
answers is not what the query says. A condition on an aggregate stays where it is written.
"""

from __future__ import annotations

from fivm_dbt.errors import FivmError
from fivm_dbt.ir.node import Node, scalars_of, used
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.ir.sessions import SESSION_LAST, SESSION_START, Sessions


def check_filtered_sessions(query: Node) -> None:
    """Raise FIVM105 where rows of sessions are told apart by group keys, the bounds of the session among them.

    Seen are HAVING, and WHERE above subqueries; not what Spark finds out through joins and set operations.
    """
    for node in query.walk():
        is_condition = node.drops_rows and node.is_row_level
        if is_condition and any(_is_moved(c, node.inputs[0]) for c in scalars_of(node)):
            raise FivmError(
                "FIVM105",
                "Spark drops rows by a condition on the bounds of a session before there are sessions",
                remedy="compare MIN(session_window.start) or MAX(session_window.end), which are the same",
            )


def _is_moved(condition: Scalar, node: Node) -> bool:
    """Whether Spark moves a condition on the rows of a node below the groups of sessions that these come from."""
    while node.inputs and not isinstance(node.inputs[0], Sessions):
        values = {column: node.shown_as(column) for column in condition.columns}
        if None in values.values():
            return False
        condition, node = condition.substitute(values.get), node.inputs[0]
    if not node.inputs:
        return False
    alias = node.inputs[0].fields[0].table
    bounds = {(alias, SESSION_START), (alias, SESSION_LAST)}
    keys = {column: node.shown_as(column) for column in condition.columns}
    others = {column for column, value in keys.items() if value is None}
    # A session's start is a key, and its end is computed of calls, which no other operator over sessions has.
    calls = {(node.fields[0].table, call.name): used(call.scalars) for call in getattr(node, "calls", ())}
    are_bounds = all(bounds & calls.get(column, frozenset()) for column in others)
    return are_bounds and bool(others or bounds & used(v for v in keys.values() if v is not None))
