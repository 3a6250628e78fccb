"""A failing scenario becomes smaller while it still fails: fewer models, steps and rows, smaller queries."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any

from fivm_dbt.testing.check import problems
from fivm_dbt.testing.scenario import Change, RawRow, Scenario, Step
from generator.minimise_sql import smaller_queries

Fails = Callable[[Scenario], bool]


def minimised(scenario: Scenario, fails: Fails, seconds: float = 20.0) -> Scenario:
    """A smaller scenario for which ``fails`` still holds: the smallest that greedy removal finds in time."""
    deadline = perf_counter() + seconds
    improved = True
    while improved and perf_counter() < deadline:
        improved = False
        for candidate in _smaller(scenario):
            if perf_counter() >= deadline:
                break
            if not problems(candidate) and fails(candidate):
                scenario, improved = candidate, True
                break
    return scenario


def _smaller(scenario: Scenario) -> Iterator[Scenario]:
    """Candidates, those that remove most first."""
    count = len(scenario.steps)
    for end in sorted({0, count // 2, count - 1}):
        if 0 <= end < count:
            yield scenario.model_copy(update={"steps": scenario.steps[:end]})
    for index in reversed(range(len(scenario.models))):
        models = scenario.models[:index] + scenario.models[index + 1 :]
        yield scenario.model_copy(update={"models": models})
    for index in range(count):
        yield scenario.model_copy(update={"steps": scenario.steps[:index] + scenario.steps[index + 1 :]})
    for index, step in enumerate(scenario.steps):
        for table in step.delta:
            delta = {t: c for t, c in step.delta.items() if t != table}
            yield _with_step(scenario, index, step.model_copy(update={"delta": delta}))
    yield from _smaller_models(scenario)
    yield from _without_rows(scenario)
    words = set(re.findall(r"\w+", " ".join(m.sql for m in scenario.models)))
    for table in scenario.tables:
        if table not in words:
            fields = ("tables", "initial", "tables_options")
            kept = {f: {t: v for t, v in getattr(scenario, f).items() if t != table} for f in fields}
            yield scenario.model_copy(update=kept)


def _smaller_models(scenario: Scenario) -> Iterator[Scenario]:
    """With one query made smaller, or one configuration left out."""
    for index, model in enumerate(scenario.models):
        changes: Iterator[dict[str, Any]] = ({"sql": sql} for sql in smaller_queries(model.sql))
        for change in (*changes, *([{"config": {}}] if model.config else [])):
            changed = model.model_copy(update=change)
            models = (*scenario.models[:index], changed, *scenario.models[index + 1 :])
            yield scenario.model_copy(update={"models": models})


def _without_rows(scenario: Scenario) -> Iterator[Scenario]:
    """Without one row that is there from the start, or one that a step inserts; its next delete goes too."""
    for table, rows in scenario.initial.items():
        for position, row in enumerate(rows):
            initial = {**scenario.initial, table: rows[:position] + rows[position + 1 :]}
            yield _without_delete(scenario.model_copy(update={"initial": initial}), 0, table, row)
    for index, step in enumerate(scenario.steps):
        for table, change in step.delta.items():
            for position, row in enumerate(change.insert):
                insert = change.insert[:position] + change.insert[position + 1 :]
                smaller = _with_change(scenario, index, table, Change(insert=insert, delete=change.delete))
                yield _without_delete(smaller, index + 1, table, row)


def _without_delete(scenario: Scenario, start: int, table: str, row: RawRow) -> Scenario:
    for index in range(start, len(scenario.steps)):
        change = scenario.steps[index].delta.get(table)
        if change is not None and row in change.delete:
            position = change.delete.index(row)
            delete = change.delete[:position] + change.delete[position + 1 :]
            return _with_change(scenario, index, table, Change(insert=change.insert, delete=delete))
    return scenario


def _with_change(scenario: Scenario, index: int, table: str, change: Change) -> Scenario:
    step = scenario.steps[index]
    return _with_step(scenario, index, step.model_copy(update={"delta": {**step.delta, table: change}}))


def _with_step(scenario: Scenario, index: int, step: Step) -> Scenario:
    steps = (*scenario.steps[:index], step, *scenario.steps[index + 1 :])
    return scenario.model_copy(update={"steps": steps})
