"""The planner knows relations by their columns, types and keys: frozen data, free of any connection."""

from fivm_dbt.catalog.database_view import DatabaseView
from fivm_dbt.catalog.relation import (
    Catalog,
    Column,
    Dependency,
    EventTime,
    ForeignKey,
    Presentation,
    Relation,
    Retention,
    check_records_changes,
)
from fivm_dbt.catalog.statistics import KeyRange, TableStatistics
from fivm_dbt.catalog.types import SparkType

__all__ = [
    "Catalog",
    "Column",
    "DatabaseView",
    "Dependency",
    "EventTime",
    "ForeignKey",
    "KeyRange",
    "Presentation",
    "Relation",
    "Retention",
    "SparkType",
    "TableStatistics",
    "check_records_changes",
]
