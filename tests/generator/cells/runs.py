"""Cells of the table of positions and kinds run: inputs are emptied and refilled, keys go and become NULL.

Cells are maintained together over the same tables, some at a time; where something goes wrong each of them by itself.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import pairwise

from fivm_dbt.errors import FivmError
from fivm_dbt.testing.outcome import StepRun
from fivm_dbt.testing.replay import OpenWorkbench, Replay
from fivm_dbt.testing.scenario import RawRow, Scenario
from fivm_dbt.testing.scenario_plans import ScenarioPlanner, plan_models
from generator.cells.cell import TABLES, Cell
from generator.cells.refusals import refused_by_spark
from generator.differential import described, tiny_workbench

Tables = Mapping[str, Sequence[RawRow]]

FULL: Tables = {
    "o": [(1, 1, 2), (2, 2, 0), (3, None, 1), (4, 3, None), (5, 1, 5), (5, 1, 5), (6, 4, -1)],
    "s": [(1, 5, "a"), (1, 2, "b"), (1, 2, "b"), (2, None, None), (None, 1, "a"), (4, -1, "b")],
    "u": [(1, 2), (1, None), (2, 0), (4, -1), (None, 1)],
    "p": [(1, 2), (2, None), (None, 1), (4, -1)],
}
EMPTY: Tables = {name: [] for name in TABLES}

WITHOUT_A_KEY: Tables = {
    **FULL,
    "o": [(2, 2, 0), (4, 3, None), (6, 4, -1), (7, 2, 3)],
    "s": [(2, None, None), (None, 1, "a"), (4, -1, "b"), (2, 3, "a"), (3, 3, None)],
    "u": [(2, 0), (4, -1), (None, 1), (3, None)],
    "p": [(2, None), (None, 1), (4, -1), (3, 0)],
}
"""All rows of a key have gone, that of another one has come."""

NULL_KEYS: Tables = {
    **FULL,
    "s": [(None, x, g) for _, x, g in FULL["s"]],
    "u": [(None, y) for _, y in FULL["u"]],
    "p": [(None, 1)],
}

INSIDE_EMPTY: Tables = {**FULL, "s": [], "p": []}
OUTSIDE_EMPTY: Tables = {**FULL, "o": [], "u": []}

EMPTIED: tuple[Tables, ...] = (FULL, INSIDE_EMPTY)
FILLED: tuple[Tables, ...] = (INSIDE_EMPTY, WITHOUT_A_KEY)
SHORT: tuple[Tables, ...] = (FULL, INSIDE_EMPTY, WITHOUT_A_KEY)
LONG: tuple[Tables, ...] = (
    FULL,
    INSIDE_EMPTY,
    WITHOUT_A_KEY,
    NULL_KEYS,
    OUTSIDE_EMPTY,
    FULL,
    EMPTY,
    WITHOUT_A_KEY,
)
FROM_NOTHING: tuple[Tables, ...] = (EMPTY, OUTSIDE_EMPTY, FULL, NULL_KEYS, INSIDE_EMPTY)
"""Contents of the tables, one after the other."""


def cell_scenario(sqls: Mapping[str, str], contents: Sequence[Tables] = SHORT) -> Scenario:
    """Models over the tables of cells, whose contents become these one after the other."""
    return Scenario.model_validate(
        {
            "id": "cells",
            "tables": TABLES,
            "initial": contents[0],
            "models": [{"name": name, "sql": sql} for name, sql in sqls.items()],
            "steps": [{"delta": _change(old, new)} for old, new in pairwise(contents)],
        }
    )


def _change(old: Tables, new: Tables) -> dict[str, dict[str, list[RawRow]]]:
    changes = {}
    for name in TABLES:
        before, after = Counter(old[name]), Counter(new[name])
        change = {"insert": list((after - before).elements()), "delete": list((before - after).elements())}
        if any(change.values()):
            changes[name] = change
    return changes


@dataclass(frozen=True)
class CellRun:
    """What became of some cells.

    ``outcomes`` is for each ``equal``, ``wrong``, ``crash`` or the code of an error; ``seen`` counts
    (position, kind, correlated or not, input empty or not) where the model was equal to its recompute.
    """

    outcomes: dict[Cell, str] = field(default_factory=dict)
    details: dict[Cell, str] = field(default_factory=dict)
    seen: Counter[tuple[str, str, str, str]] = field(default_factory=Counter)

    def __add__(self, other: CellRun) -> CellRun:
        return CellRun(
            {**self.outcomes, **other.outcomes}, {**self.details, **other.details}, self.seen + other.seen
        )


def run_cells(
    cells: Iterable[Cell],
    contents: Sequence[Tables] = SHORT,
    open_workbench: OpenWorkbench = tiny_workbench,
    together: int = 12,
) -> CellRun:
    """Run cells, ``together`` at a time; those that Spark refuses are left out."""
    wanted = [cell for cell in cells if refused_by_spark(cell) is None]
    done = CellRun()
    for start in range(0, len(wanted), together):
        done += _together(wanted[start : start + together], contents, open_workbench)
    return done


def _together(group: Sequence[Cell], contents: Sequence[Tables], open_workbench: OpenWorkbench) -> CellRun:
    """The cells of a group that are planned over the same tables, each alone where one of them goes wrong."""
    scenario = cell_scenario({f"m{number}": cell.sql for number, cell in enumerate(group)}, contents)
    done, planned = CellRun(), []
    with closing(open_workbench()) as workbench:
        planner = ScenarioPlanner(scenario, workbench)
        for cell, model in zip(group, scenario.models, strict=True):
            try:
                planned.append((cell, model, planner.plan(model)))
            except Exception as error:  # a crash of the planner is an outcome
                done += _not_planned(cell, error)
        scenario = scenario.model_copy(update={"models": tuple(model for _, model, _ in planned)})
        replay = Replay(scenario, tuple(plan for _, _, plan in planned), workbench, interprets=True)
        is_good = replay.build().is_good
        for number, step in enumerate(scenario.steps, start=1):
            is_good = is_good and replay.step(number, step).is_good
    if is_good:
        return sum((_equal(cell, contents) for cell, _, _ in planned), done)
    return sum((alone(cell, contents, open_workbench) for cell, _, _ in planned), done)


def _not_planned(cell: Cell, error: Exception) -> CellRun:
    if isinstance(error, FivmError):
        return CellRun({cell: error.code.number}, {cell: str(error).splitlines()[0]})
    return CellRun({cell: "crash"}, {cell: f"{type(error).__name__}: {error}"})


def _equal(cell: Cell, contents: Sequence[Tables]) -> CellRun:
    seen: Counter[tuple[str, str, str, str]] = Counter()
    how = "correlated" if cell.is_correlated else "uncorrelated"
    for tables in contents:
        empty = cell.reads is not None and not tables[cell.reads]
        seen[cell.position, cell.kind, how, "empty" if empty else "rows"] += 1
    return CellRun({cell: "equal"}, {}, seen)


def alone(
    cell: Cell, contents: Sequence[Tables] = SHORT, open_workbench: OpenWorkbench = tiny_workbench
) -> CellRun:
    """One cell by itself."""
    scenario = cell_scenario({"m": cell.sql}, contents)
    with closing(open_workbench()) as workbench:
        try:
            plans = plan_models(scenario, workbench)
        except Exception as error:  # a crash of the planner is an outcome
            return _not_planned(cell, error)
        replay = Replay(scenario, plans, workbench, interprets=True)
        run = replay.build()
        for number, step in enumerate(scenario.steps, start=1):
            if not run.is_good:
                break
            run = replay.step(number, step)
    if run.is_good:
        return _equal(cell, contents)
    return CellRun({cell: _failed(run)}, {cell: described(run)})


def _failed(run: StepRun) -> str:
    """An error that the engine raises on purpose has a code; others are crashes."""
    model = run.models[0]
    if model.result != "error":
        return "wrong"
    found = re.match(r"FIVM\d+", model.error or "")
    return found[0] if found else "crash"
