"""What a run is asked for: everything, a quick look, or a large scale; each part can be chosen by itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from benchmarks.compare.cases import DATA, cases
from benchmarks.compare.ways import BESIDE, FIVM, WAYS


@dataclass(frozen=True)
class Wanted:
    """Names of what is run, at which scale, how often, and how much memory the Java process has."""

    scale: float
    rounds: int
    memory: str
    queries: tuple[str, ...]
    changes: tuple[str, ...]
    ways: tuple[str, ...]

    def __post_init__(self) -> None:
        """Raise ValueError for a name that there is not."""
        _check("query", self.queries, QUERIES)
        _check("change", self.changes, CHANGES)
        _check("way", self.ways, WAYS)


def _check(what: str, names: Iterable[str], known: Sequence[str]) -> None:
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f"there is no {what} {unknown[0]!r}: expected one of {', '.join(known)}")


QUERIES = tuple(compared.name for compared in cases())
CHANGES = tuple(dict.fromkeys(change.name for data in DATA for change in data.changes))

ALL = Wanted(1.0, 1, "6g", QUERIES, CHANGES, WAYS[1:])

QUICK = Wanted(
    scale=0.1,
    rounds=1,
    memory="6g",
    queries=("by_orderdate", "q01", "q03", "q12", "delays_daily"),
    changes=("none", "recent 0.1 %", "recent 1 %", "customers 1 %", "one airport"),
    ways=(*BESIDE, FIVM, "merge"),
)

LARGE = Wanted(
    scale=10.0,
    rounds=3,
    memory="12g",
    queries=("by_orderdate", "q01", "q03", "q12"),
    changes=("recent 0.1 %", "customers 1 %"),
    ways=(*BESIDE, FIVM, "first_order", "never_built"),
)
