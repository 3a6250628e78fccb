"""Every command of docs/quickstart.md is typed, against the files that the page has, and its docs are looked at."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from dbt_project import REPOSITORY
from fixtures import browser
from fixtures.typed import settings, typed

PAGE = REPOSITORY / "docs" / "quickstart.md"
IMAGE = REPOSITORY / "docs" / "images" / "docs_site.png"
STEP = re.compile(r"<!-- (typed|says|file: (?P<file>\S+)) -->\n```\w+\n(?P<text>.*?)```", re.DOTALL)


@dataclass(frozen=True)
class Shop:
    """The project that the page makes, its owner's environment, and how many of the texts that dbt says were there."""

    directory: Path
    env: dict[str, str]
    said: int

    def typed(self, command: str) -> str:
        return typed(command, self.directory, self.env)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """All steps of the page, typed in an empty directory."""
    directory = home = tmp_path_factory.mktemp("quickstart")
    env, told, said = settings(home), "", 0
    for step in STEP.finditer(PAGE.read_text(encoding="utf-8")):
        if step["file"]:
            file = directory / step["file"]
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(step["text"], encoding="utf-8")
        elif step[1] == "says":
            assert step["text"].strip() in told
            said += 1
        else:
            told = ""
            for command in step["text"].splitlines():
                if command.startswith("cd "):
                    directory /= command.removeprefix("cd ")
                else:
                    told += typed(command.replace("$FIVM_CLONE", str(REPOSITORY)), directory, env)
    return Shop(directory, env, said)


@pytest.mark.long
@pytest.mark.spark
def test_the_page(shop: Shop) -> None:
    assert shop.said == PAGE.read_text(encoding="utf-8").count("<!-- says -->") >= 4


@pytest.mark.long
@pytest.mark.spark
def test_its_docs_in_a_browser(shop: Shop, tmp_path: Path) -> None:
    """``FIVM_UPDATE=1`` writes the picture of the page anew."""
    shop.typed("dbt docs generate --static")
    site = f"file://{shop.directory / 'target' / 'static_index.html'}#!"
    mart = browser.shown(f"{site}/model/model.shop.revenue_by_city")
    assert "Orders and revenue of each city and day." in mart
    picture = browser.pictured(
        f"{site}/model/model.shop.revenue_by_city?g_v=1", tmp_path / "site.png", 1_300, 800
    )
    assert len(picture) > 20_000
    if os.environ.get("FIVM_UPDATE"):
        IMAGE.write_bytes(picture)
    shop.typed("dbt docs generate --static --vars '{fivm_show_inner_views: false}'")
    assert "fivm_inner_views" in mart
    assert "fivm_inner_views" not in browser.shown(f"{site}/model/model.shop.revenue_by_city")


def test_each_step_is_read() -> None:
    """A comment that is written otherwise would leave out what stands below it."""
    text = PAGE.read_text(encoding="utf-8")
    marks = [line for line in text.splitlines() if line.startswith("<!--")]
    assert len(marks) == len(list(STEP.finditer(text))) > 15
