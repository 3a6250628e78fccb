"""``adapter.fivm_history`` shows the last refreshes."""

from __future__ import annotations

from typing import Any

from fivm_dbt.bridge.connection import engine_of
from fivm_dbt.bridge.models import model_node, nodes_of, state_of_node
from fivm_dbt.naming import canonical
from fivm_dbt.refresh.history import Refreshed, history, table_of


def fivm_history(adapter: Any, model: str | None, limit: int) -> list[str]:
    """The last refreshes of a model, or of all of the project, newest first: a heading and a line for each."""
    nodes = list(nodes_of(adapter).fivm_models()) if model is None else [model_node(adapter, model)]
    engine, found = engine_of(adapter), list[Refreshed]()
    for node in nodes:
        relation = canonical(adapter.Relation.create_from(adapter.config, node).render())
        found += history(engine, relation, state_of_node(adapter, node), limit)
    found.sort(key=lambda refreshed: refreshed.at, reverse=True)
    return table_of(found[:limit]) if found else ["no refresh is known"]
