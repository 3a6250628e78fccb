"""Replaying a scenario: build its tables, refresh after each step, compare with full recompute.

The models go through the same planner and executor as in dbt. After every refresh a model is compared with

* its own text over the inputs at the versions of the refresh, a viewdf model with all its parts from scratch,
* for a model over other fivm models: the whole chain as one query over the base tables,
* the rows that the scenario expects, where it says so,
* where the second oracle is asked for: what the interpreter of Spark's semantics makes of its text,

always as bags. A model that is recomputed and has no one answer (``first``, LIMIT without ORDER BY, random values) is
compared with the expected rows only, and the result says so.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from time import perf_counter

from fivm_dbt.engines.duckdb.meaning import check_columns
from fivm_dbt.engines.duckdb.unsupported import CODE as NOT_ON_DUCKDB
from fivm_dbt.errors import CODES, FivmError
from fivm_dbt.ir.clock import Clock
from fivm_dbt.naming import canonical, quote
from fivm_dbt.plan.model.plan import MaintainedPlan, Plan, ViewdfPlan
from fivm_dbt.refresh.executor import refresh
from fivm_dbt.refresh.oracle import recompute_sql, runnable_sql
from fivm_dbt.refresh.report import Report
from fivm_dbt.sql.splice import splice_clock, splice_inputs
from fivm_dbt.testing.check import column_types
from fivm_dbt.testing.compare import Shown, compare_rows
from fivm_dbt.testing.interpreter import NotUnderstood
from fivm_dbt.testing.outcome import Finding, ModelRun, Outcome, Result, ScenarioResult, StepRun
from fivm_dbt.testing.part_oracle import PartOracle
from fivm_dbt.testing.scenario import RawRows, Scenario, Step
from fivm_dbt.testing.scenario_plans import NOTHING, Forced, plan_models, table_specs
from fivm_dbt.testing.second_oracle import SecondOracle
from fivm_dbt.testing.values import to_rows
from fivm_dbt.testing.workbench import Workbench

OpenWorkbench = Callable[[], Workbench]

logger = logging.getLogger(__name__)

_RAISES = re.compile(r"raise_error|assert_true", re.IGNORECASE)


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

    def _once(
        self, result: ScenarioResult, plans: tuple[Plan, ...], workbench: Workbench, forced: Forced
    ) -> ScenarioResult:
        if self._scenario.expected_error is not None:
            return _tried(
                result,
                self._scenario,
                plans=plans,
                workbench=workbench,
                forced=forced,
                interprets=self._interprets,
            )
        run = forced.is_lazy, tuple(map(_as_run, plans))
        for other, found in self._done:
            if other == run:
                return replace(found, strategy=result.strategy, apply=result.apply, same_as=found.variant)
        result = _tried(
            result,
            self._scenario,
            plans=plans,
            workbench=workbench,
            forced=forced,
            interprets=self._interprets,
        )
        self._done.append((run, result))
        return result


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


def _tried(
    result: ScenarioResult,
    scenario: Scenario,
    plans: tuple[Plan, ...],
    workbench: Workbench,
    forced: Forced,
    interprets: bool,
) -> ScenarioResult:
    """The replay; what an engine does not accept, in the tables or their changes, fails this scenario and no other.

    It is refused, FIVM602, where DuckDB cannot evaluate a model's own text.
    """
    try:
        return _replayed(
            result, scenario, plans=plans, workbench=workbench, forced=forced, interprets=interprets
        )
    except FivmError as error:
        return _refused(result, scenario, error)
    except Exception as error:
        logger.debug("replay of %s", scenario.id, exc_info=True)
        return replace(result, outcome="failed", message=f"{type(error).__name__}: {error}")


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


def _replayed(
    result: ScenarioResult,
    scenario: Scenario,
    plans: tuple[Plan, ...],
    workbench: Workbench,
    forced: Forced,
    interprets: bool,
) -> ScenarioResult:
    if scenario.expected_error is not None and _recomputes(result):
        message = f"{scenario.expected_error} is expected of models that are maintained"
        return replace(result, outcome="skipped", message=message)
    if scenario.expected_error is not None:
        message = f"{scenario.expected_error} was expected, but the models were accepted"
        return replace(result, outcome="failed", message=message)
    replay = Replay(scenario, plans, workbench, is_lazy=forced.is_lazy, interprets=interprets)
    steps = [replay.build()]
    for index, step in enumerate(scenario.steps, start=1):
        steps.append(replay.step(index, step))
    outcome: Outcome = "passed" if all(step.is_good for step in steps) else "failed"
    return replace(result, outcome=outcome, steps=tuple(steps))


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
        self._second = SecondOracle(workbench.engine) if interprets else None
        self._is_lazy = is_lazy
        self.scenario = scenario
        self.plans = plans
        self.workbench = workbench
        self._specs = table_specs(scenario)
        self._types = column_types(scenario)
        self._names = {canonical(m.name): m.name for m in scenario.models}
        self._whole = _over_base_tables(plans)
        self._reads_clock = any(plan.clock_kinds for plan in plans)
        self._now: datetime | None = None
        self._clock: Clock | None = None

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
        self._clock = self.workbench.engine.clock() if self._reads_clock else None
        self.workbench.set_clock(self._clock)

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
            findings = self._findings(plan, expected, oracle)
            if report.action == "built":
                self._check_types(plan)
        except FivmError as error:
            code = error.code.number
            if code == NOT_ON_DUCKDB and expected_error is None:
                raise
            result: Result = "expected error" if code == expected_error else "error"
            return ModelRun(name, result, error=str(error), code=code)
        except (
            Exception
        ) as error:  # whatever an engine raises is a failure of this scenario, not of the replay
            self._check_text(plan)
            return ModelRun(name, "error", error=f"{type(error).__name__}: {error}")
        run = _run(name, report, findings, plan.not_repeatable is None)
        return run if self._second is None else self._interpreted(run, plan, self._second)

    def _interpreted(self, run: ModelRun, plan: Plan, oracle: SecondOracle) -> ModelRun:
        """The run, compared with the second oracle as well, or why it could not be."""
        if plan.not_repeatable is not None:
            return replace(run, not_interpreted="no one answer")
        try:
            difference = oracle.difference(plan, self.workbench.engine.query(_shown_sql(plan)), self._clock)
        except NotUnderstood as error:
            return replace(run, not_interpreted=error.construct)
        except Exception as error:  # a crash of the oracle is a finding about it, not an end of the replay
            return replace(run, result="error", error=f"interpreter: {type(error).__name__}: {error}")
        if not difference:
            return replace(run, is_interpreted=True)
        findings = (*run.findings, Finding("maintained", "interpreter", difference))
        return replace(run, result="different", findings=findings, is_interpreted=True)

    def _findings(self, plan: Plan, expected: RawRows | None, oracle: PartOracle) -> tuple[Finding, ...]:
        shown = Shown(self.workbench.engine, _shown_sql(plan), plan.output)
        references = {}
        if isinstance(plan, ViewdfPlan):
            rows = oracle.rows(plan)
            if not plan.parts.plain or plan.parts.of_plain == "all":
                references["computed from scratch"] = rows
        elif plan.not_repeatable is None:
            references["recomputed"] = self._recompute(plan)
        if plan.relation in self._whole:
            whole = splice_clock(self._whole[plan.relation], self._clock)
            references["recomputed from base tables"] = whole
        found = []
        for label, reference in references.items():
            difference = shown.against(reference)
            if difference:
                found.append(Finding("maintained", label, difference))
        if expected is not None:
            types = [column.type for column in plan.output]
            difference = shown.against_rows(to_rows(expected, types))
            if difference:
                found.append(Finding("maintained", "expected", difference))
        return tuple(found)

    def _recompute(self, plan: Plan) -> str:
        return recompute_sql(plan, self._versions(plan), self._clock)

    def _check_text(self, plan: Plan) -> None:
        """After an error on DuckDB: raise FIVM602 if the model's text fails there too, and the plan is not at fault.

        What stops on Spark as well is no reason: a scalar subquery with several rows, errors that a text raises itself.
        """
        if self.workbench.describe is not None or isinstance(plan, ViewdfPlan):
            return
        try:
            self.workbench.engine.query(self._recompute(plan))
        except FivmError:
            raise
        except Exception as error:
            message = str(error).strip().split("\n")[0]
            if "More than one row" in message or _RAISES.search(plan.sql):
                return
            raise FivmError(
                NOT_ON_DUCKDB, message, remedy="fivm replay --engine spark", model=self._names[plan.relation]
            ) from error

    def _check_types(self, plan: Plan) -> None:
        """Where the engine's types are Spark's, a model must have the very types that its text has."""
        if isinstance(plan, ViewdfPlan):
            return
        if self.workbench.describe is None:
            check_columns(plan.output, self.workbench.columns_of(self._recompute(plan)))
            return
        shown = self.workbench.describe(f"SELECT * FROM {plan.relation}")
        wanted = self.workbench.describe(recompute_sql(plan, self._versions(plan)))
        pairs = zip(shown, wanted, strict=True)
        wrong = [f"{a.name} is {a.type} instead of {b.name} {b.type}" for a, b in pairs if a != b]
        if wrong:
            raise TypeError(f"columns of {plan.relation}: {'; '.join(wrong)}")

    def _versions(self, plan: Plan) -> dict[str, int]:
        """The newest version of each input: nobody else writes, so they are those of the refresh."""
        versions = {}
        for item in plan.inputs:
            shown = item.relation.presentation
            table = shown.root if shown is not None else item.name
            versions[item.name] = self.workbench.engine.commits(table, None)[0].version
        return versions


def _over_base_tables(plans: tuple[Plan, ...]) -> dict[str, str]:
    """The text of every model over other models, with their texts in it as subqueries; none where one of these may
    have another answer at a second evaluation, or is a viewdf model, whose text is that of one part."""
    texts: dict[str, str] = {}
    chained: dict[str, str] = {}
    without_answer: set[str] = set()
    for plan in plans:
        above = any(item.name in without_answer for item in plan.inputs) or isinstance(plan, ViewdfPlan)
        if above or plan.not_repeatable is not None:
            without_answer.add(plan.relation)
        if isinstance(plan, ViewdfPlan):
            continue
        # A line break, because a text may end with a comment.
        own = runnable_sql(plan)
        text = splice_inputs(own, {name: f"(\n{inner}\n)" for name, inner in texts.items()})
        if text != own and plan.relation not in without_answer:
            chained[plan.relation] = text
        texts[plan.relation] = text
    return chained


def _run(name: str, report: Report, findings: tuple[Finding, ...], is_repeatable: bool) -> ModelRun:
    good: Result = "equal" if is_repeatable else "not comparable"
    return ModelRun(name, "different" if findings else good, report, findings)


def _shown_sql(plan: Plan) -> str:
    """The columns of the query: ``fivm_part_timestamp`` shows one more."""
    columns = "*" if plan.shown == plan.output else ", ".join(quote(c.name) for c in plan.output)
    return f"SELECT {columns} FROM {plan.relation}"
