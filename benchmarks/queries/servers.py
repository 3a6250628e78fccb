"""Servers in racks, each with a load: all at 0 first, then changed at random, as in the paper's trace for SVL."""

from __future__ import annotations

from decimal import Decimal

from benchmarks.queries.draft import Draft
from benchmarks.queries.suite import Batch
from fivm_dbt.catalog import Column
from fivm_dbt.refresh.engine import Row
from fivm_dbt.testing.workbench import TableSpec

SERVERS = TableSpec(
    "servers",
    (Column.of("rack_id", "int"), Column.of("server_id", "int"), Column.of("load", "decimal(6,5)")),
)
PER_RACK = 20
FULL_RACKS, FULL_CHANGES = 1_000, 100_000
"""The paper's sizes."""


def servers(
    racks: int = 50, changes: int = 2_000, batches: int = 10, seed: int = 20
) -> tuple[tuple[Row, ...], tuple[Batch, ...]]:
    """Racks of 20 servers at load 0, and ``changes`` of a load in ``batches`` batches, the last two taken back after.

    A server that changes twice in one batch goes from its first to its last load in it.
    """
    columns = [column.name for column in SERVERS.columns]
    rows = tuple(
        (rack, rack * PER_RACK + place, Decimal("0.00000"))
        for rack in range(racks)
        for place in range(PER_RACK)
    )
    draft = Draft({"servers": columns}, {"servers": rows}, seed)
    stream = []
    for number in range(batches):
        for _ in range(-(-changes // batches) // len(rows)):
            _change(draft, len(rows))
        _change(draft, -(-changes // batches) % len(rows))
        stream.append(draft.finish(f"loads change ({number + 1})"))
    stream += [draft.undo() for _ in range(min(2, batches))]
    return rows, tuple(stream)


def _change(draft: Draft, count: int) -> None:
    for row in draft.some("servers", count):
        load = Decimal(draft.random.randrange(100_000)).scaleb(-5)
        draft.update("servers", row, load=load)
