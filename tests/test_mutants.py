"""The mutants of ``make mutants`` apply to the product as it is, and docs/testing.md lists them."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pytest

from mutants.every import MUTANTS, tables
from mutants.mutant import PRODUCT, DoesNotApply, Mutant

_LISTED = re.compile(r"(?<=<!-- mutants -->\n).*?(?=<!-- end of mutants -->)", re.DOTALL)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.name)
def test_it_applies(mutant: Mutant, repository: Path) -> None:
    source = (repository / PRODUCT / mutant.module).read_text(encoding="utf-8")
    compile(mutant.mutated(source), mutant.module, "exec")
    files = [word for word in shlex.split(mutant.tests) if word.startswith("tests/")]
    assert files and all((repository / file).is_file() for file in files)


def test_each_has_a_name_and_changes_something_else() -> None:
    assert len({m.name for m in MUTANTS}) == len(MUTANTS) >= 20
    assert len({(m.module, m.function, m.old) for m in MUTANTS}) == len(MUTANTS)


def test_they_are_listed(repository: Path) -> None:
    """``FIVM_UPDATE=1`` writes the list anew."""
    page = repository / "docs" / "testing.md"
    text = page.read_text(encoding="utf-8")
    if os.environ.get("FIVM_UPDATE"):
        page.write_text(_LISTED.sub(lambda _: tables(), text), encoding="utf-8")
        return
    assert _LISTED.findall(text) == [tables()]


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("a + b", "a - c", "has its text 0 times"),
        ("a", "b", "has its text 2 times"),
        ("return a", "return  a", "changes nothing"),
    ],
)
def test_what_does_not_apply_is_an_error(old: str, new: str, why: str) -> None:
    mutant = Mutant("m", "nothing", "m.py", "C.f", old=old, new=new, tests="")
    with pytest.raises(DoesNotApply, match=why):
        mutant.mutated(
            "def f(a):\n    return b + a\n\nclass C:\n    def f(self, a):\n        return a\n# a + b\n"
        )


def test_another_function_of_the_name_is_left_alone() -> None:
    mutant = Mutant("m", "nothing", "m.py", "f", old="x + 1", new="x - 1", tests="")
    source = "class C:\n    def f(self, x):\n        return x + 1\n\ndef f(x):\n    return x + 1\n"
    assert mutant.mutated(source) == f"{source[:-6]}x - 1\n"
    with pytest.raises(DoesNotApply, match="there is no function"):
        Mutant("m", "nothing", "m.py", "D.f", old="x", new="y", tests="").mutated(source)
