"""Random scenarios against full recompute: run one, say what it covered, keep what fails as a saved case."""

from __future__ import annotations

import json
import re
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from fivm_dbt.errors import FivmError
from fivm_dbt.naming import quote
from fivm_dbt.plan.plan import Plan
from fivm_dbt.refresh.engine import Row
from fivm_dbt.testing.compare import Difference, compare_rows
from fivm_dbt.testing.generate import random_scenario
from fivm_dbt.testing.minimise import minimised
from fivm_dbt.testing.outcome import StepRun
from fivm_dbt.testing.replay import OpenWorkbench, Replay, plan_models
from fivm_dbt.testing.scenario import RawRow, Scenario
from fivm_dbt.testing.workbench import DuckDbWorkbench


@dataclass(frozen=True)
class Coverage:
    """What a run exercised, counted in pairs of a model and a step, and in distinct queries."""

    queries: int = 0
    pairs: int = 0
    with_deletes: int = 0
    with_null_keys: int = 0
    with_rows: int = 0
    refreshed: int = 0

    def __add__(self, other: Coverage) -> Coverage:
        return Coverage(*(getattr(self, n) + getattr(other, n) for n in self.__dataclass_fields__))

    def shares(self) -> dict[str, float]:
        """Each kind of pair as a share of all pairs."""
        names = ("with_deletes", "with_null_keys", "with_rows", "refreshed")
        return {name: getattr(self, name) / max(1, self.pairs) for name in names}

    def __str__(self) -> str:
        shares = ", ".join(f"{name.replace('_', ' ')} {share:.0%}" for name, share in self.shares().items())
        return f"{self.queries} queries, {self.pairs} pairs of query and step; {shares}"


@dataclass(frozen=True)
class Verdict:
    """The outcome of a scenario: what it covered, and the first thing that went wrong."""

    coverage: Coverage
    failure: str | None = None


def tiny_workbench() -> DuckDbWorkbench:
    return DuckDbWorkbench(tiny=True)


def run_random(seed: int, open_workbench: OpenWorkbench = tiny_workbench) -> Verdict:
    """Run the random scenario of ``seed``; a failure names the seed."""
    verdict = run_scenario(random_scenario(seed), open_workbench)
    if verdict.failure is None:
        return verdict
    return replace(verdict, failure=f"seed {seed}: {verdict.failure}")


def run_scenario(scenario: Scenario, open_workbench: OpenWorkbench = tiny_workbench) -> Verdict:
    """Replay a scenario up to the first failure.

    A refusal is a failure: everything that is generated is supposed to be maintained. Where the steps undo
    themselves, the states must be what they were at the start.
    """
    coverage = Coverage(queries=len(scenario.models))
    with closing(open_workbench()) as workbench:
        try:
            plans = plan_models(scenario, workbench)
        except FivmError as error:
            return Verdict(coverage, f"refused: {error}")
        replay = Replay(scenario, plans, workbench)
        run = replay.build()
        if not run.is_good:
            return Verdict(coverage, _described(run))
        first, counted = _states(replay), _Counted(replay)
        for index, step in enumerate(scenario.steps, start=1):
            run = replay.step(index, step)
            coverage += counted.add(run, any(c.delete for c in step.delta.values()))
            if not run.is_good:
                return Verdict(coverage, _described(run))
        back = _not_back(replay, first, _states(replay)) if _undoes_itself(scenario) else None
        return Verdict(coverage, back)


def save_case(
    seed: int, directory: Path, open_workbench: OpenWorkbench = tiny_workbench, seconds: float = 20.0
) -> Path:
    """Write the scenario of a failing ``seed``, made as small as is found in time, into ``directory``."""
    scenario = random_scenario(seed)
    kind = _kind(run_scenario(scenario, open_workbench).failure)
    small = minimised(scenario, lambda s: _kind(run_scenario(s, open_workbench).failure) == kind, seconds)
    path = directory / f"{scenario.id}.jsonl"
    directory.mkdir(parents=True, exist_ok=True)
    data = small.model_dump(mode="json", exclude_defaults=True)
    path.write_text(json.dumps(data) + "\n", encoding="utf-8")
    return path


def _undoes_itself(scenario: Scenario) -> bool:
    net: Counter[tuple[str, RawRow]] = Counter()
    for step in scenario.steps:
        for table, change in step.delta.items():
            net.update((table, row) for row in change.insert)
            net.subtract((table, row) for row in change.delete)
    return not any(net.values()) and not any(step.replace or step.recreate for step in scenario.steps)


def _states(replay: Replay) -> list[list[Row]]:
    """The rows of every root state table."""
    engine = replay.workbench.engine
    return [list(engine.query(f"SELECT * FROM {plan.root.relation}")) for plan in replay.plans]


def _not_back(replay: Replay, first: list[list[Row]], last: list[list[Row]]) -> str | None:
    """Why the states are not what they were before the changes that have been undone."""
    for plan, before, after in zip(replay.plans, first, last, strict=True):
        columns = replay.workbench.engine.describe(f"SELECT * FROM {plan.root.relation}")
        difference = compare_rows(after, before, [c.type for c in columns])
        if difference:
            return f"model {plan.model}: the reversed stream does not lead back\n{_lines(difference)}"
    return None


def _lines(difference: Difference) -> str:
    return "\n".join(difference.lines("at the end", "at the start"))


class _Counted:
    """Counts what the states look like after each step; asks again only where a refresh changed a state."""

    def __init__(self, replay: Replay) -> None:
        self._replay = replay
        self._last: dict[str, tuple[bool, bool]] = {}

    def add(self, run: StepRun, has_deletes: bool) -> Coverage:
        coverage = Coverage()
        for plan, model in zip(self._replay.plans, run.models, strict=False):
            action = model.report.action if model.report is not None else ""
            if action != "no change" or plan.relation not in self._last:
                self._last[plan.relation] = self._look(plan)
            has_rows, has_nulls = self._last[plan.relation]
            refreshed = int(action == "refreshed")
            coverage += Coverage(0, 1, int(has_deletes), int(has_nulls), int(has_rows), refreshed)
        return coverage

    def _look(self, plan: Plan) -> tuple[bool, bool]:
        """Whether a root state has rows, and whether one of its keys is NULL."""
        has_null = " OR ".join(f"{quote(key.name)} IS NULL" for key in plan.root.keys) or "FALSE"
        nulls = f"COALESCE(SUM(CASE WHEN {has_null} THEN 1 ELSE 0 END), 0)"
        query = f"SELECT COUNT(*), {nulls} FROM {plan.root.relation}"
        ((rows, null_keys),) = self._replay.workbench.engine.query(query)
        return rows != 0, null_keys != 0


def _kind(failure: str | None) -> str | None:
    """What sort of failure it is: an error's code or class, or rows that differ. A smaller case must keep it.

    >>> _kind("step 3\\nmodel v1: BinderException: no such column"), _kind("step 1\\nmodel v: not equal")
    ('BinderException', 'not equal')
    """
    if failure is None:
        return None
    found = re.search(r"FIVM\d+|\w+(Exception|Error)\b|not equal|does not lead back", failure)
    return found.group() if found else failure


def _described(run: StepRun) -> str:
    lines = [f"step {run.step}"]
    for model in run.models:
        if model.result in ("different", "error"):
            lines.append(f"model {model.model}: {model.error or 'not equal'}")
            lines += [line for finding in model.findings for line in finding.lines()]
    return "\n".join(lines)
