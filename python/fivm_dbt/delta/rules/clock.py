"""Conditions on the clock let rows enter and leave as time passes, while no input changes."""

from __future__ import annotations

from fivm_dbt.delta.rule import delta_of
from fivm_dbt.delta.rules.projection import delta_of_projection
from fivm_dbt.delta.term import Derive, Term, at_side, items_at
from fivm_dbt.ir.clock import any_of, comparisons, flips, not_all, on_side
from fivm_dbt.ir.clock_nodes import ClockFilter, ClockMap, Crossing
from fivm_dbt.ir.node import Side
from fivm_dbt.ir.nodes import Filter, Map
from fivm_dbt.ir.scalar import Scalar

_HOW = "ring delta, linear; the rows for which time makes a difference enter or leave"


@delta_of(ClockFilter, how=_HOW)
def delta_of_clock_filter(node: ClockFilter, delta: Derive) -> tuple[Term, ...]:
    """``Δ(σ_p(t) R) = σ_p(t') ΔR + σ_{p(t') ∧ ¬p(t)} old R − σ_{p(t) ∧ ¬p(t')} old R``, from time t to t'.

    Changed rows are judged by the new time alone. Of the others those enter that the condition has become true for, and
    those leave for which it is not true (false or unknown) any more: with ``p = d >= t`` the rows between both times.
    """
    new = tuple(on_side(p, Side.NEW) for p in node.predicates)
    old = tuple(on_side(p, Side.OLD) for p in node.predicates)
    rows = at_side(node.input, Side.OLD)
    return (
        *(Term(Filter(t.node, new), t.multiplicity) for t in delta(node.input)),
        Term(Crossing(rows, (*new, not_all(old))), Scalar.number(1)),
        Term(Crossing(rows, (*old, not_all(new))), Scalar.number(-1)),
    )


@delta_of(ClockMap, how=_HOW)
def delta_of_clock_map(node: ClockMap, delta: Derive) -> tuple[Term, ...]:
    """``Δ(Π_a(t) R) = Π_a(t') ΔR + Π_a(t') C − Π_a(t) C`` with ``C = σ_{p(t) ≠ p(t')} old R``,
    for some comparison p with the clock in a.

    Every other row has the same columns as before. Those of C that have too cancel out.
    """
    new, old = items_at(node.items, Side.NEW), items_at(node.items, Side.OLD)
    timed = dict.fromkeys(c for item in node.items for c in comparisons(item.value))
    different = any_of(flips(c, Side.OLD, Side.NEW) for c in timed)
    rows = Crossing(at_side(node.input, Side.OLD), (different,))
    return (
        *delta_of_projection(Map(node.input, node.alias, new), delta),
        Term(Map(rows, node.alias, new), Scalar.number(1)),
        Term(Map(rows, node.alias, old), Scalar.number(-1)),
    )
