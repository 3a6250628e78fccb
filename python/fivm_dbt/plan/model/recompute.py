"""A model that is not maintained is recomputed in this way."""

from __future__ import annotations

from dataclasses import dataclass

from fivm_dbt.catalog import SparkType


@dataclass(frozen=True)
class InputReach:
    """The rows of ``relation`` that a row of the result has a part of: ``low ≤ column − its time ≤ high``.

    In microseconds; None for an end that nothing is known of.
    """

    relation: str
    column: str
    type: SparkType
    low: int | None
    high: int | None


@dataclass(frozen=True)
class RecomputedParts:
    """How a result is recomputed where it can have changed: by the time in its state's ``column``.

    A change of an input that is not among ``inputs`` can be anywhere.
    """

    column: str
    type: SparkType
    inputs: tuple[InputReach, ...]

    def reach(self, relation: str) -> InputReach | None:
        return next((i for i in self.inputs if i.relation == relation), None)


@dataclass(frozen=True)
class Recompute:
    """Why a model is recomputed instead of maintained, and what is known of its text.

    ``changes_by_itself``: every run recomputes, also when no input has moved. ``not_repeatable``: why a second
    evaluation over the same rows may differ, so that there is nothing to compare with. ``clock``: the columns of the
    clock in whose places the text gets literals, so that it is evaluated at the time of the refresh. ``parts``: how
    the rows that a change cannot reach are left as they are; None where all are written anew.
    """

    reason: str
    changes_by_itself: bool
    clock: tuple[str, ...]
    not_repeatable: str | None
    parts: RecomputedParts | None = None
