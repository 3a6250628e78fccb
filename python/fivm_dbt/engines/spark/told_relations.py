"""Spark's catalog and Delta's log tell relations in JSON: what DESCRIBE shows, without a statement.

Types are whole here, where DESCRIBE abbreviates wide structs, and so are properties that look like secrets.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fivm_dbt.catalog import Column
from fivm_dbt.engines.spark.introspect import VIEW, Described
from fivm_dbt.engines.spark.stored_view import StoredView
from fivm_dbt.naming import relation_name
from fivm_dbt.spark.formats import FORMAT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

_WRITTEN_TYPE = "__CHAR_VARCHAR_TYPE_STRING"
"""What a column of a view was declared as, where it is CHAR or VARCHAR and Spark's type of it is STRING."""

_OF_SPARK, _SETTING = "view.", "view.sqlConfig."
"""Begins the names of properties with which Spark remembers how to read a view."""


def told_view(known: Mapping[str, Any]) -> Described | None:
    """A view by its entry in the catalog; None where that lacks what DESCRIBE finds by other ways."""
    schema = known["schema"]
    if not schema["fields"] or "viewText" not in known:
        return None
    own = {key: value for key, value in known["properties"].items() if not key.startswith(_OF_SPARK)}
    described = Described(
        columns=columns_of(schema, as_written=True),
        provider="",
        view_text=known["viewText"],
        properties=tuple(sorted(own.items())),
        stored=_stored(known["properties"]),
        kind=VIEW,
        comment=known.get("comment") or "",
        column_comments=_comments(schema),
    )
    return described.as_read()


def _stored(properties: Mapping[str, str]) -> StoredView:
    def listed(count: str, each: str) -> list[str]:
        return [properties[f"view.{each}.{i}"] for i in range(int(properties.get(f"view.{count}", 0)))]

    schema = relation_name(*listed("catalogAndNamespace.numParts", "catalogAndNamespace.part"))
    columns = listed("query.out.numCols", "query.out.col")
    settings = {k.removeprefix(_SETTING): v for k, v in properties.items() if k.startswith(_SETTING)}
    return StoredView.of(schema, columns, properties.get("view.schemaMode", ""), settings)


def told_table(schema: Mapping[str, Any], properties: Mapping[str, str], comment: str | None) -> Described:
    """A table of the format by its snapshot. DESCRIBE shows CHAR and VARCHAR of such tables as STRING."""
    return Described(
        columns=columns_of(schema),
        provider=FORMAT.name,
        view_text="",
        properties=tuple(sorted(properties.items())),
        comment=comment or "",
        column_comments=_comments(schema),
    )


def columns_of_query(session: SparkSession, sql: str) -> tuple[Column, ...] | None:
    """The columns of a query, which is analysed and not run. None where it is wrong: DESCRIBE QUERY says why."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        return columns_of(json.loads(session._jsparkSession.sql(sql).schema().json()))
    except (Py4JError, PySparkException) as why:
        logger.debug("a statement tells about a query: %s", why)
        return None


def columns_of(schema: Mapping[str, Any], *, as_written: bool = False) -> tuple[Column, ...]:
    """The columns of a schema in Spark's JSON."""
    from pyspark.sql.types import StructType

    fields = StructType.fromJson(dict(schema)).fields
    return tuple(
        Column.of(
            field.name,
            (as_written and field.metadata.get(_WRITTEN_TYPE)) or field.dataType.simpleString(),
        )
        for field in fields
    )


def _comments(schema: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    found = ((field["name"].lower(), field["metadata"].get("comment")) for field in schema["fields"])
    return tuple((name, text) for name, text in found if text)
