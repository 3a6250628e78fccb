"""A replay builds a scenario's tables, refreshes after each step, and compares with full recompute.

The models go through the same planner and executor as in dbt.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from time import perf_counter

from fivm_dbt.engines.duckdb.unsupported import CODE as NOT_ON_DUCKDB
from fivm_dbt.errors import CODES, FivmError
from fivm_dbt.features.viewdf.testing.oracle import PartOracle
from fivm_dbt.ir.clock import Clock
from fivm_dbt.naming import canonical
from fivm_dbt.plan.model.plan import MaintainedPlan, Plan
from fivm_dbt.refresh.executor import refresh
from fivm_dbt.refresh.report import Report
from fivm_dbt.testing.check import column_types
from fivm_dbt.testing.compare import compare_rows
from fivm_dbt.testing.outcome import Finding, ModelRun, Outcome, Result, ScenarioResult, StepRun
from fivm_dbt.testing.references import References
from fivm_dbt.testing.scenario import RawRows, Scenario, Step
from fivm_dbt.testing.scenario_plans import NOTHING, Forced, plan_models, table_specs
from fivm_dbt.testing.values import to_rows
from fivm_dbt.testing.workbench import Workbench

OpenWorkbench = Callable[[], Workbench]

logger = logging.getLogger(__name__)

_WITHOUT_A_TREE = ("first_order", "recursive", "reevaluate")
"""Strategies that contradict ``fivm_result: factorized``."""


def replay_scenario(
    scenario: Scenario,
    open_workbench: OpenWorkbench,
    strategy: str | None = None,
    forced: Forced = NOTHING,
    *,
    interprets: bool = False,
) -> ScenarioResult:
    """Replay with the scenario's own configuration, or with ``strategy`` for every model.

    ``forced`` says what holds for all models besides; ``interprets``: compare with the second oracle too.
    """
    return Replays(scenario, open_workbench, interprets=interprets).replay(strategy, forced)


class Replays:
    """Replays of one scenario under several strategies: what comes to the same plans is replayed once.

    Its result stands for the others, each of which says whose it is.
    """

    def __init__(
        self, scenario: Scenario, open_workbench: OpenWorkbench, *, interprets: bool = False
    ) -> None:
        self._scenario = scenario
        self._open_workbench = open_workbench
        self._interprets = interprets
        self._done: list[tuple[tuple[bool, tuple[Plan, ...]], ScenarioResult]] = []

    def replay(self, strategy: str | None = None, forced: Forced = NOTHING) -> ScenarioResult:
        """As :func:`replay_scenario`."""
        start = perf_counter()
        scenario = self._scenario
        result = ScenarioResult(scenario.id, strategy or "", "passed", apply=forced.apply)
        if strategy in _WITHOUT_A_TREE and any(
            m.config.get("fivm_result") == "factorized" for m in scenario.models
        ):
            message = "a result that is kept as factors has a view tree"
            return replace(result, outcome="skipped", message=message)
        if forced.is_lazy and any(m.materialized == "viewdf" for m in scenario.models):
            return replace(result, outcome="skipped", message="viewdf models are never lazy")
        workbench = self._open_workbench()
        try:
            plans = plan_models(scenario, workbench, strategy, forced)
        except FivmError as error:
            result = _refused(result, scenario, error)
        else:
            result = self._once(result, plans, workbench, forced)
        finally:
            workbench.close()
        return replace(result, seconds=perf_counter() - start)

    def differs(self, forced: Forced) -> bool:
        """Whether the models have other plans where something is forced, or are refused."""
        return self._runs(forced) != self._runs(NOTHING)

    def _runs(self, forced: Forced) -> tuple[Plan, ...] | str:
        workbench = self._open_workbench()
        try:
            return tuple(map(_as_run, plan_models(self._scenario, workbench, forced=forced)))
        except FivmError as error:
            return error.code.number
        finally:
            workbench.close()

    def _once(
        self, result: ScenarioResult, plans: tuple[Plan, ...], workbench: Workbench, forced: Forced
    ) -> ScenarioResult:
        run = forced.is_lazy, tuple(map(_as_run, plans))
        for other, found in self._done:
            if other == run:
                return replace(found, strategy=result.strategy, apply=result.apply, same_as=found.variant)
        result = self._tried(result, plans, workbench, forced)
        if self._scenario.expected_error is None:
            self._done.append((run, result))
        return result

    def _tried(
        self, result: ScenarioResult, plans: tuple[Plan, ...], workbench: Workbench, forced: Forced
    ) -> ScenarioResult:
        """The replay; what an engine does not accept, in the tables or their changes, fails this scenario and no other.

        It is refused, FIVM602, where DuckDB cannot evaluate a model's own text.
        """
        try:
            return self._replayed(result, plans, workbench, forced)
        except FivmError as error:
            return _refused(result, self._scenario, error)
        except Exception as error:
            logger.debug("replay of %s", self._scenario.id, exc_info=True)
            return replace(result, outcome="failed", message=f"{type(error).__name__}: {error}")

    def _replayed(
        self, result: ScenarioResult, plans: tuple[Plan, ...], workbench: Workbench, forced: Forced
    ) -> ScenarioResult:
        scenario = self._scenario
        if scenario.expected_error is not None and _recomputes(result):
            message = f"{scenario.expected_error} is expected of models that are maintained"
            return replace(result, outcome="skipped", message=message)
        if scenario.expected_error is not None:
            message = f"{scenario.expected_error} was expected, but the models were accepted"
            return replace(result, outcome="failed", message=message)
        replay = Replay(scenario, plans, workbench, is_lazy=forced.is_lazy, interprets=self._interprets)
        steps = [replay.build()]
        for index, step in enumerate(scenario.steps, start=1):
            steps.append(replay.step(index, step))
        outcome: Outcome = "passed" if all(step.is_good for step in steps) else "failed"
        return replace(result, outcome=outcome, steps=tuple(steps))


def _as_run(plan: Plan) -> Plan:
    """The plan without what is only for people, and without the choices that have led to it."""
    if isinstance(plan, MaintainedPlan):
        config = plan.config.model_copy(update={"fivm_strategy": "auto"})
        bare = replace(plan, config=config, view_trees=(), inequalities=(), part_maps=())
        return replace(bare, measured=None, measurable=())
    # Nothing is applied to what is recomputed.
    return replace(
        plan, config=plan.config.model_copy(update={"fivm_strategy": "auto", "fivm_apply": "auto"})
    )


def _recomputes(result: ScenarioResult) -> bool:
    """Whether the models were to be recomputed, whatever the scenario says: what cannot be maintained is accepted."""
    return result.strategy == "reevaluate"


def _refused(result: ScenarioResult, scenario: Scenario, error: FivmError) -> ScenarioResult:
    code = error.code.number
    expected = CODES.get(scenario.expected_error or "")
    if _recomputes(result) and expected is not None and expected.fault == error.code.fault == "query":
        return replace(result, code=code, message=str(error))  # the engine found it before the planner looked
    if scenario.expected_error is None:
        is_refusal = error.code.fault in ("query", "config")
        return replace(result, outcome="refused" if is_refusal else "failed", code=code, message=str(error))
    if scenario.expected_error == code:
        return replace(result, code=code, message=str(error))
    message = f"{scenario.expected_error} was expected, but there was: {error}"
    return replace(result, outcome="failed", code=code, message=message)


class Replay:
    """A scenario on a workbench, step by step.

    One that ``is_lazy`` applies changes at every second step and the last, and at those that expect an error. In
    between models have to show what they have shown before.
    """

    def __init__(
        self,
        scenario: Scenario,
        plans: tuple[Plan, ...],
        workbench: Workbench,
        *,
        is_lazy: bool = False,
        interprets: bool = False,
    ) -> None:
        self._is_lazy = is_lazy
        self.scenario = scenario
        self.plans = plans
        self.workbench = workbench
        self._specs = table_specs(scenario)
        self._types = column_types(scenario)
        self._names = {canonical(m.name): m.name for m in scenario.models}
        self._references = References(plans, workbench, interprets=interprets)
        self._reads_clock = any(plan.clock_kinds for plan in plans)
        self._now: datetime | None = None

    def build(self) -> StepRun:
        """Create the tables and build every model."""
        for name, table in self._specs.items():
            self.workbench.create(table, self._rows(name, self.scenario.initial.get(name, ())))
        for plan in self.plans:
            self.workbench.make_room(plan.relation)
        self._set_clock(self.scenario.now)
        return self._refresh_all(0, self.scenario.initial_expected, None)

    def step(self, index: int, step: Step) -> StepRun:
        """Change the tables and refresh every model."""
        self._set_clock(step.now)
        for name, raw in step.recreate.items():
            self.workbench.recreate(self._specs[name], self._rows(name, raw))
        for name, raw in step.replace.items():
            self.workbench.replace(self._specs[name], self._rows(name, raw))
        for name, change in step.delta.items():
            insert, delete = self._rows(name, change.insert), self._rows(name, change.delete)
            if insert or delete:
                self.workbench.change(self._specs[name], insert, delete)
        is_last = index == len(self.scenario.steps)
        if self._is_lazy and index % 2 and not is_last and step.expected_error is None:
            return StepRun(index, tuple(self._wait(plan) for plan in self.plans))
        return self._refresh_all(index, step.expected, step.expected_error)

    def _wait(self, plan: Plan) -> ModelRun:
        """A run that is not asked for changes must leave a lazy model as it was."""
        name, shown = self._names[plan.relation], f"SELECT * FROM {plan.relation}"
        engine = self.workbench.engine
        try:
            before = engine.query(shown)
            report = refresh(plan, engine)
            after = engine.query(shown)
        except Exception as error:
            return ModelRun(name, "error", error=f"{type(error).__name__}: {error}")
        difference = compare_rows(after, before, [c.type for c in plan.output])
        findings = (Finding("waiting", "before", difference),) if difference else ()
        return _run(name, report, findings, is_repeatable=True)

    def _set_clock(self, now: str | None) -> None:
        """The time of a step is that of the step before where it says nothing, and the real one where none does.

        It stands still within a step, so that all models of a chain see the same.
        """
        if now is not None:
            self._now = datetime.fromisoformat(now)
        self.workbench.set_clock(Clock.at(self._now) if self._now is not None else None)
        clock = self.workbench.engine.clock() if self._reads_clock else None
        self.workbench.set_clock(clock)
        self._references.clock = clock

    def _rows(self, table: str, raw: RawRows) -> tuple[tuple[object, ...], ...]:
        return to_rows(raw, self._types[table])

    def _refresh_all(
        self, index: int, expected: Mapping[str, RawRows] | None, expected_error: str | None
    ) -> StepRun:
        runs: list[ModelRun] = []
        oracle = PartOracle(self.workbench.engine)
        try:
            for plan in self.plans:
                rows = (expected or {}).get(self._names[plan.relation])
                run = self._refresh(plan, rows, expected_error, oracle)
                runs.append(run)
                if run.report is None:
                    break  # models further down would read the state of before
        finally:
            oracle.close()
        maintains = any(plan.config.fivm_strategy != "reevaluate" for plan in self.plans)
        raised = any(r.result == "expected error" for r in runs)
        missing = expected_error is not None and not raised and maintains
        problem = f"{expected_error} was expected, but every refresh succeeded" if missing else None
        return StepRun(index, tuple(runs), problem)

    def _refresh(
        self, plan: Plan, expected: RawRows | None, expected_error: str | None, oracle: PartOracle
    ) -> ModelRun:
        name = self._names[plan.relation]
        try:
            report = refresh(plan, self.workbench.engine, propagate=True)
            findings = self._references.findings(plan, expected, oracle)
            if report.action == "built":
                self._references.check_types(plan)
        except FivmError as error:
            code = error.code.number
            if code == NOT_ON_DUCKDB and expected_error is None:
                raise
            result: Result = "expected error" if code == expected_error else "error"
            return ModelRun(name, result, error=str(error), code=code)
        except Exception as error:  # whatever an engine raises fails this scenario, not the replay
            self._references.check_text(plan, name)
            return ModelRun(name, "error", error=f"{type(error).__name__}: {error}")
        run = _run(name, report, findings, plan.not_repeatable is None)
        return self._references.interpreted(run, plan)


def _run(name: str, report: Report, findings: tuple[Finding, ...], is_repeatable: bool) -> ModelRun:
    good: Result = "equal" if is_repeatable else "not comparable"
    return ModelRun(name, "different" if findings else good, report, findings)
