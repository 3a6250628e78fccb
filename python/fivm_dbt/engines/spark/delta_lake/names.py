"""What Delta calls its classes, its settings, and what is seen of it in plans and jobs."""

from __future__ import annotations

import re
from collections.abc import Mapping

_DELTA = "org.apache.spark.sql.delta"
LOG = f"{_DELTA}.DeltaLog"
HISTORY, HISTORIES = f"{_DELTA}.DeltaHistory", f"{_DELTA}.DeltaHistoryManager"
WRITE, ACTION = f"{_DELTA}.DeltaOperations$Write", f"{_DELTA}.actions.FileAction"
ADD_FILE = f"{_DELTA}.actions.AddFile"
TABLES = f"{_DELTA}.DeltaTableUtils"
VECTOR_ROWS = f"{_DELTA}.commands.DeletionVectorBitmapGenerator$"
PREFIXES = f"{_DELTA}.util.Utils$"
VECTORS = "delta.enableDeletionVectors"
"""The property of a table whose files may have deletion vectors."""

ROW_NUMBERS = "spark.databricks.delta.deletionVectors.useMetadataRowIndex"
"""The setting by which rows of such a table have numbers. It is true unless somebody says otherwise."""

SKIPPING = "spark.databricks.delta.stats.skipping"
"""Whether Delta skips files. Without that it reads no table whose files have deletion vectors."""

COMMIT_FILES, JSON = f"{_DELTA}.util.DeltaCommitFileProvider", f"{_DELTA}.util.JsonUtils"

SESSION_CONFIG: Mapping[str, str] = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": f"{_DELTA}.catalog.DeltaCatalog",
}
"""What a Spark session needs besides the jars, also in a dbt profile under server_side_parameters."""

LOG_TASKS = "spark.databricks.delta.snapshotPartitions"
"""By how many tasks a new version of a table is read from its log, however short that is."""

LOG_TASKS_BY_DEFAULT = 50

TINY: Mapping[str, str] = {
    "spark.databricks.delta.merge.repartitionBeforeWrite.enabled": "false",
    # Nobody skips files of a table that has one or two.
    "spark.databricks.delta.stats.collect": "false",
    SKIPPING: "false",
    "spark.databricks.delta.properties.defaults.checkpointInterval": "1000",
}
"""Settings for statements over a handful of rows."""

READS_CHANGES = r"DeltaCDFRelation\(.*\)"
"""A node of a plan that reads a change feed, before the name of the table."""

LOG_DIRECTORY = "_delta_log"

ON_LOG = re.compile("Filtering files for query|Compute snapshot for version")
"""Descriptions of jobs that read the log."""
