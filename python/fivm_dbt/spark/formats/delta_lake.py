"""Delta Lake as a table format: how its statements, properties, settings and conditions are spelled."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from sqlglot import exp

from fivm_dbt.naming import quote
from fivm_dbt.plan.model.head import Note
from fivm_dbt.spark.formats.delta_history import commit_of
from fivm_dbt.spark.formats.table_format import (
    ChangeFeedUnavailable,
    ChangeType,
    Commit,
    MissingRelation,
    Need,
    NotVersioned,
    Question,
    Touched,
    VersionUnavailable,
)
from fivm_dbt.spark.pieces import table

_PROPERTIES: Mapping[Need, tuple[str, str]] = {
    Need.CHANGES: ("delta.enableChangeDataFeed", "true"),
    Need.ONE_WRITER: ("delta.isolationLevel", "Serializable"),
    # By default there is a checkpoint after each ten commits. It takes longer than a small commit, and the next reader
    # has a new kind of query to compile: two seconds of a refresh of four.
    Need.MANY_COMMITS: ("delta.checkpointInterval", "100"),
    Need.LONG_PARTITIONS: ("delta.randomizeFilePrefixes", "true"),
    Need.COMPACTION: ("delta.autoOptimize.autoCompact", "true"),
}

METADATA = "_metadata"
"""The hidden column of a table of files."""

_FOUND_BY = "delta.dataSkippingStatsColumns"
_FOUND_BY_NONE = ("delta.dataSkippingNumIndexedCols", "0")

_ANY_NAMES = ("delta.columnMapping.mode", "name")
_UNSTORABLE = frozenset(" ,;{}()\n\t=")
"""Letters of names of columns for which a table has to have that property."""

_KEEPS_ROWS = frozenset(
    "OPTIMIZE|REORG|CLUSTER BY|VACUUM START|VACUUM END|"
    "SET TBLPROPERTIES|UNSET TBLPROPERTIES|UPGRADE PROTOCOL".split("|")
)
_KEEPS_COLUMNS = frozenset(
    "WRITE|MERGE|UPDATE|DELETE|TRUNCATE|COPY INTO|STREAMING UPDATE|"
    "ADD COLUMNS|ADD CONSTRAINT|DROP CONSTRAINT|COMPUTE STATS".split("|")
)
"""Operations after which the columns are the same ones, and the table is partitioned by the same ones."""

_CONFLICT = re.compile(
    r"DELTA_(CONCURRENT_\w+|METADATA_CHANGED|PROTOCOL_CHANGED)|TABLE_OR_VIEW_ALREADY_EXISTS"
)
"""The answers to who is overtaken by another commit, and to the second of two first builds."""


def _conditions(names: str) -> tuple[str, ...]:
    return tuple(f"DELTA_{name}" for name in names.split())


class DeltaLake:
    """:class:`~fivm_dbt.spark.formats.table_format.TableFormat` of tables USING DELTA."""

    name = "delta"
    change_type = ChangeType(
        "_change_type", came=("insert", "update_postimage"), went=("delete", "update_preimage")
    )
    reads = (
        r"(?P<pin>\bVERSION\s+AS\s+OF\s+)(?P<version>\d+)"
        r"|\btable_changes\(\s*'(?P<table>[^']+)'\s*,\s*(?P<first>\d+)\s*(?:,\s*(?P<last>\d+)\s*)?\)"
    )
    faults: Mapping[type[Exception], tuple[str, ...]] = {
        ChangeFeedUnavailable: _conditions(
            "MISSING_CHANGE_DATA CHANGE_TABLE_FEED_DISABLED CHANGE_DATA_FEED_INCOMPATIBLE_DATA_SCHEMA "
            "CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE CHANGE_DATA_FILE_NOT_FOUND "
            "CDC_START_VERSION_AFTER_LATEST INVALID_CDC_RANGE"
        ),
        VersionUnavailable: _conditions(
            "VERSION_NOT_FOUND VERSIONS_NOT_CONTIGUOUS FILE_NOT_FOUND FILE_NOT_FOUND_DETAILED LOG_FILE_NOT_FOUND "
            "TRUNCATED_TRANSACTION_LOG UNSUPPORTED_TIME_TRAVEL_BEYOND_DELETED_FILE_RETENTION_DURATION"
        ),
        MissingRelation: _conditions("TABLE_NOT_FOUND MISSING_DELTA_TABLE"),
        NotVersioned: _conditions("ONLY_OPERATION TABLE_ONLY_OPERATION NOT_A_DELTA_TABLE"),
    }
    commit = staticmethod(commit_of)

    def pinned(self, name: str, version: int) -> exp.Expr:
        """``name VERSION AS OF version``."""
        result = table(name)
        result.set(
            "version", exp.Version(this="VERSION", kind="AS OF", expression=exp.Literal.number(version))
        )
        return result

    @property
    def place_of_row(self) -> tuple[exp.Expr, exp.Expr]:
        """``_metadata.file_path, _metadata.row_index``."""
        return exp.column("file_path", table=METADATA), exp.column("row_index", table=METADATA)

    def changes(self, name: str, after: int, to: int) -> exp.Expr:
        """``table_changes(name, after + 1, to)``."""
        bounds = [exp.Literal.string(name), exp.Literal.number(after + 1), exp.Literal.number(to)]
        return exp.Table(this=exp.Anonymous(this="TABLE_CHANGES", expressions=bounds))

    def properties(
        self,
        needs: Collection[Need] = (),
        *,
        found_by: Sequence[str] | None = None,
        named: Iterable[str] = (),
    ) -> dict[str, str]:
        """A value by which rows are found is in the statistics of each file; None leaves to Delta which those are.

        >>> DeltaLake().properties([Need.CHANGES], found_by=["a b"], named=["a b", "c"])["delta.columnMapping.mode"]
        'name'
        """
        found = dict(_PROPERTIES[need] for need in needs)
        if found_by is not None:
            found |= {_FOUND_BY: ",".join(map(quote, found_by))} if found_by else dict([_FOUND_BY_NONE])
        return found | (dict([_ANY_NAMES]) if any(not _UNSTORABLE.isdisjoint(n) for n in named) else {})

    def numbered(self, note: Note) -> dict[str, str]:
        """Those of a transaction (ADR 0033)."""
        return {
            "spark.databricks.delta.commitInfo.userMetadata": note.text,
            "spark.databricks.delta.write.txnAppId": note.application,
            "spark.databricks.delta.write.txnVersion": str(note.number),
        }

    def is_conflict(self, error: BaseException) -> bool:
        return _CONFLICT.search(str(error)) is not None

    def history(self, name: str, count: int) -> Question:
        columns = (
            "version",
            "timestamp",
            "operation",
            "operationMetrics",
            "operationParameters",
            "userMetadata",
        )
        return Question(f"DESCRIBE HISTORY {name} LIMIT {count}", columns)

    def touched(self, commit: Commit) -> Touched:
        if commit.operation in _KEEPS_ROWS:
            return Touched.FILES
        keeps = commit.operation in _KEEPS_COLUMNS and not commit.overwrites
        return Touched.ROWS if keeps else Touched.COLUMNS

    @property
    def describing(self) -> frozenset[str]:
        return frozenset({"CHANGE COLUMN"})

    def size(self, name: str) -> Question:
        return Question(f"DESCRIBE DETAIL {name}", ("sizeInBytes",))

    def compacted(self, name: str, where: exp.Expr) -> exp.Expr:
        """``OPTIMIZE name WHERE where``."""
        text = f"{table(name).sql(dialect='spark')} WHERE {where.sql(dialect='spark')}"
        return exp.Command(this="OPTIMIZE", expression=text)
