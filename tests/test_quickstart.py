"""Every command of docs/quickstart.md is typed, against the files that the page has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dbt_project import REPOSITORY
from fixtures.typed import settings, typed

PAGE = REPOSITORY / "docs" / "quickstart.md"
STEP = re.compile(r"<!-- (typed|says|file: (?P<file>\S+)) -->\n```\w+\n(?P<text>.*?)```", re.DOTALL)


@pytest.mark.long
@pytest.mark.spark
def test_the_page(tmp_path: Path) -> None:
    directory, told, checked = tmp_path, "", 0
    for step in STEP.finditer(PAGE.read_text(encoding="utf-8")):
        if step["file"]:
            file = directory / step["file"]
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(step["text"], encoding="utf-8")
        elif step[1] == "says":
            assert step["text"].strip() in told
            checked += 1
        else:
            told = ""
            for command in step["text"].splitlines():
                if command.startswith("cd "):
                    directory /= command.removeprefix("cd ")
                else:
                    told += typed(
                        command.replace("$FIVM_CLONE", str(REPOSITORY)), directory, settings(tmp_path)
                    )
    assert checked == PAGE.read_text(encoding="utf-8").count("<!-- says -->") >= 4


def test_each_step_is_read() -> None:
    """A comment that is written otherwise would leave out what stands below it."""
    text = PAGE.read_text(encoding="utf-8")
    marks = [line for line in text.splitlines() if line.startswith("<!--")]
    assert len(marks) == len(list(STEP.finditer(text))) > 15
