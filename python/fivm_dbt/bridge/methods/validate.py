"""``adapter.fivm_validate`` reports a wrong configuration before hooks run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fivm_dbt.bridge.models import config_of
from fivm_dbt.bridge.told import told


def fivm_validate(adapter: Any, request: Mapping[str, Any]) -> None:
    """Raise for a configuration that is wrong, before hooks run."""
    with told(request["relation"]):
        config_of(request)
