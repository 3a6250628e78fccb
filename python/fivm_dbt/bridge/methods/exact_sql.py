"""``adapter.fivm_exact_sql`` gives the query for rows in which a model differs from its full recompute."""

from __future__ import annotations

from typing import Any

from fivm_dbt.bridge.connection import engine_of
from fivm_dbt.bridge.models import model_node, plan_of_node
from fivm_dbt.bridge.told import told
from fivm_dbt.refresh.compare import difference_sql


def fivm_exact_sql(adapter: Any, relation: str) -> str:
    """A query for the rows in which a model differs from its full recompute."""
    with told(relation):
        plan = plan_of_node(adapter, model_node(adapter, relation))
        return difference_sql(plan, engine_of(adapter))
