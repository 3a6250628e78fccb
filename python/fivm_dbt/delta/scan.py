"""ΔR is the staged net change of R: its rows with their signed multiplicity."""

from __future__ import annotations

from fivm_dbt.catalog.types import BIGINT
from fivm_dbt.delta.term import Term
from fivm_dbt.ir.node import Side
from fivm_dbt.ir.nodes import Scan
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.naming import COUNT


def delta_of_scan(node: Scan, static: frozenset[str]) -> tuple[Term, ...]:
    """``Δ(R) = ΔR``, nothing for a static input."""
    if node.relation in static:
        return ()
    delta = Scan(node.relation, node.alias, (*node.columns, (COUNT, BIGINT)), Side.DELTA)
    return (Term(delta, Scalar.column(node.alias, COUNT)),)
