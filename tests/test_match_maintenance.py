"""Models with patterns under random inserts, deletes, updates and late rows: against a recompute after every step, and
against the naive matcher."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

from cached_statements import cache_statements
from fivm_dbt.testing.load import load_scenarios
from fivm_dbt.testing.outcome import ScenarioResult
from fivm_dbt.testing.replay import replay_scenario
from generator.differential import tiny_workbench
from naive_matcher import Clause, RowOf
from random_matches import random_clause

KEYS = (1, 2, None)
TIMES = {
    "int": lambda t: t,
    "date": lambda t: f"2024-01-{t + 1:02}",
    "timestamp": lambda t: f"2024-01-01T{t:02}:30:00",
    "timestamp_ntz": lambda t: f"1969-12-31T{t + 11:02}:59:59",
}
"""What a row is ordered by: times have parts, and patterns are advanced part by part."""
LENGTHS = {"int": (None,), "date": (None, "3 days", "week", "month"), "timestamp": (None, "hour", "4 hours")}
COLUMNS = ("k", "t", "x", "y")
Stored = tuple[Any, ...]


def _change(rng: random.Random, rows: list[Stored]) -> tuple[list[Stored], list[Stored]]:
    """Rows that come and rows that go; an update is both. Late rows stand between those that are there."""
    gone = rng.sample(rows, min(len(rows), rng.choice((0, 0, 1, 2))))
    come = []
    for row in gone:
        if rng.random() < 0.5:
            come.append((*row[:2], rng.choice((None, 0, 1, 2, 3)), row[3]))
    taken = {(k, t) for k, t, _, _ in rows if (k, t) not in {r[:2] for r in gone}} | {r[:2] for r in come}
    for _ in range(rng.choice((0, 1, 3, 5))):
        place = (rng.choice(KEYS), rng.randint(0, 12))
        if place not in taken:
            taken.add(place)
            come.append((*place, rng.choice((None, 0, 1, 2, 3)), rng.randint(0, 3)))
    return come, gone


def _expected(clause: Clause, rows: Sequence[Stored]) -> list[list[Any]]:
    result = []
    for key in KEYS:
        stream: list[RowOf] = [
            dict(zip(COLUMNS, r, strict=True))
            for r in sorted((r for r in rows if r[0] == key), key=lambda r: r[1])
        ]
        result += [[key, *row] for row in clause.rows(stream)]
    return result


def _scenario(seed: int, *, has_marks: bool = True) -> dict[str, Any]:
    rng = random.Random(seed)
    clause = random_clause(rng, by_rows=not has_marks)
    type_ = rng.choice(("int", "date", "date", "timestamp", "timestamp", "timestamp_ntz"))
    length = rng.choice(LENGTHS.get(type_, LENGTHS["timestamp"]))
    buckets = rng.choice((None, None, 2))
    ways = (
        ("fivm_part_length", length),
        ("fivm_buckets", buckets),
        ("fivm_apply", rng.choice((None, None, "merge", "replace"))),
        ("fivm_merge", rng.choice((None, None, "per_partition"))),
    )
    config = {k: v for k, v in ways if v is not None}
    if not has_marks:
        config["fivm_without"] = "marks"

    def shown_as(row: Sequence[Any], place: int = 1) -> list[Any]:
        return [TIMES[type_](v) if n == place else v for n, v in enumerate(row)]

    rows: list[Stored] = []
    steps = []
    come, _ = _change(rng, rows)
    initial = rows = come
    for _ in range(5):
        come, gone = _change(rng, rows)
        rows = [*(r for r in rows if r not in gone), *come]
        delta = {"p": {"insert": [shown_as(r) for r in come], "delete": [shown_as(r) for r in gone]}}
        expected = _expected(clause, rows)
        steps.append(
            {
                "delta": delta,
                "expected": {"v": [shown_as(r) for r in expected] if clause.all_rows else expected},
            }
        )
    shown = ", ".join(["k", *(["t"] if clause.all_rows else []), *(m.name for m in clause.measures)])
    over = f"select {shown} from p {clause.sql()} as m"
    counted = f"select k, count(*) as n from p {clause.sql()} as m group by k"
    joined = f"select m.{clause.measures[0].name}, q.y from p {clause.sql()} as m join p q on q.k = m.k and q.x = 1"
    return {
        "id": f"match-{seed}",
        "tables": {"p": [[c, type_ if c == "t" else "int"] for c in COLUMNS]},
        "initial": {"p": [shown_as(r) for r in initial]},
        "models": [
            {"name": name, "sql": sql, "config": config}
            for name, sql in (("v", over), ("counted", counted), ("joined", joined))
        ],
        "steps": steps,
    }


def _replay(
    seed: int, tmp_path: Any, monkeypatch: pytest.MonkeyPatch, *, has_marks: bool = True
) -> ScenarioResult:
    import json

    if seed % 2:
        # Keys with more parts than a fold goes over at a time.
        monkeypatch.setattr("fivm_dbt.features.match.spark.runs.PARTS_AT_ONCE", 2)
    cache_statements(monkeypatch)
    path = tmp_path / "match.jsonl"
    path.write_text(json.dumps(_scenario(seed, has_marks=has_marks)), encoding="utf-8")
    (located,) = load_scenarios([path])
    return replay_scenario(located.scenario, tiny_workbench)


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(0, marks=pytest.mark.more),
        1,
        *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 22)),
    ],
)
def test_maintained_matches(seed: int, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    result = _replay(seed, tmp_path, monkeypatch)
    assert result.outcome == "passed", "\n".join([result.line(), result.message or "", *result.details()])


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(3, marks=pytest.mark.more),
        *(pytest.param(seed, marks=pytest.mark.long) for seed in range(50, 58)),
    ],
)
def test_whole_partitions(seed: int, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without marks, where a regular expression reads most partitions."""
    result = _replay(seed, tmp_path, monkeypatch, has_marks=False)
    assert result.outcome == "passed", "\n".join([result.line(), result.message or "", *result.details()])


def test_most_steps_have_matches() -> None:
    steps = [step for seed in range(40) for step in _scenario(seed)["steps"]]
    changed = [step for step in steps if step["expected"]["v"]]
    assert len(changed) > len(steps) / 4
