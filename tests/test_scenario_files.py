"""Reading scenario files: three notations, short forms, and every problem with its file, line and field."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fivm_dbt.errors import FivmError
from fivm_dbt.testing.load import load_scenarios
from fivm_dbt.testing.scenario import Model

BASE: dict[str, Any] = {
    "id": "base",
    "tables": {"r": [["a", "int"], ["d", "date"]]},
    "initial": {"r": [[1, "2024-01-01"], [None, None]]},
    "sql": "select a from r",
    "view": "v",
    "steps": [{"delta": {"r": {"delete": [[1, "2024-01-01"]]}}, "expected": {"v": [[None]]}}],
}


def _problems(tmp_path: Path, *scenarios: dict[str, Any]) -> list[str]:
    path = tmp_path / "wrong.jsonl"
    path.write_text("\n".join(json.dumps(s) for s in scenarios))
    with pytest.raises(FivmError) as caught:
        load_scenarios([path])
    assert caught.value.code.number == "FIVM601"
    return [line.replace(f"{path}:", "") for line in caught.value.message.splitlines()]


def test_notations_mean_the_same(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(
        "\n" + json.dumps(BASE) + "\n\n" + json.dumps({**BASE, "id": "b"}) + "\n"
    )
    (tmp_path / "c.json").write_text(json.dumps([{**BASE, "id": "c"}, {**BASE, "id": "d"}], indent=2))
    (tmp_path / "e.yaml").write_text(
        """
- id: e
  tables: {r: [[a, int], [d, date]]}
  initial:
    r:
      - [1, 2024-01-01]
      - [null, null]
  sql: select a from r
  view: v
  steps:
    - delta: {r: {delete: [[1, 2024-01-01]]}}
      expected: {v: [[null]]}
- id: f
  tables: {r: [[a, int]]}
  models: [{name: v, sql: select a from r}]
"""
    )
    found = load_scenarios(sorted(tmp_path.iterdir()))
    assert [(f.scenario.id, f.line) for f in found] == [
        ("base", 2),
        ("b", 4),
        ("c", 2),
        ("d", 52),
        ("e", 2),
        ("f", 13),
    ]
    first, *others = (f.scenario.model_copy(update={"id": "", "initial": {}, "steps": ()}) for f in found[:5])
    assert all(other == first for other in others)
    assert first.models == (Model(name="v", sql="select a from r"),)


def test_short_forms(tmp_path: Path) -> None:
    path = tmp_path / "short.json"
    path.write_text(json.dumps({**BASE, "keys": {"r": ["a"]}, "partition_by": {"r": "d"}}))
    (found,) = load_scenarios([path])
    assert found.scenario.keys == {"r": (("a",),)}
    assert found.scenario.partition_by == {"r": ("d",)}


def test_all_problems_at_once(tmp_path: Path) -> None:
    wrong = {
        **BASE,
        "initial": {"r": [[1, "2024-13-01"], [1]], "s": []},
        "stepz": [],
        "keys": {"r": [["z"]]},
    }
    assert _problems(tmp_path, wrong, {**BASE, "tables": {"r": [["a", "int", "x"]]}}) == [
        "1: stepz: unknown field",
        "2: tables.r[0]: tuple should have at most 2 items after validation, not 3",
    ]
    del wrong["stepz"]
    assert _problems(tmp_path, {**BASE, "id": "ok"}, wrong) == [
        "2: initial.s: there is no s (expected one of r)",
        "2: keys.r: r has no column z",
        "2: initial.r[0]: '2024-13-01' is not a date (ISO: 2024-05-31)",
        "2: initial.r[1]: row [1] has 1 values, expected 2",
        "2: steps[0].delta.r.delete: row [1, datetime.date(2024, 1, 1)] is 0 times in r, not 1",
    ]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"models": [{"name": "v", "sql": "select 1"}]}, "scenario: give either models, or sql and view"),
        ({"view": "r"}, "models: the name r is used twice"),
        ({"only_on": "duckdb"}, "only_on: input should be 'spark'"),
        (
            {"tables": {"r": [["a", "map<int,int>"]]}, "initial": {}, "steps": []},
            "tables.r.a: type map<int,int>",
        ),
        ({"steps": [{"expected": {"w": []}}]}, "steps[0].expected.w: there is no w (expected one of v)"),
        (
            {"steps": [{"expected_error": "FIVM999"}]},
            "steps[0].expected_error: there is no error code FIVM999",
        ),
        ({"initial": {"r": [["1", None]]}}, "initial.r[0]: '1' is not a int"),
        ({"initial": {"r": [[3000000000, None]]}}, "initial.r[0]: 3000000000 does not fit int"),
        ({"initial": {"r": [[True, None]]}}, "initial.r[0]: True is not a int"),
        (
            {"foreign_keys": [{"table": "r", "columns": ["a"], "target": "s", "target_columns": ["a"]}]},
            "there is no s",
        ),
    ],
)
def test_problem(tmp_path: Path, change: dict[str, Any], problem: str) -> None:
    assert any(problem in found for found in _problems(tmp_path, {**BASE, **change}))


def test_values_that_do_not_fit(tmp_path: Path) -> None:
    tables = {"r": [["m", "decimal(4,2)"], ["t", "timestamp"], ["f", "boolean"], ["x", "double"]]}
    rows = [["1.234", None, None, None], ["123.45", None, None, None], [None, "noon", None, None]]
    rows += [[None, None, 1, None], [None, None, None, "much"]]
    found = _problems(tmp_path, {**BASE, "tables": tables, "initial": {"r": rows}, "steps": []})
    assert [line.split(": ", 2)[2] for line in found] == [
        "1.234 does not fit decimal(4,2)",
        "123.45 does not fit decimal(4,2)",
        "'noon' is not a timestamp (ISO: 2024-05-31T12:00:00)",
        "1 is not a boolean",
        "'much' is not a double",
    ]


def test_a_row_is_deleted_once_per_copy(tmp_path: Path) -> None:
    step = {"delta": {"r": {"delete": [[None, None], [None, None]]}}}
    (problem,) = _problems(tmp_path, {**BASE, "steps": [step]})
    assert problem.endswith("row [None, None] is 1 times in r, not 2")


def test_ids_are_unique(tmp_path: Path) -> None:
    assert _problems(tmp_path, BASE, BASE) == ["1: id: 'base' is used twice", "2: id: 'base' is used twice"]


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "broken.json").write_text('{"id": "x",\n "tables": }')
    (tmp_path / "broken.jsonl").write_text(json.dumps(BASE) + "\n{]\n")
    (tmp_path / "broken.yml").write_text("id: [1,\n")
    with pytest.raises(FivmError) as caught:
        load_scenarios([*sorted(tmp_path.iterdir()), tmp_path / "missing.json"])
    message = caught.value.message
    assert "broken.json: line 2, column 12: Expecting value" in message
    assert "broken.jsonl: line 2, column 2" in message
    assert "broken.yml: while parsing" in message
    assert "missing.json: [Errno 2]" in message
