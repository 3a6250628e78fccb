"""Warnings about keys are dbt's own, which ``--warn-error`` and ``warn_error_options`` know."""

from __future__ import annotations

from typing import Any

from dbt.events.types import JinjaLogWarning
from dbt_common.events.functions import warn_or_error

from fivm_dbt.project.manifest import Nodes
from fivm_dbt.project.unused_keys import unused_keys


def warn_of_unused_keys(adapter: Any, nodes: Nodes) -> None:
    """Tell which keys of models do nothing, once in each command."""
    told: set[str] = adapter.__dict__.setdefault("fivm_told", set())
    for node in nodes.fivm_models():
        found = list(unused_keys(node.config.to_dict(omit_none=True)))
        if found and node.unique_id not in told:
            told.add(node.unique_id)
            warn_or_error(JinjaLogWarning(msg=f"fivm: {node.name}: {'; '.join(found)}"), node=node)
