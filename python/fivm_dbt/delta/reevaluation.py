"""A view that is evaluated as a whole over inner views reads its old rows from its own state."""

from __future__ import annotations

from fivm_dbt.catalog.types import BIGINT
from fivm_dbt.delta.term import Term, at_side, scans
from fivm_dbt.ir.clock import kinds_below
from fivm_dbt.ir.node import Item, Side
from fivm_dbt.ir.nodes import Map
from fivm_dbt.ir.one_sided import IfChanged
from fivm_dbt.ir.reads import Scan
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.naming import CLOCK, COUNT

_ALIAS = "own_state"


def delta_by_reevaluation(rows: Map, state: str, static: frozenset[str]) -> tuple[Term, ...]:
    """``ΔQ = Q(new views) − State``, where any of the views changed, or the clock.

    Everything that ``rows`` reads is read once, at its new side, and the state once: what is equal in both cancels
    when the terms are added up (Multilevel IVM, section 3.3, ``M_part``).
    """
    read = tuple(sorted({s.relation for s in scans(rows)} - static)) + ((CLOCK,) if kinds_below(rows) else ())
    if not read:
        return ()
    columns = tuple((i.name, i.type) for i in rows.items)
    stored = Scan(state, _ALIAS, (*columns, (COUNT, BIGINT)), Side.OLD)
    count = Item(COUNT, Scalar.column(_ALIAS, COUNT), BIGINT)
    items = tuple(Item(name, Scalar.column(_ALIAS, name), type_) for name, type_ in columns)
    gone = Map(IfChanged(stored, read), rows.alias, (*items, count))
    minus = Scalar.parse(f"-{Scalar.column(rows.alias, COUNT).sql}")
    return (Term(IfChanged(at_side(rows, Side.NEW), read), Scalar.number(1)), Term(gone, minus))
