"""A view's delta may group rows before these meet the changes of other inputs (eager aggregation)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from fivm_dbt.delta.term import Term, read_before
from fivm_dbt.plan.model.state import StateTable


@dataclass(frozen=True)
class EagerDelta:
    """The delta of a view in a refresh in which of all that it reads just the input ``relation`` has changed.

    ``state`` has the columns of the view's state. They are computed of the rows of ``term``, which are groups.
    """

    relation: str
    term: Term
    state: StateTable


@dataclass(frozen=True)
class EagerTerms:
    """The terms of a view's delta, of which all rows are groups, and the columns of its state as computed of them."""

    terms: tuple[Term, ...]
    state: StateTable


def eager_terms(deltas: Sequence[EagerDelta], changed: Collection[str]) -> EagerTerms | None:
    """What several inputs change together, as a telescoped sum; None where one of them has no delta by groups.

    ``Δ(R ⋈ V ⋈ S) = ΔR ⋈ V ⋈ old S + new R ⋈ V ⋈ ΔS``, where the rows that are grouped to V have not changed.
    """
    found = [delta for delta in deltas if delta.relation in changed]
    if not found or len(found) < len(changed) or any(d.state != found[0].state for d in found):
        return None
    later = [{d.relation for d in found[number:]} for number in range(1, len(found) + 1)]
    terms = (
        Term(read_before(delta.term.node, others), delta.term.multiplicity)
        for delta, others in zip(found, later, strict=True)
    )
    return EagerTerms(tuple(terms), found[0].state)
