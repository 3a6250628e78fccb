"""``adapter.fivm_history`` shows the last refreshes."""

from __future__ import annotations

from typing import Any

from fivm_dbt.bridge.connection import engine_of
from fivm_dbt.bridge.models import model_node, nodes_of, relation_of_node, state_of_node
from fivm_dbt.refresh.history import Refreshed, history, table_of


def fivm_history(adapter: Any, model: str | None, limit: int) -> list[str]:
    """The last refreshes of a model, or of all of the project, newest first: a heading and a line for each."""
    nodes = list(nodes_of(adapter).fivm_models()) if model is None else [model_node(adapter, model)]
    found = refreshes_of(adapter, nodes, limit)
    found.sort(key=lambda refreshed: refreshed.at, reverse=True)
    return table_of(found[:limit]) if found else ["no refresh is known"]


def refreshes_of(adapter: Any, nodes: list[Any], limit: int) -> list[Refreshed]:
    """The last refreshes of each of these models, newest first, model by model."""
    engine, found = engine_of(adapter), list[Refreshed]()
    for node in nodes:
        found += history(engine, relation_of_node(adapter, node), state_of_node(adapter, node), limit)
    return found
