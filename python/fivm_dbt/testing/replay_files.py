"""``fivm replay`` runs all scenarios of some files: a line each, a summary, a report for machines."""

from __future__ import annotations

import itertools
import json
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, get_args

from fivm_dbt.config import Strategy
from fivm_dbt.errors import FivmError, expected_one_of
from fivm_dbt.spark.merge import Way
from fivm_dbt.testing.load import load_scenarios
from fivm_dbt.testing.outcome import ScenarioResult
from fivm_dbt.testing.replay import OpenWorkbench, Replays
from fivm_dbt.testing.scenario import RawRows, Scenario
from fivm_dbt.testing.scenario_plans import NOTHING, Forced
from fivm_dbt.testing.workbench import DuckDbWorkbench

ENGINES = ("duckdb", "spark")
STRATEGIES: tuple[str, ...] = get_args(Strategy)
"""``all`` replays every scenario with each of them."""

WAYS: tuple[str, ...] = get_args(Way)
"""``--apply all`` does so with each of these."""

_TINY = 500
"""Up to so many rows DuckDB starts faster without its optimiser than it runs with it."""

Echo = Callable[[str], None]


def replay_files(
    paths: Sequence[Path | str],
    engine_name: str = "duckdb",
    strategy: str | None = None,
    strict: bool = False,
    report: Path | str | None = None,
    only: Collection[str] = (),
    echo: Echo = print,
    forced: Forced = NOTHING,
    interprets: bool = False,
) -> int:
    """Replay the scenarios of ``paths``; returns the exit code.

    ``strategy`` None takes each model's own configuration; ``forced`` is what holds for all besides.
    ``strict`` counts refusals, rebuilds and recomputes as failures, except refusals that a scenario expects. What is
    only for another engine is skipped. ``interprets``: compare
    with the second oracle too. Raises FIVM601 for files that are not valid.
    """
    strategies = _strategies(strategy)
    ways = WAYS if forced.apply == "all" else (forced.apply,)
    chosen = [located.scenario for located in load_scenarios(paths)]
    unknown = sorted(set(only) - {s.id for s in chosen})
    if unknown:
        raise FivmError(
            "FIVM601", f"no scenario is called {', '.join(unknown)}", remedy="see the ids in the files"
        )
    chosen = [s for s in chosen if not only or s.id in only]
    results: list[ScenarioResult] = []
    with tempfile.TemporaryDirectory(prefix="fivm-replay-") as directory:
        opener = _opener(engine_name, Path(directory), counts=report is not None)
        for scenario in chosen:
            replays = Replays(scenario, opener(scenario), interprets=interprets)
            for name, way in itertools.product(strategies, ways):
                if scenario.only_on not in (None, engine_name):
                    result = ScenarioResult(
                        scenario.id,
                        name or "",
                        "skipped",
                        message=f"only on {scenario.only_on}",
                        apply=way,
                    )
                else:
                    result = replays.replay(name, replace(forced, apply=way))
                results.append(result)
                for line in [result.line(), *result.details()]:
                    echo(line)
    echo(summary(results))
    content: dict[str, Any] = {"engine": engine_name}
    if interprets:
        checked, others = second_opinions(results)
        echo(f"checked by a second oracle: {checked} of {checked + others.total()} steps")
        for construct, count in others.most_common():
            echo(f"  not understood, {count} times: {construct}")
        content["second_oracle"] = {"checked": checked, "not_understood": dict(others.most_common())}
    if report is not None:
        content["scenarios"] = [r.as_dict() for r in results]
        Path(report).write_text(json.dumps(content, indent=2, default=str) + "\n", encoding="utf-8")
    return int(any(_is_failure(result, strict) for result in results))


def summary(results: Sequence[ScenarioResult]) -> str:
    """The last line of a replay.

    >>> summary([ScenarioResult("a", "", "passed"), ScenarioResult("b", "", "refused", code="FIVM105")])
    '2 scenarios: 1 passed, 1 refused (FIVM105: 1), 0 failed'
    """
    counts = Counter(result.outcome for result in results)
    codes = Counter(result.code for result in results if result.outcome == "refused")
    listed = ", ".join(f"{code}: {count}" for code, count in sorted(codes.items(), key=str))
    refused = f"{counts['refused']} refused" + (f" ({listed})" if listed else "")
    skipped = f", {counts['skipped']} skipped" if counts["skipped"] else ""
    return (
        f"{len(results)} scenarios: {counts['passed']} passed, {refused}, {counts['failed']} failed{skipped}"
    )


def second_opinions(results: Sequence[ScenarioResult]) -> tuple[int, Counter[str]]:
    """How many refreshes the second oracle has checked, and what it did not understand in the others."""
    runs = [run for result in results for step in result.steps for run in step.models]
    others = Counter(run.not_interpreted for run in runs if run.not_interpreted is not None)
    return sum(run.is_interpreted for run in runs), others


def _is_failure(result: ScenarioResult, strict: bool) -> bool:
    if result.outcome == "failed":
        return True
    return strict and (result.outcome == "refused" or result.rebuilds > 0 or bool(result.recomputed))


def _strategies(strategy: str | None) -> tuple[str | None, ...]:
    if strategy == "all":
        return STRATEGIES
    if strategy is not None and strategy not in STRATEGIES:
        message = f"no strategy {strategy} ({expected_one_of(('all', *STRATEGIES))})"
        raise FivmError("FIVM201", message, remedy="choose another one")
    return (strategy,)


def _opener(engine_name: str, directory: Path, *, counts: bool) -> Callable[[Scenario], OpenWorkbench]:
    """How a scenario's engine starts; ``counts``: somebody wants to know what is read."""
    if engine_name == "duckdb":
        return lambda scenario: partial(DuckDbWorkbench, tiny=not counts and _rows(scenario) <= _TINY)
    if engine_name == "spark":
        # Needs pyspark and Java, which a replay on DuckDB does not.
        from fivm_dbt.testing.spark_workbench import spark_workbenches

        open_workbench = spark_workbenches(directory)
        return lambda _: open_workbench
    raise FivmError(
        "FIVM201", f"no engine {engine_name} ({expected_one_of(ENGINES)})", remedy="choose another one"
    )


def _rows(scenario: Scenario) -> int:
    """How many rows the scenario puts into its tables."""
    given: list[RawRows] = list(scenario.initial.values())
    for step in scenario.steps:
        given += (*step.replace.values(), *step.recreate.values())
        given += (change.insert for change in step.delta.values())
    return sum(map(len, given))
