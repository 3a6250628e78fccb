"""ΔR is the staged net change of R: its rows with their signed multiplicity."""

from __future__ import annotations

from fivm_dbt.catalog.types import BIGINT
from fivm_dbt.delta.rule import delta_of
from fivm_dbt.delta.term import Derive, Term
from fivm_dbt.ir.node import Side
from fivm_dbt.ir.nodes import Values
from fivm_dbt.ir.reads import Scan
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.naming import COUNT


@delta_of(Scan)
def delta_of_scan(node: Scan, delta: Derive) -> tuple[Term, ...]:
    """``Δ(R) = ΔR``, nothing for a static input."""
    if node.relation in delta.static:
        return ()
    changed = Scan(node.relation, node.alias, (*node.columns, (COUNT, BIGINT)), Side.DELTA)
    return (Term(changed, Scalar.column(node.alias, COUNT)),)


@delta_of(Values)
def delta_of_values(node: Values, delta: Derive) -> tuple[Term, ...]:
    """Rows that stand in the query never change."""
    return ()
