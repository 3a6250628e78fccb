"""An interrupted refresh was about to read versions: they are still there, or the model is rebuilt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.refresh.decide import unreadable
from fivm_dbt.refresh.observe import Observed, RecordedInput, observe_input
from fivm_dbt.refresh.recorder import Recorder
from fivm_dbt.spark.formats import VersionUnavailable
from fivm_dbt.steps.binding import Binding, BoundInput


class Gone(Exception):
    """The refresh cannot be finished; the text says why. ``recreated`` are the inputs that are other tables now."""

    def __init__(self, reason: str, recreated: frozenset[str] = frozenset()) -> None:
        super().__init__(reason)
        self.recreated = recreated


def bound_again(
    plan: Plan, engine: Recorder, binding: Binding, recorded: Mapping[str, RecordedInput]
) -> Binding:
    """The recorded binding, with versions compared where a change feed does not tell any more. Raises Gone."""
    since = {b.name: b.old for b in binding.inputs}
    found = {
        name: observe_input(plan, engine, plan.input(name), record, since[name])
        for name, record in recorded.items()
    }
    again = sorted(name for name, o in found.items() if o.recreated)
    if again:
        what = f"{', '.join(again)} was dropped and created anew before an interrupted refresh was finished"
        raise Gone(what, frozenset(again))
    forgotten = sorted(name for name, o in found.items() if o.forgotten)
    if forgotten:
        raise Gone(
            unreadable(plan, VersionUnavailable(f"the history of {', '.join(forgotten)} was cleaned up"))
        )
    return replace(binding, inputs=tuple(_readable(b, found[b.name]) for b in binding.inputs))


def _readable(bound: BoundInput, now: Observed) -> BoundInput:
    if bound.capture == "change feed" and not now.same_columns:
        return replace(bound, capture="version difference")
    return bound
