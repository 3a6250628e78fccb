"""``adapter.fivm_learn`` trains a model from moments that fivm maintains."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from dbt.adapters.contracts.connection import AdapterResponse

from fivm_dbt.bridge.connection import engine_of
from fivm_dbt.bridge.told import told
from fivm_dbt.errors import FivmError
from fivm_dbt.naming import canonical


def fivm_learn(adapter: Any, request: Mapping[str, Any]) -> dict[str, Any]:
    """Train a model where that is called for; what dbt has to know about it."""
    relation, existing = request["relation"], request["existing"]
    with told(relation):
        train_model = _trainer()
        is_other = existing is not None and not existing.is_table
        done = train_model(
            engine_of(adapter),
            canonical(relation.render()),
            kind=request["materialized"],
            sql=request["sql"],
            meta=request["meta"],
            full_refresh=bool(request["full_refresh"]),
            make_way=partial(adapter.drop_relation, existing) if is_other else None,
        )
    return {
        "response": AdapterResponse(_message=done.action, rows_affected=done.rows),
        "line": f"fivm: {done.line}",
    }


def _trainer() -> Any:
    """What trains models. Raises FIVM505 where NumPy is missing, which nothing else needs."""
    try:
        from fivm_dbt.operations.train import train_model
    except ModuleNotFoundError as error:
        if error.name != "numpy":
            raise
        raise FivmError(
            "FIVM505", "numpy is missing, which trains models", remedy='pip install "numpy>=1.26"'
        ) from None
    return train_model
