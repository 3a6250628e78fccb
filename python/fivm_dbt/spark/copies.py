"""Rows with vectors are added up before they are repeated, by what their copies are told by.

    γ_K,i(ε(explode R)) = γ_K,i(ε(γ_P,i(explode R)))

where i is the place of an element of a vector, the generator ε and the keys K read no columns but P, and no payload
tells copies of a row apart.
"""

from __future__ import annotations

from sqlglot import exp

from fivm_dbt.delta.term import Term
from fivm_dbt.ir.node import Node
from fivm_dbt.ir.nodes import Explode
from fivm_dbt.ir.scalar import Scalar, column_ast, identifier, replaced
from fivm_dbt.naming import PREFIX
from fivm_dbt.plan.model.state import StateTable
from fivm_dbt.spark.select import Reader, lateral
from fivm_dbt.spark.shared_values import select_shared
from fivm_dbt.spark.vectors import columns_by_places, has_vectors, sums_by_places

_ROWS = "rows_to_repeat"


def select_by_copies(
    state: StateTable, term: Term, node: Node, columns: list[exp.Expr], reader: Reader
) -> exp.Select | None:
    """The ``columns`` of a state's keys and payload over a term's ``node``, added up by places; None where no rows are
    repeated on top, or where they have few numbers, of which one more GROUP BY would save nothing."""
    keys, sums = columns[: len(state.keys)], columns[len(state.keys) :]
    if not isinstance(node, Explode) or [s.alias_or_name for s in sums] != list(state.payload_names):
        return None
    if not has_vectors(state):
        return None
    values = [term.own(key.value) for key in state.keys]
    parts = node.parts_of(values)
    if not parts or any(c.table == node.alias for s in sums for c in s.find_all(exp.Column)):
        return None
    names = [f"{PREFIX}part_{n}" for n in range(1, len(parts) + 1)]
    named = [exp.alias_(part.ast(), identifier(name)) for part, name in zip(parts, names, strict=True)]
    by_row = select_shared([*named, *sums], node.input, reader)
    added = sums_by_places(state, by_row, [column_ast("", name) for name in names])
    known = {part: Scalar.column(_ROWS, name) for part, name in zip(parts, names, strict=True)}
    shown = [
        exp.alias_(replaced(value, known).ast(), identifier(key.alias_or_name))
        for value, key in zip(values, keys, strict=True)
    ]
    query = exp.select(*shown, *columns_by_places(state, _ROWS))
    query = query.from_(added.subquery(_ROWS, copy=False), copy=False)
    query.append("laterals", lateral(node, replaced(node.generator, known)))
    return query
