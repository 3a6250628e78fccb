"""The table of positions and kinds prints as text, with its holes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from generator.cells.cell import Cell, cells, each_cell_once
from generator.cells.kinds import KINDS
from generator.cells.positions import POSITIONS
from generator.cells.refusals import not_yet, refused_by_spark

Seen = Counter[tuple[str, str, str, str]]
"""How often (position, kind, correlated or uncorrelated, empty or rows) was equal to its recompute."""

WAYS = ("uncorrelated", "correlated")


def way(cell: Cell) -> str:
    return WAYS[cell.is_correlated]


def missing(seen: Seen) -> Iterator[str]:
    """Holes of the table: what was never equal over an empty input, or over one with rows."""
    for cell in each_cell_once():
        if refused_by_spark(cell) is None and not_yet(cell) is None:
            for side in ("empty", "rows") if cell.reads is not None else ("rows",):
                if not seen[cell.position, cell.kind, way(cell), side]:
                    yield f"{cell.position} / {cell.kind} / {way(cell)}, {side}"


def table(seen: Seen) -> str:
    """Rows are kinds, columns positions; two marks per cell: uncorrelated, correlated."""
    names = list(POSITIONS)
    lines = [f"{number:>3} {name}" for number, name in enumerate(names, start=1)]
    lines += [
        "",
        "uncorrelated, correlated: # equal over empty inputs and others, o over one of them, S refused by Spark,",
        "! not maintained yet, - cannot be said, . a hole",
        "",
        f"{'kind':<24}" + "".join(f"{number:>3}" for number in range(1, len(names) + 1)),
    ]
    by_place: dict[tuple[str, str], dict[str, str]] = {}
    for cell in each_cell_once():
        marks = by_place.setdefault((cell.position, cell.kind), {})
        marks[way(cell)] = _mark(cell, seen)
    for kind in KINDS:
        texts = ("".join(by_place.get((name, kind), {}).get(w, "-") for w in WAYS) for name in names)
        lines.append(f"{kind:<24}" + "".join(f" {text}" for text in texts))
    conditions = Counter(condition for cell in cells() if (condition := refused_by_spark(cell)))
    lines += ["", *(f"S {condition}: {count} cells" for condition, count in sorted(conditions.items()))]
    return "\n".join(lines)


def _mark(cell: Cell, seen: Seen) -> str:
    if refused_by_spark(cell) is not None:
        return "S"
    if not_yet(cell) is not None:
        return "!"
    counts = [seen[cell.position, cell.kind, way(cell), side] > 0 for side in ("empty", "rows")]
    if all(counts) or (counts[1] and cell.reads is None):
        return "#"
    return "o" if any(counts) else "."
