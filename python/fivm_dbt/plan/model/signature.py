"""The signature says what a state depends on, part by part, as a build records it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from fivm_dbt.ir.printer import render
from fivm_dbt.plan.model.state import StateTable
from fivm_dbt.plan.model.view import View

STATE = "state version"
"""The part of the signature that names the layout of states."""

STATE_VERSION = 5
"""Raised when the layout of state tables or of their heads changes; part of every plan hash."""

_INNER_VIEW = "inner view "
"""What a part of the signature about an inner view begins with; then its relation."""

_LONG, _HASHED = 200, "sha256 "
"""Parts of a recorded signature that have more characters are hashes, which begin so."""


def shortened(signature: Mapping[str, str]) -> dict[str, str]:
    """A signature with hashes for what is long: enough to see what differs, and what it was where that is short."""
    return {
        part: text if len(text) <= _LONG else _HASHED + hashlib.sha256(text.encode()).hexdigest()[:16]
        for part, text in signature.items()
    }


def is_hashed(text: str) -> bool:
    """Whether a part of a shortened signature is a hash."""
    return text.startswith(_HASHED)


def inner_views(signature: Mapping[str, str]) -> set[str]:
    """The inner views of a plan by its signature, as it is recorded with a build."""
    return {part.removeprefix(_INNER_VIEW) for part in signature if part.startswith(_INNER_VIEW)}


def inner_view(view: View) -> tuple[str, str]:
    """The part about an inner view, and its text."""
    partitioned = f"{view.state.partitioning.kind} {partition_text(view.state)}"
    text = f"{layout_text(view.state)} {partitioned} {render(view.core)}"
    return f"{_INNER_VIEW}{view.name}", text


def layout_text(state: StateTable) -> str:
    """What a state table has of each row."""
    keys = [[k.name, k.value.sql, k.type.text] for k in state.keys]
    rows = [] if state.rows is None else [["rows", state.rows.sql]]
    rows += [["each row once"]] if state.is_set else []
    return json.dumps(keys + rows + [[p.name, p.lift_sql, p.type.text] for p in state.payload])


def partition_text(state: StateTable) -> str:
    """By what the rows of a state table are placed."""
    by = state.partitioning
    return by.expression.sql if by.expression is not None else str(by.buckets or "by size")
