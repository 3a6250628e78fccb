"""A look ahead at what the next run of a model does: the run itself decides, and is stopped before it does anything."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median_low

from fivm_dbt.plan.model.head import Note
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.refresh.cost_report import known_costs
from fivm_dbt.refresh.costs import Costs, Expected
from fivm_dbt.refresh.decide import Decision
from fivm_dbt.refresh.engine import Engine
from fivm_dbt.refresh.engine import Expected as ExpectedReads
from fivm_dbt.refresh.executor import run_of
from fivm_dbt.refresh.heads import read_state
from fivm_dbt.refresh.observe import Finished, Observed, State
from fivm_dbt.refresh.recorder import OwnRows, Recorder
from fivm_dbt.refresh.report import Action
from fivm_dbt.spark.pieces import Query, Statement

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Moved:
    """An input that has another version than the model covers; ``rows`` came or went, at most, None is not known.

    One that is ``recreated`` is another table of the same name: its versions count from the beginning.
    """

    relation: str
    from_version: int
    to_version: int
    rows: int | None
    recreated: bool = False


NOT_KNOWN = Expected(None, None)


@dataclass(frozen=True)
class Ahead:
    """What the next run does, because of what, and the seconds that it is expected to take, and a build in its place.

    The action is what the run's report would say. A refresh that is expected to take longer than a build becomes one
    when its change has been counted: then ``may_build``.
    """

    action: Action
    reason: str | None = None
    moved: tuple[Moved, ...] = ()
    expected: Expected = NOT_KNOWN
    may_build: bool = False


def look_ahead(
    plan: Plan,
    engine: Engine,
    state: State | None = None,
    *,
    full_refresh: bool = False,
    propagate: bool = False,
    is_in_the_way: bool = False,
) -> Ahead:
    """What :func:`refresh` with these arguments would do. Nothing is written, staged or measured.

    Raises what the run would raise before it does anything: FIVM206, FIVM301 to FIVM306, FIVM404.
    """
    state = read_state(engine, plan.state_relation) if state is None else state
    is_lazy = plan.config.fivm_refresh == "lazy" and not propagate
    make_way = _nothing if is_in_the_way else None
    run = run_of(plan, _Looking(engine, plan, logger.debug, make_way), is_lazy=is_lazy)
    run.decided = _stop
    try:
        report = run.execute(full_refresh, state)
        decision = Decision(report.action, report.reason)
    except _Stopped as stopped:
        decision = stopped.decision
    moved = tuple(_moved(decision.observed, state))
    costs = known_costs(engine, plan.state_relation, state)
    if decision.action != "refreshed":
        return Ahead(decision.action, decision.reason, moved, Expected(None, costs.build))
    expected = _expected(moved, costs)
    may_build = plan.config.fivm_rebuild == "auto" and expected.is_dearer(is_read=plan.is_read)
    return Ahead("refreshed", decision.reason, moved, expected, may_build)


def _moved(observed: Mapping[str, Observed], state: State) -> list[Moved]:
    recorded = state.inputs if isinstance(state, Finished) else {}
    return [
        Moved(o.name, recorded[o.name].commit.version, o.head.version, o.rows_written, o.recreated)
        for o in observed.values()
        if o.moved and o.name in recorded
    ]


def _expected(moved: Sequence[Moved], costs: Costs) -> Expected:
    """Of the rows that the histories of the inputs tell, or of as many as in the refreshes before."""
    found = {}
    for item in moved:
        before = [s.changed[item.relation] for s in costs.spent if item.relation in s.changed]
        rows = median_low(before) if item.rows is None and before else item.rows
        if rows is None:
            return Expected(None, costs.build)
        found[item.relation] = rows
    return costs.expected(found)


class _Stopped(Exception):
    """The run has decided, and was only to decide."""

    def __init__(self, decision: Decision) -> None:
        super().__init__(decision.action)
        self.decision = decision


def _nothing() -> None:
    """What is in the way stays."""


def _stop(decision: Decision) -> None:
    raise _Stopped(decision)


class _Looking(Recorder):
    """What a run does besides its decision is left: views that are put back, what an interrupted run has left.

    The rest would be a run that did not say what it decided.
    """

    def run(self, sql: str | Statement) -> None:
        self._record(sql)

    def expect(self, tables: Sequence[ExpectedReads]) -> None:
        """Nothing will be read."""

    def commit(
        self,
        sql: Statement,
        note: Note,
        after: int | None = None,
        own: OwnRows | None = None,
        *,
        reads_replaced: bool = False,
    ) -> None:
        raise _undecided(self._record(sql))

    def stage(self, name: str, sql: str | Statement) -> None:
        raise _undecided(name)

    def stage_all(self, staged: Sequence[tuple[str, Statement]]) -> None:
        raise _undecided(str(staged))

    def defer(self, name: str, query: Query, counts: Sequence[Statement]) -> None:
        raise _undecided(name)

    def compact(self, sql: str | Statement) -> None:
        raise _undecided(self._record(sql))


def _undecided(what: str) -> RuntimeError:
    return RuntimeError(f"a run that was to decide alone has begun: {what[:200]}")
