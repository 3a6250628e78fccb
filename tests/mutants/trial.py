"""Trying mutants: the tests of ``make test`` over a copy of the tree with one break in it."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from mutants.mutant import Mutant

TEXTS = ("test_golden.py", "test_docs.py", "test_fixtures.py", "test_house.py", "test_mutants.py")
"""Tests that compare texts notice every change. A mutant has to be noticed by what it does."""

WITHOUT_JAVA = "not spark and not long and not more"
ON_SPARK = "spark and not long"
EVERY = "not more and not long"

_FAILED = re.compile(r"^(?:FAILED|ERROR) ([^\s]+(?: [^-]\S*)*)", re.MULTILINE)

PASSED, FAILED = 0, 1
"""What pytest ends with."""


@dataclass(frozen=True)
class Noticed:
    """Which test has failed, after so many seconds; None where all have passed."""

    test: str | None
    seconds: float
    is_likely: bool


class Broken(Exception):
    """The tests could not be run at all."""


def copy_tree(repository: Path, place: Path) -> None:
    """The files that git knows, as they are now, and new ones that it does not ignore."""
    listed = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    told = subprocess.run(listed, cwd=repository, capture_output=True, check=True).stdout.decode()
    for name in filter(None, told.split("\0")):
        file = repository / name
        if not file.is_file():
            continue
        target = place / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, target)


def try_mutant(mutant: Mutant, tree: Path, *, whole: Path, only_likely: bool = False) -> Noticed:
    """Run the likely tests over a tree that has the mutant, and all others if these pass.

    The test that fails has to pass over the ``whole`` tree.
    """
    started = monotonic()
    marks = ON_SPARK if mutant.needs_spark else WITHOUT_JAVA
    for arguments in _runs(mutant, marks, only_likely=only_likely):
        test = _first_failure(tree, arguments)
        if test is not None:
            seconds = monotonic() - started
            if _first_failure(whole, [test]) is not None:
                raise Broken(f"{test} fails without the mutant too")
            return Noticed(test, seconds, is_likely="-n" not in arguments)
    return Noticed(None, monotonic() - started, is_likely=False)


def _runs(mutant: Mutant, marks: str, *, only_likely: bool) -> list[list[str]]:
    likely = [*shlex.split(mutant.tests), "-m", marks]
    if only_likely:
        return [likely]
    ignored = [f"--ignore=tests/{name}" for name in TEXTS]
    every = ["tests", "python", "-m", EVERY, *ignored, "-n", "2", "--dist", "loadgroup"]
    return [likely, every]


def _first_failure(tree: Path, arguments: list[str]) -> str | None:
    """The first test that fails, None where all pass."""
    known = {**os.environ, "PYTHONPATH": str(tree / "python"), "PYTHONHASHSEED": "0"}
    command = [sys.executable, *"-m pytest -x -q --no-header -p no:cacheprovider".split(), *arguments]
    done = subprocess.run(command, cwd=tree, env=known, capture_output=True, text=True, check=False)
    if done.returncode == PASSED:
        return None
    found = _FAILED.search(done.stdout)
    if done.returncode != FAILED or found is None:
        raise Broken(
            f"{shlex.join(command)} ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr}"
        )
    return found[1]


def check_tree(tree: Path) -> None:
    """That the tests over a tree import its product, and no installed one."""
    code = "import fivm_dbt; print(fivm_dbt.__file__)"
    known = {**os.environ, "PYTHONPATH": str(tree / "python")}
    told = subprocess.run(
        [sys.executable, "-c", code], cwd=tree, env=known, capture_output=True, text=True, check=True
    ).stdout
    if not Path(told.strip()).is_relative_to(tree):
        raise Broken(f"the tests would run over {told.strip()}")
