"""A stream of changes may be cut otherwise, all at once or row by row, and must end the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field

from fivm_dbt.testing.replay import OpenWorkbench, Replay
from fivm_dbt.testing.scenario import Change, RawRow, Scenario, Step
from fivm_dbt.testing.scenario_plans import plan_models
from generator.differential import described, tiny_workbench


def in_one_batch(steps: Sequence[Step]) -> tuple[Step, ...]:
    """One step with the net change of all."""
    net: dict[str, Counter[RawRow]] = {}
    for step in steps:
        for table, change in step.delta.items():
            rows = net.setdefault(table, Counter())
            rows.update(change.insert)
            rows.subtract(change.delete)
    delta = {
        table: Change(
            insert=tuple(row for row, n in rows.items() for _ in range(n)),
            delete=tuple(row for row, n in rows.items() for _ in range(-n)),
        )
        for table, rows in net.items()
    }
    return (Step(delta=delta),)


def in_single_rows(steps: Sequence[Step]) -> tuple[Step, ...]:
    """One step per row: of each change first what goes, then what comes."""
    single = []
    for step in steps:
        for table, change in step.delta.items():
            single += [Step(delta={table: Change(delete=(row,))}) for row in change.delete]
            single += [Step(delta={table: Change(insert=(row,))}) for row in change.insert]
    return tuple(single)


@dataclass(frozen=True)
class Ended:
    """The bags that the models show in the end, or why a step failed."""

    states: list[Counter[tuple[str, ...]]] = field(default_factory=list)
    failure: str | None = None


def end_states(scenario: Scenario, open_workbench: OpenWorkbench = tiny_workbench) -> Ended:
    """Replay a scenario, with all its comparisons, and read the models."""
    with closing(open_workbench()) as workbench:
        replay = Replay(scenario, plan_models(scenario, workbench), workbench, interprets=True)
        runs = [replay.build(), *(replay.step(i, step) for i, step in enumerate(scenario.steps, start=1))]
        failure = next((described(run) for run in runs if not run.is_good), None)
        states = [
            Counter(tuple(str(value) for value in row) for row in workbench.engine.query(query))
            for query in (f"SELECT * FROM {plan.relation}" for plan in replay.plans)
        ]
    return Ended(states, failure)
