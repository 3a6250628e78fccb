"""A step says what is done; :mod:`fivm_dbt.spark.statements` has the SQL of each kind."""

from __future__ import annotations

from dataclasses import dataclass

from fivm_dbt.delta.key_sets import KeySet
from fivm_dbt.delta.products import Part, ProductDelta
from fivm_dbt.plan.model.view import View


@dataclass(frozen=True)
class StageState:
    """Stage everything of a view that others are built of."""

    view: View


@dataclass(frozen=True)
class Build:
    """Create the table of all states with everything in it."""


@dataclass(frozen=True)
class StageInput:
    """Stage the net change of the input ``relation``."""

    relation: str


@dataclass(frozen=True)
class Locate:
    """Ask in which partitions of states those keys lie that are looked up there: by a key set, else by the delta.

    A key set of a ``product`` is asked for where the view's change comes as that product.
    """

    view: View
    key_set: KeySet | None = None
    product: ProductDelta | None = None


@dataclass(frozen=True)
class StageKeys:
    """Stage the keys that the changes affect, each once; those of a ``product`` where the change comes as that.

    Where the set is inlined nothing is staged: it is computed where it is asked for its partitions.
    """

    view: View
    key_set: KeySet
    product: ProductDelta | None = None


@dataclass(frozen=True)
class StageFactor:
    """Stage a factor of the view's delta, where its change comes as a ``product``."""

    view: View
    part: Part
    product: ProductDelta


@dataclass(frozen=True)
class StageDelta:
    """Stage the delta of a view's state: the terms of what changed, added up per key."""

    view: View


@dataclass(frozen=True)
class Count:
    """Ask which partitions a staged delta touches, with how many keys, and when its rows were."""

    view: View


@dataclass(frozen=True)
class Write:
    """Bring all staged deltas into their states, in one commit; nothing where they are empty."""


@dataclass(frozen=True)
class KeepSnapshot:
    """Keep the rows of the input ``relation`` at its version in a table of the model's own, before the head is set.

    Repeated it gives the same rows, so a refresh that was interrupted may do it twice.
    """

    relation: str


@dataclass(frozen=True)
class StageChange:
    """Let the views above an inner one read its change.

    Where a row of its delta is a row of its change, that is read; where components are added up, what its keys show
    with the delta, less what they showed without it, is staged. Where those above ask only whether it changed,
    nothing is staged.
    """

    view: View


@dataclass(frozen=True)
class Factorise:
    """Look whether the staged delta of an inner view is a sum of few products, and stage its factors."""

    view: View


Step = (
    StageState
    | Build
    | StageInput
    | Locate
    | StageKeys
    | StageFactor
    | StageDelta
    | Count
    | KeepSnapshot
    | Write
    | StageChange
    | Factorise
)
UpdateStep = Locate | StageKeys | StageFactor | StageDelta | Count | Write | StageChange | Factorise
"""What is done in a refresh, once its inputs are staged."""
