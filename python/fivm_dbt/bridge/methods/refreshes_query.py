"""``adapter.fivm_refreshes_query`` gives ``models/monitoring`` the last refreshes of all models."""

from __future__ import annotations

from typing import Any

from fivm_dbt.bridge.methods.history import refreshes_of
from fivm_dbt.bridge.models import nodes_of
from fivm_dbt.refresh.history import query_of


def fivm_refreshes_query(adapter: Any, limit: int) -> str:
    """A query that gives a row for each of the last ``limit`` refreshes of each model."""
    return query_of(refreshes_of(adapter, nodes_of(adapter).fivm_models(), limit)).sql("spark", pretty=True)
