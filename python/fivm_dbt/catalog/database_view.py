"""A view of the database is a query with a name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fivm_dbt.catalog.types import SparkType
from fivm_dbt.naming import relation_name, split_name

SPARK_CATALOG = "spark_catalog"
"""Spark's own catalog, which names leave out."""


@dataclass(frozen=True)
class DatabaseView:
    """A view that shows no fivm model: wherever it is read, its query takes its place.

    ``name`` is canonical, ``sql`` the query as the database keeps it. Names without a schema in it lie in ``schema``,
    the dotted name of catalog and schema, empty where names are flat. Of a query with ``*`` the view shows the
    columns that are ``selected``, whatever the tables have by now; of any other one all, in their order. It calls them
    ``names``; empty: as the query does. ``types`` are those that it keeps, of all its columns; empty where they follow
    the tables, or nobody knows.
    """

    name: str
    sql: str
    schema: str = ""
    selected: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    types: tuple[SparkType, ...] = ()

    def relation(self, parts: Sequence[str]) -> str:
        """The canonical name of what the query calls by these parts.

        >>> view = DatabaseView("stg.v", "", "spark_catalog.raw")
        >>> view.relation(["orders"]), view.relation(["Shop", "orders"]), view.relation(["main", "shop", "orders"])
        ('raw.orders', 'shop.orders', 'main.shop.orders')
        """
        around = split_name(self.schema)
        whole = [*around[: max(0, len(around) - len(parts) + 1)], *parts]
        if len(whole) > 2 and whole[0].lower() == SPARK_CATALOG:
            whole = whole[1:]
        return relation_name(*whole)
