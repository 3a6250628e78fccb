"""What ``python -m benchmarks.compare`` says of a run: bars, regret, a page, and the tables of the docs."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import benchmarks.compare.__main__ as command
import pytest
from benchmarks.bars import Bar
from benchmarks.compare.docs import place, write_docs
from benchmarks.compare.measured import Measured, Results, regrets
from benchmarks.compare.page import heats, write_page, wrong
from benchmarks.compare.report import bars, line_of, summary
from benchmarks.compare.room import check_room, needed_gb
from benchmarks.places import NoPlaceError
from click import UsageError
from click.testing import CliRunner


def _measured(
    way: str, seconds: float, query: str = "q", change: str = "recent 1 %", **more: Any
) -> Measured:
    given: dict[str, Any] = {"round": 1, "action": "refreshed", "recompute_seconds": 10.0, "wrong": 0, **more}
    return Measured(query=query, change=change, way=way, seconds=seconds, **given)


RUN = (
    _measured("fivm", 2.2, expected=(2.0, 11.0), chosen="1 inner views"),
    _measured("merge", 2.0),
    _measured("incremental", 0.5, wrong=3),
    _measured("fivm", 1.1, change="recent 0.1 %"),
    _measured("merge", 1.5, change="recent 0.1 %"),
    _measured("incremental", 0.6, change="recent 0.1 %"),
    _measured("fivm", 12.0, "r", action="rebuilt"),
    _measured("fivm", 11.0, "s"),
    _measured("fivm", 0.4, change="none"),
)
RESULTS = Results(0.1, 1, "2 cores", 3.0, RUN, ("q, append, recent 1 %: <no> room",))


def test_a_choice_is_held_against_the_best_that_it_could_have_been() -> None:
    found = {(r.chosen.query, r.chosen.change): r for r in regrets(RUN)}
    assert found["q", "recent 1 %"].best == "merge" and found["q", "recent 1 %"].is_near
    assert found["q", "recent 0.1 %"].times == 1.0, "the incremental model is no choice of ours"
    assert found["r", "recent 1 %"].best == "table" and not found["r", "recent 1 %"].is_near
    assert len(found) == 4, "without a change there is nothing to choose"


def test_a_wrong_way_is_not_the_best() -> None:
    (regret,) = regrets([_measured("fivm", 2.0), _measured("merge", 1.0, wrong=1)])
    assert regret.best == "fivm"


@pytest.mark.parametrize(
    "seconds, recompute, above",
    [(11.1, 10.0, True), (11.0, 10.0, False), (1.9, 1.0, False), (2.1, 1.0, True), (5.4, 5.0, False)],
)
def test_who_is_above_the_recompute(seconds: float, recompute: float, above: bool) -> None:
    assert _measured("fivm", seconds, recompute_seconds=recompute).is_above == above


def test_rows_that_may_be_wrong() -> None:
    differing = {
        way: _measured(way, 1.0, wrong=2).differing
        for way in ("fivm", "by_hand", "incremental", "microbatch")
    }
    assert differing == {"fivm": 2, "by_hand": 2, "incremental": 0, "microbatch": 0}


def test_bars() -> None:
    held = {bar.what: bar for bar in bars(RESULTS)}
    assert held["rows that differ"].is_met
    assert held["median ratio"].figure == 1.1 and held["worst ratio"].figure == 1.2, "of about a hundredth"
    large = {bar.what: bar for bar in bars(replace(RESULTS, scale=10))}
    assert large["median ratio"] == Bar("median ratio", large["worst ratio"].figure, 0.10), "of a thousandth"
    assert held["cases dearer than the recompute"] == Bar("cases dearer than the recompute", 1, 0)
    assert held["share of regretted choices"].figure == 0.25
    assert held["no change: median seconds"].figure == 0.4
    assert bars(Results(1, 1, "", 0.0, RUN[1:3])) == []


def test_a_line_for_each_way() -> None:
    line = line_of("fivm", RESULTS)
    assert line is not None
    assert line.startswith(
        "fivm: median 0.66 of the recompute over 4 cases; at most 1.20 (r, recent 1 %); 1 dearer;"
    )
    assert line.endswith("the choice was within 1.15 of the best one in 3 of 4")
    assert "WRONG in 1" in str(line_of("incremental", RESULTS))
    assert line_of("append", RESULTS) is None


def test_the_summary_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    summary(RESULTS)
    printed = capsys.readouterr().out
    assert "3 differ" in printed and "NOT MET" in printed and "FAILED: q, append" in printed


def test_results_are_read_as_they_were_written(tmp_path: Path) -> None:
    RESULTS.write(tmp_path / "report.json")
    assert Results.read(tmp_path / "report.json") == RESULTS


def test_which_ways_were_wrong_and_after_what() -> None:
    (found,) = wrong(RESULTS)
    assert (found.way, found.query, found.changes, found.rows) == ("incremental", "q", "recent 1 %", 3)
    assert heats(RESULTS)[0].way == "fivm"


def test_a_page_works_offline(tmp_path: Path) -> None:
    page = write_page(tmp_path / "out", RESULTS)
    text = page.read_text()
    assert text.count("<svg") == 2, "one query has two sizes: beside others, and by itself"
    without_names = re.sub(r'xmlns(:\w+)?="[^"]*"|<!DOCTYPE svg[^>]*>|rdf:[a-z]+="[^"]*"', "", text)
    assert not re.search(r'(src|href)="(?!#)', without_names)
    assert "0.22" in text and "0.05 ✗" in text and "2.0 / 11.0" in text and "regretted" in text
    assert "&lt;no&gt; room" in text
    assert write_page(tmp_path / "again", RESULTS).read_text() == text


def test_tables_of_the_docs(tmp_path: Path, repository: Path) -> None:
    file = tmp_path / "performance.md"
    file.write_text(f"before\n<!-- {place(RESULTS)} -->\nold\n<!-- /{place(RESULTS)} -->\nafter\n")
    write_docs(file, RESULTS)
    lines = file.read_text().splitlines()
    assert "| q | 0.22 | 0.11 | 0.04 |" in lines
    assert "| q | 0.05 ✗ | 0.06 |  |" in lines
    assert "| r | recent 1 % | rebuilt | 12.0 | a build | 10.0 | 1.20 |" in lines
    with pytest.raises(NoPlaceError):
        write_docs(file, Results(10, 1, "", 0.0, RUN))
    for scale in (1.0, 10.0):
        file.write_text((repository / "docs" / "performance.md").read_text())
        write_docs(file, Results(scale, 1, "", 0.0, RUN))


def test_too_little_room_is_said_at_once(tmp_path: Path) -> None:
    check_room(tmp_path / "not" / "there" / "yet", needed_gb(0.001, 3))
    with pytest.raises(UsageError, match="GB of free disk, and the run needs about 5000000000 GB"):
        check_room(tmp_path, 5e9)


@pytest.mark.parametrize(
    "arguments, code",
    [(["--help"], 0), (["--query", "q99"], 2), (["--change", "never"], 2), (["--way", "table"], 2)],
)
def test_its_command(arguments: list[str], code: int) -> None:
    done = CliRunner().invoke(command.main, arguments)
    assert done.exit_code == code, done.output


def test_its_command_shows_an_earlier_run(tmp_path: Path) -> None:
    RESULTS.write(tmp_path / "report.json")
    done = CliRunner().invoke(
        command.main, ["--from", str(tmp_path / "report.json"), "--page", str(tmp_path / "page")]
    )
    assert done.exit_code == 1, "a way has failed"
    assert (tmp_path / "page" / "index.html").exists()


def test_runs_of_other_queries_are_shown_as_one(tmp_path: Path) -> None:
    other = replace(RESULTS, measured=(_measured("fivm", 1.0, "t"),), minutes=2.0, failures=())
    paths = [tmp_path / name for name in ("one.json", "other.json")]
    for path, results in zip(paths, (RESULTS, other), strict=True):
        results.write(path)
    together = Results.together([Results.read(path) for path in paths])
    assert together == replace(RESULTS, measured=(*RUN, *other.measured), minutes=5.0)
    assert len(Results.together([RESULTS]).measured) == len(RUN)
    done = CliRunner().invoke(command.main, [f"--from={path}" for path in paths])
    assert done.exit_code == 1 and "over 5 cases" in done.output, done.output


@pytest.mark.parametrize(
    "other, why",
    [
        (replace(RESULTS, scale=1.0), "differ in scale factor"),
        (replace(RESULTS, machine="4 cores"), "differ in scale factor, rounds or machine"),
        (RESULTS, "q is in several of them"),
    ],
)
def test_runs_that_are_not_shown_as_one(other: Results, why: str, tmp_path: Path) -> None:
    RESULTS.write(tmp_path / "one.json")
    other.write(tmp_path / "other.json")
    done = CliRunner().invoke(command.main, [f"--from={tmp_path}/{name}.json" for name in ("one", "other")])
    assert done.exit_code == 2 and why in done.output, done.output


def test_of_several_rounds_the_median_counts() -> None:
    rounds = [_measured("fivm", seconds, round=n) for n, seconds in enumerate((9.0, 1.0, 2.0), start=1)]
    other = _measured("fivm", 3.0, "r")
    found = {bar.what: bar.figure for bar in bars(Results(1.0, 3, "2 cores", 1.0, (*rounds, other)))}
    assert (found["median ratio"], found["worst ratio"]) == (0.25, 0.3)
