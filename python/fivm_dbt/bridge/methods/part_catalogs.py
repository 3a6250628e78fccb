"""``adapter.fivm_part_catalogs`` finds the catalogs of parts of a schema."""

from __future__ import annotations

from typing import Any

from fivm_dbt.naming import PARTS


def fivm_part_catalogs(adapter: Any, database: str | None, schema: str) -> list[Any]:
    """The relations of a schema that are catalogs of parts, in the order of their names."""
    found = [r for r in adapter.list_relations(database, schema) if r.identifier.endswith(PARTS)]
    return sorted(found, key=lambda relation: relation.identifier)
