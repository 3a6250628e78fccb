"""The time of a refresh is read once, before versions are pinned, and recorded with them in the head."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fivm_dbt.ir.clock import Clock
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.refresh.recorder import Recorder
from fivm_dbt.steps.binding import BoundClock


def read_clock(plan: Plan, engine: Recorder, finished: Mapping[str, Any] | None) -> BoundClock | None:
    """The time of the state by its head (of a build there is none before) and now; None where not used."""
    if not plan.clock_kinds:
        return None
    now = engine.clock().only(plan.clock_kinds)
    return BoundClock(Clock(**finished["clock"]) if finished is not None else now, now)


def is_by_the_day(plan: Plan) -> bool:
    """Whether the plan reads nothing but the date, so that its time stands still for a day."""
    return plan.clock_kinds == {"date"}


def finished_clock(clock: BoundClock | None) -> dict[str, Any]:
    """The part of a head that says what time its state is of."""
    return {} if clock is None else {"clock": clock.new.as_dict()}


def clock_detail(clock: BoundClock) -> dict[str, Any]:
    """Both times, for a refresh that is open."""
    return {"old": clock.old.as_dict(), "new": clock.new.as_dict()}


def recorded_clock(recorded: Mapping[str, Any]) -> BoundClock | None:
    """The times of a recorded binding."""
    times = recorded.get("clock")
    return BoundClock(Clock(**times["old"]), Clock(**times["new"])) if times is not None else None


def movement(clock: BoundClock | None) -> str | None:
    """From when to when the time went, for the report."""
    if clock is None or not clock.moved:
        return None
    old, new = (", ".join(c.as_dict().values()) for c in (clock.old, clock.new))
    return f"the clock moved from {old} to {new}"
