"""Random queries over random change streams, compared with full recompute after every step.

The numbers are fixed; FIVM_SEED=n runs others. A failing scenario is made smaller and saved in tests/saved_cases,
where test_scenarios replays it for ever.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cached_statements import cache_statements, skip_statement_checks
from fivm_dbt.delta.term import Derive, Term, at_side
from fivm_dbt.ir.nodes import Join, Side
from fivm_dbt.testing.differential import Coverage, run_random, run_scenario, save_case
from fivm_dbt.testing.generate import random_scenario
from fivm_dbt.testing.load import load_scenarios

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEED = int(os.environ.get("FIVM_SEED", "20240501"))
CHUNKS = 8
SCENARIOS_PER_CHUNK = 5
SAVED_CASES = Path(__file__).parent / "saved_cases"


def _seeds(chunk: int) -> range:
    first = SEED * 1000 + chunk * SCENARIOS_PER_CHUNK
    return range(first, first + SCENARIOS_PER_CHUNK)


def _run(seeds: range) -> tuple[Coverage, list[str]]:
    """Run random scenarios; what they covered, and what went wrong, each with its saved case."""
    coverage, failures = Coverage(), []
    for seed in seeds:
        verdict = run_random(seed)
        coverage += verdict.coverage
        if verdict.failure is not None:
            failures.append(f"{verdict.failure}\nsaved as {save_case(seed, SAVED_CASES)}")
    return coverage, failures


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_random_scenarios(
    chunk: int, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    cache_statements(monkeypatch)
    skip_statement_checks(monkeypatch)
    coverage, failures = _run(_seeds(chunk))
    record_property("coverage", str(coverage))
    print(f"FIVM_SEED={SEED}, chunk {chunk}: {coverage}")
    assert not failures, "\n\n".join(failures)
    assert all(share >= 0.1 for share in coverage.shares().values()), coverage
    # Eight such chunks are 200 queries and 2,000 pairs.
    assert coverage.pairs == 250


@pytest.mark.long
@pytest.mark.parametrize("chunk", range(20))
def test_many_random_scenarios(chunk: int) -> None:
    """Ten times as many, with every statement derived and checked as in a real refresh."""
    first = SEED * 1000 + 500 + chunk * 20
    coverage, failures = _run(range(first, first + 20))
    print(f"FIVM_SEED={SEED}, long chunk {chunk}: {coverage}")
    assert not failures, "\n\n".join(failures)


def test_queries_are_distinct() -> None:
    seeds = [seed for chunk in range(CHUNKS) for seed in _seeds(chunk)]
    queries = [model.sql for seed in seeds for model in random_scenario(seed).models]
    assert len(set(queries)) >= 200


def test_same_seed_same_scenario() -> None:
    assert random_scenario(SEED) == random_scenario(SEED)
    assert random_scenario(SEED) != random_scenario(SEED + 1)


@pytest.mark.long
@pytest.mark.spark
def test_random_scenario_on_spark(spark: SparkSession) -> None:
    from fivm_dbt.testing.spark_workbench import SparkWorkbench

    scenario = random_scenario(SEED, models=3, steps=2)
    verdict = run_scenario(scenario, lambda: SparkWorkbench(spark, "fivm_random"))
    assert verdict.failure is None


def _wrong_join(node: Join, delta: Derive) -> tuple[Term, ...]:
    """The rule of joins with *new* where *old* belongs: what changed on both sides is counted twice."""
    terms = []
    for i, factor in enumerate(node.factors):
        others = [at_side(f, Side.NEW) for f in node.factors]
        for term in delta(factor):
            terms.append(
                Term(Join((*others[:i], term.node, *others[i + 1 :]), node.predicates), term.multiplicity)
            )
    return tuple(terms)


@pytest.fixture
def wrong_rule(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    cache_statements(monkeypatch)
    skip_statement_checks(monkeypatch)
    monkeypatch.setitem(sys.modules["fivm_dbt.delta.derive"].RULES, Join, _wrong_join)
    return monkeypatch


def test_a_wrong_delta_rule_is_found_and_saved(wrong_rule: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seed = next((s for s in range(SEED, SEED + 20) if run_random(s).failure is not None), None)
    assert seed is not None, "no random scenario notices a wrong rule for joins"
    path = save_case(seed, tmp_path, seconds=2)
    (saved,) = load_scenarios([path])
    assert len(path.read_text()) < len(random_scenario(seed).model_dump_json(exclude_defaults=True))
    assert run_scenario(saved.scenario).failure is not None
    wrong_rule.undo()
    assert run_scenario(saved.scenario).failure is None
