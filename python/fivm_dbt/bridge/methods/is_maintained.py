"""``adapter.fivm_is_maintained`` says whether a relation is a fivm model's."""

from __future__ import annotations

from typing import Any

from fivm_dbt.bridge.connection import description_of


def fivm_is_maintained(adapter: Any, relation: Any) -> bool:
    """Whether a relation is a fivm model's view over its state, or the table that follows it."""
    described = description_of(adapter, relation)
    if described is None:
        return False
    return described.presentation is not None or described.is_factorized or described.is_exposed
