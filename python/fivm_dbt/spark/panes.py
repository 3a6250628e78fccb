"""Rows contribute to sliding windows by pane: they are added up before each window gets the pane.

``Σ_{r ∈ ΔR, t(r) ∈ w} payload(r) = Σ_{p ∈ w} (Σ_{r ∈ ΔR ∩ p} payload(r))``: the pane's own sum is what each of its
``length / slide`` windows gets, so that a row is looked at once and not once per window (ViewDF, section 5.2.1).
"""

from __future__ import annotations

from sqlglot import exp

from fivm_dbt.ir.node import Node
from fivm_dbt.ir.scalar import Scalar, column_ast, identifier
from fivm_dbt.ir.time_windows import TimeWindows
from fivm_dbt.naming import PREFIX
from fivm_dbt.plan.model.state import StateTable
from fivm_dbt.spark.select import Reader, lateral, select_columns
from fivm_dbt.spark.vectors import added_by_places, has_vectors

_PANE, _PANES = f"{PREFIX}pane", "panes"


def select_by_panes(
    state: StateTable,
    node: Node,
    columns: list[exp.Expr],
    reader: Reader,
) -> exp.Select | None:
    """The ``columns`` of a state's keys and payload over ``node``, by pane; None without sliding windows on top."""
    if not isinstance(node, TimeWindows) or not any(k.value.tables == {node.alias} for k in state.keys):
        return None
    keys, sums = columns[: len(state.keys)], columns[len(state.keys) :]
    of_window = [node.alias in k.value.tables for k in state.keys]
    is_mixed = any(w and k.value.tables != {node.alias} for w, k in zip(of_window, state.keys, strict=True))
    if is_mixed or any(node.alias in Scalar(s.copy()).tables for s in sums):
        return None
    inner = [k for k, w in zip(keys, of_window, strict=True) if not w]
    by_row = select_columns([*inner, exp.alias_(node.pane.ast(), _PANE), *sums], node.input, reader)
    names = [k.alias_or_name for k in inner]
    names_of_sums = [s.alias_or_name for s in sums]
    totals = {n: state.numbers(n).partial(Scalar.column("", n)).ast() for n in names_of_sums}
    grouped = [column_ast("", name) for name in [*names, _PANE]]
    panes = exp.select(
        *(g.copy() for g in grouped), *(exp.alias_(t, identifier(n)) for n, t in totals.items())
    )
    changed = added_by_places(state, by_row, grouped) if has_vectors(state) else by_row
    panes = panes.from_(changed.subquery("changed_rows", copy=False), copy=False).group_by(
        *grouped, copy=False
    )
    starts = node.starts(Scalar.column(_PANES, _PANE))
    shown = [k if w else column_ast(_PANES, k.alias_or_name) for k, w in zip(keys, of_window, strict=True)]
    made = exp.select(*shown, *(column_ast(_PANES, name) for name in totals), copy=False)
    made = made.from_(panes.subquery(_PANES, copy=False), copy=False)
    made.append("laterals", lateral(node, starts))
    return made
