"""The format of the tables that states are kept in and inputs are read from."""

from fivm_dbt.spark.formats.delta_lake import METADATA, DeltaLake
from fivm_dbt.spark.formats.table_format import (
    RECENT_COMMITS,
    ChangeFeedUnavailable,
    Commit,
    MissingRelation,
    Need,
    NotVersioned,
    Question,
    TableFormat,
    Touched,
    VersionUnavailable,
)

FORMAT: TableFormat = DeltaLake()
"""The one that is used."""

(CHANGE_FEED,) = FORMAT.properties([Need.CHANGES]).items()
"""The property, with its value, of a table whose changes are recorded."""

__all__ = [
    "CHANGE_FEED",
    "FORMAT",
    "METADATA",
    "RECENT_COMMITS",
    "ChangeFeedUnavailable",
    "Commit",
    "MissingRelation",
    "Need",
    "NotVersioned",
    "Question",
    "TableFormat",
    "Touched",
    "VersionUnavailable",
]
