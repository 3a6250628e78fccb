"""The ways that are compared, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.compare.cases import Compared
from benchmarks.compare.dbt_ways import Incremental, Microbatch, Recompute
from benchmarks.compare.fivm_way import Fivm
from benchmarks.compare.hand_way import Hand
from benchmarks.compare.way import Way

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLE, FIVM = "table", "fivm"

CONFIGURED: dict[str, dict[str, object]] = {
    FIVM: {},
    "first_order": {"fivm_strategy": "first_order"},
    "factorized": {"fivm_strategy": "factorized"},
    "recursive": {"fivm_strategy": "recursive"},
    "merge": {"fivm_apply": "merge"},
    "replace": {"fivm_apply": "replace"},
    "append": {"fivm_apply": "append"},
    "never_built": {"fivm_rebuild": "never"},
}
"""Ways of this package, and their configuration. The first one chooses by itself."""

BESIDE = ("incremental", "microbatch", "by_hand")
"""What users may do instead: of the first two some rows may be wrong."""

WAYS = (TABLE, *BESIDE, *CONFIGURED)

CHOICES = frozenset((TABLE, *CONFIGURED))
"""Between these the first way of this package chooses: strategies, ways of writing, and a build."""

OURS = frozenset(CONFIGURED)
"""These have to be equal to the recompute."""


def way(session: SparkSession, compared: Compared, name: str) -> Way | None:
    """A case by a way; None where it cannot be kept so."""
    if name == TABLE:
        return Recompute(session, compared)
    if name in CONFIGURED:
        return Fivm(session, compared, name, CONFIGURED[name])
    if name == "by_hand":
        return None if compared.by_hand is None else Hand(session, compared, compared.by_hand)
    if any(model.by_time is None for model in compared.models):
        return None
    return Incremental(session, compared) if name == "incremental" else Microbatch(session, compared)
