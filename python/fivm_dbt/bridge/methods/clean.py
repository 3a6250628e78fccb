"""``adapter.fivm_clean`` lists what removed models have left, and drops it if asked to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fivm_dbt.bridge.connection import execute_of
from fivm_dbt.bridge.models import nodes_of
from fivm_dbt.naming import kept_under
from fivm_dbt.operations.clean import drop, leftovers
from fivm_dbt.project.manifest import kept_in


def fivm_clean(adapter: Any, dry_run: bool, schemas: Sequence[str]) -> list[str]:
    """Find, and unless ``dry_run`` drop, what models of this project that are gone have left; a line for each.

    Looked for in the schemas of its fivm models and of their states, in the target's own, and in ``schemas``.
    """
    nodes = nodes_of(adapter)
    there = [*nodes.fivm_models(), *nodes.disabled_fivm_models()]
    models = [(adapter.Relation.create_from(adapter.config, node), kept_in(node)) for node in there]
    own = str(adapter.config.credentials.schema)
    places = {own, *(str(m.schema) for m, _ in models if m.schema), *(k for _, k in models if k), *schemas}
    execute = execute_of(adapter)
    kept = {m.render(): kept_under(m.render(), k) for m, k in models}
    found = leftovers(execute, places, str(adapter.config.project_name), kept)
    lines = [f"{'view ' if item.is_view else 'table'} {item.name}, of {item.model}" for item in found]
    if not found:
        return [f"nothing is left of models that are gone (looked in {', '.join(sorted(places))})"]
    if dry_run:
        return [*lines, "nothing was dropped; to drop these, add --args '{dry_run: false}'"]
    drop(execute, found)
    return [f"dropped {line}" for line in lines]
