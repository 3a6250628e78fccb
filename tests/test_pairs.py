"""The loader of fixture pairs refuses what would silently test nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from fixtures.pairs import FOLDER, parameters, read_cases

TABLE = "create table raw.a (k int);\n"
PAIR = "--# one\nselect k from raw.a\n-->\nScan\n"


def _read(tmp_path: Path, text: str) -> list[str]:
    path = tmp_path / "cases.sql"
    path.write_text(text, encoding="utf-8")
    return [case.title for case in read_cases(path)]


def test_pairs_are_read(tmp_path: Path) -> None:
    path = tmp_path / "cases.sql"
    path.write_text(TABLE + PAIR.replace("select", "-- changed: raw.a, raw.b\nselect"), encoding="utf-8")
    (case,) = read_cases(path)
    assert (case.title, case.sql, case.expected) == ("one", "select k from raw.a", "Scan")
    assert case.names("changed") == {"raw.a", "raw.b"}
    assert case.names("static") == frozenset()
    assert case.catalog.relations[0].name == "raw.a"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no case"),
        (TABLE, "has no case"),
        (TABLE + PAIR + PAIR, "two cases called one"),
        (TABLE + PAIR.replace("-->\n", ""), "is not a pair: 0 lines"),
        (TABLE + PAIR + "-->\nScan\n", "is not a pair: 2 lines"),
        (TABLE + "--# one\n-->\nScan\n", "has no SQL"),
        (TABLE + PAIR.replace("# one", "#  "), "has no title"),
    ],
)
def test_what_is_no_pair_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        _read(tmp_path, text)


def test_a_case_without_expectation_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = TABLE + "--# one\nselect k from raw.a\n-->\n"
    monkeypatch.delenv("FIVM_UPDATE", raising=False)
    with pytest.raises(ValueError, match="nothing is expected"):
        _read(tmp_path, text)
    monkeypatch.setenv("FIVM_UPDATE", "1")
    assert _read(tmp_path, text) == ["one"]


def test_updating_rewrites_just_one_expectation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "cases.sql"
    path.write_text(TABLE + PAIR + "\n" + PAIR.replace("# one", "# two"), encoding="utf-8")
    monkeypatch.setenv("FIVM_UPDATE", "1")
    read_cases(path)[0].check("Map\n  Scan")
    monkeypatch.delenv("FIVM_UPDATE")
    assert [case.expected for case in read_cases(path)] == ["Map\n  Scan", "Scan"]
    read_cases(path)[0].check("Map\n  Scan\n")
    with pytest.raises(AssertionError):
        read_cases(path)[1].check("Map\n  Scan")


def test_a_folder_without_files_is_refused() -> None:
    with pytest.raises(ValueError, match="no fixture file"):
        parameters("nowhere/*.sql")


def test_every_fixture_file_is_used() -> None:
    """Each .sql file lies in a folder that test_fixtures.py walks."""
    folders = {path.parent.name for path in FOLDER.rglob("*.sql")}
    assert folders == {"lower", "rewrite", "delta", "spark"}
