"""``adapter.fivm_drop_parts`` lists old parts of sources, and drops them if asked to."""

from __future__ import annotations

from typing import Any

from fivm_dbt.bridge.connection import engine_of, session_settings
from fivm_dbt.bridge.models import nodes_of
from fivm_dbt.ir.moments import session_zone
from fivm_dbt.operations.drop_parts import drop_old_parts, old_parts
from fivm_dbt.project.inputs import read_retained


def fivm_drop_parts(adapter: Any, dry_run: bool) -> list[str]:
    """Find, and unless ``dry_run`` delete, parts of sources that are older than their retention; a line for each."""
    engine = engine_of(adapter)
    zone = session_zone(session_settings(engine))
    found = [
        old_parts(engine, relation, lateness, readers)
        for relation, lateness, readers in read_retained(engine.described, nodes_of(adapter), zone)
    ]
    if not found:
        return ["nothing to drop: no source has meta fivm_retention"]
    if dry_run:
        listed = [str(item) for item in found]
        can_go = any(item.can_go for item in found)
        return [
            *listed,
            "nothing was deleted" + ("; to delete these, add --args '{dry_run: false}'" if can_go else ""),
        ]
    kept = [str(item) for item in found if not item.can_go]
    return [*(f"deleted {item}" for item in drop_old_parts(engine, found)), *kept]
