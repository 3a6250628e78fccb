"""Versions of Delta tables: what a run wrote, and what it did not."""

from __future__ import annotations

from demo.paths import WAREHOUSE


def versions() -> dict[str, int]:
    """The newest version of every table of every schema, states included.

    Read from the logs themselves, where version n is the file n.json: no table can hide, and no query is run.
    """
    found: dict[str, int] = {}
    for commit in WAREHOUSE.glob("**/_delta_log/*.json"):
        if commit.stem.isdigit():
            table = commit.parent.parent.relative_to(WAREHOUSE)
            name = f"{table.parent.name.removesuffix('.db')}.{table.name}"
            found[name] = max(found.get(name, 0), int(commit.stem))
    return found


def moved(before: dict[str, int], after: dict[str, int]) -> list[str]:
    """Tables written, created or dropped in between.

    >>> moved({"a": 1, "b": 2}, {"a": 1, "b": 3, "c": 0})
    ['b', 'c']
    """
    return sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
