"""The pages are read in one sitting: short sentences, one word per thing, an architecture that names every directory.

Records are not held to it: decisions say what was thought when they were made, the changelog what was new then.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted(
    [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        ROOT / "demo" / "README.md",
        *(ROOT / "docs").glob("*.md"),
        *(ROOT / "docs" / "operators").glob("*.md"),
        *(ROOT / "docs" / "rings").glob("*.md"),
    ]
)
MOST_WORDS = 25
OTHER_WORDS_FOR_INNER_VIEW = ("helper view", "kept view", "helper table", "auxiliary table")
"""The glossary names two of them, to say that they mean the same."""

_NOT_PROSE = (
    re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL),
    re.compile(r"<!--.*?-->", re.DOTALL),
    re.compile(r"^ *\|.*$", re.MULTILINE),
    re.compile(r"^#.*$", re.MULTILINE),
    re.compile(r"(?<=\n\n)(?:    \S.*\n)+"),
    re.compile(r"!\[[^\]]*\]\([^)]*\)"),
)
_ITEM = re.compile(r"^ *(?:[*-]|\d+\.) ", re.MULTILINE)


def _prose(text: str) -> str:
    for pattern in _NOT_PROSE:
        text = pattern.sub("", text)
    text = re.sub(r"`[^`]*`", "code", text)
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)


def _sentences(text: str) -> Iterator[str]:
    """Sentences of a page, and items of its lists; a colon and a semicolon end one too."""
    for paragraph in re.split(r"\n\s*\n", _ITEM.sub("\n\n", _prose(text))):
        yield from filter(None, re.split(r"(?<=[.!?:;])(?:\*\*|\))?\s+", " ".join(paragraph.split())))


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_sentences_are_short(page: Path) -> None:
    found = [s for s in _sentences(page.read_text(encoding="utf-8")) if len(s.split()) > MOST_WORDS]
    assert found == []


def test_sentences_are_found() -> None:
    text = "A first one, and `one two three`. [Three words here](x.md):\n\n* an item\n* two\n  lines; more\n\n| no |\n"
    assert [*_sentences(text)] == [
        "A first one, and code.",
        "Three words here:",
        "an item",
        "two lines;",
        "more",
    ]
    assert sum(1 for page in PAGES for _ in _sentences(page.read_text(encoding="utf-8"))) > 1_500


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_inner_views_have_one_name(page: Path) -> None:
    text = " ".join(page.read_text(encoding="utf-8").lower().split())
    found = [w for w in OTHER_WORDS_FOR_INNER_VIEW if w in text]
    assert found == (["helper view"] if page.name == "glossary.md" else [])


ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def test_architecture_is_short() -> None:
    assert len(ARCHITECTURE.splitlines()) <= 250


def test_architecture_names_every_directory() -> None:
    tree = ARCHITECTURE[ARCHITECTURE.index("python/fivm_dbt/\n") :].partition("python/dbt_fivm/")[0]
    packages = {p.parent.name for p in (ROOT / "python" / "fivm_dbt").rglob("__init__.py")}
    assert set(re.findall(r"\b([a-z_]+)/", tree)) == packages | {"python"}


def test_modules_that_pages_name_are_there() -> None:
    known = {
        p.relative_to(ROOT / "python" / "fivm_dbt").as_posix() for p in ROOT.glob("python/fivm_dbt/**/*.py")
    }
    known |= {
        p.relative_to(ROOT).as_posix() for p in (*ROOT.glob("tests/**/*.py"), *ROOT.glob("benchmarks/*.py"))
    }
    named = [
        (page.name, name)
        for page in PAGES
        for name in re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.py)`", page.read_text())
    ]
    assert len(named) > 40
    assert [(page, name) for page, name in named if name not in known] == []
