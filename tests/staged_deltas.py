"""What a replay stages, step by step, as text for the documentation.

Those are the net changes of the inputs, the keys that they affect, and the delta that is merged into each state.
"""

from __future__ import annotations

from dataclasses import dataclass

from fivm_dbt.engines.duckdb.engine import DuckDbEngine
from fivm_dbt.naming import PARTITION
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.steps.binding import staged_input, staged_state
from fivm_dbt.testing.replay import Replay
from fivm_dbt.testing.scenario import Scenario
from fivm_dbt.testing.scenario_plans import plan_models
from fivm_dbt.testing.workbench import DuckDbWorkbench


@dataclass(frozen=True)
class Staged:
    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class _WatchedEngine(DuckDbEngine):
    """Remembers the rows of everything that is staged."""

    def __init__(self) -> None:
        super().__init__(tiny=True)
        self.seen: list[Staged] = []

    def stage(self, name: str, sql: str) -> None:
        super().stage(name, sql)
        columns = [c.name for c in self.describe(f"SELECT * FROM {name}")]
        # Buckets are others than Spark's.
        shown = [i for i, column in enumerate(columns) if column != PARTITION]
        rows = sorted(tuple(_text(row[i]) for i in shown) for row in self.query(f"SELECT * FROM {name}"))
        self.seen.append(Staged(name, tuple(columns[i] for i in shown), tuple(rows)))


class _WatchedWorkbench(DuckDbWorkbench):
    def __init__(self) -> None:
        super().__init__(tiny=True)
        self._engine.close()
        self.watched = self._engine = _WatchedEngine()


def staged_deltas(scenario: Scenario, place: str) -> tuple[tuple[Plan, ...], str]:
    """The plans of a scenario, and what each step staged.

    Every step must have an expectation and be refreshed, not rebuilt, with a right result.
    """
    workbench = _WatchedWorkbench()
    try:
        plans = plan_models(scenario, workbench)
        titles = {name: title for plan in plans for name, title in _titles(plan)}
        replay = Replay(scenario, plans, workbench)
        built = replay.build()
        assert built.is_good, f"{place}: {built}"
        texts = []
        for number, step in enumerate(scenario.steps, start=1):
            assert step.expected, f"{place}: step {number} expects nothing"
            workbench.watched.seen.clear()
            run = replay.step(number, step)
            assert run.is_good, f"{place}: {run}"
            actions = [model.report.action for model in run.models if model.report is not None]
            assert "refreshed" in actions and set(actions) <= {"refreshed", "no change"}, (place, actions)
            heading = [f"step {number}"] if len(scenario.steps) > 1 else []
            seen = [s for s in workbench.watched.seen if s.rows]
            texts.append("\n".join([*heading, *(_table(s, titles[s.name]) for s in seen)]))
        return plans, "\n\n".join(texts) + "\n"
    finally:
        workbench.close()


def _titles(plan: Plan) -> list[tuple[str, str]]:
    """What is staged under which name."""
    found = [(staged_input(plan, item.name), f"Δ{item.name}") for item in plan.inputs]
    for view in plan.views:
        found.append((staged_state(plan, view), f"Δ{view.name}"))
        found.append((staged_input(plan, view.name), f"Δ{view.name}, as rows"))
        found += [(staged_input(plan, k.name), f"{k.name}, affected keys") for k in view.key_sets]
    return found


def _table(staged: Staged, title: str) -> str:
    lines = [staged.columns, *staged.rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(staged.columns))]
    cells = [[cell.ljust(width) for cell, width in zip(line, widths, strict=True)] for line in lines]
    return "\n".join([title, *(f"  {'  '.join(row)}".rstrip() for row in cells)])


def _text(value: object) -> str:
    """A value as a reader needs it: of states of patterns how much there is; the slot of a last mark is a bucket."""
    if isinstance(value, list):
        return f"[{len(value)}]"
    if isinstance(value, dict) or (isinstance(value, tuple) and any(isinstance(v, list) for v in value)):
        return f"{{{len(value)}}}"
    if isinstance(value, int) and value >= 10**15:
        return "last"
    return "NULL" if value is None else str(value)
