"""A refresh runs in a session of its own: a copy of dbt's, with settings for small statements.

A copy has all settings, temporary views and functions of the session, the current catalog and schema, which decide
what a model's SQL means; session variables it has not. What is set here decides only how fast a statement runs, and
nobody else's statement sees it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from fivm_dbt.engines.spark.delta_lake.names import LOG_TASKS, LOG_TASKS_BY_DEFAULT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SHUFFLE = "spark.sql.shuffle.partitions"
ADAPTIVE = "spark.sql.adaptive.enabled"

UNIONS = "spark.sql.unionOutputPartitioning"

PER_CORE = 4
"""Partitions of a shuffle. Adaptive execution puts small ones together, but each is a file of its own before."""


def own_session(session: SparkSession, tell: Callable[[str], None] | None = None) -> SparkSession:
    """A copy of the session with settings of its own; a session of Spark Connect, which cannot be copied, itself.

    To copy one takes a millisecond, and leaves nothing behind. ``tell`` hears what is set otherwise.
    """
    if not hasattr(session, "_jsparkSession"):
        session.conf.set(UNIONS, "false")
        return session
    copied = type(session)(session.sparkContext, session._jsparkSession.cloneSession())
    found = {key: copied.conf.get(key, None) for key in (SHUFFLE, ADAPTIVE, LOG_TASKS, UNIONS)}
    own = own_settings(found, session.sparkContext.defaultParallelism)
    for key, value in own.items():
        copied.conf.set(key, value)
    if tell is not None and own:
        tell(told_settings(found, own))
    return copied


def told_settings(found: Mapping[str, str | None], own: Mapping[str, str]) -> str:
    """What is set otherwise, in a line.

    >>> told_settings({SHUFFLE: "200", LOG_TASKS: None}, {SHUFFLE: "8", LOG_TASKS: "2"})
    'statements of refreshes run with spark.sql.shuffle.partitions=8 (200 in the session), \
spark.databricks.delta.snapshotPartitions=2 (not set in the session)'
    """
    settings = (f"{key}={value} ({found[key] or 'not set'} in the session)" for key, value in own.items())
    return f"statements of refreshes run with {', '.join(settings)}"


def own_settings(found: Mapping[str, str | None], cores: int) -> dict[str, str]:
    """What is set otherwise than in the session that has ``found``, on so many cores.

    >>> own_settings({SHUFFLE: "200", ADAPTIVE: "true", LOG_TASKS: None, UNIONS: "false"}, 2)
    {'spark.sql.shuffle.partitions': '8', 'spark.databricks.delta.snapshotPartitions': '2'}
    >>> own_settings({SHUFFLE: "200", ADAPTIVE: "true", LOG_TASKS: "50", UNIONS: "false"}, 64)
    {}
    """
    own = {}
    shuffle = found[SHUFFLE]
    # Without adaptive execution their number is that of the tasks, and a build may need many.
    if shuffle is not None and found[ADAPTIVE] == "true" and int(shuffle) > PER_CORE * cores:
        own[SHUFFLE] = str(PER_CORE * cores)
    if found[LOG_TASKS] is None and cores < LOG_TASKS_BY_DEFAULT:
        own[LOG_TASKS] = str(max(2, cores))
    # Since 4.1 Spark passes on how the rows of a UNION are spread if its branches agree. 4.2 may find at run time that
    # they do not, when a join above has been planned on it already ("PartitioningCollection requires all of its
    # partitionings have the same numPartitions"): deltas are unions of joins. It saves an exchange at most.
    if found[UNIONS] != "false":
        own[UNIONS] = "false"
    return own
