"""The delta of a join may be planned one relation at a time: each change meets maps of the others."""

from __future__ import annotations

from fivm_dbt.catalog.types import INT
from fivm_dbt.delta.rule import delta_of
from fivm_dbt.delta.term import Derive, Term
from fivm_dbt.ir.higher_order import HigherOrder
from fivm_dbt.ir.node import Item
from fivm_dbt.ir.nodes import Join, Map
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.naming import STEP


@delta_of(HigherOrder, how="ring delta, one relation after the other")
def delta_of_higher_order(node: HigherOrder, delta: Derive) -> tuple[Term, ...]:
    """``Δ = Σ_i ΔR_i ⋈ M_i1 ⋈ … ⋈ M_ik``, the maps as they are when R_1 … R_i−1 have changed and no other has.

    The multiplicity of a changed row goes into what it contributes, and the step says whose change it is (DBToaster,
    section 3.1: the delta of each relation by itself, one trigger after the other).
    """
    terms = []
    for trigger in node.triggers:
        for term in delta(trigger.changed):
            joined = Join((term.node, *trigger.others), trigger.predicates)
            totals = (total.item(term.multiplicity) for total in trigger.totals)
            step = (Item(STEP, Scalar.number(trigger.step), INT),) if node.is_stepwise else ()
            terms.append(Term(Map(joined, node.alias, (*trigger.keys, *totals, *step)), Scalar.number(1)))
    return tuple(terms)
