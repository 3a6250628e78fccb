"""A view's delta may group rows before these meet the change of one input (eager aggregation)."""

from __future__ import annotations

from dataclasses import dataclass

from fivm_dbt.delta.term import Term
from fivm_dbt.plan.model.state import StateTable


@dataclass(frozen=True)
class EagerDelta:
    """The delta of a view in a refresh in which of all that it reads just the input ``relation`` has changed.

    ``state`` has the columns of the view's state. They are computed of the rows of ``term``, which are groups.
    """

    relation: str
    term: Term
    state: StateTable
