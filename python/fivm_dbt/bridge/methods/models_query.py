"""``adapter.fivm_models_query`` tells ``models/monitoring`` which models there are."""

from __future__ import annotations

from typing import Any

from fivm_dbt.bridge.models import nodes_of, relation_of_node
from fivm_dbt.spark.rows import query_of_rows

_COLUMNS = {"model": "STRING", "materialized": "STRING", "inputs": "STRING", "description": "STRING"}


def fivm_models_query(adapter: Any) -> str:
    """A query that gives a row for each fivm and viewdf model of the project."""
    nodes = nodes_of(adapter)
    rows = [
        (
            relation_of_node(adapter, node),
            str(node.config.materialized),
            ", ".join(sorted(nodes.inputs_of(node))),
            str(node.description) or None,
        )
        for node in nodes.fivm_models()
    ]
    return query_of_rows(_COLUMNS, rows).sql("spark", pretty=True)
