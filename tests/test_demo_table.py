"""The README's table of seconds is written by the run of the demo that it is of."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmarks.places import NoPlaceError
from demo.batches import Batch
from demo.checks import remarks
from demo.dbt_runs import ModelRun
from demo.differences import Differences
from demo.readme import write_table
from demo.recompute import Recompute
from demo.report import write_json
from demo.rounds import Outcome, Round, reached

PLACE = "before\n<!-- demo-table -->\nold\n<!-- /demo-table -->\nafter\n"


def _round(touches: set[str], seconds: dict[str, tuple[float, float]]) -> Round:
    outcomes = tuple(
        Outcome(
            ModelRun(model, refresh, "refreshed", rows_read=30),
            Recompute(model, recompute, 200),
            Differences(1_000, 0, 0),
        )
        for model, (refresh, recompute) in seconds.items()
    )
    return Round(Batch("some", frozenset(touches), ()), 0.0, 0.0, (), outcomes)


ROUNDS = [
    _round({"flights"}, {"weather_delays": (1.0, 4.0), "late_planes": (9.0, 1.0)}),
    _round({"flights"}, {"weather_delays": (2.0, 4.0), "late_planes": (9.0, 1.0)}),
    _round({"airports"}, {"weather_delays": (3.0, 2.0), "late_planes": (9.0, 1.0)}),
    _round(set(), {"weather_delays": (0.1, 2.0), "late_planes": (0.1, 1.0)}),
]


def test_sums_of_ordinary_models(tmp_path: Path) -> None:
    file = tmp_path / "README.md"
    file.write_text(PLACE)
    write_table(file, ROUNDS, 120.0)
    lines = file.read_text().splitlines()
    assert [line for line in lines if line.startswith("| weather")] == [
        "| weather_delays | 2 of flights alone | 1,000 | 60 | 15.00% | 3.0 | 8.0 | 0.38 |",
        "| weather_delays | 1 others | 1,000 | 30 | 15.00% | 3.0 | 2.0 | 1.50 |",
    ]
    assert not any("late_planes" in line for line in lines)
    assert (lines[0], lines[-1]) == ("before", "after")
    write_table(file, ROUNDS, 120.0)
    assert file.read_text().splitlines() == lines, "a second time it is the same"


@pytest.mark.parametrize("text", ["no place", PLACE * 2])
def test_a_file_without_its_one_place_is_left_alone(tmp_path: Path, text: str) -> None:
    file = tmp_path / "README.md"
    file.write_text(text)
    with pytest.raises(NoPlaceError):
        write_table(file, ROUNDS, 1.0)
    assert file.read_text() == text


def test_the_readme_has_the_place(repository: Path, tmp_path: Path) -> None:
    file = tmp_path / "README.md"
    file.write_text((repository / "README.md").read_text())
    write_table(file, ROUNDS, 1.0)


def test_who_takes_more_than_the_bar_is_told() -> None:
    slow = [_round({"flights"}, {"weather_delays": (3.0, 4.0), "summary_daily": (1.0, 2.0)})]
    assert remarks(slow) == [
        "weather_delays: the batches of flights took 3.0 s, 0.75 of their recompute's 4.0 s"
    ]
    assert remarks(ROUNDS) == []


def test_models_that_read_nothing_of_a_batch_are_not_recomputed() -> None:
    reads = {
        "per_day": {"flights"},
        "per_month": {"per_day"},
        "weather": {"weather_raw"},
        "names": {"airports"},
    }
    runs = [ModelRun(model, 1.0, "refreshed", reads=tuple(names)) for model, names in reads.items()]
    runs.reverse()
    assert reached(frozenset({"flights"}), runs) == {"per_day", "per_month"}
    assert reached(frozenset({"weather_raw", "airports"}), runs) == {"weather", "names"}
    assert reached(frozenset(), runs) == frozenset()


def test_all_figures_are_written_as_json(tmp_path: Path) -> None:
    write_json(tmp_path / "report.json", ROUNDS[0], ROUNDS[1:], ["something"], 60.0)
    written = json.loads((tmp_path / "report.json").read_text())
    assert (written["seconds"], written["failures"]) == (60.0, ["something"])
    assert [r["batch"]["touches"] for r in written["rounds"]] == [["flights"], ["flights"], ["airports"], []]
    assert written["rounds"][0]["outcomes"][0]["run"]["model"] == "weather_delays"
