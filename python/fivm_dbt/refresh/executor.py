"""The executor runs the kind of refresh that a plan asks for, alone in this process and among others."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from fivm_dbt.errors import FivmError
from fivm_dbt.plan.model.plan import MaintainedPlan, Plan, RecomputedPlan
from fivm_dbt.refresh.engine import Engine
from fivm_dbt.refresh.maintained import MaintainedRun
from fivm_dbt.refresh.observe import State, locked
from fivm_dbt.refresh.owner import only_refresh_here
from fivm_dbt.refresh.recomputed import RecomputedRun
from fivm_dbt.refresh.recorder import Recorder
from fivm_dbt.refresh.report import Report
from fivm_dbt.refresh.run import Overtaken, Run, TimeRange
from fivm_dbt.registry import Registry

logger = logging.getLogger(__name__)

Progress = Callable[[str], None]

RUNS: Registry[type[Run[Any]]] = Registry({MaintainedPlan: MaintainedRun, RecomputedPlan: RecomputedRun})
"""By kind of plan what refreshes a model."""


def refresh(
    plan: Plan,
    engine: Engine,
    *,
    full_refresh: bool = False,
    state: State | None = None,
    progress: Progress = logger.info,
    propagate: bool = False,
    within: TimeRange = (None, None),
    make_way: Callable[[], None] | None = None,
) -> Report:
    """Bring the model up to date with its inputs and say what was done.

    ``state`` is what the model's head says, where it has just been read. A model with
    ``fivm_refresh: lazy`` stays as it is, once it is built, unless ``propagate`` asks for what has changed since.
    ``within`` restricts a viewdf model to the parts of a range of time. ``make_way`` drops what another materialization
    has left under the model's name: when the states are there, and their view comes next.
    Raises FIVM301 to FIVM306 for inputs, FIVM401 to FIVM405 for the state. After an error nothing is half
    visible, and the next call goes on where this one stopped.
    """
    with only_refresh_here(engine.session, plan.relation) as is_only:
        if not is_only:
            raise locked(plan, "by another thread of this process")
        recorder = Recorder(engine, plan, progress, make_way)
        is_lazy = plan.config.fivm_refresh == "lazy" and not propagate
        try:
            try:
                return run_of(plan, recorder, is_lazy=is_lazy, within=within).execute(full_refresh, state)
            except Overtaken:
                # Another process has written to the model since its head was read.
                recorder.unstage_all()
                return run_of(plan, recorder, is_lazy=is_lazy, within=within).execute(full_refresh)
        except Overtaken:
            raise locked(plan, "by another process, which was faster") from None
        except FivmError as error:
            raise error.located(model=plan.model) from None
        finally:
            recorder.unstage_all()


def run_of(
    plan: Plan, engine: Recorder, *, is_lazy: bool = False, within: TimeRange = (None, None)
) -> Run[Any]:
    """One call of the refresh that this kind of plan has."""
    run = RUNS.of(plan)
    if run is None:
        raise TypeError(f"no refresh of a {type(plan).__name__}")
    return run(plan, engine, is_lazy, within)
