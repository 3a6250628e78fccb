"""Random scenarios meet the full recompute: run one, say what it covered, save what fails."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from fivm_dbt.errors import FivmError
from fivm_dbt.ir.node import Node
from fivm_dbt.naming import quote
from fivm_dbt.plan.model.plan import FactorisedPlan, MaintainedPlan, Plan
from fivm_dbt.plan.model.view import View
from fivm_dbt.refresh.engine import Row
from fivm_dbt.spark.added import read_summed
from fivm_dbt.testing.compare import Difference, compare_rows, with_lists_sorted
from fivm_dbt.testing.outcome import ModelRun, StepRun
from fivm_dbt.testing.replay import OpenWorkbench, Replay
from fivm_dbt.testing.scenario import Model, RawRow, Scenario, Step
from fivm_dbt.testing.scenario_plans import NOTHING, Forced, ScenarioPlanner, plan_models
from fivm_dbt.testing.workbench import DuckDbWorkbench, Workbench
from generator.cases import Case, random_case
from generator.cells.table import Seen
from generator.constructs import MAY_BE_REFUSED, NOT_YET, Menu
from generator.coverage import Coverage, Events
from generator.minimise import minimised
from generator.queries.query import Query

LARGEST = 3000
"""Operators of a delta beyond which DuckDB needs minutes for its statement; about one query in a hundred."""


def operators(plan: Plan) -> int:
    """How many operators the statement of a plan's delta has, those of repeated parts each time."""
    sizes: dict[int, int] = {}

    def size(node: Node) -> int:
        if id(node) not in sizes:
            sizes[id(node)] = 1 + sum(size(child) for child in node.inputs)
        return sizes[id(node)]

    return sum(size(term.node) for view in plan.views for term in view.terms)


@dataclass(frozen=True)
class Verdict:
    """The outcome of a scenario: what it covered, and the first thing that went wrong."""

    coverage: Coverage
    failure: str | None = None
    scenario: Scenario | None = None
    """What was replayed, for :func:`save_case`; None where models were refused that should not be."""


def tiny_workbench() -> DuckDbWorkbench:
    return DuckDbWorkbench(tiny=True)


def run_random(
    seed: int,
    open_workbench: OpenWorkbench = tiny_workbench,
    menu: Menu | None = None,
    models: int = 5,
    steps: int = 5,
    most_views: int | None = None,
    strategy: str | None = None,
    forced: Forced = NOTHING,
    *,
    interprets: bool = True,
) -> Verdict:
    """Run the random case of ``seed``; a failure names the seed. Plans of more than ``most_views`` are left out.

    ``strategy`` is the ``fivm_strategy`` of all models, ``forced`` is what holds for them besides. ``interprets``:
    the models are compared with the second oracle too.

    Of the queries that the planner refuses it is only counted what they are made of; but each has to have a
    construct in it that is said to be refused, and no query that is accepted may have one.
    """
    case = random_case(seed, models, steps, menu)
    with closing(open_workbench()) as workbench:
        planned = plan_case(case, workbench, most_views, strategy, forced)
        if planned.failures:
            return Verdict(planned.coverage, f"seed {seed}: " + "\n".join(planned.failures))
        replay = Replay(
            planned.scenario, planned.plans, workbench, is_lazy=forced.is_lazy, interprets=interprets
        )
        verdict = _replayed(replay, case.queries)
    failure = None if verdict.failure is None else f"seed {seed}: {verdict.failure}"
    return Verdict(planned.coverage + verdict.coverage, failure, planned.scenario)


@dataclass(frozen=True)
class Planned:
    """What the planner makes of a random case: the scenario of the models that are maintained, and their plans.

    ``failures`` are refusals that were not foreseen, and queries that should have been refused.
    """

    scenario: Scenario
    plans: tuple[Plan, ...]
    coverage: Coverage
    failures: tuple[str, ...]


def plan_case(
    case: Case,
    workbench: Workbench,
    most_views: int | None = None,
    strategy: str | None = None,
    forced: Forced = NOTHING,
) -> Planned:
    """Plan the models of a case one by one. Too large ones are left out, with those that read them."""
    planner, coverage = ScenarioPlanner(case.scenario, workbench, strategy, forced), Coverage()
    accepted: list[tuple[Model, Plan]] = []
    refused: list[str] = []
    failures: list[str] = []
    left_out: set[str] = set()
    for model in case.scenario.models:
        query = case.queries[model.name]
        known = reasons(query)
        try:
            plan = planner.plan(model)
        except FivmError as error:
            coverage += Coverage.of_refusal(query, error.code.number)
            if not (known or _is_foreseen(query, error) or _reads_a_refused_one(error, refused)):
                failures.append(f"refused: {error}")
            refused.append(model.name)
            continue
        if known:
            failures.append(f"accepted: take {', '.join(known)} off NOT_YET\n{model.sql}")
        is_large = operators(plan) > LARGEST or (most_views is not None and len(plan.views) > most_views)
        if is_large or any(item.name in left_out for item in plan.inputs):
            coverage += Coverage(too_large=1)
            left_out.add(plan.relation)
            continue
        accepted.append((model, plan))
        coverage += Coverage.of_query(query)
    scenario = case.scenario.model_copy(update={"models": tuple(model for model, _ in accepted)})
    return Planned(scenario, tuple(plan for _, plan in accepted), coverage, tuple(failures))


def reasons(query: Query) -> list[str]:
    """What in a query is said to be refused."""
    nested = {f"{parent} > {child}" for parent, child in query.nestings}
    return [name for name in NOT_YET if name in query.uses or name in nested]


def run_scenario(scenario: Scenario, open_workbench: OpenWorkbench = tiny_workbench) -> Verdict:
    """Replay a scenario, beside the second oracle, up to the first failure.

    A refusal is a failure. Where the steps undo themselves, the states must be what they were at the start.
    """
    coverage = Coverage(queries=len(scenario.models))
    with closing(open_workbench()) as workbench:
        try:
            plans = plan_models(scenario, workbench)
        except FivmError as error:
            return Verdict(coverage, f"refused: {error}")
        verdict = _replayed(Replay(scenario, plans, workbench, interprets=True), {})
    return replace(verdict, coverage=coverage + verdict.coverage)


def _replayed(replay: Replay, queries: Mapping[str, Query]) -> Verdict:
    """``queries`` tells what the models are made of."""
    scenario = replay.scenario
    run = replay.build()
    coverage = Coverage.of_interpreted(run.models, is_build=True)
    if not run.is_good:
        return Verdict(coverage, described(run))
    first, counted = _states(replay), _Counted(replay, queries)
    for index, step in enumerate(scenario.steps, start=1):
        run = replay.step(index, step)
        coverage += counted.add(run, step) + Coverage.of_interpreted(run.models)
        if not run.is_good:
            return Verdict(coverage, described(run))
    back = _not_back(replay, first, _states(replay)) if undoes_itself(scenario) else None
    return Verdict(coverage, back)


def save_case(
    scenario: Scenario,
    directory: Path,
    open_workbench: OpenWorkbench = tiny_workbench,
    seconds: float = 20.0,
) -> Path:
    """Write a failing scenario, made as small as is found in time, into ``directory``."""
    kind = _kind(run_scenario(scenario, open_workbench).failure)
    small = minimised(scenario, lambda s: _kind(run_scenario(s, open_workbench).failure) == kind, seconds)
    path = directory / f"{scenario.id}.jsonl"
    directory.mkdir(parents=True, exist_ok=True)
    data = small.model_dump(mode="json", exclude_defaults=True)
    path.write_text(json.dumps(data) + "\n", encoding="utf-8")
    return path


def undoes_itself(scenario: Scenario) -> bool:
    """Whether the steps of a scenario leave its tables as they were."""
    net: Counter[tuple[str, RawRow]] = Counter()
    for step in scenario.steps:
        for table, change in step.delta.items():
            net.update((table, row) for row in change.insert)
            net.subtract((table, row) for row in change.delete)
    return not any(net.values()) and not any(step.replace or step.recreate for step in scenario.steps)


def _states(replay: Replay) -> list[list[Row]]:
    """The rows of the state tables that models show. What COLLECT_LIST has kept has no order."""
    engine = replay.workbench.engine
    return [
        [with_lists_sorted(row) for row in engine.query(f"SELECT * FROM {_rows_of(plan, view)}")]
        for plan, view in _shown(replay)
    ]


def _shown(replay: Replay) -> list[tuple[Plan, View]]:
    """The roots, and the factors of models that have none."""
    shown = (
        (plan, plan.stored if isinstance(plan, FactorisedPlan) else (plan.top,)) for plan in replay.plans
    )
    return [(plan, view) for plan, views in shown for view in views]


def _rows_of(plan: Plan, view: View) -> str:
    """The rows of a view's state, as an item of FROM."""
    if not isinstance(plan, MaintainedPlan):
        return view.name
    return read_summed(plan, view, None, None, "state", has_tail=True).sql(dialect="spark")


def _not_back(replay: Replay, first: list[list[Row]], last: list[list[Row]]) -> str | None:
    """Why the states are not what they were before the changes that have been undone."""
    for (plan, view), before, after in zip(_shown(replay), first, last, strict=True):
        columns = replay.workbench.engine.describe(f"SELECT * FROM {_rows_of(plan, view)}")
        difference = compare_rows(after, before, [c.type for c in columns])
        if difference:
            return f"model {plan.model}: the reversed stream does not lead back\n{_lines(difference)}"
    return None


def _lines(difference: Difference) -> str:
    return "\n".join(difference.lines("at the end", "at the start"))


class _Counted:
    """Counts what the states look like after each step; asks again only where a refresh changed a state."""

    def __init__(self, replay: Replay, queries: Mapping[str, Query]) -> None:
        self._replay = replay
        self._queries = queries
        self._events = Events(replay.scenario)
        self._tables = _tables_read(replay.plans)
        self._last = {plan.relation: self._look(plan) for plan in replay.plans}

    def add(self, run: StepRun, step: Step) -> Coverage:
        coverage = Coverage()
        events = self._events.of_step(step)
        has_deletes = any(change.delete for change in step.delta.values())
        for plan, model in zip(self._replay.plans, run.models, strict=False):
            action = model.report.action if model.report is not None else ""
            before = self._last[plan.relation][0]
            if action != "no change":
                self._last[plan.relation] = self._look(plan)
            rows, has_nulls = self._last[plan.relation]
            refreshed = int(action == "refreshed")
            happened = set().union(*(events.get(table, set()) for table in self._tables[plan.relation]))
            if rows < before:
                happened.add("empty group")
            query = self._queries.get(plan.model)
            uses = query.uses if query is not None and model.result == "equal" else ()
            cells = Counter((name, event) for name in uses for event in happened)
            inside: Seen = Counter()
            if query is not None and model.result == "equal":
                for position, kind, way, read in query.cells:
                    inside[position, kind, way, "empty" if self._events.is_empty(read) else "rows"] += 1
            shares = (int(has_deletes), int(has_nulls), int(rows > 0), refreshed)
            coverage += Coverage(0, 1, *shares, cells=cells, queries_in=inside)
        return coverage

    def _look(self, plan: Plan) -> tuple[int, bool]:
        """How many rows a root state, or that of the last factor, has, and whether one of its keys is NULL."""
        view = plan.stored[-1]
        has_null = " OR ".join(f"{quote(key.name)} IS NULL" for key in view.state.keys) or "FALSE"
        nulls = f"COALESCE(SUM(CASE WHEN {has_null} THEN 1 ELSE 0 END), 0)"
        query = f"SELECT COUNT(*), {nulls} FROM {_rows_of(plan, view)}"
        ((rows, null_keys),) = self._replay.workbench.engine.query(query)
        return _number(rows), null_keys != 0


def _number(value: object) -> int:
    assert isinstance(value, int)
    return value


def _tables_read(plans: tuple[Plan, ...]) -> dict[str, set[str]]:
    """The tables that each model reads, also through other models."""
    found: dict[str, set[str]] = {}
    for plan in plans:
        found[plan.relation] = set().union(*(found.get(i.name, {i.name}) for i in plan.inputs))
    return found


def _is_foreseen(query: Query, error: FivmError) -> bool:
    """Whether a query may be refused with this code: one with such a construct, and with a subquery."""
    return bool(query.nestings and query.uses & MAY_BE_REFUSED.get(error.code.number, frozenset()))


def _reads_a_refused_one(error: FivmError, refused: list[str]) -> bool:
    """Whether a model was refused only because one that it reads was."""
    return error.code.number == "FIVM103" and any(re.search(rf"\b{name}\b", str(error)) for name in refused)


def _kind(failure: str | None) -> str | None:
    """What sort of failure it is: an error's code or class, or rows that differ. A smaller case must keep it.

    >>> _kind("step 3\\nmodel v1: BinderException: no such column"), _kind("step 1\\nmodel v: not equal")
    ('BinderException', 'not equal')
    """
    if failure is None:
        return None
    found = re.search(
        r"FIVM\d+|\w+(Exception|Error)\b|not equal|not as interpreted|does not lead back", failure
    )
    return found.group() if found else failure


def described(run: StepRun) -> str:
    """What went wrong in a step."""
    lines = [f"step {run.step}"]
    for model in run.models:
        if model.result in ("different", "error"):
            lines.append(f"model {model.model}: {model.error or _what_differs(model)}")
            lines += [line for finding in model.findings for line in finding.lines()]
    return "\n".join(lines)


def _what_differs(model: ModelRun) -> str:
    only_second = all(finding.right == "interpreter" for finding in model.findings)
    return "not as interpreted" if only_second else "not equal"
