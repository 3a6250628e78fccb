"""``adapter.fivm_is_partial`` says whether models see only a part of their inputs."""

from __future__ import annotations

from typing import Any


def fivm_is_partial(adapter: Any) -> bool:
    """Whether this invocation shows models only a part of their inputs: ``--empty`` or ``--sample``."""
    args = adapter.config.args
    return bool(getattr(args, "EMPTY", False) or getattr(args, "SAMPLE", None))
