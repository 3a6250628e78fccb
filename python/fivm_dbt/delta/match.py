"""Row patterns are local to their PARTITION BY: recompute the matches of the partitions that have a changed row."""

from __future__ import annotations

from fivm_dbt.delta.local import delta_by_keys
from fivm_dbt.delta.term import Derive, Term
from fivm_dbt.ir.match import Match


def delta_of_match(node: Match, delta: Derive) -> tuple[Term, ...]:
    """``ΔM_K(R) = M_K(new R ⋉ keys(ΔR)) − M_K(old R ⋉ keys(ΔR))``; without PARTITION BY all rows are one partition.

    A late row may make other matches of all rows behind it, so nothing less than the partition is computed anew.
    """
    return delta_by_keys(node, delta)
