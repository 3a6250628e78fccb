"""Classes of the JVM are found by their names.

``session._jvm.org.apache...`` asks the JVM for each part of a name whether it is a class, and the JVM looks through all
jars to say no: three milliseconds for a class of Delta's, more than most calls take.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from fivm_dbt.engines.spark.delta_lake.names import JSON

_SQL = "org.apache.spark.sql"
DATASET = f"{_SQL}.classic.Dataset"
SESSION = f"{_SQL}.classic.SparkSession"
SAVE_MODE = f"{_SQL}.SaveMode"
LOCAL_RELATION = f"{_SQL}.catalyst.plans.logical.LocalRelation"
LOGICAL_RDD = f"{_SQL}.execution.LogicalRDD"
LOGICAL_RELATION = f"{_SQL}.execution.datasources.LogicalRelation"
SPARK_ENV = "org.apache.spark.SparkEnv"
BLOCK_ID = "org.apache.spark.storage.RDDBlockId"
EXPRESSION = f"{_SQL}.catalyst.expressions.Expression"
SQL_METRICS = f"{_SQL}.execution.metric.SQLMetrics"
HASH_MAP = "scala.collection.immutable.HashMap"
ARRAY_SEQ, OPTION = "scala.collection.immutable.ArraySeq", "scala.Option"


def java_class(session: Any, name: str) -> Any:
    """A class of the JVM of a session, which has to be there: if not, the first call of it is an error of py4j's."""
    from py4j.java_gateway import JavaClass

    return JavaClass(name, _client(session))


def java_seq(session: Any, of: str, values: Sequence[Any]) -> Any:
    """Objects of a class as a sequence of Scala's."""
    array = session.sparkContext._gateway.new_array(java_class(session, of), len(values))
    for position, value in enumerate(values):
        array[position] = value
    return java_class(session, ARRAY_SEQ).unsafeWrapArray(array)


def java_object(session: Any, name: str) -> Any:
    """What Scala calls an object, by the name of its class, which ends in a dollar sign."""
    loader = java_class(session, "java.lang.Thread").currentThread().getContextClassLoader()
    found = java_class(session, "java.lang.Class").forName(name, True, loader)
    return found.getField("MODULE$").get(None)


def java_method(session: Any, of: str, name: str) -> Any:
    """A static method of a class: py4j asks the JVM for it only once."""
    return _method(_client(session), of, name)


def told(session: Any, value: Any) -> Any:
    """An object of the JVM as JSON has it: all of it in one call, where each part of it would be one of its own.

    For what is short: more than eight kilobytes wait 40 ms for the acknowledgement of the first ones.
    """
    return json.loads(_mapper(_client(session)).writeValueAsString(value))


def as_tree(session: Any, value: Any) -> Any:
    """The same as a tree that stays in the JVM, of which parts can be told."""
    return _mapper(_client(session)).valueToTree(value)


def _client(session: Any) -> Any:
    return session.sparkContext._gateway._gateway_client


@lru_cache(maxsize=100)
def _method(client: Any, of: str, name: str) -> Any:
    from py4j.java_gateway import JavaClass

    return getattr(JavaClass(of, client), name)


@lru_cache(maxsize=10)
def _mapper(client: Any) -> Any:
    return _method(client, JSON, "mapper")()
