"""This module decides whether a state can be continued, and says why it has to be rebuilt."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fivm_dbt.errors import FivmError
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.plan.model.signature import STATE, is_hashed, shortened
from fivm_dbt.refresh.costs import NOTHING, Costs
from fivm_dbt.refresh.observe import Coverage, Observed, RecordedInput
from fivm_dbt.refresh.recorder import Recorder
from fivm_dbt.refresh.report import Action
from fivm_dbt.spark.formats import (
    FORMAT,
    Commit,
    MissingRelation,
    NotVersioned,
    Touched,
    VersionUnavailable,
)
from fivm_dbt.steps.applying import StateSize
from fivm_dbt.steps.binding import Binding


@dataclass(frozen=True)
class Decision:
    """What a run is about to do: ``observed`` are the inputs as they are now, where they had to be looked at."""

    action: Action
    reason: str | None = None
    observed: Mapping[str, Observed] = field(default_factory=dict)


BYTES_PER_BUCKET = 32 * 2**20
MAX_BUCKETS = 512

_REBUILD = "run with --full-refresh, or set fivm_on_change: rebuild"


def why_rebuild(plan: Plan, finished: Coverage) -> str | None:
    """The reason why the state of the last finished refresh cannot be maintained further, None where it can.

    Raises FIVM304 where the plan changed and ``fivm_on_change`` is ``fail``. A state of an older layout is built anew
    all the same: nobody has changed anything.
    """
    if finished.plan_hash == plan.plan_hash:
        return None
    before: Mapping[str, str] = finished.detail["signature"]
    reason = _what_changed(plan, before)
    is_older = before.get(STATE) not in (None, plan.signature[STATE])
    if plan.config.fivm_on_change == "fail" and not is_older:
        raise FivmError("FIVM304", reason, remedy=_REBUILD, model=plan.model)
    return reason


def known_still(plan: Plan, finished: Coverage) -> Costs:
    """What is known of costs where a state is built by another plan: of one that only has no inner views any more, all.

    It would have been built by the one before, too.
    """
    known = Costs.of(finished.detail.get("costs"))
    return known.instead() if plan.is_rebuilt and known.given_up else NOTHING


def lost_inputs(
    plan: Plan, observed: Mapping[str, Observed], recorded: Mapping[str, RecordedInput]
) -> tuple[str, frozenset[str]] | None:
    """Why an input's change cannot be captured any more, and which inputs keep an own snapshot from now on."""
    unsaved = [o for o in observed.values() if recorded[o.name].snapshot is None]
    again = sorted(o.name for o in unsaved if o.recreated)
    if again:
        what = f"{', '.join(again)} was dropped and created anew; it is kept as an own snapshot from now on"
        return what, frozenset(again)
    forgotten = sorted(o.name for o in unsaved if o.forgotten)
    if forgotten:
        error = VersionUnavailable(f"the history of {', '.join(forgotten)} was cleaned up")
        return unreadable(plan, error), frozenset()
    return None


def unreadable(plan: Plan, error: VersionUnavailable) -> str:
    """The reason for a rebuild when a recorded version is gone. Raises FIVM306 where ``fivm_on_change`` is ``fail``."""
    if plan.config.fivm_on_change == "fail":
        raise FivmError("FIVM306", str(error), remedy=_REBUILD, model=plan.model)
    return f"the recorded version can no longer be read: {error}"


def changed_by_others(plan: Plan, commits: Sequence[Commit], left: int) -> str | None:
    """Why the state is not what the last refresh left, None if it is: others may lay files out anew, no more.

    ``commits`` are its newest, back to the version ``left``. Raises FIVM404 where ``fivm_on_change`` is ``fail``.
    """
    name = plan.state_relation
    foreign = [c for c in commits if c.version > left and FORMAT.touched(c) is not Touched.FILES]
    if commits[0].version < left:
        what = f"state table {name} was dropped and created anew by somebody else"
    elif foreign:
        what = f"state table {name} was changed by somebody else ({foreign[-1].operation})"
    else:
        return None
    return _damaged(plan, what)


def beheaded(plan: Plan) -> str:
    """The reason of a rebuild where somebody has taken the head of the state. Raises FIVM404 as above."""
    return _damaged(plan, f"state table {plan.state_relation} was changed by somebody else: its head is gone")


def _damaged(plan: Plan, what: str) -> str:
    if plan.config.fivm_on_change == "fail":
        raise FivmError("FIVM404", what, remedy=_REBUILD, model=plan.model)
    return what


def without_head(plan: Plan) -> FivmError:
    """FIVM404: a table has the name of the model's state and is none."""
    return FivmError(
        "FIVM404",
        f"{plan.state_relation} stands where the states of the model are to be, and has no head: it is not fivm's",
        remedy="drop or rename that table",
        model=plan.model,
    )


def raised_alarm(error: BaseException) -> str | None:
    """The code that a check inside a MERGE raised, None for any other error.

    Errors quote the statement, which has the texts of all its checks in it: only what was raised counts.
    """
    found = re.search(r"(?:\[USER_RAISED_EXCEPTION\]|Invalid Input Error:) (FIVM\d{3})\b", str(error))
    return found.group(1) if found else None


def broken_promise(plan: Plan, binding: Binding) -> str | None:
    """Why the model has to be rebuilt when rows of an input changed that was promised not to change.

    Raises FIVM305 where ``fivm_policy`` does not allow to compute it anew.
    """
    moved = sorted(name for name in binding.changed if plan.input(name).is_static)
    if not moved:
        return None
    what = f"{', '.join(moved)} is declared static but its rows changed"
    if plan.config.fivm_policy == "incremental":
        raise FivmError(
            "FIVM305",
            what,
            remedy="run with --full-refresh, or take it out of fivm_static",
            model=plan.model,
        )
    return what


LARGE_BYTES, LARGE_ROWS = 10 * 2**20, 100_000
"""Of an input, as Spark hands smaller ones to all tasks; and of a state."""


def is_large(plan: Plan, engine: Recorder, sizes: Mapping[str, StateSize], relation: str) -> bool:
    """Whether an input or a view, of which the size is known, is too large to be handed to all tasks."""
    if relation in sizes:
        return sizes[relation].rows >= LARGE_ROWS
    table = next((i.table for i in plan.inputs if i.name == relation), None)
    try:
        return table is not None and (engine.size(table) or 0) >= LARGE_BYTES
    except (MissingRelation, NotVersioned):
        return False


def choose_buckets(plan: Plan, engine: Recorder, observed: Mapping[str, Observed]) -> int:
    """The number of hash buckets of new states: as configured, else a power of two by the inputs' size."""
    if plan.config.fivm_buckets is not None:
        return plan.config.fivm_buckets
    if all(v.state.partitioning.kind != "bucket" or v.state.is_global for v in plan.stored):
        return 1
    size = sum(engine.size(o.table) or 0 for o in observed.values())
    buckets = 1
    while buckets < MAX_BUCKETS and buckets * BYTES_PER_BUCKET < size:
        buckets *= 2
    return buckets


def _what_changed(plan: Plan, before: Mapping[str, str]) -> str:
    before, after = shortened(before), shortened(plan.signature)
    parts = [_change(key, before.get(key), after.get(key)) for key in sorted({*before, *after})]
    differing = [part for part in parts if part]
    return "; ".join(differing) if differing else "the plan changed"


def _change(part: str, before: str | None, after: str | None) -> str | None:
    """A changed part of the signature in words."""
    if before == after:
        return None
    is_known = before is not None and after is not None and not is_hashed(before) and not is_hashed(after)
    if part.startswith("columns of ") and is_known and before is not None and after is not None:
        old, new = before.split(", "), after.split(", ")
        moved = [f"{o} is now {n}" for o, n in zip(old, new, strict=False) if o != n]
        return f"{part} changed" + (f": {'; '.join(moved[:3])}" if moved else "")
    if part == "SQL":
        return "the model's SQL changed"
    # Of a hash nobody can tell what it was.
    if before is None or after is None or not is_known or len(before) + len(after) > 80:
        return f"{part} changed"
    if part == "session ansi":
        # Who goes from dbt's session method to a server meets this one, and has set nothing.
        return f"{part} changed from {before} to {after} (docs/dbt.md#one-state-for-session-and-thrift)"
    return f"{part} changed from {before} to {after}"
