"""Pairs of queries that mean the same are both maintained, and must be equal after every step.

Where a recompute and its maintained model err alike, because the engine or the translation to it does, a pair still
differs: one meaning is reached by two constructs. All pairs are over the tables of ``cells``.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import closing

from fivm_dbt.testing.compare import Difference, compare_rows, with_lists_sorted
from fivm_dbt.testing.replay import OpenWorkbench, Replay
from fivm_dbt.testing.scenario_plans import plan_models
from generator.cells.runs import LONG, Tables, cell_scenario
from generator.differential import described, tiny_workbench
from generator.families import FAMILIES, Parts, Texts


def texts(name: str, seed: int) -> Texts:
    """The queries of a family with random parts."""
    return FAMILIES[name].write(Parts(random.Random(f"{name} {seed}")))


def run_family(
    name: str, seed: int, contents: Sequence[Tables] = LONG, open_workbench: OpenWorkbench = tiny_workbench
) -> str | None:
    """Maintain all queries of a family; the first difference, from a recompute or from each other, as text."""
    return failure(texts(name, seed), contents, open_workbench)


def failure(
    sqls: Texts, contents: Sequence[Tables] = LONG, open_workbench: OpenWorkbench = tiny_workbench
) -> str | None:
    """As :func:`run_family`, for queries of one's own."""
    scenario = cell_scenario({f"m{number}": sql for number, sql in enumerate(sqls)}, contents)
    with closing(open_workbench()) as workbench:
        replay = Replay(scenario, plan_models(scenario, workbench), workbench)
        for number in range(len(scenario.steps) + 1):
            run = replay.step(number, scenario.steps[number - 1]) if number else replay.build()
            if not run.is_good:
                return "\n".join((described(run), *sqls))
            for other in range(1, len(sqls)):
                difference = _difference(replay, other)
                if difference:
                    lines = difference.lines(sqls[0], sqls[other])
                    return "\n".join((f"step {number}: two queries that mean the same differ", *lines))
    return None


def _difference(replay: Replay, other: int) -> Difference:
    engine = replay.workbench.engine
    types = [column.type for column in replay.plans[0].output]
    rows = [
        [with_lists_sorted(row) for row in engine.query(f"SELECT * FROM {replay.plans[number].relation}")]
        for number in (0, other)
    ]
    return compare_rows(rows[0], rows[1], types)
