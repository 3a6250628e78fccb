"""``adapter.fivm_is_maintained`` says whether a relation is a fivm model's view."""

from __future__ import annotations

from typing import Any

from fivm_dbt.bridge.connection import description_of


def fivm_is_maintained(adapter: Any, relation: Any) -> bool:
    """Whether a relation is a fivm model's view over its state."""
    described = description_of(adapter, relation)
    return described is not None and (described.presentation is not None or described.is_factorized)
