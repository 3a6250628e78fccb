"""Whole queries: TPC-H's 22 and those of the multilevel IVM paper, followed through streams of changes on DuckDB.

``NOT_YET`` lists the queries that the planner refuses. A query in it that is accepted fails a test, so the list can
only become shorter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import benchmarks.queries.run as run
import benchmarks.tpch
import pytest
from benchmarks.queries.draft import Draft
from benchmarks.queries.graph import paths_suite
from benchmarks.queries.papers_suite import IN_PAPER, papers_suites, variants
from benchmarks.queries.report import print_results
from benchmarks.queries.run import Followed, run_suite
from benchmarks.queries.suite import QUERIES, Suite
from benchmarks.queries.tpch_suite import tpch_suite
from click.testing import CliRunner
from rich.console import Console

from fivm_dbt.catalog import Catalog, Relation
from fivm_dbt.config import Config, load_config
from fivm_dbt.explain.operators import reads_in_full
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.plan.planner import plan_model
from fivm_dbt.plan.request import ModelRequest
from fivm_dbt.refresh.engine import Engine, Row
from fivm_dbt.refresh.report import Report
from fivm_dbt.testing.workbench import DuckDbWorkbench
from fixtures.runs import by_run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOT_YET: dict[str, str] = {}
"""The code with which each query is refused. Everything else is maintained."""

SLICE = (1, 5, 13, 16, 18, 21)
"""Between them: expressions, a six-way join, an outer join, NOT IN, LIMIT, EXISTS and NOT EXISTS."""

TPCH_ROWS = {
    "q01": 4, "q02": 4, "q03": 10, "q04": 5, "q05": 5, "q06": 1, "q07": 4, "q08": 2, "q09": 173, "q10": 20, "q11": 1,
    "q12": 2, "q13": 33, "q14": 1, "q15": 1, "q16": 296, "q17": 1, "q18": 2, "q19": 1, "q20": 1, "q21": 1, "q22": 7,
}  # fmt: skip
"""Rows of every result over the unchanged tables at scale 0.01."""

EMPTY = {"tpch22"}
"""Of the paper's queries those without a row: a sum over no orders is NULL in Spark, and never equal to 0."""

SMALL: dict[str, Any] = {"orders": 40, "racks": 4, "changes": 200, "scale": 0.001}


def _quiet(text: str) -> None:
    pass


def _run(suite: Suite) -> dict[str, Followed]:
    with closing(DuckDbWorkbench()) as workbench:
        return {followed.query.name: followed for followed in run_suite(suite, workbench, _quiet)}


def _check(results: Mapping[str, Followed]) -> None:
    """Every query is maintained, or refused exactly as the list says."""
    for name, followed in results.items():
        if name in NOT_YET:
            assert followed.verdict != "maintained", f"{name} is maintained: take it out of NOT_YET"
            assert (followed.verdict, followed.code) == ("refused", NOT_YET[name]), followed.message
        else:
            assert followed.verdict == "maintained", f"{name} {followed.verdict}: {followed.message}"


@pytest.fixture(scope="module")
def tpch() -> Suite:
    return tpch_suite(scale=SMALL["scale"])


@pytest.fixture(scope="module")
def papers() -> tuple[Suite, ...]:
    return papers_suites(**SMALL)


@pytest.fixture(scope="module")
def tables() -> Iterator[Engine]:
    """The eight tables at scale 0.01, unchanged."""
    suite = tpch_suite(batches=0)
    with closing(DuckDbWorkbench()) as workbench:
        for table in suite.tables:
            contents = suite.contents[table.name]
            assert isinstance(contents, Path)
            workbench.load(table, contents)
        yield workbench.engine


@pytest.mark.more
class TestTexts:
    """The texts by themselves, in DuckDB's translation: nothing of this touches the planner."""

    def test_rows_of_tpch(self, tpch: Suite, tables: Engine) -> None:
        assert {query.name: len(tables.query(query.sql)) for query in tpch.queries} == TPCH_ROWS

    def test_published_answers(self, tpch: Suite, tables: Engine) -> None:
        """Single values that are well known for scale 0.01."""
        texts = {query.name: query.sql for query in tpch.queries}
        first = next(row for row in tables.query(texts["q01"]) if row[:2] == ("A", "F"))
        assert first[2:6] == tuple(
            map(Decimal, ("380456.00", "532348211.65", "505822441.4861", "526165934.000839"))
        )
        assert first[9] == 14876
        assert tables.query(texts["q06"]) == [(Decimal("1193053.2253"),)]
        assert tables.query(texts["q03"])[0][:2] == (47714, Decimal("267010.5894"))
        assert sorted(tables.query(texts["q12"])) == [("MAIL", 64, 86), ("SHIP", 61, 96)]

    def test_the_papers_queries_have_rows(self, papers: tuple[Suite, ...]) -> None:
        found = {}
        for suite in papers:
            with closing(DuckDbWorkbench()) as workbench:
                runner = run._Runner(suite, workbench, _quiet, _quiet, load_config({}))
                runner.build()
                for name, change in suite.batches[0].changes.items():
                    workbench.change(runner.specs[name], change.insert, change.delete)
                for query in suite.queries:
                    found[query.name] = workbench.engine.query(query.sql)
        assert {name for name, rows in found.items() if not rows} == EMPTY
        assert found["tpch22_coalesced"]

    def test_every_file_is_run(self, tpch: Suite, papers: tuple[Suite, ...]) -> None:
        run_here = {f"tpch/{q.name}.sql" for q in tpch.queries}
        run_here |= {f"papers/{q.name}.sql" for suite in papers for q in suite.queries}
        assert run_here == {str(path.relative_to(QUERIES)) for path in QUERIES.rglob("*.sql")}
        assert set(NOT_YET) <= {Path(path).stem for path in run_here}

    def test_coalesced_texts_differ_only_in_that(self) -> None:
        pairs = [variants(name) for name in IN_PAPER]
        assert sum(len(pair) == 2 for pair in pairs) == 7
        for name, coalesced in (pair for pair in pairs if len(pair) == 2):
            written, other = ((QUERIES / "papers" / f"{n}.sql").read_text() for n in (name, coalesced))
            bare = other.replace("coalesce(", "").replace(", 0)", "")
            assert bare == "".join(line for line in written.splitlines(True) if "No row in Spark" not in line)


class TestPaths:
    """Self-joins of growing length over a graph whose edges come and go."""

    @pytest.mark.parametrize("strategy", by_run(["recursive"], more=["factorized"]))
    def test_counts_stay_exact(self, strategy: str) -> None:
        suite = paths_suite([2, 3, 5], edges=300, changes=60, batches=3)
        with closing(DuckDbWorkbench()) as workbench:
            found = run_suite(suite, workbench, _quiet, _quiet, strategy)
        assert [f.verdict for f in found] == ["maintained"] * 3
        assert all(len(f.shown) == 1 for f in found)

    def test_the_graph_is_skewed_and_its_paths_can_be_counted(self) -> None:
        (suite,) = (paths_suite([2], edges=2000, changes=10, batches=1),)
        rows = suite.contents["edges"]
        assert isinstance(rows, tuple)
        out, into = Counter(r[0] for r in rows), Counter(r[1] for r in rows)
        assert min(max(out.values()), max(into.values())) > 40
        assert sum(out[target] for _, target in rows) < 2 * len(rows)


class TestStreams:
    @pytest.mark.more
    def test_same_seed_same_stream(self, papers: tuple[Suite, ...]) -> None:
        assert [s.batches for s in papers_suites(**SMALL)] == [s.batches for s in papers]

    @pytest.mark.more
    def test_many_batches_over_all_tables(self, tpch: Suite) -> None:
        assert len([batch for batch in tpch.batches if not batch.title.startswith("undo")]) >= 10
        assert set(tpch.batches[0].changes) == {table.name for table in tpch.tables}
        changes = [change for batch in tpch.batches for change in batch.changes.values()]
        assert any(change.insert and change.delete for change in changes)
        assert any(None in row for change in changes for row in change.insert)

    @pytest.mark.more
    def test_undone_batches_lead_back(self, tpch: Suite, papers: tuple[Suite, ...]) -> None:
        """The stream passes through states in which it has been before."""
        for suite in (tpch, *papers):
            undone = sum(batch.title.startswith("undo") for batch in suite.batches)
            assert undone >= 2
            assert len({*_states(suite)}) < len(suite.batches)

    def test_rows_are_there_twice_and_then_gone(self) -> None:
        draft = Draft({"r": ["a"]}, {"r": [(1,), (1,)]}, seed=1)
        (row,) = draft.rows("r")
        draft.update("r", row, a=2)
        draft.delete("r", draft.rows("r", lambda r: r.a == 2)[0])
        batch = draft.finish("one copy goes")
        assert batch.summary() == "r -1"
        assert (draft.copies("r", row), draft.undo().summary(), draft.copies("r", row)) == (1, "r +1", 2)


def _states(suite: Suite) -> Iterator[frozenset[tuple[str, frozenset[tuple[Row, int]]]]]:
    state: dict[str, Counter[Row]] = {table.name: Counter() for table in suite.tables}
    for batch in suite.batches:
        for name, change in batch.changes.items():
            state[name].update(change.insert)
            state[name].subtract(change.delete)
        yield frozenset((name, frozenset((r, n) for r, n in bag.items() if n)) for name, bag in state.items())


@pytest.mark.more
class TestMaintained:
    def test_slice_of_tpch(self) -> None:
        results = _run(tpch_suite(SLICE, batches=3))
        _check(results)
        assert all(len(f.steps) == 4 for f in results.values())

    def test_papers_at_small_size(self, papers: tuple[Suite, ...]) -> None:
        for suite in papers:
            batches = suite.batches[: 3 if "TPC-H" in suite.name else 11]
            _check(_run(Suite(suite.name, suite.tables, suite.contents, suite.queries, batches)))

    def test_a_threshold_that_moves_reads_no_table(self, papers: tuple[Suite, ...]) -> None:
        """When an inner total moves, rows are looked up in views that are kept, and never in an input."""
        names = ("mst", "psp", "svl", "tpch17", "tpch18", "tpch22", "vwap")
        for suite in papers:
            catalog = Catalog.of([Relation(t.name, t.columns) for t in suite.tables])
            inputs = {relation.name for relation in catalog.relations}
            for query in suite.queries:
                if not query.name.startswith(names):
                    continue
                plan = plan_model(ModelRequest(f"m.{query.name}", query.sql, catalog, Config()))
                assert len(plan.views) > 1, query.name
                for view in plan.views:
                    for read, changed in reads_in_full(view):
                        assert read not in inputs or set(changed) & inputs, (query.name, view.name, read)

    def test_every_query_as_listed(self) -> None:
        """Of all queries, whether they are accepted: the rest of TPC-H takes longer to follow."""
        _check(_run(tpch_suite(batches=0, scale=0.001)))

    @pytest.mark.long
    def test_all_of_tpch(self) -> None:
        results = _run(tpch_suite())
        _check(results)
        unmoved = [name for name, f in results.items() if not any(s.changed for s in f.steps[1:])]
        assert unmoved == [], "no batch changes the result"

    @pytest.mark.long
    def test_all_of_the_papers(self) -> None:
        for suite in papers_suites():
            _check(_run(suite))

    @pytest.mark.long
    @pytest.mark.spark
    def test_slice_on_spark(self, spark: SparkSession) -> None:
        from fivm_dbt.testing.spark_workbench import SparkWorkbench

        with closing(SparkWorkbench(spark, "fivm_queries")) as workbench:
            suite = tpch_suite((1, 5, 6), batches=3, scale=0.001)
            results = run_suite(suite, workbench, _quiet)
        assert [(f.verdict, f.message) for f in results] == [("maintained", None)] * 3


class TestFailures:
    """What is wrong is seen, named, and ends nothing else."""

    def test_a_stale_model_fails(self, monkeypatch: pytest.MonkeyPatch) -> None:
        refresh = run.refresh
        built: dict[str, Report] = {}

        def only_once(plan: Plan, engine: Engine) -> Report:
            if plan.relation == "q06" and "q06" in built:
                return built["q06"]
            built[plan.relation] = refresh(plan, engine)
            return built[plan.relation]

        monkeypatch.setattr(run, "refresh", only_once)
        results = _run(tpch_suite((1, 6), batches=1, scale=0.001))
        assert [f.verdict for f in results.values()] == ["maintained", "FAILED"]
        console = Console(record=True, width=160)
        assert print_results(console, list(results.values())) == 1
        text = console.export_text()
        assert "q06 FAILED: differs from the recompute after 1 batches" in text
        assert "only maintained: (" in text
        assert "2 queries: 1 maintained, 0 recomputed, 0 refused, 1 FAILED" in text

    def test_a_planner_that_breaks_fails(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def broken(request: object, describe: object) -> None:
            raise KeyError("no rule")

        monkeypatch.setattr(run, "plan_model", broken)
        (followed,) = _run(tpch_suite((6,), batches=1, scale=0.001)).values()
        assert (followed.verdict, followed.message) == ("FAILED", "KeyError: 'no rule'")

    def test_command(self, tmp_path: Path) -> None:
        report = tmp_path / "report.json"
        arguments = [
            "--queries", "6,22", "--batches", "1", "--scale", "0.001", "--report", str(report)
        ]  # fmt: skip
        done = CliRunner().invoke(benchmarks.tpch.main, arguments)
        assert done.exit_code == 0, done.output
        assert "2 queries: 2 maintained, 0 recomputed, 0 refused, 0 FAILED" in done.output
        assert '"verdict": "maintained"' in report.read_text()
        assert CliRunner().invoke(benchmarks.tpch.main, ["--queries", "23"]).exit_code == 2
