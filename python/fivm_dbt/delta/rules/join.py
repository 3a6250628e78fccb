"""A join is linear in each factor; the change of all factors telescopes."""

from __future__ import annotations

from fivm_dbt.delta.rule import delta_of
from fivm_dbt.delta.term import Derive, Term, at_side
from fivm_dbt.ir.node import Side
from fivm_dbt.ir.nodes import Join


@delta_of(Join, how="ring delta, a term for each changed factor")
def delta_of_join(node: Join, delta: Derive) -> tuple[Term, ...]:
    """``Δ(C1 ⋈ … ⋈ Cn) = Σi new(C1) ⋈ … ⋈ new(Ci−1) ⋈ ΔCi ⋈ old(Ci+1) ⋈ … ⋈ old(Cn)``.

    One term per changed factor, whatever changed together; a self-join has several factors on one relation and
    needs nothing special (F-IVM, section 5; DBToaster, section 3.1).
    """
    terms = []
    for i, factor in enumerate(node.factors):
        before = tuple(at_side(f, Side.NEW) for f in node.factors[:i])
        after = tuple(at_side(f, Side.OLD) for f in node.factors[i + 1 :])
        for term in delta(factor):
            terms.append(Term(Join((*before, term.node, *after), node.predicates), term.multiplicity))
    return tuple(terms)
