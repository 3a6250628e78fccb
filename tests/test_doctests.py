"""Every example in a docstring runs, and none has been lost."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from collections.abc import Iterator

import pytest

import fivm_dbt

AT_LEAST = 66
"""Raise it with new examples: pytest itself would not notice that some are no longer found."""

NOT_IMPORTED = ("fivm_dbt.bridge", "fivm_dbt.__main__")
"""Need dbt's own start-up, or run something when imported."""


def _modules() -> Iterator[str]:
    for found in pkgutil.walk_packages(fivm_dbt.__path__, "fivm_dbt."):
        if not found.name.startswith(NOT_IMPORTED):
            yield found.name


def _examples(name: str) -> list[doctest.DocTest]:
    found = doctest.DocTestFinder(exclude_empty=True).find(importlib.import_module(name))
    return [test for test in found if test.examples]


@pytest.mark.parametrize("name", [name for name in _modules() if _examples(name)])
def test_examples_of(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0
    assert result.failed == 0


def test_examples_are_found() -> None:
    assert sum(len(_examples(name)) for name in _modules()) >= AT_LEAST
