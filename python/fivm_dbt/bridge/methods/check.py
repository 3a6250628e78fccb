"""``adapter.fivm_check`` tells what is wrong with a project's inputs."""

from __future__ import annotations

from typing import Any

from fivm_dbt.bridge.connection import execute_of
from fivm_dbt.bridge.models import nodes_of
from fivm_dbt.operations.checks import Finding, check_inputs


def fivm_check(adapter: Any) -> list[dict[str, str]]:
    """What ``fivm doctor`` has to say about the inputs of the project's models."""
    findings: list[Finding] = check_inputs(execute_of(adapter), nodes_of(adapter))
    return [{"level": f.level, "text": f.text} for f in findings]
