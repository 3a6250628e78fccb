"""Properties of a table change in the transaction that writes its rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fivm_dbt.engines.spark.delta_lake.log import OpenedTable


def set_properties(transaction: Any, opened: OpenedTable, properties: Mapping[str, str]) -> None:
    """Have the table these properties after a transaction that has written nothing yet, beside those that it has."""
    known = opened.metadata
    configuration = known.configuration()
    for key, value in properties.items():
        configuration = configuration.updated(key, value)
    transaction.updateMetadata(
        known.copy(
            known.id(),
            known.name(),
            known.description(),
            known.format(),
            known.schemaString(),
            known.partitionColumns(),
            configuration,
            known.createdTime(),
        ),
        False,
    )
