"""All mutants, and the list of them for docs/testing.md."""

from __future__ import annotations

from collections.abc import Sequence

from mutants.captures import CAPTURES
from mutants.deltas import DELTAS
from mutants.mutant import Mutant
from mutants.on_spark import ON_SPARK
from mutants.parts import PARTS
from mutants.protocol import PROTOCOL

GROUPS: dict[str, Sequence[Mutant]] = {
    "Delta rules": DELTAS,
    "Captures": CAPTURES,
    "What is written, and when": PROTOCOL,
    "Time parts": PARTS,
    "Spark and Delta": ON_SPARK,
}

MUTANTS = tuple(mutant for group in GROUPS.values() for mutant in group)


def tables() -> str:
    """A table of each group."""
    return "\n".join(f"### {title}\n\n{_rows(group)}" for title, group in GROUPS.items())


def _rows(group: Sequence[Mutant]) -> str:
    rows = [f"| `{m.name}` | {m.says} | `{m.function}` in `{m.module}` |" for m in group]
    return "\n".join(["| mutant | what is wrong then | where |", "|---|---|---|", *rows, ""])
