"""The queries of the multilevel IVM paper (Cumulus, the forerunner of DBToaster), and what the paper does with them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal

from benchmarks.queries.order_book import BOOK, order_book
from benchmarks.queries.servers import SERVERS, servers
from benchmarks.queries.suite import QUERIES, Query, Suite
from benchmarks.queries.tpch_batches import tpch_batches
from benchmarks.queries.tpch_data import CACHE, TABLES, tpch_files, tpch_rows


@dataclass(frozen=True)
class InPaper:
    """What the paper's full compilation does with a query after a change, and at which cost."""

    how: Literal["incremental", "re-evaluated"]
    note: str


IN_PAPER = {
    "axf": InPaper("incremental", "keeps sums per price met; plain deltas are faster"),
    "bsp": InPaper("incremental", "keeps sums per time met; plain deltas are faster"),
    "bsv": InPaper("incremental", "keeps sums per broker"),
    "mst": InPaper("re-evaluated", "keeps the nested sums, evaluates the rest over kept maps"),
    "psp": InPaper("re-evaluated", "keeps the nested sums, evaluates the rest over kept maps"),
    "vwap": InPaper("incremental", "keeps a nested sum per price in use; a new price is evaluated"),
    "tpch03": InPaper("incremental", "constant time"),
    "tpch11": InPaper("incremental", "hardly better than plain deltas"),
    "tpch17": InPaper("incremental", "a lineitem walks the kept join of its part"),
    "tpch18": InPaper("incremental", "walks the kept join of all orders; re-evaluating is faster"),
    "tpch22": InPaper("re-evaluated", "orders: constant; a customer walks those without orders"),
    "ssb4": InPaper("incremental", "39 kept maps"),
    "svl": InPaper("re-evaluated", "keeps the two sums, walks kept loads that are never collected"),
}
"""By query, in the paper's order; section 4 and figure 4. SVL has no text there."""

BOOK_QUERIES = ("axf", "bsp", "bsv", "mst", "psp", "vwap")
TPCH_QUERIES = ("tpch03", "tpch11", "tpch17", "tpch18", "tpch22", "ssb4")
SERVER_QUERIES = ("svl",)


def variants(name: str) -> tuple[str, ...]:
    """The query as it is written, and with its inner sums coalesced to 0, where it has any."""
    coalesced = f"{name}_coalesced"
    return (name, coalesced) if (QUERIES / "papers" / f"{coalesced}.sql").exists() else (name,)


def papers_suites(
    names: Collection[str] = tuple(IN_PAPER),
    batches: int | None = None,
    *,
    orders: int = 200,
    racks: int = 50,
    changes: int = 2_000,
    scale: float = 0.01,
    cache: Path = CACHE,
) -> tuple[Suite, ...]:
    """One suite per set of tables that the queries ``names`` read, each with its first ``batches`` batches.

    ``orders`` are those on each side of the order book, ``racks`` have 20 servers each, ``changes`` are those of
    their loads, ``scale`` is TPC-H's. Raises FileNotFoundError where TPC-H data have to be generated and there is
    no generator.
    """

    def chosen(group: Collection[str]) -> tuple[Query, ...]:
        return tuple(Query.read("papers", v) for n in group if n in names for v in variants(n))

    suites = []
    if queries := chosen(BOOK_QUERIES):
        book, stream = order_book(orders)
        suites.append(Suite(f"order book of {orders:,} a side", BOOK, book, queries, stream[:batches]))
    if queries := chosen(TPCH_QUERIES):
        files = tpch_files(scale, cache)
        stream = tuple(islice(tpch_batches(tpch_rows(files)), batches))
        suites.append(Suite(f"TPC-H at scale {scale:g}", TABLES, files, queries, stream))
    if queries := chosen(SERVER_QUERIES):
        rows, stream = servers(racks, changes)
        contents = {"servers": rows}
        suites.append(Suite(f"{racks:,} racks of servers", (SERVERS,), contents, queries, stream[:batches]))
    return tuple(suites)
