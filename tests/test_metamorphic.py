"""Queries that mean the same are maintained side by side, and show the same rows after every step."""

from __future__ import annotations

import os

import pytest

from fixtures.runs import by_run
from generator.cells.runs import SHORT
from generator.families import FAMILIES
from generator.metamorphic import failure, run_family, texts

SEED = int(os.environ.get("FIVM_SEED", "20240501"))
LONG_SEEDS = 2


@pytest.mark.parametrize("name", by_run(["EXISTS", "NOT IN", "RANK"], more=["scalar", "DISTINCT"]))
def test_the_same_by_another_way(name: str) -> None:
    assert run_family(name, SEED, SHORT) is None


@pytest.mark.parametrize("name", by_run(more=[*FAMILIES][::2], long=[*FAMILIES][1::2]))
def test_the_same_by_every_other_way(name: str) -> None:
    assert run_family(name, SEED + 1) is None


@pytest.mark.long
@pytest.mark.parametrize("seed", range(SEED + 2, SEED + 2 + LONG_SEEDS))
@pytest.mark.parametrize("name", FAMILIES)
def test_random_parts_of_the_same(name: str, seed: int) -> None:
    assert run_family(name, seed) is None


def test_families_vary() -> None:
    """Every family has two queries or more, and other ones with another seed."""
    for name in FAMILIES:
        drawn = {texts(name, seed) for seed in range(12)}
        assert all(len(set(written)) >= 2 for written in drawn)
        assert len(drawn) > 2, name
        assert texts(name, SEED) == texts(name, SEED)


def test_a_difference_is_seen() -> None:
    """IN and NOT IN leave out rows that NOT EXISTS keeps."""
    found = failure(
        (
            "SELECT o.id, o.v FROM o WHERE o.v NOT IN (SELECT s.x FROM s)",
            "SELECT o.id, o.v FROM o WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.x = o.v)",
        ),
        SHORT,
    )
    assert found is not None and "two queries that mean the same differ" in found
