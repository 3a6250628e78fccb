"""A view that is evaluated as a whole over inner views reads its old rows from its own state."""

from __future__ import annotations

from fivm_dbt.catalog.types import BIGINT, INT
from fivm_dbt.delta.term import Term, at_side, scans
from fivm_dbt.ir.clock import kinds_below
from fivm_dbt.ir.clock_nodes import Crossing
from fivm_dbt.ir.node import Item, Node, Side
from fivm_dbt.ir.nodes import Distinct, Map, UnionAll, Values
from fivm_dbt.ir.one_sided import Restrict
from fivm_dbt.ir.reads import Scan
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.naming import COUNT, PREFIX

_ALIAS, _MOVED, _CLOCK = "own_state", "moved", "clock_moved"


def delta_by_reevaluation(rows: Map, state: str, static: frozenset[str]) -> tuple[Term, ...]:
    """``ΔQ = Q(new views) − State``, where any of the views changed.

    Everything that ``rows`` reads is read once, at its new side, and the state once: what is equal in both cancels
    when the terms are added up (Multilevel IVM, section 3.3, ``M_part``).
    """
    moved = _moved(rows, static)
    if moved is None:
        return ()
    columns = tuple((i.name, i.type) for i in rows.items)
    stored = Scan(state, _ALIAS, (*columns, (COUNT, BIGINT)), Side.OLD)
    count = Item(COUNT, Scalar.column(_ALIAS, COUNT), BIGINT)
    items = tuple(Item(name, Scalar.column(_ALIAS, name), type_) for name, type_ in columns)
    gone = Map(Restrict(stored, moved, ()), rows.alias, (*items, count))
    minus = Scalar.parse(f"-{Scalar.column(rows.alias, COUNT).sql}")
    return (
        Term(Restrict(at_side(rows, Side.NEW), moved, ()), Scalar.number(1)),
        Term(gone, minus),
    )


def _moved(rows: Map, static: frozenset[str]) -> Node | None:
    """One row if anything changed that ``rows`` reads, also the clock; None where nothing of it ever does."""
    read = {s.relation: s for s in scans(rows) if s.relation not in static}
    mark = (Item(f"{PREFIX}any", Scalar.number(1), INT),)
    changes: list[Node] = [Scan(s.relation, s.alias, s.columns, Side.DELTA) for s in read.values()]
    if kinds_below(rows):
        one = Values(_CLOCK, (("one", INT),), ((Scalar.number(1),),))
        changes.append(Crossing(one, ()))
    if not changes:
        return None
    branches = tuple(Map(change, _MOVED, mark) for change in changes)
    return Distinct(branches[0] if len(branches) == 1 else UnionAll(branches, _MOVED))
