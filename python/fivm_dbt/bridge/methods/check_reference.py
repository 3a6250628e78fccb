"""``adapter.fivm_check_reference`` refuses a reference to parts that is wrong by itself."""

from __future__ import annotations

from typing import Any

from fivm_dbt.features.viewdf.bridge.checks import check_reference


def fivm_check_reference(adapter: Any, model: str, relation: str, low: Any, high: Any, is_own: bool) -> None:
    """Raise for a reference to parts that is wrong by itself."""
    check_reference(model, relation, low, high, is_own)
