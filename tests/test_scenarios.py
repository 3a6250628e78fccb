"""The scenarios of tests/scenarios and every saved case, replayed on DuckDB; some of them on Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cached_statements import cache_statements, check_statements_of_builds
from fivm_dbt.errors import FivmError
from fivm_dbt.testing.load import Located, load_scenarios
from fivm_dbt.testing.outcome import ScenarioResult
from fivm_dbt.testing.replay import Replays, replay_scenario
from fivm_dbt.testing.replay_files import replay_files
from fivm_dbt.testing.scenario_plans import Forced
from fivm_dbt.testing.workbench import DuckDbWorkbench
from fixtures.runs import by_run
from generator.differential import run_scenario, tiny_workbench

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = Path(__file__).parent
SCENARIOS = load_scenarios(sorted((HERE / "scenarios").glob("*")))
NOT_YET = frozenset((HERE / "not_yet.txt").read_text(encoding="utf-8").split())
"""Scenarios whose constructs are refused as yet, by id. They must be refused: a line that is no longer true goes."""

SAVED = load_scenarios(sorted((HERE / "saved_cases").glob("*.jsonl")))

FAST = frozenset(
    "aggregates bags captures chains factors joins keys names nested nulls partitions viewdf".split()
)
"""Topics of which the fast run takes every second scenario."""
REFUSALS = frozenset(("refusals", "viewdf_refusals"))
"""Those of which it takes all. Of the other topics it takes the first one that is not marked ``long``."""
SLOW = frozenset("inequality long_chains match_parts match_recognize".split())
"""Those of which it takes none, because there are tests of them beside these."""

FORCED = {
    "factors": Forced(is_factorized=True),
    "lazy factors": Forced(is_factorized=True, is_lazy=True),
    "re-evaluated": Forced(inequality="reevaluate"),
    "parameterised": Forced(inequality="parameterised"),
    "ranges": Forced(inequality="ranges"),
}

FORCED_TOPICS = ("factors", "inequality", "products")
"""The topics of these, which are replayed with all of them."""

WRONG: dict[str, object] = {
    "id": "wrong",
    "tables": {"r": [["a", "int"], ["b", "decimal(6,2)"]]},
    "initial": {"r": [[1, "2.50"], [None, "1.00"]]},
    "sql": "select a, sum(b) as s from r group by a",
    "view": "v",
    "steps": [{"delta": {"r": {"insert": [[1, "1"]]}}, "expected": {"v": [[1, "3.50"], [None, "7.00"]]}}],
}


def _ids(found: tuple[Located, ...]) -> list[str]:
    return [located.scenario.id for located in found]


def _explained(result: ScenarioResult) -> str:
    return "\n".join([result.line(), result.message or "", *result.details()])


LARGE = frozenset("correlated outer_joins spark subqueries team windows".split())
"""Topics of many scenarios, of which make test-more takes one of three; of the others it takes every second one."""


def _parameters() -> list[Any]:
    """The scenarios; those of topics that are not in the fast run have its marker."""
    return [pytest.param(each, id=each.scenario.id, marks=_marks(each)) for each in SCENARIOS]


def _marks(located: Located) -> list[pytest.MarkDecorator]:
    topic, line, every = located.path.stem, located.line, 3 if located.path.stem in LARGE else 2
    is_first = line == every and topic not in SLOW
    if topic in REFUSALS or is_first or (topic in FAST and line % 2 == 0):
        return []
    return [pytest.mark.more] if topic in FAST or line % every == 0 else [pytest.mark.long]


@pytest.mark.parametrize("located", _parameters())
def test_scenario(located: Located, monkeypatch: pytest.MonkeyPatch) -> None:
    """On DuckDB, beside the interpreter of Spark's semantics."""
    cache_statements(monkeypatch)
    if located.path.stem == "joins" or located.line % 10 == 0:
        check_statements_of_builds(monkeypatch)
    result = replay_scenario(located.scenario, tiny_workbench, interprets=True)
    if located.scenario.id in NOT_YET:
        assert result.outcome == "refused", f"to be taken off not_yet.txt: {_explained(result)}"
        return
    if located.scenario.only_on == "spark":
        assert result.outcome in ("failed", "refused"), f"it need not be only on Spark: {_explained(result)}"
        return
    assert result.outcome == "passed", _explained(result)


@pytest.mark.long
@pytest.mark.parametrize("located", SCENARIOS[::3], ids=lambda located: str(located.scenario.id))
def test_scenario_with_each_thing_forced(located: Located, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it makes a difference to the plans: of several things that do, one by turns, where they are not its topic.

    The strategies are those of ``fivm replay --strategy all``.
    """
    if located.scenario.only_on == "spark" or located.scenario.id in NOT_YET:
        pytest.skip("not on DuckDB, or not yet")
    cache_statements(monkeypatch)
    replays = Replays(located.scenario, tiny_workbench)
    differing = {name: forced for name, forced in FORCED.items() if replays.differs(forced)}
    if differing and located.path.stem not in FORCED_TOPICS:
        turn = [*differing][located.line % len(differing)]
        differing = {turn: differing[turn]}
    found = {name: replays.replay(forced=forced) for name, forced in differing.items()}
    skipping = {"lazy factors"} if located.path.stem.startswith("viewdf") else set()
    wrong = [
        f"{name}: {_explained(result)}"
        for name, result in found.items()
        if result.outcome != "passed" and not (result.outcome == "skipped" and name in skipping)
    ]
    assert not wrong, "\n".join(wrong)


def test_what_is_forced_makes_a_difference_somewhere() -> None:
    """To some of the first scenarios of their topics, so that the run at length is not empty."""
    topics = {"factors", "inequality"}
    first = [Replays(s.scenario, tiny_workbench) for s in SCENARIOS if s.path.stem in topics][::4]
    assert all(any(replays.differs(forced) for replays in first) for forced in FORCED.values())


def test_the_same_plans_are_replayed_once() -> None:
    scenario = next(s.scenario for s in SCENARIOS if s.path.stem == "joins")
    replays = Replays(scenario, tiny_workbench)
    merged, again = (replays.replay("first_order", Forced(apply="merge")) for _ in range(2))
    appended = replays.replay("first_order", Forced(apply="append"))
    recomputed, other = (replays.replay("reevaluate", Forced(apply=way)) for way in ("merge", "append"))
    assert [r.same_as for r in (merged, appended, recomputed)] == [None] * 3
    assert again.same_as == "first_order, merge" and again.steps == merged.steps
    assert other.line() == (f"passed   {scenario.id} [reevaluate, append]: the plans of [reevaluate, merge]")


def test_refusals_of_what_cannot_be_maintained_are_skipped_where_nothing_is(tmp_path: Path) -> None:
    refused = {**WRONG, "steps": [], "expected_error": "FIVM106", "sql": "select a, rand() as b from r"}
    wrong = {**WRONG, "steps": [], "expected_error": "FIVM102", "sql": "select c from r", "id": "text"}
    lines: list[str] = []
    paths = [_write(tmp_path / "a.jsonl", refused), _write(tmp_path / "b.jsonl", wrong)]
    assert replay_files(paths, strategy="reevaluate", strict=True, echo=lines.append) == 0
    assert lines[-1] == "2 scenarios: 1 passed, 0 refused, 0 failed, 1 skipped"
    assert "FIVM106 is expected of models that are maintained" in lines[0]
    assert replay_files(paths, strict=True, echo=lines.append) == 0


def test_what_is_not_maintained_yet_has_scenarios() -> None:
    assert {located.scenario.id for located in SCENARIOS} >= NOT_YET


@pytest.mark.parametrize("located", SAVED, ids=_ids(SAVED))
def test_saved_case(located: Located, monkeypatch: pytest.MonkeyPatch) -> None:
    """What once failed stays right."""
    cache_statements(monkeypatch)
    assert run_scenario(located.scenario).failure is None


def test_every_saved_case_is_collected() -> None:
    files = {path for path in (HERE / "saved_cases").rglob("*") if path.is_file() and path.name != ".gitkeep"}
    assert files == {located.path for located in SAVED}


def test_there_are_scenarios_of_every_topic() -> None:
    topics = {located.path.stem for located in SCENARIOS}
    assert topics >= {
        "joins",
        "aggregates",
        "bags",
        "nulls",
        "nested",
        "captures",
        "chains",
        "partitions",
        "keys",
        "outer_joins",
        "semi_anti_joins",
        "subqueries",
        "extrema",
        "distinct_aggregates",
        "statistics",
        "other_aggregates",
        "grouping_sets",
        "set_operations",
        "windows",
        "limits",
        "generators",
        "clock",
        "types",
        "floats",
        "long_chains",
        "team",
    }
    assert len(SCENARIOS) >= 500
    # Of tied rows no hand can say which come first: those scenarios are compared with the completed text alone.
    with_rows = [s for s in SCENARIOS if s.scenario.expected_error is None and s.path.stem != "ties"]
    assert all(any(step.expected for step in located.scenario.steps) for located in with_rows)


def _write(path: Path, *scenarios: dict[str, object]) -> Path:
    path.write_text("\n".join(json.dumps(s) for s in scenarios) + "\n", encoding="utf-8")
    return path


def test_wrong_expected_rows_fail_and_are_shown(tmp_path: Path) -> None:
    lines: list[str] = []
    assert replay_files([_write(tmp_path / "wrong.jsonl", WRONG)], echo=lines.append) == 1
    assert lines[0].startswith("FAILED   wrong: 1 steps, 2 refreshes")
    assert lines[1:4] == [
        "  step 1, model v: maintained is not expected",
        "    only maintained: (NULL, 1.00)",
        "    only expected: (NULL, 7.00)",
    ]
    assert lines[4] == "1 scenarios: 0 passed, 0 refused, 1 failed"


def test_report_for_machines(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    right = {**WRONG, "id": "right", "steps": [{"delta": {"r": {"insert": [[1, "1"]]}}}]}
    path = _write(tmp_path / "right.jsonl", right)
    assert replay_files([path], strategy="all", report=report, echo=lambda line: None) == 0
    data = json.loads(report.read_text())
    assert data["engine"] == "duckdb"
    every = ["auto", "first_order", "factorized", "recursive", "reevaluate"]
    assert [s["strategy"] for s in data["scenarios"]] == every
    built, refreshed = (step["models"][0] for step in data["scenarios"][0]["steps"])
    assert (built["action"], refreshed["action"], refreshed["result"]) == ("built", "refreshed", "equal")
    assert refreshed["inputs"][0]["capture"] == "change feed"
    assert refreshed["statements"] > 0 and refreshed["rows_read"] > 0
    assert data["scenarios"][0]["outcome"] == "passed"


def test_refusal_counts_only_when_strict(tmp_path: Path) -> None:
    refused = {**WRONG, "id": "refused", "sql": "select a, rand() as b from r", "steps": []}
    path = _write(tmp_path / "refused.jsonl", refused)
    lines: list[str] = []
    assert replay_files([path], echo=lines.append) == 0
    assert lines[0].startswith("refused  refused: FIVM106")
    assert lines[-1] == "1 scenarios: 0 passed, 1 refused (FIVM106: 1), 0 failed"
    assert replay_files([path], strict=True, echo=lines.append) == 1


def test_rebuild_counts_only_when_strict(tmp_path: Path) -> None:
    rebuilt = {**WRONG, "id": "rebuilt", "steps": [{"recreate": {"r": [[2, "1.00"]]}}]}
    path = _write(tmp_path / "rebuilt.jsonl", rebuilt)
    lines: list[str] = []
    assert replay_files([path], echo=lines.append) == 0
    assert "1 rebuilds" in lines[0]
    assert replay_files([path], strict=True, echo=lines.append) == 1


def test_recompute_counts_only_when_strict(tmp_path: Path) -> None:
    model = {"name": "v", "sql": "select first(a) as f from r", "config": {"fivm_policy": "auto"}}
    table = {"tables": {"r": [["a", "int"]]}, "steps": [{"delta": {"r": {"insert": [[1]]}}}]}
    path, report = tmp_path / "recomputed.json", tmp_path / "report.json"
    path.write_text(json.dumps({"id": "recomputed", "models": [model], **table}))
    lines: list[str] = []
    assert replay_files([path], report=report, echo=lines.append) == 0
    assert lines[0].startswith("passed   recomputed: 1 steps, 2 refreshes, 2 not comparable (")
    assert lines[1].startswith("  model v: recomputed: FIVM106 non-deterministic expression: FIRST(r.a)")
    built, changed = (s["models"][0] for s in json.loads(report.read_text())["scenarios"][0]["steps"])
    assert (built["action"], changed["action"], changed["result"]) == (
        "built",
        "recomputed",
        "not comparable",
    )
    assert built["recomputed"] == changed["recomputed"] and "FIVM106" in changed["recomputed"]
    assert replay_files([path], strict=True, echo=lines.append) == 1


def test_what_is_for_another_engine_is_skipped(tmp_path: Path) -> None:
    path, report = _write(tmp_path / "wrong.jsonl", {**WRONG, "only_on": "spark"}), tmp_path / "report.json"
    lines: list[str] = []
    assert replay_files([path], strict=True, report=report, echo=lines.append) == 0
    assert lines == ["skipped  wrong: only on spark", "1 scenarios: 0 passed, 0 refused, 0 failed, 1 skipped"]
    (found,) = json.loads(report.read_text())["scenarios"]
    assert (found["outcome"], found["message"], found["steps"]) == ("skipped", "only on spark", [])


def test_one_of_several(tmp_path: Path) -> None:
    path = _write(tmp_path / "two.jsonl", WRONG, {**WRONG, "id": "right", "steps": []})
    lines: list[str] = []
    assert replay_files([path], only=["right"], echo=lines.append) == 0
    assert lines[-1] == "1 scenarios: 1 passed, 0 refused, 0 failed"
    with pytest.raises(FivmError, match="no scenario is called left"):
        replay_files([path], only=["left"])


def test_unknown_engine_and_strategy(tmp_path: Path) -> None:
    path = _write(tmp_path / "wrong.jsonl", WRONG)
    with pytest.raises(FivmError, match="no engine postgres"):
        replay_files([path], engine_name="postgres")
    with pytest.raises(FivmError, match="no strategy eager"):
        replay_files([path], strategy="eager")


def test_expected_error_that_does_not_come(tmp_path: Path) -> None:
    planned = {**WRONG, "id": "planned", "steps": [], "expected_error": "FIVM107"}
    stepped = {**WRONG, "id": "stepped", "steps": [{"expected_error": "FIVM305"}]}
    lines: list[str] = []
    assert replay_files([_write(tmp_path / "none.jsonl", planned, stepped)], echo=lines.append) == 1
    assert "  FIVM107 was expected, but the models were accepted" in lines
    assert "  step 1: FIVM305 was expected, but every refresh succeeded" in lines


ON_SPARK = (
    "factors/sums-of-a-star",
    "keys/listing-without-multiplicities",
    "joins/both-sides-change-on-one-key",
    "keys/groups-whose-key-determines-the-rest",
    "aggregates/avg-of-every-exact-type",
    "captures/replaced-by-other-rows",
    "viewdf/a-correction-of-section-2-table-and-a-deletion",
    "factors/chain-of-three",
    "viewdf/view6-of-section-5-2-2-with-the-numbers-of-figure-5",
    "viewdf/days-of-23-and-25-hours",
    "viewdf/a-dimension-without-parts-a-fivm-model-above",
    "cycles/triangles-of-a-graph",
    "nulls/null-alone-takes-the-type-of-the-others",
    "aggregates/global-over-nothing",
    "aggregates/large-decimals",
    "bags/only-constants",
    "captures/without-a-change-feed",
    "captures/seed-created-anew",
    "chains/bag-in-the-middle",
    "partitions/one-merge-per-partition",
    "partitions/by-an-output-column",
    "names/of-schemas",
    "match/types-of-measures",
    "match/all-rows-with-running-measures",
    "match/joined-filtered-and-in-a-cte",
    "correlated/exists-total",
    "correlated/in-total-that-counts",
    "correlated/lateral-total-with-constant",
    "correlated/collect-list-over-nothing",
    "correlated/exists-union",
    "generators/inline-of-structs",
    "joins/from-before-select",
    "generators/named-arguments",
    "spark/named-arguments",
    "ties/null-in-a-struct-comes-first",
)
"""Those that depend on what only Spark and Delta do: types, captures, literals, names. The first one always runs."""


@pytest.mark.spark
@pytest.mark.parametrize("name", by_run(ON_SPARK[:1], long=ON_SPARK[1:]))
def test_scenario_on_spark(name: str, spark: SparkSession) -> None:
    from fivm_dbt.testing.spark_workbench import SparkWorkbench

    scenario = next(located.scenario for located in SCENARIOS if located.scenario.id == name)
    result = replay_scenario(scenario, lambda: SparkWorkbench(spark, "fivm_replay_test"))
    assert result.outcome == "passed", _explained(result)


def test_tables_that_an_engine_refuses_fail_their_scenario_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "two.jsonl"
    good = {**WRONG, "id": "good", "steps": []}
    file.write_text(json.dumps({**good, "id": "refused by the engine"}) + "\n" + json.dumps(good) + "\n")

    opened: list[str] = []
    create = DuckDbWorkbench.create

    def refuse_first(self: DuckDbWorkbench, *args: Any) -> None:
        opened.append("")
        if len(opened) == 1:
            raise RuntimeError("no such type")
        create(self, *args)

    monkeypatch.setattr(DuckDbWorkbench, "create", refuse_first)
    assert replay_files([file], "duckdb", None, False, None, (), print) == 1
    shown = capsys.readouterr().out
    assert "RuntimeError: no such type" in shown
    assert "2 scenarios: 1 passed, 0 refused, 1 failed" in shown
