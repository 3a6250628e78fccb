"""A view that is evaluated as a whole over inner views reads its old rows from its own state."""

from __future__ import annotations

from fivm_dbt.delta.own_state import taken_away
from fivm_dbt.delta.term import Term, at_side, scans
from fivm_dbt.ir.clock import kinds_below
from fivm_dbt.ir.node import Side
from fivm_dbt.ir.nodes import Map
from fivm_dbt.ir.one_sided import IfChanged
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.naming import CLOCK


def delta_by_reevaluation(rows: Map, state: str, static: frozenset[str]) -> tuple[Term, ...]:
    """``ΔQ = Q(new views) − State``, where any of the views changed, or the clock.

    Everything that ``rows`` reads is read once, at its new side, and the state once: what is equal in both cancels
    when the terms are added up (Multilevel IVM, section 3.3, ``M_part``).
    """
    read = tuple(sorted({s.relation for s in scans(rows)} - static)) + ((CLOCK,) if kinds_below(rows) else ())
    if not read:
        return ()
    return (
        Term(IfChanged(at_side(rows, Side.NEW), read), Scalar.number(1)),
        taken_away(rows, state, lambda stored: IfChanged(stored, read)),
    )
