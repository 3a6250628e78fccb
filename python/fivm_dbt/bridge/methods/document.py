"""``adapter.fivm_document`` puts descriptions on a model's view."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fivm_dbt.bridge.connection import description_of, execute_of
from fivm_dbt.engines.spark.documentation import Documentation, document


def fivm_document(adapter: Any, relation: Any, comment: str | None, columns: Mapping[str, str]) -> None:
    """Put descriptions on a model's view, where they differ from those that it has."""
    wanted = Documentation(comment or None, {name.lower(): text for name, text in columns.items() if text})
    described = description_of(adapter, relation)
    assert described is not None, "its model has just been refreshed"
    document(execute_of(adapter), relation.render(), described, wanted)
