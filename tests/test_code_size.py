"""Lines of the product are counted by what they are."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import code_size

SOURCE = '''"""A module."""

import re
from os import (
    path,
)


def f(x: int) -> str:
    """What it gives
    is text."""
    # Why.
    text = """
    # of the text
    """

    return re.escape(text) + path.sep
'''


def test_each_line_is_of_one_kind() -> None:
    assert list(code_size.kinds_of_lines(SOURCE)) == [
        *("docstrings", "blank", "imports", "imports", "imports", "imports", "blank", "blank"),
        *("code", "docstrings", "docstrings", "comments", "code", "code", "code", "blank", "code"),
    ]


def test_commits_side_by_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def git(*words: str) -> None:
        own = ("-c", "user.name=a", "-c", "user.email=a@b")
        subprocess.run(["git", *own, *words], cwd=tmp_path, check=True, capture_output=True)

    (tmp_path / "p" / "left").mkdir(parents=True)
    git("init", "-b", "main")
    for number, text in enumerate((SOURCE, SOURCE + "\n\nMORE = 1\n"), start=1):
        (tmp_path / "p" / "m.py").write_text(text)
        (tmp_path / "p" / "left" / "out.py").write_text("x = 1\n")
        git("add", ".")
        git("commit", "-m", "one")
        git("tag", f"v{number}")
    monkeypatch.setattr(code_size, "REPOSITORY", tmp_path)
    monkeypatch.setattr("sys.argv", ["code_size", "v1", "v2", "--folder", "p", "--without", "left"])
    assert code_size.main() == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert rows[0] == ["commit", "files", "lines", "code", "imports", "docstrings", "comments", "blank"]
    assert rows[1] == ["v1", "1", "17", "5", "4", "3", "1", "4"]
    assert rows[2] == ["v2", "1", "20", "6", "4", "3", "1", "6"]
    assert rows[3][:5] == ["last", "/", "first", "1.000", "1.176"]
