"""Random queries over random change streams, compared with full recompute after every step.

The numbers are fixed; FIVM_SEED=n runs others. A failing scenario is made smaller and saved in tests/saved_cases,
where test_scenarios replays it for ever. ``make random ARGS=--help`` tells of constructs of one's choice.
"""

from __future__ import annotations

import gc
import json
import os
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sqlglot import exp

from cached_statements import cache_statements
from fivm_dbt.delta.rule import DELTAS
from fivm_dbt.delta.term import Derive, Term, at_side
from fivm_dbt.errors import FivmError
from fivm_dbt.ir.node import Side
from fivm_dbt.ir.nodes import Join
from fivm_dbt.sql.parse import parse
from fivm_dbt.testing.load import load_scenarios
from fivm_dbt.testing.scenario import Scenario
from fivm_dbt.testing.scenario_plans import plan_models
from fivm_dbt.testing.workbench import DuckDbWorkbench
from fixtures.runs import by_run
from generator.alone import Alone, run_alone
from generator.batches import end_states, in_one_batch, in_single_rows
from generator.cases import base_relations, probe, random_case, random_scenario
from generator.constructs import CONSTRUCTS, NOT_YET, Menu
from generator.coverage import Coverage
from generator.differential import (
    Verdict,
    plan_case,
    reasons,
    run_random,
    run_scenario,
    save_case,
    undoes_itself,
)
from generator.queries.sql import Queries
from generator.tables import random_tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEED = int(os.environ.get("FIVM_SEED", "20240501"))
CHUNKS = 8
SCENARIOS_PER_CHUNK = 7
LONG_CHUNKS = 10
SCENARIOS_PER_LONG_CHUNK = 9
LONG_SPARK_CHUNKS = 11
SAVED_CASES = Path(__file__).parent / "saved_cases"


def _seeds(chunk: int) -> range:
    first = SEED * 1000 + chunk * SCENARIOS_PER_CHUNK
    return range(first, first + SCENARIOS_PER_CHUNK)


def _long_seeds(chunk: int) -> range:
    first = SEED * 1000 + 500 + chunk * SCENARIOS_PER_LONG_CHUNK
    return range(first, first + SCENARIOS_PER_LONG_CHUNK)


@pytest.fixture(autouse=True)
def without_collector(request: pytest.FixtureRequest) -> Iterator[None]:
    """A tenth of the time goes into looking for garbage among syntax trees.

    On Spark it is needed: what Python still holds of a query, plans of hundreds of kilobytes, Java must keep.
    """
    if "spark" in request.fixturenames:
        yield
        return
    gc.disable()
    yield
    gc.enable()


def _run(seeds: range, models: int) -> tuple[Coverage, list[str]]:
    """Run random scenarios; what they covered, and what went wrong, each with its saved case."""
    coverage, failures = Coverage(), []
    for seed in seeds:
        verdict = run_random(seed, models=models, steps=3)
        coverage += verdict.coverage
        if verdict.failure is not None:
            saved = f"saved as {save_case(verdict.scenario, SAVED_CASES)}" if verdict.scenario else ""
            failures.append(f"{verdict.failure}\n{saved}")
        gc.collect()
    return coverage, failures


AddChunk = Callable[[str, int, int, Coverage], "Coverage | None"]


COMPANY = ("inner join", "left join", "subquery", "where", "exists", "group by", "sum", "window", "rollup")
"""What constructs stand in, or stand beside, where one is to be seen by itself."""


def _exercise(cells: list[tuple[str, str]], tries: int = 24) -> tuple[Coverage, list[str]]:
    """Scenarios of one construct after the other, until what did not happen to it by chance has happened."""
    coverage, failures = Coverage(), []
    for name, event in cells:
        menu = Menu.only(name, *COMPANY)
        for seed in range(SEED, SEED + tries):
            if failures or coverage.cells[name, event]:
                break
            verdict = run_random(seed, menu=menu, models=4, steps=3)
            coverage += verdict.coverage
            failures += [verdict.failure] if verdict.failure is not None else []
    return coverage, failures


def _check_cells(total: Coverage) -> None:
    """Every construct has met every event, the rare ones in scenarios of their own."""
    missing = total.missing_cells(ACCEPTED)
    assert len(missing) <= 20, f"left to chance: {missing}"
    more, failures = _exercise(missing)
    assert not failures, "\n\n".join(failures)
    assert (total + more).missing_cells(ACCEPTED) == [], f"never exercised, of {total}"


@pytest.fixture
def all_chunks(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> AddChunk:
    """Adds up the coverage of chunks that run in several processes; the last one gets the sum, the others None."""
    base = tmp_path_factory.getbasetemp()
    directory = base if worker_id == "master" else base.parent

    def add(kind: str, chunk: int, count: int, coverage: Coverage) -> Coverage | None:
        path = directory / f"fivm_coverage_{kind}_{chunk}.json"
        path.with_suffix(".part").write_text(json.dumps(coverage.as_dict()), encoding="utf-8")
        path.with_suffix(".part").replace(path)
        there = sorted(directory.glob(f"fivm_coverage_{kind}_*.json"))
        if len(there) < count:
            return None
        parts = [Coverage.from_dict(json.loads(p.read_text(encoding="utf-8"))) for p in there]
        return sum(parts, Coverage())

    return add


ACCEPTED = Menu.accepted().names


def test_a_few_random_scenarios(monkeypatch: pytest.MonkeyPatch) -> None:
    """For the fast run: the first one of those of the next test."""
    cache_statements(monkeypatch)
    coverage, failures = _run(_seeds(0)[:1], models=4)
    assert not failures, "\n\n".join(failures)
    assert coverage.pairs >= 15
    assert coverage.share_interpreted >= 0.9, coverage.not_understood


@pytest.mark.parametrize("chunk", by_run(more=range(2), long=range(2, CHUNKS)))
def test_random_scenarios(
    chunk: int,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
    all_chunks: AddChunk,
) -> None:
    """All chunks together are some 370 queries and 2,200 pairs, and every construct meets every event."""
    cache_statements(monkeypatch)
    coverage, failures = _run(_seeds(chunk), models=7)
    record_property("coverage", str(coverage))
    print(f"FIVM_SEED={SEED}, chunk {chunk}: {coverage}")
    assert not failures, "\n\n".join(failures)
    assert all(share >= 0.1 for share in coverage.shares().values()), coverage
    total = all_chunks("more", chunk, CHUNKS, coverage)
    if total is not None:
        print(total.tables())
        assert total.pairs >= 2000
        assert total.interpreted + total.not_understood.total() == total.pairs
        assert total.share_interpreted >= 0.9, total.not_understood
        _check_cells(total)
        assert total.too_large <= 0.01 * total.queries


@pytest.mark.long
@pytest.mark.parametrize("chunk", range(LONG_CHUNKS))
def test_many_random_scenarios(
    chunk: int,
    monkeypatch: pytest.MonkeyPatch,
    all_chunks: AddChunk,
) -> None:
    """Three times as many, in some chunks with every statement derived.

    Of four pairs of families of constructs three stand in each other; the fourth other seeds have.
    """
    if chunk % 5:
        cache_statements(monkeypatch)
    coverage, failures = _run(_long_seeds(chunk), models=10)
    print(f"FIVM_SEED={SEED}, long chunk {chunk}: {coverage}")
    assert not failures, "\n\n".join(failures)
    total = all_chunks("long", chunk, LONG_CHUNKS, coverage)
    if total is not None:
        print(total.tables())
        assert total.pairs >= 6500
        assert total.share_interpreted >= 0.9, total.not_understood
        _check_cells(total)
        missing = total.missing_nestings(ACCEPTED)
        assert len(missing) <= 0.25 * len(Menu().families) ** 2, missing
        assert total.too_large <= 0.01 * total.queries


def test_what_is_refused_is_what_the_list_says() -> None:
    """NOT_YET must not name what the planner accepts. (That it accepts the rest is tested by all others.)"""
    rng, workbench = random.Random(SEED), DuckDbWorkbench()
    accepted = set()
    for reason in NOT_YET:
        tables = random_tables(rng)
        query = probe(rng, tables, Menu.accepted(), reason)
        assert query is not None, f"{reason} is never generated"
        scenario = Scenario.model_validate({"id": "probe", "tables": tables, "view": "v", "sql": query.sql})
        try:
            plan_models(scenario, workbench)
        except FivmError as error:
            assert error.code.fault == "query", error
        else:
            accepted |= set(reasons(query))
    assert not accepted, f"the planner accepts {sorted(accepted)} now: take them off NOT_YET in constructs.py"


def test_constructs_are_listed_once() -> None:
    assert {name for entry in NOT_YET for name in entry.split(" > ")} <= set(CONSTRUCTS)
    assert len(set(NOT_YET)) == len(NOT_YET)
    with pytest.raises(ValueError, match="there is no construct"):
        Menu.only("no such construct")


def test_every_construct_is_generated() -> None:
    """Each one where it is wanted, in a query that sqlglot reads."""
    menu, rng = Menu(), random.Random(SEED)
    for name in menu.names:
        wanted = (Queries(rng, base_relations(random_tables(rng)), menu).query([name]) for _ in range(20))
        query = next((q for q in wanted if name in q.top), None)
        assert query is not None, f"{name} is never generated"
        parse(query.sql)


@pytest.mark.parametrize("chunk", by_run(range(1), more=range(1, 2)))
def test_queries_run_and_have_one_answer(chunk: int) -> None:
    """Over all constructs, whether the planner knows them or not."""
    _check_alone(range(SEED + chunk * 8, SEED + (chunk + 1) * 8))


@pytest.mark.long
@pytest.mark.parametrize("chunk", range(8))
def test_many_queries_run_and_have_one_answer(chunk: int) -> None:
    _check_alone(range(SEED + 1000 + chunk * 100, SEED + 1000 + (chunk + 1) * 100))


def _check_alone(seeds: range) -> None:
    done = sum((run_alone(seed) for seed in seeds), Alone())
    assert not done.failures, "\n\n".join(done.failures)
    assert done.with_rows >= 0.3 * len(done.queries), f"{done.with_rows} of {len(done.queries)} have rows"


@pytest.mark.parametrize(
    "seed", [pytest.param(SEED + n, marks=[pytest.mark.long] if n > 0 else []) for n in range(12)]
)
def test_one_batch_or_many(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The changes of several steps at once lead where they lead one by one, one row after the other as well."""
    cache_statements(monkeypatch)
    planned = plan_case(random_case(seed, models=1, steps=2), DuckDbWorkbench(tiny=True))
    steps = planned.scenario.steps[:2]
    assert planned.plans
    states = []
    for cut in (steps, in_one_batch(steps), in_single_rows(steps)):
        run = end_states(planned.scenario.model_copy(update={"steps": cut}))
        assert run.failure is None, run.failure
        states.append(run.states)
    assert states[0] == states[1] == states[2]


def test_streams_undo_themselves() -> None:
    """The replay of such a stream compares the states at its end with those at its start."""
    assert all(undoes_itself(random_scenario(seed)) for seed in range(SEED, SEED + 20))


def test_queries_are_distinct() -> None:
    seeds = [seed for chunk in range(CHUNKS) for seed in _seeds(chunk)]
    queries = [model.sql for seed in seeds for model in random_scenario(seed, models=7).models]
    assert len(set(queries)) >= 0.98 * len(queries)


def test_same_seed_same_scenario() -> None:
    assert random_scenario(SEED) == random_scenario(SEED)
    assert random_scenario(SEED) != random_scenario(SEED + 1)


def _on_spark(spark: SparkSession, seeds: Sequence[int], models: int, most_views: int | None) -> Coverage:
    """Random scenarios of ten steps, each refresh compared by Spark itself. Two run at a time, for Spark's driver
    is one thread for each."""
    from fivm_dbt.testing.spark_workbench import SparkWorkbench

    def workbench(seed: int) -> SparkWorkbench:
        return SparkWorkbench(spark, f"fivm_random_{seed}")

    def run(seed: int) -> Verdict:
        return run_random(
            seed, lambda: workbench(seed), models=models, most_views=most_views, interprets=False
        )

    coverage, failures = Coverage(), []
    with ThreadPoolExecutor(max_workers=2) as pool:
        for seed, verdict in zip(seeds, pool.map(run, seeds), strict=True):
            print(f"seed {seed} on Spark: {verdict.coverage}", flush=True)
            coverage += verdict.coverage
            if verdict.failure is not None:
                # To be minimised by hand: a step takes long.
                print(verdict.scenario and verdict.scenario.model_dump_json(exclude_defaults=True))
                failures.append(verdict.failure)
    assert not failures, "\n\n".join(failures)
    return coverage


@pytest.mark.spark
def test_random_on_spark(spark: SparkSession) -> None:
    """Ten pairs of a query and a step, of a seed whose models have few views; the run at length has a thousand."""
    coverage = _on_spark(spark, (SEED * 1000 + 307,), models=2, most_views=4)
    assert coverage.pairs >= 10


@pytest.mark.long
@pytest.mark.spark
def test_more_random_on_spark(spark: SparkSession) -> None:
    """100 pairs, of that seed and four more."""
    first = SEED * 1000 + 300
    coverage = _on_spark(spark, (*range(first, first + 4), first + 5), models=5, most_views=4)
    assert coverage.pairs >= 100


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize("chunk", range(LONG_SPARK_CHUNKS))
def test_many_random_on_spark(spark: SparkSession, chunk: int, all_chunks: AddChunk) -> None:
    """1,000 pairs, of other queries; in every fourth chunk of queries with any number of inner views."""
    first = SEED * 1000 + 350 + 4 * chunk
    is_any = chunk % 4 == 3
    seeds = range(first, first + (2 if is_any else 4))
    coverage = _on_spark(spark, seeds, models=3 if is_any else 5, most_views=None if is_any else 4)
    total = all_chunks("long_spark", chunk, LONG_SPARK_CHUNKS, coverage)
    assert total is None or total.pairs >= 1000


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
    monkeypatch.setitem(DELTAS, Join, _wrong_join)
    return monkeypatch


def test_a_wrong_delta_rule_is_found_and_saved(wrong_rule: pytest.MonkeyPatch, tmp_path: Path) -> None:
    menu = Menu.only("inner join", "using", "group by", "sum")
    verdicts = (run_random(seed, menu=menu, models=3) for seed in range(SEED, SEED + 30))
    scenario = next((v.scenario for v in verdicts if v.failure is not None), None)
    assert scenario is not None, "no random scenario notices a wrong rule for joins"
    path = save_case(scenario, tmp_path, seconds=1)
    (saved,) = load_scenarios([path])
    assert len(path.read_text()) < len(json.dumps(scenario.model_dump(mode="json", exclude_defaults=True)))
    assert run_scenario(saved.scenario).failure is not None
    wrong_rule.undo()
    assert run_scenario(saved.scenario).failure is None


@pytest.mark.more
def test_a_wrong_translation_is_found_and_saved(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Model and recompute are wrong alike where DuckDB takes a text otherwise than Spark; the interpreter is not."""
    cache_statements(monkeypatch)
    rewrites = sys.modules["fivm_dbt.engines.duckdb.functions"]._REWRITES
    menu = Menu.only("lateral view sequence", "project")
    with monkeypatch.context() as patch:
        patch.setattr("fivm_dbt.engines.duckdb.reads._TRANSPILED", {})
        patch.delitem(rewrites, exp.GenerateSeries)  # SEQUENCE would not count downwards
        verdicts = (run_random(seed, menu=menu, models=3, steps=2) for seed in range(SEED, SEED + 30))
        told = (v for v in verdicts if "not as interpreted" in (v.failure or ""))
        scenario = next((v.scenario for v in told), None)
        assert scenario is not None, "no random scenario notices a wrong translation"
        (saved,) = load_scenarios([save_case(scenario, tmp_path, seconds=3)])
        failure = run_scenario(saved.scenario).failure
        assert failure is not None
        assert "not as interpreted" in failure
    assert run_scenario(saved.scenario).failure is None
