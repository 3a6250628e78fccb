"""Every scenario and every whole query on Spark: the text as written against the plan, without Delta.

That DuckDB agrees with itself says little about Spark: here Spark decides what a text means.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from benchmarks.queries.papers_suite import papers_suites
from benchmarks.queries.suite import Suite
from benchmarks.queries.tpch_suite import tpch_suite

from fivm_dbt.testing.load import Located, load_scenarios
from meaning import Meaning, Subject

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

HERE = Path(__file__).parent
FILES = sorted((HERE / "scenarios").glob("*"))
# Of row patterns Spark cannot say what they mean: it does not read them. Their oracle is tests/naive_matcher.py. Nor of
# models of time parts, whose text is one part's: replay computes each from scratch.
SCENARIOS = [
    located
    for located in load_scenarios(FILES)
    if located.scenario.expected_error is None
    and not any("match_recognize" in model.sql.lower() for model in located.scenario.models)
    and not any(model.materialized == "viewdf" for model in located.scenario.models)
]
THIRD = SCENARIOS[int(os.environ.get("FIVM_SEED", "0")) % 3 :: 3]
"""Of which the deltas are computed on Spark, ten seconds each: another third with another seed. DuckDB follows all."""
REFUSED = frozenset((HERE / "spark_refuses.txt").read_text(encoding="utf-8").split())
"""Scenarios that are maintained although Spark does not take their texts (docs/limitations.md), by id."""
NOT_YET = frozenset((HERE / "not_yet.txt").read_text(encoding="utf-8").split())


@pytest.fixture(scope="module")
def meaning(spark: SparkSession) -> Meaning:
    return Meaning.beside(spark)


def _parameters() -> list[Any]:
    """One small scenario of every topic."""
    smallest: dict[str, Located] = {}
    for located in sorted(SCENARIOS, key=lambda s: (len(s.scenario.models), len(s.scenario.tables), s.line)):
        smallest.setdefault(located.path.stem, located)
    return [pytest.param(located, id=located.scenario.id) for located in smallest.values()]


@pytest.mark.parametrize("located", _parameters())
def test_first_and_last_state(located: Located, meaning: Meaning) -> None:
    subject = Subject.of_scenario(located.scenario, may_refuse=located.scenario.id in NOT_YET)
    ends = replace(subject, states=(subject.states[0], subject.states[-1]))
    problems = meaning.problems(ends, deltas=False)
    assert not problems, "\n".join(problems)


@pytest.mark.long
@pytest.mark.parametrize("located", THIRD, ids=[s.scenario.id for s in THIRD])
def test_deltas_of_a_scenario(located: Located, meaning: Meaning) -> None:
    """The text, the plan, and what a refresh adds on Spark, which DuckDB has followed many times already."""
    subject = Subject.of_scenario(located.scenario, may_refuse=located.scenario.id in NOT_YET)
    if located.scenario.id in REFUSED:
        from pyspark.errors import AnalysisException

        with pytest.raises(AnalysisException):
            meaning.problems(subject, deltas=True)
        return
    problems = meaning.problems(subject, deltas=True)
    assert not problems, "\n".join(problems)


def test_deltas_of_a_deep_chain(meaning: Meaning) -> None:
    """Of an aggregate within another, which a statement has twice, Spark cannot compare what it concludes."""
    (located,) = (s for s in SCENARIOS if s.scenario.id == "long_chains/all-constructs-ten-deep")
    problems = meaning.problems(Subject.of_scenario(located.scenario), deltas=True)
    assert not problems, "\n".join(problems)


def test_what_spark_refuses_is_there() -> None:
    assert {located.scenario.id for located in SCENARIOS} >= REFUSED


def _suites() -> tuple[Suite, ...]:
    small = papers_suites(batches=2, orders=40, racks=4, changes=60, scale=0.001)
    return (tpch_suite(batches=2, scale=0.001), *small)


@pytest.mark.long
def test_whole_queries(meaning: Meaning) -> None:
    found = {
        query.name: meaning.problems(Subject.of_suite(suite, query.name), deltas=True)
        for suite in _suites()
        for query in suite.queries
    }
    assert len(found) == 42
    assert not any(found.values()), "\n".join(f"{name}: {p}" for name, ps in found.items() for p in ps)
