"""The 22 queries of TPC-H over its eight tables."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from benchmarks.queries.suite import Query, Suite
from benchmarks.queries.tpch_batches import tpch_batches
from benchmarks.queries.tpch_data import CACHE, TABLES, tpch_files, tpch_rows

NUMBERS = tuple(range(1, 23))


def tpch_query(number: int) -> Query:
    """The text of query ``number``."""
    return Query.read("tpch", f"q{number:02d}")


def tpch_suite(
    numbers: Sequence[int] = NUMBERS,
    batches: int | None = None,
    scale: float = 0.01,
    seed: int = 22,
    cache: Path = CACHE,
) -> Suite:
    """The queries of these numbers through the first ``batches`` batches (all if None).

    Raises FileNotFoundError where data have to be generated and there is no generator.
    """
    files = tpch_files(scale, cache)
    stream = tuple(islice(tpch_batches(tpch_rows(files), seed), batches))
    return Suite(f"TPC-H at scale {scale:g}", TABLES, files, tuple(map(tpch_query, numbers)), stream)
